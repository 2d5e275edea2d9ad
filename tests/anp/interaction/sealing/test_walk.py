"""Walks of members and a hub: what an honest one shows is read, an attack is noticed.

The group itself has an honest hub. Each attack is tried on a copy of one member, made
of its stored rows, so that a walk goes on after it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from anp.interaction.sealing.encoding import SealingMeans
from anp.interaction.sealing.errors import SealingError, SealingFault, Suspicion
from anp.interaction.sealing.member import SealedMember
from anp.interaction.sealing.membership import ChangeKind, MemberChange
from anp.interaction.sealing.message import MessageHeader, SealedBytes
from tests.anp.interaction.sealing.circle import (
    NOW,
    Circle,
    Item,
    did_of,
    drawn,
    signer,
    verifies,
)

NAMES = ("ann", "bob", "cyd", "dan", "eve")
names = st.sampled_from(NAMES)

EXAMPLES = int(os.environ.get("ANPD_SEALING_WALKS", "25"))
"Walks in one run; `make` targets and people ask for more."

MAX_CHANGES = 6
"Fewer than the epochs whose keys are kept, so that everything can be read in the end."


def header_of(item: Item) -> MessageHeader:
    return SealedBytes(item.data).header


class Walk(RuleBasedStateMachine):
    """Five agents; the first three found the group."""

    def __init__(self) -> None:
        super().__init__()
        self.circle = Circle(*NAMES[:3])
        for name in NAMES[3:]:
            self.circle.join(name)
            self.circle.settle()
        self.said: list[tuple[str, Item]] = []
        self.changes = 0

    # Honest steps

    def is_member(self, name: str) -> bool:
        return self.circle.agents[name].member.is_member

    @rule(name=names)
    def say(self, name: str) -> None:
        if self.is_member(name):
            text = f"{name} {len(self.said)}"
            self.said.append((text, self.circle.say(name, text)))

    @rule(name=names, count=st.integers(1, 6))
    def deliver(self, name: str, count: int) -> None:
        end = min(len(self.circle.log), self.circle.agents[name].cursor + count)
        self.circle.deliver(name, end)

    @rule(name=names)
    def restart(self, name: str) -> None:
        if self.circle.agents[name].rows:
            self.circle.agents[name].restart()

    @precondition(lambda self: self.changes < MAX_CHANGES)
    @rule(name=st.sampled_from(NAMES[1:]))
    def change(self, name: str) -> None:
        self.circle.deliver("ann")
        ann = self.circle.agents["ann"].member
        is_in = did_of(name) in ann.chain.members
        kind = ChangeKind.REMOVE if is_in else ChangeKind.ADD
        self.circle.post("ann", ann.propose([MemberChange(kind, did_of(name))], at=NOW))
        self.changes += 1

    # Attacks

    def copy(self, name: str) -> SealedMember:
        return SealedMember.restore(
            self.circle.agents[name].rows,
            SealingMeans(signer(name), verifies, drawn("copy")),
        )

    def fed(self, name: str, items: Sequence[Item]) -> set[Suspicion | SealingFault]:
        """Give items to a copy of an agent and return what it notices."""
        member, found = self.copy(name), set[Suspicion | SealingFault]()
        for item in items:
            try:
                if item.data and item.by == name:
                    member.place(item.epoch, item.counter)
                elif item.data:
                    found |= set(member.open(item.data).suspicions)
                else:
                    found |= set(member.take(item.value).suspicions)
            except SealingError as exc:
                if item.data:
                    found.add(exc.code)
        return found

    def waiting(self, name: str) -> list[Item]:
        return self.circle.log[self.circle.agents[name].cursor :]

    @rule(name=names, data=st.data())
    def repeat(self, name: str, data: st.DataObject) -> None:
        agent = self.circle.agents[name]
        seen = [one for one in self.circle.log[: agent.cursor] if one.data]
        if seen and agent.rows:
            item = data.draw(st.sampled_from(seen))
            found = self.fed(name, [item])
            assert found <= {SealingFault.REPEATED, SealingFault.OLD}
            assert found

    @rule(name=names, data=st.data())
    def forge(self, name: str, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(self.waiting(name) or [Item("")]))
        if item.data and self.is_member(name):
            place = data.draw(st.integers(0, len(item.data) - 1))
            changed = bytearray(item.data)
            changed[place] ^= 1
            member = self.copy(name)
            try:
                member.open(bytes(changed))
            except SealingError:
                assert not member.changed_rows()
            else:
                raise AssertionError("a changed message was opened")

    @rule(name=names, data=st.data())
    def withhold(self, name: str, data: st.DataObject) -> None:
        """Leave a message out: noticed as soon as somebody who saw it speaks."""
        waiting = self.waiting(name)
        places = [
            place for place, one in enumerate(waiting) if one.data and one.by != name
        ]
        if not places or not self.is_member(name):
            return
        place = data.draw(st.sampled_from(places))
        if self.fed(name, waiting):
            # It cannot open some of them yet, so that it stops there either way.
            return
        gone, rest = waiting[place], waiting[place + 1 :]
        later = [header_of(one) for one in rest if one.data and one.by != name]
        later = [one for one in later if one.entry == header_of(gone).entry]
        count = self._count(gone)
        is_told = any(
            one.sender == header_of(gone).sender or one.seen.count >= count
            for one in later
        )
        found = self.fed(name, waiting[:place] + rest)
        assert bool(found) >= is_told

    @rule(name=names, data=st.data())
    def swap(self, name: str, data: st.DataObject) -> None:
        """Exchange two messages: noticed as soon as somebody who saw both speaks."""
        waiting = self.waiting(name)
        pairs = [
            place
            for place, (one, two) in enumerate(pairwise(waiting))
            if one.data and two.data and name not in (one.by, two.by)
        ]
        if not pairs or not self.is_member(name) or self.fed(name, waiting):
            return
        place = data.draw(st.sampled_from(pairs))
        one, two = waiting[place], waiting[place + 1]
        if header_of(one).entry != header_of(two).entry:
            return
        rest = waiting[place + 2 :]
        later = [header_of(three) for three in rest if three.data and three.by != name]
        is_told = one.by == two.by or any(
            three.entry == header_of(one).entry
            and three.seen.count in (self._count(one), self._count(two))
            for three in later
        )
        found = self.fed(name, [*waiting[:place], two, one, *rest])
        assert bool(found) >= is_told

    def _count(self, item: Item) -> int:
        """Return which message of its epoch an item is, from 1."""
        entry = header_of(item).entry
        before = self.circle.log[: self.circle.log.index(item) + 1]
        return sum(1 for one in before if one.data and header_of(one).entry == entry)

    # Truths

    @invariant()
    def nobody_is_suspected(self) -> None:
        assert not any(one.suspicions for one in self.circle.agents.values())

    def teardown(self) -> None:
        self.circle.settle()
        self.nobody_is_suspected()
        chain = self.circle.agents["ann"].member.chain
        for name, agent in self.circle.agents.items():
            texts = [*agent.texts]
            for data in agent.locked:
                # If its sender was removed before, the key never comes.
                with suppress(SealingError):
                    texts.append(agent.member.unlock(data).decode())
            assert len(texts) == len(set(texts))
            for text, item in self.said:
                epochs = [
                    self._members(one) for one in range(item.epoch, chain.epoch + 1)
                ]
                if did_of(name) not in epochs[0]:
                    assert text not in texts
                elif item.by != name and all(
                    {did_of(name), did_of(item.by)} <= one for one in epochs
                ):
                    assert text in texts

    def _members(self, epoch: int) -> set[str]:
        """Return the members of an epoch, by all entries up to it."""
        members: set[str] = set()
        for entry in self.circle.agents["ann"].member.chain.entries[:epoch]:
            for change in entry.changes:
                if change.kind is ChangeKind.ADD:
                    members.add(change.did)
                else:
                    members.discard(change.did)
        return members


def test_walks_of_members_and_a_hub() -> None:
    run_state_machine_as_test(
        Walk,
        settings=settings(max_examples=EXAMPLES, stateful_step_count=30, deadline=None),
    )
