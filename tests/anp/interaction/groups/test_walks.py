"""Walks of a hub and five members: links lose, repeat and reorder, and all get killed.

What a side stored is what it has after a kill; everything else is gone. Whatever
happens, all members hear one order, nobody hears anything twice or hears itself, and
what a member was told to be taken is in the log of the hub once. When links are well
again, all members have everything that is theirs, and nothing waits any more.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from anp.interaction.elements import Party
from anp.interaction.errors import InteractionError
from anp.interaction.groups.elements import Group, GroupPolicy, JoinRule
from anp.interaction.groups.hub_records import Asked, GroupEvent
from anp.interaction.groups.member_copy import CopyEvent, GroupCopy
from anp.interaction.groups.membership import GroupMachine
from anp.interaction.groups.operations import GroupAct, GroupPost, Membership
from anp.protocols.gbz.group_reader import read_group_frame
from anp.protocols.gbz.group_writer import group_frame, write_distributed
from anp.protocols.gbz.writer import json_bytes
from anp.protocols.line import FurtherFrame
from tests.anp.interaction.talk import NOW, message
from tests.clauses import clause

WALKS = int(os.environ.get("ANPD_WALKS", "50"))
"Walks of one run; `make walks` has 2,000."

HUB = "did:key:zHub"
MEMBERS = [f"did:key:z{number}" for number in range(5)]
MAX = 1 << 20

one_member = st.sampled_from(MEMBERS)
one_other = st.sampled_from(MEMBERS[1:])


def read(data: bytes) -> tuple[GroupPost, int]:
    frame = read_group_frame(data, max_size=MAX)
    assert isinstance(frame, FurtherFrame)
    assert isinstance(frame.operation, GroupPost)
    return frame.operation, frame.ref


@dataclass
class MemberSide:
    """One member: its copy, and what of that it stored."""

    did: str
    copy: GroupCopy
    group: Group
    "As it was stored."

    heard: list[CopyEvent] = field(default_factory=list)
    stored: int = 0
    "Events of `heard` that are stored."

    waits: dict[int, bytes] = field(default_factory=dict)
    "What it said, and the hub has not taken; that is stored at once."

    taken: dict[int, int] = field(default_factory=dict)
    "Numbers of what it said, as it was told."

    up: list[bytes] = field(default_factory=list)
    down: list[Any] = field(default_factory=list)
    sent: int = 0
    "Number of the event that the hub sent last."

    is_there: bool = False


class GroupWalk(RuleBasedStateMachine):
    """A hub that is no member, a group, and five agents."""

    @initialize(history=st.sampled_from([0, 2, None]))
    def begin(self, history: int | None) -> None:
        self.refs, self.tickets, self.now = count(1), count(1), NOW
        policy = GroupPolicy(join=JoinRule.BOTH, rate=0, history=history)
        group = Group(id="g", hub=Party(id=HUB), owner=MEMBERS[0], policy=policy)
        self.hub, step = GroupMachine.create(
            group, wall_now=NOW, make_id=self.make_ticket
        )
        self.log: list[GroupEvent] = list(step.events)
        self.stored, self.head = len(self.log), self.hub.head
        self.sides = {did: MemberSide(did, GroupCopy(group), group) for did in MEMBERS}
        self.truth: dict[int, tuple[str, str]] = {}
        self.connect(MEMBERS[0])

    def make_ticket(self) -> str:
        return f"t{next(self.tickets)}"

    # What members do.

    @rule(did=one_member)
    def say(self, did: str) -> None:
        side = self.sides[did]
        if self.hub.hears(did) and len(side.waits) < 8:
            ref = next(self.refs)
            said = message(f"m{ref}", sender=did)
            post = GroupPost(group="g", content=said)
            side.waits[ref] = data = json_bytes(group_frame(post, ref))
            if side.is_there:
                side.up.append(data)

    @rule(did=one_other)
    def join(self, did: str) -> None:
        if not self.hub.hears(did):
            invited = self.act(
                MEMBERS[0], Membership(act=GroupAct.INVITE, member=Party(id=did))
            )
            assert invited is not None
            self.act(did, Membership(act=GroupAct.ACCEPT, ticket=invited))
            self.store()

    @rule(did=one_other, is_removed=st.booleans())
    def go(self, did: str, is_removed: bool) -> None:
        if is_removed:
            change = Membership(act=GroupAct.REMOVE, member=Party(id=did))
            self.act(MEMBERS[0], change)
        else:
            self.act(did, Membership(act=GroupAct.LEAVE))
        if not self.hub.hears(did):
            # What nobody took is never taken, and its member is told so.
            self.sides[did].waits.clear()

    # Links.

    @rule(did=one_member)
    def connect(self, did: str) -> None:
        side = self.sides[did]
        side.up.clear()
        side.down.clear()
        side.is_there = self.hub.hears(did)
        if side.is_there:
            self.fetch(side)
            side.up += side.waits.values()

    @rule(did=one_member)
    def cut(self, did: str) -> None:
        self.sides[did].is_there = False
        self.sides[did].up.clear()
        self.sides[did].down.clear()

    @rule(did=one_member, data=st.data(), again=st.booleans())
    def hub_reads(self, did: str, data: st.DataObject, again: bool) -> None:
        frames = self.sides[did].up
        if frames:
            place = data.draw(st.integers(0, len(frames) - 1))
            frame = frames[place] if again else frames.pop(place)
            self.take(did, frame)

    @rule(did=one_member, data=st.data(), again=st.booleans())
    def member_reads(self, did: str, data: st.DataObject, again: bool) -> None:
        side = self.sides[did]
        if side.down:
            place = data.draw(st.integers(0, len(side.down) - 1))
            self.hear(side, side.down[place] if again else side.down.pop(place))

    @rule(did=one_member)
    def lose(self, did: str) -> None:
        side = self.sides[did]
        del side.up[:1], side.down[:1]

    # Stores, and kills.

    @rule()
    def store(self) -> None:
        """Store what the hub took, and distribute it."""
        self.stored, self.head = len(self.log), self.hub.head
        for side in self.sides.values():
            if side.is_there:
                self.distribute(side)

    @rule(did=one_member)
    def member_stores(self, did: str) -> None:
        side = self.sides[did]
        side.stored, side.group = len(side.heard), side.copy.group

    @rule()
    def kill_hub(self) -> None:
        del self.log[self.stored :]
        self.hub = GroupMachine(self.head, self.make_ticket)
        for event in self.log:
            self.hub.recall(number=event.number, by=event.by, ref=event.ref)
        for did in MEMBERS:
            self.cut(did)

    @rule(did=one_member)
    def kill_member(self, did: str) -> None:
        side = self.sides[did]
        self.cut(did)
        del side.heard[side.stored :]
        last = side.heard[-1].number if side.heard else 0
        side.copy = GroupCopy(side.group, last=last)

    # What must hold.

    @invariant()
    def all_hear_one_order(self) -> None:
        if not hasattr(self, "sides"):
            return
        for number, event in enumerate(self.log, 1):
            assert event.number == number
        said = [_id(one.post) for one in self.log if _id(one.post)]
        assert len(said) == len(set(said))
        for side in self.sides.values():
            numbers = [one.number for one in side.heard]
            assert numbers == sorted(set(numbers))
            for one in side.heard:
                truth = self.log[one.number - 1]
                assert truth.number <= self.stored
                assert one.post.by == truth.by
                if truth.by != side.did:
                    assert _id(one.post) == _id(truth.post)
                assert not one.repeated
            for ref, number in side.taken.items():
                assert (self.log[number - 1].by, self.log[number - 1].ref) == (
                    side.did,
                    ref,
                )

    def teardown(self) -> None:
        if not hasattr(self, "sides"):
            return
        here = [one for one in self.sides.values() if self.hub.hears(one.did)]
        for side in here:
            self.connect(side.did)
        self.store()
        # The hub reads what was said, and then each member all that is for it.
        for side in here:
            while side.up:
                self.take(side.did, side.up.pop(0))
        self.store()
        for side in here:
            while side.down:
                self.hear(side, side.down.pop(0))
            assert not side.waits
            assert not side.copy.has_gap
            assert side.copy.last == len(self.log)
            known = [one.number for one in side.heard]
            since = self.hub.floors[side.did]
            wanted = [one.number for one in self.log if one.number > since]
            assert set(wanted) <= set(known)
            assert side.copy.group.members == self.hub.group.members
            assert side.copy.group.epoch == self.hub.group.epoch
        self.all_hear_one_order()

    # The shells, as far as they decide nothing.

    def act(self, did: str, change: Membership) -> str | None:
        post = GroupPost(group="g", content=change)
        try:
            step = self.hub.take(self.asked(post, did, next(self.refs)))
        except InteractionError:
            return None
        self.log += step.events
        return step.answer.ticket

    def asked(self, post: GroupPost, did: str, ref: int) -> Asked:
        self.now += timedelta(milliseconds=1)
        return Asked(post, did, ref, 100, 0.0, self.now)

    def take(self, did: str, data: bytes) -> None:
        post, ref = read(data)
        try:
            step = self.hub.take(self.asked(post, did, ref))
        except InteractionError:
            # It is no member any more, or is none again.
            assert not self.hub.hears(did) or ref not in self.sides[did].waits
            return
        self.log += step.events
        if not step.events and step.answer.posted[0][1] <= self.stored:
            self.sides[did].down.append(step.answer.posted)

    def fetch(self, side: MemberSide) -> None:
        after = self.hub.after(side.did, side.copy.last)
        side.down.append((self.hub.group, after))
        side.sent = after
        self.distribute(side)

    def distribute(self, side: MemberSide) -> None:
        last = self.stored if self.hub.hears(side.did) else 0
        last = last or self.hub.leavers.get(side.did, 0)
        for one in self.log[side.sent : min(last, self.stored)]:
            side.sent = one.number
            if one.by == side.did and one.ref:
                side.down.append(((one.ref, one.number),))
                continue
            frame = one.post.frame or group_frame(one.post, one.number)
            side.down.append(
                write_distributed(
                    frame, number=one.number, epoch=one.epoch, at=one.at, by=one.by
                )
            )

    def hear(self, side: MemberSide, told: Any) -> None:
        match told:
            case bytes():
                post, _ = read(told)
                side.heard += side.copy.deliver([post])
            case (Group() as group, int(after)):
                side.heard += side.copy.fetched(group, after)
            case pairs:
                for ref, number in pairs:
                    data = side.waits.pop(ref, None)
                    if data is not None:
                        side.taken[ref] = number
                    side.heard += side.copy.deliver([_own(side, number, data)])


def _own(side: MemberSide, number: int, data: bytes | None) -> GroupPost:
    post = GroupPost(group="g", content=Membership(act=GroupAct.INVITE))
    if data is not None:
        post = read(data)[0]
    epoch = side.copy.group.epoch
    return replace(post, number=number, by=side.did, epoch=epoch)


def _id(post: GroupPost) -> str:
    return str(getattr(post.content, "id", ""))


GroupWalk.TestCase.settings = settings(
    max_examples=WALKS, stateful_step_count=30, deadline=None
)


TestGroupWalks = clause("GBZ-12", "GBZ-17")(GroupWalk.TestCase)
