"""Groups that the owner's settings name: made, filled, changed, left as they are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anp.interaction.elements import Part
from anp.interaction.groups.elements import JoinRule
from anp.interaction.groups.member_state import MemberState
from anp.sidecar.config.groups import GroupEntry
from anp.sidecar.groups.presets import GroupPresets
from tests.anp.sidecar.groups.net import Node, net_in, texts
from tests.clauses import clause
from tests.waiting import until


def presets(node: Node, **entry: Any) -> tuple[GroupPresets, str]:
    """Return the presets of a daemon, and the id of their only group."""
    wanted = GroupEntry(name="Nightly build", **entry)
    found = GroupPresets(
        node.groups,
        node,  # type: ignore[arg-type]  # has `find`
        [wanted],
        own=node.did,
    )
    return found, found.id_of(wanted)


@asynccontextmanager
async def set_up(node: Node, **entry: Any) -> AsyncIterator[str]:
    """Start with these settings, and wait until they are in effect."""
    found, group = presets(node, **entry)
    found.start()
    try:
        await until(lambda: found.is_settled)
        yield group
    finally:
        await found.close()


def members(node: Node, group: str) -> set[str]:
    return {one.id for one in node.groups.known(group).group.members}


def state(node: Node, group: str) -> MemberState | None:
    known = {one.group.id: one.state for one in node.groups.all()}
    return known.get(group)


@clause("GBZ-13")
async def test_the_settings_make_a_group_and_change_it(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b", "c", "d") as (net, (a, b, c, d)):
        for one in (b, c):
            await net.again(one, accept="listed")
        b, c = net.nodes["b"], net.nodes["c"]
        async with set_up(a, members=("c", "d"), admins=("b",), rate=7) as group:
            await until(lambda: members(a, group) == {a.did, b.did, c.did})
        known = a.groups.known(group)
        assert (known.group.name, known.group.admins) == ("Nightly build", (b.did,))
        assert known.group.policy.rate == 7
        assert known.preset == (b.did, c.did, d.did)
        await until(lambda: state(d, group) is MemberState.INVITED)
        await d.groups.decline(group)
        # The next start finds it as it is, and asks nobody twice.
        a = await net.again(a, kill=True)
        async with set_up(a, members=("c", "d"), admins=("b",), rate=7):
            assert a.groups.known(group).last == 3
            assert not any(one.is_open for one in a.groups.known(group).tickets)
        # The table changes: one goes, the other manages it no more, and rules change.
        a = await net.again(a)
        async with set_up(a, members=("b",), join="both", history="all", seal=False):
            await until(lambda: members(a, group) == {a.did, b.did})
        await until(lambda: state(c, group) is MemberState.REMOVED)
        known = a.groups.known(group)
        assert (known.group.admins, known.preset) == ((), (b.did,))
        assert known.group.policy.join is JoinRule.BOTH
        await until(lambda: b.groups.known(group).group.policy.join is JoinRule.BOTH)
        assert known.preset_problems == ()
        # A reload is told to members that are there; what it leaves out goes on.
        found, _ = presets(a, members=("b",))
        found.start()
        entry = GroupEntry(name="Nightly build", members=("b",), rate=9)
        found.replace([entry])
        await until(lambda: b.groups.known(group).group.policy.rate == 9)
        await until(lambda: found.is_settled)
        found.replace([])
        (problem,) = a.groups.known(group).preset_problems
        assert "goes on as it is" in problem
        await found.close()


@clause("GBZ-13", "GBZ-16")
async def test_a_third_party_presets_a_group_for_its_owner(tmp_path: Path) -> None:
    async with net_in(tmp_path, "hub", "a", "b") as (net, (hub, a, b)):
        a = await net.again(a, accept="listed")
        b = await net.again(b, accept="listed")
        async with set_up(hub, owner="a", members=("b",)) as group:
            await until(lambda: members(hub, group) == {a.did, b.did})
        assert hub.groups.known(group).group.owner == a.did
        await until(lambda: state(a, group) is MemberState.MEMBER)
        await a.groups.post(group, [Part.text("mine")])
        assert await texts(b, group, 1) == ["mine"]
        # The owner manages what it did not make.
        await a.groups.remove(group, b.did)
        await until(lambda: state(b, group) is MemberState.REMOVED)


@clause("GBZ-13")
async def test_what_cannot_be_changed_is_said(tmp_path: Path) -> None:
    async with net_in(tmp_path, "hub", "a", "b") as (net, (hub, a, b)):
        hub = await net.again(hub, hub_for="listed")
        await b.stop()
        found, group = presets(a, members=("b",), hub="hub", rate=5)
        found.start()
        # A peer that cannot be found is waited for, by itself.
        await until(lambda: a.groups.preset_problems.get(group) is not None)
        b = await net.again(b, accept="listed")
        await until(lambda: state(b, group) is MemberState.MEMBER)
        await found.close()
        a = await net.again(a)
        async with set_up(a, members=("b",), admins=("b",), hub="hub", seal=True):
            told = a.groups.known(group).preset_problems
            assert [one.partition(":")[0] for one in told] == [
                "seal",
                "join, history, max_members, max_message and rate",
                "admins",
            ]
        async with set_up(a, members=("b",)):
            assert "hub" in a.groups.known(group).preset_problems[0]
        assert members(a, group) == {a.did, b.did}
