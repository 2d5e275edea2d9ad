"""A group outlives the daemon that distributes it, in a fleet."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from anp.interaction.errors import InteractionError
from tests.anp.sidecar.groups.fleet import (
    SharedStore,
    fleet_in,
    go_on_after_kill,
    grow,
    lapse,
    settle,
    spread,
)
from tests.anp.sidecar.groups.net import join, note, texts
from tests.waiting import until


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
