"""Conversations over a link that loses, repeats and reorders, with kills of both sides.

No state comes out of the table, whatever happens; and when the link is well again, both
sides have the same messages and the same states of tasks.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anp.interaction.elements import Chunk, Message, Task, TaskChange, TaskProgress
from anp.interaction.errors import InteractionError
from anp.interaction.operations import Acknowledgement, Send
from anp.interaction.states import (
    TERMINAL,
    TaskState,
    is_legal,
    is_started,
    is_terminal,
    next_states,
)
from tests.anp.interaction.talk import ALICE, BOB, Side, message, task
from tests.clauses import clause
from tests.loops.long import LONG

STATES = ["accepted", "working", "x-input-required", "x-auth-required", *TERMINAL]


THOUSANDS = [0, *(pytest.param(one * 1000, marks=LONG) for one in range(1, 5))]
"Numbers of the first of each thousand conversations."

Carry = Callable[[Send], Send]
"The way of an operation over the link, such as to bytes and back."


def _as_it_is(send: Send) -> Send:
    return send


class Walk:
    """Two sides, the link between them, and what was acknowledged or started."""

    def __init__(self, choose: random.Random, carry: Carry = _as_it_is) -> None:
        self.choose = choose
        self.carry = carry
        self.alice, self.bob = Side(ALICE), Side(BOB)
        self.under_way: list[tuple[Side, Side, Send]] = []
        self.count = 0
        self.acknowledged: set[tuple[str, int]] = set()
        self.started: Counter[str] = Counter()
        self.alice.begin()

    def sides(self) -> tuple[Side, Side]:
        pair = [self.alice, self.bob]
        self.choose.shuffle(pair)
        return pair[0], pair[1]

    def collect(self) -> None:
        for sender, receiver in (
            (self.alice, self.bob),
            (self.bob, self.alice),
        ):
            self.under_way += [(sender, receiver, one) for one in sender.sent()]

    def deliver(self, *, fair: bool = False) -> None:
        if not self.under_way:
            return
        index = 0 if fair else self.choose.randrange(len(self.under_way))
        fate = (
            "deliver"
            if fair
            else self.choose.choice(["deliver"] * 4 + ["lose", "repeat"])
        )
        sender, receiver, send = self.under_way[index]
        if fate != "repeat":
            del self.under_way[index]
        if fate != "lose":
            if isinstance(send.operation, Acknowledgement):
                self.acknowledged.add((receiver.own, send.operation.ref))
            receiver.receive(self.carry(send), sender.own)
            if receiver.machine is not None:
                self.follow(receiver)
        self.collect()

    def act(self) -> None:
        """Let an agent do something, allowed or not."""
        side, _ = self.sides()
        if side.machine is None:
            return
        names = [*side.conversation.tasks, "none"]
        name = self.choose.choice(names)
        self.count += 1
        fresh = f"{side.own[-3:]}{self.count}"
        chunk: Any = self.choose.choice([None, None, Chunk(index=0, last=True)])
        said = message(
            fresh, side.own, task=self.choose.choice([name, ""]), chunk=chunk
        )
        needed = tuple(self.choose.sample(names[:-1], min(1, len(names) - 1)))
        made = task(fresh, depends_on=self.choose.choice([(), (), needed]))
        acts: list[Any] = [
            lambda one: one.post(said, wall_now=side.wall),
            lambda one: one.create(made, wall_now=side.wall),
            lambda one: one.cancel(name, wall_now=side.wall),
            lambda one: self.report(side, name),
            lambda one: self.report(side, name),
            lambda one: one.progress(TaskProgress(task=name), wall_now=side.wall),
        ]
        if self.choose.random() < 0.02:
            acts = [lambda one: one.close(wall_now=side.wall)]
        before = side.conversation.head
        try:
            side.do(self.choose.choice(acts))
        except InteractionError:
            assert side.conversation.head == before
        self.follow(side)
        self.collect()

    def report(self, side: Side, name: str) -> Any:
        state = self.choose.choice(STATES)
        before = side.conversation.tasks.get(name)
        step = side.conversation.report(name, state, wall_now=side.wall)
        assert before is not None
        is_new = is_started(before.state)
        if step.events and not is_new and is_started(state):
            self.started[name] += 1
        return step

    def follow(self, side: Side) -> None:
        """Do what the last steps ask of the shell."""
        log = side.log if any(step.resend for step in side.steps) else []
        for step in side.steps:
            for peer, number in step.resend:
                again = side.conversation.operation_of(log[number - 1], peer)
                side.outgoing.append(again)
            for name in step.ready:
                conversation = side.conversation
                if conversation.tasks[name].state == TaskState.HELD:
                    made = task(name)
                    side.store(
                        conversation.release(made, inputs=(), wall_now=side.wall)
                    )
        side.steps.clear()

    def kill(self) -> None:
        side, other = self.sides()
        side.kill()
        if side.machine is not None:
            step = side.do(
                lambda one: one.recover(may_repeat=_never, wall_now=side.wall)
            )
            for name in step.start:
                self.started[name] += is_started(side.conversation.tasks[name].state)
        side.repeat(other.own)
        self.collect()

    def settle(self) -> None:
        """Let the link be well until both sides have said everything."""
        for _ in range(50):
            self.under_way.clear()
            for side, other in ((self.alice, self.bob), (self.bob, self.alice)):
                side.repeat(other.own)
            self.collect()
            if not self.under_way:
                return
            while self.under_way:
                self.deliver(fair=True)
            for side in (self.alice, self.bob):
                if side.machine is not None:
                    self.follow(side)
        raise AssertionError("the two sides never end")


def _never(_: object) -> bool:
    return False


def check_log(side: Side) -> None:
    """Check the numbers and every change of state in a log."""
    now: dict[str, str] = {}
    for number, event in enumerate(side.log, start=1):
        assert event.number == number
        content = event.content
        if isinstance(content, TaskChange):
            old = now[content.task]
            assert is_legal(content.state)
            row = next_states(old)
            assert content.state in row or (
                content.state.startswith("x-") and "x-" in row
            ), f"{old} -> {content.state}"
            now[content.task] = content.state
        elif isinstance(content, Task):
            assert now.get(content.id) in (None, TaskState.HELD)
            now[content.id] = content.state
    assert now == {name: one.state for name, one in side.conversation.tasks.items()}


def messages(side: Side, by: str) -> list[str]:
    return sorted(
        event.content.id
        for event in side.log
        if isinstance(event.content, Message) and event.by == by
    )


def walk(seed: int, steps: int, carry: Carry = _as_it_is) -> int:
    """Walk once; return the number of events."""
    one = Walk(random.Random(seed), carry)
    one.collect()
    for _ in range(steps):
        what = one.choose.random()
        if what < 0.45:
            one.deliver()
        elif what < 0.93:
            one.act()
        elif what < 0.97:
            one.kill()
        else:
            for side, other in ((one.alice, one.bob), (one.bob, one.alice)):
                side.repeat(other.own)
            one.collect()
    one.settle()
    alice, bob = one.alice, one.bob
    check_log(alice)
    if bob.machine is None:
        return len(alice.events)
    check_log(bob)
    # Nothing that one side acknowledged is missing there.
    for sender, receiver in ((alice, bob), (bob, alice)):
        known = messages(receiver, sender.own)
        assert len({*known}) == len(known)
        for event in sender.log:
            content = event.content
            was_acknowledged = (sender.own, event.number) in one.acknowledged
            if (
                isinstance(content, Message)
                and event.by == sender.own
                and was_acknowledged
            ):
                assert content.id in known
        # Nothing is left to say.
        assert sender.conversation.unacknowledged(receiver.own) == []
    # A result is never refused, so all of the service's messages have come.
    assert set(messages(bob, BOB)) >= set(messages(alice, BOB))
    for name, task_of_bob in bob.conversation.tasks.items():
        assert alice.conversation.tasks[name].state == task_of_bob.state
    assert all(count <= 1 for count in one.started.values())
    for name, task_of_alice in alice.conversation.tasks.items():
        if name not in bob.conversation.tasks:
            assert task_of_alice.state == TaskState.HELD or is_terminal(
                task_of_alice.state
            )
    return len(alice.events) + len(bob.events)


@clause("GBZ-22", "GBZ-38", "GBZ-Q2", "GBZ-Q12", "GBZ-Q16")
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(20, 120))
def test_a_conversation_over_a_bad_link_ends_the_same_on_both_sides(
    seed: int, steps: int
) -> None:
    walk(seed, steps)


@pytest.mark.slow
@clause("GBZ-Q2", "GBZ-Q16")
@pytest.mark.parametrize("first", THOUSANDS)
def test_five_thousand_conversations_find_no_illegal_state(first: int) -> None:
    events = sum(walk(seed, 40) for seed in range(first, first + 1000))
    assert events > 10_000
