"""Groups of daemons: three in one process, over real links."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.elements import Message, Part, SenderRole
from anp.interaction.errors import InteractionError
from anp.interaction.groups.elements import GroupPolicy, JoinRule
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.groups.member import MemberState
from anp.sidecar.home.home import Home
from cache.records.peers import PeerState
from tests.clauses import clause
from tests.waiting import until


def daemon(folder: Path, name: str, **flags: Any) -> Daemon:
    home = Home(folder / name)
    home.create()
    settings = {"listen.port": 0, "consensus.use": False, **flags}
    config = load_config(home, home_given=True, flags=settings, environ={}, cwd=folder)
    return Daemon(home, config)


@asynccontextmanager
async def daemons(folder: Path, *names: str, **flags: Any) -> AsyncIterator[list[Any]]:
    made = [daemon(folder, name, **flags) for name in names]
    async with asyncio.timeout(20), AsyncExitStack() as stack:
        for one in made:
            await stack.enter_async_context(one.running())
        yield made


def place(one: Daemon) -> str:
    return f"{one.url}#{one.did}"


def note(one: Daemon, group: str, number: int) -> Message:
    return Message(
        id=f"m{number}",
        session=group,
        sender=one.identities.canonical,
        role=SenderRole.REQUESTER,
        parts=(Part.text(f"{number}"),),
    )


async def member(hub: Daemon, group: str, one: Daemon) -> None:
    """Have a daemon invited, and let it accept."""
    await hub.groups.invite(group, place(one))
    await until(lambda: any(known.group.id == group for known in one.groups.all()))
    await one.groups.accept(group, is_owner=True)


async def said(one: Daemon, group: str, count: int) -> list[tuple[int, str, str]]:
    """Return the first messages of a group, as a daemon has them."""
    found: list[tuple[int, str, str]] = []
    async for event in one.groups.watch(group):
        frame = event.frame()
        if frame["op"] == "message.send":
            text = frame["dataItems"][0]["payload"]
            found.append((event.number, text, event.mark))
            if len(found) >= count:
                break
    return found


@clause("GBZ-5", "GBZ-11", "GBZ-12", "GBZ-14", "GBZ-17")
async def test_a_group_of_three_hears_one_order(tmp_path: Path) -> None:
    async with daemons(tmp_path, "a", "b", "c") as (a, b, c):
        group = (await a.groups.create(name="Build")).group.id
        for one in (b, c):
            await member(a, group, one)
        assert b.groups.known(group).state is MemberState.MEMBER
        for number in range(3):
            for one in (b, a, c):
                _, got = await one.groups.post(group, [Part.text(f"{number}")])
                assert got is not None
        heard = [await said(one, group, 9) for one in (a, b, c)]
        assert [one[:2] for one in heard[0]] == [one[:2] for one in heard[1]]
        # C joined after B did, and before anything was said.
        assert [one[:2] for one in heard[2]] == [one[:2] for one in heard[0]]
        assert {mark for _, _, mark in heard[1]} == {"signed"}


@clause("GBZ-15")
async def test_who_applies_is_reviewed_and_hears_the_time_before(
    tmp_path: Path,
) -> None:
    async with daemons(tmp_path, "a", "b") as (a, b):
        policy = GroupPolicy(join=JoinRule.APPLY, history=None)
        group = (await a.groups.create(policy=policy)).group.id
        await a.groups.post(group, [Part.text("before")])
        known = await b.groups.apply(place(a), group, text="please")
        assert known.state is MemberState.APPLIED
        (ticket,) = a.groups.known(group).tickets
        assert (ticket.applied, ticket.text) == (True, "please")
        await a.groups.answer(group, ticket.id, approve=True)
        await until(lambda: b.groups.known(group).state is MemberState.MEMBER)
        await a.groups.post(group, [Part.text("after")])
        assert [one[1] for one in await said(b, group, 2)] == ["before", "after"]


@clause("GBZ-13", "GBZ-16")
async def test_a_third_party_distributes_and_lets_agents_in(tmp_path: Path) -> None:
    async with daemons(tmp_path, "hub", "a", "b", **{"groups.hub_for": "listed"}) as (
        hub,
        a,
        b,
    ):
        with pytest.raises(InteractionError, match="no hub for others"):
            await a.groups.create(hub=place(hub))
        await hub.policy.rule(a.did, PeerState.ALLOWED)
        made = await a.groups.create(hub=place(hub), admins=[hub.identities.canonical])
        group = made.group.id
        assert hub.groups.known(group).is_hub
        # The third party invites on behalf of the requester.
        await member(hub, group, b)
        assert {one.id for one in hub.groups.known(group).group.members} == {
            a.identities.canonical,
            b.identities.canonical,
        }
        await until(lambda: len(a.groups.known(group).group.members) == 2)
        await a.groups.post(group, [Part.text("to b")])
        await b.groups.post(group, [Part.text("to a")])
        heard = ["to b", "to a"]
        for one in (a, b):
            assert [text for _, text, _ in await said(one, group, 2)] == heard
        # A remote admin removes a member, which then hears of that alone.
        await a.groups.remove(group, b.identities.canonical)
        await until(lambda: b.groups.known(group).state is MemberState.REMOVED)
        with pytest.raises(InteractionError):
            await b.groups.post(group, [Part.text("late")])


@clause("GBZ-12", "GBZ-17")
async def test_what_an_absent_member_missed_comes_when_hub_and_member_are_back(
    tmp_path: Path,
) -> None:
    a, b = daemon(tmp_path, "a"), daemon(tmp_path, "b")
    async with asyncio.timeout(30):
        async with a.running():
            async with b.running():
                made = await a.groups.create(policy=GroupPolicy(rate=0))
                group = made.group.id
                await member(a, group, b)
                port = a.port
            posts = (note(a, group, number) for number in range(1000))
            await asyncio.gather(*(a.groups.say(group, one) for one in posts))
        a = daemon(tmp_path, "a", **{"listen.port": port})
        b = daemon(tmp_path, "b")
        async with a.running(), b.running():
            assert len(await said(b, group, 1000)) == 1000
            _, number = await b.groups.post(group, [Part.text("back")])
            assert number == a.groups.known(group).last
            # What was said while nobody listens at the hub goes out later.
    async with asyncio.timeout(30):
        b = daemon(tmp_path, "b")
        async with b.running():
            _, number = await b.groups.post(group, [Part.text("queued")], timeout=0.1)
            assert number is None
        b = daemon(tmp_path, "b")
        a = daemon(tmp_path, "a", **{"listen.port": port})
        async with a.running(), b.running():
            assert (await said(a, group, 1002))[-1][1] == "queued"
