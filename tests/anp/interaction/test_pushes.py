"""Addresses that are told of a task, and results that end one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anp.interaction.elements import MessagePurpose, PushTarget, TaskChange
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.record import InteractionLimits
from anp.interaction.states import TaskState
from anp.interaction.stored import read_head
from tests.anp.interaction.talk import BOB, Side, message, pair, pump, task

TARGET = PushTarget(
    task="t", id="a", url="https://push.example/", version="1.0", credentials="secret"
)


def working() -> tuple[Side, Side]:
    alice, bob = pair()
    alice.do(lambda one: one.create(task(), wall_now=alice.wall))
    pump(alice, bob)
    bob.do(lambda one: one.report("t", TaskState.WORKING, wall_now=bob.wall))
    pump(alice, bob)
    return alice, bob


def told(side: Side, name: str, *, done: bool) -> None:
    """Set an address, and tell it something."""
    side.do(lambda one: one.push(replace(TARGET, id=name)))
    side.do(lambda one: one.pushed("t", name, told=9, done=done))


def test_an_address_is_in_the_head_and_in_no_event() -> None:
    _, bob = working()
    before = len(bob.events)
    step = bob.do(lambda one: one.push(TARGET))
    assert step.is_head_changed
    assert len(bob.events) == before
    assert read_head(bob.head).pushes == (TARGET,)


def test_a_session_is_unfinished_until_its_address_is_told_of_the_end() -> None:
    alice, bob = working()
    bob.do(lambda one: one.push(TARGET))
    bob.do(lambda one: one.report("t", TaskState.COMPLETED, wall_now=bob.wall))
    pump(alice, bob)
    assert bob.conversation.is_busy
    last = bob.conversation.last
    bob.do(lambda one: one.pushed("t", "a", told=last, done=True))
    assert not bob.conversation.is_busy
    (kept,) = read_head(bob.head).pushes
    assert kept == replace(TARGET, told=last, done=True)


def test_who_sets_an_address_when_all_is_over_is_told_nothing() -> None:
    alice, bob = working()
    bob.do(lambda one: one.report("t", TaskState.COMPLETED, wall_now=bob.wall))
    pump(alice, bob)
    last = bob.conversation.last
    bob.do(lambda one: one.push(replace(TARGET, told=last)))
    assert not bob.conversation.is_busy
    # One whose address was lost with a kill is told all of it.
    bob.do(lambda one: one.push(TARGET))
    assert bob.conversation.is_busy


def test_addresses_are_replaced_taken_back_and_limited() -> None:
    _, bob = working()
    for number in range(InteractionLimits().max_pushes):
        told(bob, str(number), done=False)
    with pytest.raises(InteractionError) as caught:
        bob.do(lambda one: one.push(replace(TARGET, id="one more")))
    assert caught.value.code == InteractionFault.TOO_MANY
    bob.do(lambda one: one.push(replace(TARGET, id="0", url="https://new.example/")))
    assert bob.conversation.pushes["t", "0"].url == "https://new.example/"
    bob.do(lambda one: one.stop_push("t", "0"))
    assert ("t", "0") not in bob.conversation.pushes
    # What is under way for it brings it not back.
    assert not bob.do(
        lambda one: one.pushed("t", "0", told=9, done=False)
    ).is_head_changed


def test_the_last_result_and_the_end_are_one_step() -> None:
    alice, bob = working()
    result = message("r", BOB, task="t", purpose=MessagePurpose.RESULT, final=True)
    step = bob.do(lambda one: one.give(result, wall_now=bob.wall))
    assert [type(event.content) for event in step.events] == [type(result), TaskChange]
    pump(alice, bob)
    for side in (alice, bob):
        assert side.conversation.tasks["t"].state == TaskState.COMPLETED
    assert [one for step in alice.steps for one in step.whole] == [result]


def test_a_result_after_the_end_changes_nothing() -> None:
    alice, bob = working()
    bob.do(lambda one: one.report("t", TaskState.FAILED, wall_now=bob.wall))
    pump(alice, bob)
    before = bob.conversation.last
    result = message("r", BOB, task="t", purpose=MessagePurpose.RESULT, final=True)
    with pytest.raises(InteractionError):
        bob.do(lambda one: one.give(result, wall_now=bob.wall))
    assert bob.conversation.last == before


def test_of_addresses_that_were_told_the_end_only_the_newest_are_kept() -> None:
    _, bob = working()
    for number in range(25):
        told(bob, str(number), done=number > 4)
    names = [name for _, name in bob.conversation.pushes]
    assert names == [*map(str, range(5)), *map(str, range(15, 25))]
