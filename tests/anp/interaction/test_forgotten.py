"""A peer that knows nothing of a session or task, or does not know it yet."""

from __future__ import annotations

from functools import partial

from anp.interaction.conversation import Conversation
from anp.interaction.elements import TaskProgress
from anp.interaction.operations import RefusedOperation, Send
from anp.interaction.states import TaskState
from anp.interaction.step import Step
from tests.anp.interaction.talk import (
    ALICE,
    BOB,
    NOW,
    Side,
    message,
    pair,
    pump,
    task,
)


def refuse(side: Side, ref: int, code: str) -> Step:
    """Have the service refuse an operation of the requester's."""
    operation = RefusedOperation(session="s", ref=ref, code=code, text="no")
    return side.receive(Send(to=side.own, ref=0, operation=operation), BOB)


def test_a_session_that_a_peer_does_not_know_is_told_again_and_never_dropped() -> None:
    alice = Side(ALICE)
    alice.begin()
    alice.do(lambda c: c.create(task(), wall_now=NOW))
    first, second = (send.ref for send in alice.sent())
    for _ in range(50):
        assert refuse(alice, first, "unknown_session").resend == [(BOB, first)]
        assert refuse(alice, second, "unknown_session").resend == []
    assert alice.conversation.unacknowledged(BOB) == [first, second]


def test_what_came_too_early_is_sent_again_when_that_before_it_has_arrived() -> None:
    alice, bob = pair()
    alice.do(lambda c: c.create(task(), wall_now=NOW))
    created = alice.sent()
    alice.do(lambda c: c.post(message(task="t"), wall_now=NOW))
    for send in [*alice.sent(), *created]:
        bob.receive(send, ALICE)
    steps = [alice.receive(send, BOB) for send in bob.sent()]
    assert [one.resend for one in steps if one.resend] == [[(BOB, 3)]]


def test_a_peer_that_does_not_take_part_hands_back_all_and_is_asked_again() -> None:
    alice = Side(ALICE)
    alice.begin()
    alice.do(lambda c: c.create(task(), wall_now=NOW))
    alice.do(lambda c: c.create(task("u"), wall_now=NOW))
    opening = alice.sent()[0]
    refuse(alice, opening.ref, "too_many")
    tasks = alice.conversation.tasks
    assert {(one.state, one.code) for one in tasks.values()} == {
        ("rejected", "too_many")
    }
    assert not alice.conversation.is_busy
    alice.kill()
    alice.do(lambda c: c.create(task("v"), wall_now=NOW))
    bob = Side(BOB)
    pump(alice, bob)
    assert bob.conversation.tasks.keys() == {"v"}


def test_what_a_peer_has_forgotten_fails_on_either_side_and_may_have_run() -> None:
    alice, bob = pair()
    alice.do(lambda c: c.create(task(), wall_now=NOW))
    pump(alice, bob)
    bob.do(lambda c: c.report("t", TaskState.WORKING, wall_now=NOW))
    pump(bob, alice)
    bob.do(lambda c: c.progress(TaskProgress(task="t"), wall_now=NOW))
    for side, peer in ((alice, BOB), (bob, ALICE)):
        side.sent()
        side.do(partial(Conversation.lose, peer=peer, wall_now=NOW))
        found = side.conversation.tasks["t"]
        assert (found.state, found.code) == ("failed", "unknown_session")
        assert found.may_have_run
        assert side.sent() == []
        assert not side.conversation.is_busy


def test_a_task_that_a_peer_does_not_know_any_more_fails() -> None:
    alice, bob = pair()
    alice.do(lambda c: c.create(task(), wall_now=NOW))
    pump(alice, bob)
    bob.do(lambda c: c.report("t", TaskState.WORKING, wall_now=NOW))
    pump(bob, alice)
    step = alice.do(lambda c: c.post(message(task="t"), wall_now=NOW))
    ref = step.sends[0].ref
    for _ in range(8):
        assert alice.conversation.tasks["t"].state == TaskState.WORKING
        refuse(alice, ref, "unknown_task")
    found = alice.conversation.tasks["t"]
    assert (found.state, found.may_have_run) == ("failed", True)
