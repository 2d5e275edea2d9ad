"""A group outlives the daemon that distributes it, in a fleet."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.errors import InteractionError
from anp.sidecar.groups import wires
from anp.sidecar.groups.hub.branch import GroupBranch
from tests.anp.sidecar.groups.fleet import (
    SharedStore,
    fleet_in,
    go_on_after_kill,
    grow,
    kill,
    lapse,
    served,
    settle,
    spread,
)
from tests.anp.sidecar.groups.net import join, note, texts
from tests.waiting import until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have members see soon that a line has ended."""
    monkeypatch.setattr(wires, "CHECK", 0.05)


async def test_a_sister_goes_on_with_a_group_whose_daemon_was_killed(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "shared"
    async with fleet_in(tmp_path, lambda: SharedStore(shared), "b", "c") as run:
        await go_on_after_kill(*run)


async def test_members_are_served_by_every_daemon_of_the_fleet(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    async with fleet_in(tmp_path, lambda: SharedStore(shared), "b", "c", "d") as run:
        await grow(*run)


async def test_members_are_spread_over_the_fleet(tmp_path: Path) -> None:
    shared, names = tmp_path / "shared", ("b", "c", "d", "e")
    async with fleet_in(tmp_path, lambda: SharedStore(shared), *names) as run:
        await spread(*run)


async def test_what_a_sister_could_not_pass_on_is_said_again_in_order(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "shared"
    async with fleet_in(tmp_path, lambda: SharedStore(shared), "b", "c") as (
        net,
        nodes,
    ):
        one, other, b, c = nodes
        group = (await one.groups.create(admins=[c.did])).group.id
        await join(one, group, c)
        net.walls |= {("one", "c"), ("other", "c")}
        net.routes["c"] = "other"
        c.cut()
        await until(lambda: served(other) == {c.did})
        # An admin that the hub does not reach hears of applications over the sister.
        await join(c, group, b)
        store: Any = other.store
        store.is_cut = True
        said = [
            asyncio.create_task(c.groups.say(group, note(c, group, str(number))))
            for number in range(3)
        ]
        await until(lambda: not other.groups._sisters.branches)
        store.is_cut = False
        assert await asyncio.gather(*said) == [4, 5, 6]
        # The hub is killed while a message is under way to it.
        await kill(one)
        waiting = asyncio.create_task(c.groups.say(group, note(c, group, "3")))
        lapse(one, group, other.store)
        await settle(other)
        assert other.groups.known(group).is_hub
        assert await waiting in (7, None)
        assert await texts(other, group, 4) == ["0", "1", "2", "3"]
        assert await texts(b, group, 4) == ["0", "1", "2", "3"]


async def test_one_that_was_away_too_long_stores_and_says_nothing_more(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "shared"
    async with fleet_in(tmp_path, lambda: SharedStore(shared), "b") as (net, nodes):
        one, other, b = nodes
        group = (await one.groups.create()).group.id
        await join(one, group, b)
        await b.groups.say(group, note(b, group, "first"))
        # It does not know that its time is over.
        lapse(one, group, one.store)
        await settle(other)
        assert other.groups.known(group).is_hub
        with pytest.raises(InteractionError, match="another daemon"):
            await one.groups.say(group, note(one, group, "lost"))
        # Who dials comes to the first that is up.
        del net.nodes["one"]
        net.nodes["one"] = one
        await settle(one)
        assert one.groups.all() == []
        number = await b.groups.say(group, note(b, group, "second"))
        await until(lambda: other.groups.known(group).last == 4)
        assert number in (4, None)
        for node in (other, b):
            assert await texts(node, group, 2) == ["first", "second"]


async def test_a_daemon_that_stops_leaves_its_groups_at_once(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    async with fleet_in(tmp_path, lambda: SharedStore(shared), "b") as (_, nodes):
        one, other, b = nodes
        group = (await one.groups.create()).group.id
        await join(one, group, b)
        # A group of others, in which the fleet takes part, belongs to one of them, too.
        theirs = (await b.groups.create()).group.id
        await join(b, theirs, one)
        # Those that live are told of it.
        await settle(other)
        await until(lambda: bool(one.groups._sisters._heard))
        await one.stop()
        # The member comes by itself to a daemon that has not looked yet.
        await until(lambda: bool(other.groups.all()))
        await settle(other)
        assert len(other.groups.all()) == 2
        await b.groups.say(group, note(b, group, "here"))
        await b.groups.say(theirs, note(b, theirs, "there"))
        heard = await asyncio.gather(
            texts(other, group, 1), texts(other, theirs, 1), texts(b, group, 1)
        )
        assert list(heard) == [["here"], ["there"], ["here"]]


async def test_what_is_opened_for_a_sisters_group_is_dropped_if_the_hub_comes_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members that asked it for events would not hear those of the hub."""
    opening, go_on = asyncio.Event(), asyncio.Event()
    opened = GroupBranch.open

    async def slow(*args: Any, **also: Any) -> GroupBranch | None:
        found = await opened(*args, **also)
        opening.set()
        await go_on.wait()
        return found

    monkeypatch.setattr(GroupBranch, "open", slow)
    shared = tmp_path / "shared"
    async with fleet_in(tmp_path, lambda: SharedStore(shared), "b") as (_, nodes):
        one, other, b = nodes
        group = (await one.groups.create()).group.id
        await join(one, group, b)
        sisters = other.groups._sisters
        asking = asyncio.create_task(sisters._open(group))
        await opening.wait()
        await one.stop()
        await settle(other)
        await until(lambda: group in other.groups._hubs)
        go_on.set()
        assert await asking is None
        assert not sisters.branches
