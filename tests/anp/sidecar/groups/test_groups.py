"""Groups of several daemons in memory: order, absence, kills, floods, forgeries."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError
from anp.identity.public_keys import PublicKey
from anp.interaction.elements import Part, Task, TaskChange
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.elements import GroupPolicy, JoinRule
from anp.interaction.groups.member_state import MemberState
from anp.interaction.operations import TaskUpdate
from anp.interaction.states import TaskState
from anp.protocols.gbz import GBZ_GROUPS_URI
from anp.sidecar.groups.hub.hub import GroupHub
from tests.anp.sidecar.groups.net import (
    Node,
    is_closed,
    join,
    joined,
    net_in,
    note,
    texts,
)
from tests.clauses import clause
from tests.waiting import until


def state(node: Node, group: str) -> MemberState:
    return node.groups.known(group).state


async def numbers(node: Node, group: str, last: int) -> list[int]:
    """Return the numbers of all events that a daemon has, up to one."""
    found = []
    async for event in node.groups.watch(group):
        found.append(event.number)
        if event.number >= last:
            break
    return found


@clause("GBZ-5", "GBZ-11", "GBZ-12", "GBZ-14", "GBZ-17")
async def test_all_members_hear_one_order_and_nobody_itself(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b", "c", "d") as (_, nodes):
        hub, *others = nodes
        group = await joined(hub, *others)
        posts = [
            one.groups.say(group, note(one, group, f"{one.name}{number}"))
            for number in range(25)
            for one in nodes
        ]
        given = await asyncio.gather(*posts)
        assert {*given} == {*range(5, 105)}
        heard = [await texts(one, group, 100) for one in nodes]
        assert all(one == heard[0] for one in heard)
        assert len(set(heard[0])) == 100


@clause("GBZ-15")
async def test_who_applies_is_reviewed_and_hears_the_time_before(
    tmp_path: Path,
) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (_, (a, b, c)):
        policy = GroupPolicy(join=JoinRule.APPLY, history=None)
        group = await joined(a, policy=policy)
        await a.groups.post(group, [Part.text("before")])
        known = await b.groups.apply("a", group, text="please")
        assert known.state is MemberState.APPLIED
        (ticket,) = a.groups.known(group).tickets
        assert (ticket.applied, ticket.text) == (True, "please")
        await a.groups.answer(group, ticket.id, approve=True)
        await until(lambda: state(b, group) is MemberState.MEMBER)
        await a.groups.post(group, [Part.text("after")])
        assert await texts(b, group, 2) == ["before", "after"]
        async for event in b.groups.watch(group):
            assert event.frame().get("replayed", False) is (event.number < 3)
            if event.number == 4:
                break
        await c.groups.apply("a", group)
        (ticket,) = a.groups.known(group).tickets
        await a.groups.answer(group, ticket.id, approve=False)
        await until(lambda: state(c, group) is MemberState.DENIED)


@clause("GBZ-13", "GBZ-16")
async def test_a_third_party_distributes_and_lets_agents_in(tmp_path: Path) -> None:
    async with net_in(tmp_path, "hub", "a", "b") as (net, (hub, a, b)):
        with pytest.raises(InteractionError, match="no hub for others"):
            await a.groups.create(hub="hub")
        hub = await net.again(hub, hub_for="listed")
        made = await a.groups.create(hub="hub", admins=[hub.did])
        group = made.group.id
        assert hub.groups.known(group).is_hub
        # The third party invites on behalf of the requester.
        await join(hub, group, b)
        members = {one.id for one in hub.groups.known(group).group.members}
        assert members == {a.did, b.did}
        await until(lambda: len(a.groups.known(group).group.members) == 2)
        await a.groups.post(group, [Part.text("to b")])
        await b.groups.post(group, [Part.text("to a")])
        for one in (a, b):
            assert await texts(one, group, 2) == ["to b", "to a"]
        # The requester removes a member, which hears of that and of nothing more.
        await a.groups.remove(group, b.did)
        for pipe in b.pipes:
            # It does not acknowledge that, and what follows is not for it.
            pipe.stuck = True
        await a.groups.post(group, [Part.text("without b")])
        await until(lambda: state(b, group) is MemberState.REMOVED)
        with pytest.raises(InteractionError):
            await b.groups.post(group, [Part.text("late")])
        await a.groups.close_group(group)
        await until(lambda: is_closed(a, group))


async def test_a_thousand_wait_for_an_absent_member(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (net, (a, b, c)):
        group = await joined(a, b, c)
        await b.stop()
        said = [a.groups.say(group, note(a, group, f"{one}")) for one in range(1000)]
        await asyncio.gather(*said)
        # Nobody else waited for it.
        assert len(await texts(c, group, 1000)) == 1000
        b = await net.again(b)
        assert await texts(b, group, 1000) == [f"{one}" for one in range(1000)]


async def test_a_killed_hub_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (net, (a, b, c)):
        group = await joined(a, b, c)
        for round_ in range(5):
            said = [
                asyncio.create_task(
                    one.groups.say(group, note(one, group, f"{one.name}{round_}{each}"))
                )
                for each in range(10)
                for one in (b, c)
            ]
            await asyncio.wait(said, return_when=asyncio.FIRST_COMPLETED)
            a = await net.again(a, kill=True)
            await asyncio.gather(*said)
        heard = [await texts(one, group, 100) for one in (a, b, c)]
        assert all(one == heard[0] for one in heard)
        assert len(set(heard[0])) == 100


async def test_a_killed_member_gets_again_what_it_had_not_stored(
    tmp_path: Path,
) -> None:
    async with net_in(tmp_path, "a", "b") as (net, (a, b)):
        group = await joined(a, b)
        for round_ in range(5):
            posts = [note(a, group, f"{round_}.{one}") for one in range(20)]
            await asyncio.gather(*(a.groups.say(group, one) for one in posts))
            b = await net.again(b, kill=True)
        heard = await texts(b, group, 100)
        assert heard == [f"{round_}.{one}" for round_ in range(5) for one in range(20)]


async def test_what_is_said_without_the_hub_goes_out_later(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b") as (net, (a, b)):
        group = await joined(a, b)
        await a.stop()
        _, number = await b.groups.post(group, [Part.text("queued")])
        assert number is None
        b = await net.again(b)
        a = await net.again(a)
        assert await texts(a, group, 1) == ["queued"]
        assert await texts(b, group, 1) == ["queued"]


async def test_what_waited_for_the_hub_is_not_said_again_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub knows the repeats of what was said lately, and has forgotten this one."""
    monkeypatch.setattr("anp.interaction.groups.membership.RECENT", 8)
    async with net_in(tmp_path, "a", "b") as (net, (a, b)):
        group = await joined(a, b)
        await a.stop()
        await b.groups.post(group, [Part.text("queued")])
        a = await net.again(a)
        assert await texts(b, group, 1) == ["queued"]
        for number in range(20):
            await a.groups.say(group, note(a, group, f"{number}"))
        expected = ["queued", *(f"{number}" for number in range(20))]
        assert await texts(b, group, 21) == expected
        b = await net.again(b, kill=True)
        await b.groups.say(group, note(b, group, "last"))
        assert await texts(a, group, 22) == [*expected, "last"]


async def test_a_line_that_breaks_between_post_and_answer_doubles_nothing(
    tmp_path: Path,
) -> None:
    async with net_in(tmp_path, "a", "b") as (_, (a, b)):
        group = await joined(a, b)
        for pipe in a.pipes:
            # The hub takes it, and its answer is lost.
            pipe.stuck = True
        saying = asyncio.create_task(b.groups.say(group, note(b, group, "once")))
        assert await texts(a, group, 1) == ["once"]
        a.cut()
        assert await saying == 3
        await a.groups.post(group, [Part.text("next")])
        assert await texts(b, group, 2) == ["once", "next"]
        assert await numbers(a, group, 4) == [1, 2, 3, 4]


async def test_a_member_that_reads_nothing_holds_up_nobody(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (_, (a, b, c)):
        group = await joined(a, b, c)
        for pipe in b.pipes:
            # It acknowledges nothing that it gets.
            pipe.stuck = True
        sent = [pipe.other.sent for pipe in b.pipes]
        said = [a.groups.say(group, note(a, group, f"{one}")) for one in range(1500)]
        await asyncio.gather(*said)
        assert len(await texts(c, group, 1500)) == 1500
        more = [pipe.other.sent for pipe in b.pipes]
        assert sum(more) - sum(sent) <= 1100


async def test_a_flooding_member_is_held_up(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (_, (a, b, c)):
        group = await joined(a, b, c, policy=GroupPolicy(rate=40))
        posts = [b.groups.say(group, note(b, group, f"{one}")) for one in range(50)]
        found = await asyncio.gather(*posts, return_exceptions=True)
        refused = [one for one in found if isinstance(one, InteractionError)]
        assert {one.code for one in refused} == {InteractionFault.TOO_MANY}
        assert len(refused) == 40
        await c.groups.post(group, [Part.text("calm")])
        assert (await texts(a, group, 11))[-1] == "calm"


async def test_a_message_of_a_removed_member_in_flight_is_refused(
    tmp_path: Path,
) -> None:
    async with net_in(tmp_path, "a", "b") as (_, (a, b)):
        group = await joined(a, b)
        for pipe in a.pipes:
            # The member does not know yet that it is out.
            pipe.stuck = True
        await a.groups.remove(group, b.did)
        saying = asyncio.create_task(b.groups.say(group, note(b, group, "late")))
        await asyncio.sleep(0)
        for pipe in a.pipes:
            pipe.stuck = False
        a.cut()
        await until(lambda: state(b, group) is MemberState.REMOVED)
        with pytest.raises(InteractionError):
            await saying
        assert await numbers(a, group, 3) == [1, 2, 3]


async def test_after_leaving_nothing_comes(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (_, (a, b, c)):
        group = await joined(a, b, c)
        await b.groups.leave(group)
        assert state(b, group) is MemberState.LEFT
        await c.groups.post(group, [Part.text("without b")])
        assert await texts(a, group, 1) == ["without b"]
        assert b.groups.known(group).last < a.groups.known(group).last
        await b.groups.forget(group)
        assert b.groups.all() == []
        # It may be invited again.
        await join(a, group, b)
        await a.groups.post(group, [Part.text("with b")])
        assert await texts(b, group, 1) == ["with b"]


async def test_a_strangers_invitation_waits_for_the_owner(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b") as (net, (a, b)):
        net.listed.clear()
        group = await joined(a)
        await a.groups.invite(group, "b", text="come in")
        await until(lambda: len(b.groups.all()) == 1)
        assert state(b, group) is MemberState.INVITED
        with pytest.raises(CallError, match="owner"):
            await b.groups.accept(group)
        await b.groups.accept(group, is_owner=True)
        assert state(b, group) is MemberState.MEMBER


async def test_the_policy_accepts_invitations_of_listed_peers(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (net, (a, b, c)):
        b = await net.again(b, accept="listed")
        c = await net.again(c, accept="nobody")
        group = await joined(a)
        await a.groups.invite(group, "b")
        await until(lambda: b.name in _members(net, a, group))
        await a.groups.invite(group, "c")
        await asyncio.sleep(0)
        assert c.groups.all() == []


def _members(net: Any, hub: Node, group: str) -> set[str]:
    found = hub.groups.known(group).group.members
    return {one.name for one in net.nodes.values() if one.did in {m.id for m in found}}


async def test_a_declined_invitation_is_used(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b") as (_, (a, b)):
        group = await joined(a)
        await a.groups.invite(group, "b")
        await until(lambda: len(b.groups.all()) == 1)
        await b.groups.decline(group)
        assert state(b, group) is MemberState.DECLINED
        with pytest.raises(CallError):
            await b.groups.accept(group)
        assert a.groups.known(group).tickets == ()


@clause("GBZ-18")
async def test_the_first_member_to_accept_an_offer_gets_it(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (_, (a, b, c)):
        group = await joined(a, b, c)
        offer = Task(id="t", session=group, requester="", executor="")
        await a.groups.say(group, offer)
        told = TaskChange(task="t", state=TaskState.ACCEPTED)
        update = TaskUpdate(session=group, content=told)
        found = await asyncio.gather(
            *(one.groups.say(group, update) for one in (b, c)), return_exceptions=True
        )
        (refused,) = (one for one in found if isinstance(one, InteractionError))
        assert refused.code is InteractionFault.TAKEN


async def test_what_a_member_said_is_signed_and_a_hub_forges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (net, (a, b, c)):
        group = await joined(a, b, c)
        await b.groups.post(group, [Part.text("mine")])
        await texts(c, group, 1)
        send = GroupHub._send

        def forge(self: Any, cursor: Any, events: Any) -> None:
            for one in events:
                data = one.data.replace(b"true words", b"lies")
                object.__setattr__(one, "data", data)
            send(self, cursor, events)

        monkeypatch.setattr(GroupHub, "_send", forge)
        await b.groups.post(group, [Part.text("true words")])
        c = await net.again(c, sign=False)
        await c.groups.post(group, [Part.text("unsigned")])
        await texts(c, group, 3)
        marks = {}
        async for event in c.groups.watch(group):
            frame = event.frame()
            if frame["op"] == "message.send":
                marks[frame["dataItems"][0]["payload"]] = event.mark
            if len(marks) == 3:
                break
        assert marks["mine"] == "signed"
        assert marks["lies"] == "forged"


async def test_each_daemon_checks_a_signature_once_and_its_own_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (_, (a, b, c)):
        group = await joined(a, b, c)
        checked = []
        verifies = PublicKey.verifies

        def counted(self: PublicKey, signature: bytes, data: bytes) -> bool:
            checked.append(data)
            return verifies(self, signature, data)

        monkeypatch.setattr(PublicKey, "verifies", counted)
        await b.groups.post(group, [Part.text("hello")])
        await a.groups.post(group, [Part.text("hello again")])
        for one in (a, a, b, b, c, c):
            assert await texts(one, group, 2) == ["hello", "hello again"]
        # That of B by A and C, that of A by B and C.
        assert len(checked) == 4


async def test_a_stranger_learns_nothing_of_a_group(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (_, (a, b, c)):
        group = await joined(a, b)
        with pytest.raises(InteractionError) as caught:
            await c.groups.apply("a", group)
        assert caught.value.code is InteractionFault.NOT_ALLOWED
        with pytest.raises(InteractionError) as caught:
            await c.groups.apply("a", "none")
        assert caught.value.code is InteractionFault.UNKNOWN_GROUP


def _found(folder: Path, words: bytes) -> list[Path]:
    files = [one for one in folder.rglob("*") if one.is_file()]
    return [one for one in files if words in one.read_bytes()]


async def test_what_rests_is_encrypted(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b") as (_, (a, b)):
        group = await joined(a, b)
        await a.groups.post(group, [Part.text("very secret words")])
        await texts(b, group, 1)
    assert not _found(tmp_path, b"very secret")


async def test_old_groups_and_old_events_go(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b") as (net, (a, b)):
        group = await joined(a)
        for number in range(10):
            await a.groups.say(group, note(a, group, f"{number}"))
        a = await net.again(a, keep_events=4, keep_days=0)
        await a.groups.prune()
        assert await texts(a, group, 4, after=7) == ["6", "7", "8", "9"]
        await join(a, group, b)
        a.groups._hubs[group].machine.floors[b.did] = 0
        # A member that has nothing gets what is kept.
        b = await net.again(b)
        await a.groups.say(group, note(a, group, "new"))
        assert await texts(b, group, 5) == ["6", "7", "8", "9", "new"]
        await a.groups.close_group(group)
        await until(lambda: is_closed(b, group))
        await a.groups.prune()
        assert a.groups.all() == []


async def test_the_older_of_two_lines_serves_when_the_newer_one_ends(
    tmp_path: Path,
) -> None:
    async with net_in(tmp_path, "a", "b") as (_, (a, b)):
        group = await joined(a, b)
        await a.groups.post(group, [Part.text("over the first")])
        assert await texts(b, group, 1) == ["over the first"]
        target = await a.find("b")
        newer = await a.open(target, None, [])
        using = await a.lines.begin(newer, GBZ_GROUPS_URI, lambda: True)
        await a.groups.post(group, [Part.text("over the second")])
        await texts(b, group, 2)
        await using.channel.close("ended")
        await a.groups.post(group, [Part.text("over the first again")])
        assert (await texts(b, group, 3))[-1] == "over the first again"
        assert await b.groups.say(group, note(b, group, "heard")) is not None


@clause("GBZ-15")
async def test_an_application_is_taken_back_and_known_after_a_restart(
    tmp_path: Path,
) -> None:
    async with net_in(tmp_path, "hub", "a", "b") as (net, (hub, a, b)):
        hub = await net.again(hub, hub_for="listed")
        policy = GroupPolicy(join=JoinRule.APPLY)
        group = (await a.groups.create(hub="hub", policy=policy)).group.id
        await b.groups.apply("hub", group, text="please")
        await until(lambda: bool(a.groups.known(group).tickets))
        # The admin at another's hub, and the hub itself, know of it after a kill.
        a = await net.again(a, kill=True)
        assert [one.text for one in a.groups.known(group).tickets] == ["please"]
        known = await b.groups.leave(group)
        assert known.state is MemberState.LEFT
        await until(lambda: not a.groups.known(group).tickets)
        assert not hub.groups.known(group).tickets
        # It may apply again, also while the admin is away and the hub is killed.
        await a.stop()
        await b.groups.apply("hub", group, text="again")
        hub = await net.again(hub, kill=True, hub_for="listed")
        a = await net.again(a)
        await until(lambda: bool(a.groups.known(group).tickets))
        (ticket,) = a.groups.known(group).tickets
        await a.groups.answer(group, ticket.id, approve=True)
        await until(lambda: state(b, group) is MemberState.MEMBER)
        assert not a.groups.known(group).tickets


async def test_an_application_to_a_group_that_ended_is_taken_back(
    tmp_path: Path,
) -> None:
    async with net_in(tmp_path, "a", "b") as (_, (a, b)):
        group = await joined(a, policy=GroupPolicy(join=JoinRule.APPLY))
        await b.groups.apply("a", group)
        await a.groups.close_group(group)
        assert (await b.groups.leave(group)).state is MemberState.LEFT
        await b.groups.forget(group)


async def test_a_member_killed_after_its_message_was_taken_gets_it_whole(
    tmp_path: Path,
) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (net, (a, b, c)):
        group = await joined(a, b, c)
        assert await b.groups.say(group, note(b, group, "before")) is not None
        await texts(b, group, 1)
        for pipe in b.pipes:
            # The hub takes it, and its answer is lost.
            pipe.other.stuck = True
        saying = asyncio.create_task(b.groups.say(group, note(b, group, "mine")))
        assert await texts(a, group, 2) == ["before", "mine"]
        saying.cancel()
        b = await net.again(b, kill=True)
        await a.groups.post(group, [Part.text("after")])
        assert await texts(b, group, 3) == ["before", "mine", "after"]
        async for event in b.groups.watch(group, after=4):
            assert event.mark == "signed"
            if event.number == 6:
                break
        # Nobody else hears it again, and it hears itself no more than that.
        assert await texts(c, group, 3) == ["before", "mine", "after"]
