"""Sessions and tasks between two sides: who may do what, and what follows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from anp.interaction.conversation import NOT_CHOSEN, Conversation, start_key
from anp.interaction.elements import (
    CancelRequest,
    MessagePurpose,
    Party,
    PartyMode,
    SenderRole,
    SessionState,
    TaskChange,
    TaskProgress,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import (
    Acknowledgement,
    MessageSend,
    NotifyRegister,
    RefusedOperation,
    Send,
    SessionClose,
    SessionUpdate,
    TaskCancel,
    TaskCreate,
    TaskGet,
    TaskUpdate,
)
from anp.interaction.record import InteractionLimits
from anp.interaction.states import TaskState
from anp.interaction.step import Step
from tests.anp.interaction.talk import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    Side,
    message,
    pair,
    pump,
    session,
    task,
)
from tests.clauses import clause


def working(**more: Any) -> tuple[Side, Side]:
    """Return both sides with a task at work."""
    alice, bob = pair()
    alice.do(lambda one: one.create(task(**more), wall_now=alice.wall))
    pump(alice, bob)
    bob.do(lambda one: one.report("t", TaskState.WORKING, wall_now=bob.wall))
    pump(alice, bob)
    return alice, bob


def answer(side: Side, operation: Any, sender: str, ref: int = 99) -> Any:
    """Return the answer of a side to an operation."""
    side.sent()
    side.receive(Send(to=side.own, ref=ref, operation=operation), sender)
    return side.sent()[-1].operation


def refused(
    side: Side, operation: Any, sender: str, ref: int = 99
) -> InteractionFault | str:
    """Return the code with which a side refuses; nothing may have changed."""
    before = (side.head, dict(side.tasks), list(side.events))
    said = answer(side, operation, sender, ref)
    assert isinstance(said, RefusedOperation)
    assert (side.head, side.tasks, side.events) == before
    return said.code


def states(side: Side) -> list[str]:
    return [
        event.content.state
        for event in side.log
        if isinstance(event.content, TaskChange)
    ]


@clause("GBZ-10", "GBZ-22", "GBZ-24", "GBZ-29")
def test_a_task_goes_from_its_creation_to_its_result_on_both_sides() -> None:
    alice, bob = working(messages=(message("q", task="t"),))
    result = message("r", BOB, task="t", purpose=MessagePurpose.RESULT, final=True)
    bob.do(lambda one: one.post(result, wall_now=bob.wall))
    bob.do(lambda one: one.report("t", TaskState.COMPLETED, wall_now=bob.wall))
    pump(alice, bob)
    assert states(alice) == states(bob) == ["working", "completed"]
    assert [one for step in alice.steps for one in step.whole] == [result]
    offered = [one for step in bob.steps for one in step.offered]
    assert [one.messages[0].id for one in offered] == ["q"]
    assert not alice.conversation.is_busy
    assert not bob.conversation.is_busy


@clause("GBZ-7", "GBZ-24", "GBZ-25")
def test_only_the_requester_opens_changes_and_closes_a_session() -> None:
    alice, bob = pair()
    bigger = session(participants=(Party(id=BOB), Party(id=CAROL)))
    for operation in (SessionUpdate(session=bigger), SessionClose(session="s")):
        assert refused(alice, operation, BOB) == InteractionFault.NOT_ALLOWED
    for command in (
        lambda one: one.close(wall_now=NOW),
        lambda one: one.update(bigger, wall_now=NOW),
        lambda one: one.create(task(), wall_now=NOW),
    ):
        with pytest.raises(InteractionError):
            bob.do(command)
    alice.do(lambda one: one.update(bigger, wall_now=alice.wall))
    assert [one.to for one in alice.outgoing] == [BOB, CAROL]
    pump(alice, bob)
    assert bob.conversation.peers() == [ALICE, CAROL]


@clause("GBZ-3", "GBZ-35", "GBZ-Q18")
def test_a_session_is_opened_by_its_requester_alone_and_for_a_participant() -> None:
    for own, sender in ((BOB, CAROL), (CAROL, ALICE)):
        with pytest.raises(InteractionError):
            Conversation.join(session(), own=own, sender=sender, ref=1, wall_now=NOW)
    _, bob = pair()
    assert refused(bob, SessionClose(session="s"), CAROL) == "not_allowed"
    assert refused(bob, MessageSend(message=message()), CAROL) == "not_allowed"
    forged = replace(message(), sender=BOB)
    assert refused(bob, MessageSend(message=forged), ALICE) == "not_allowed"


@clause("GBZ-7", "GBZ-8", "GBZ-25", "GBZ-52", "GBZ-Q9", "GBZ-Q15")
def test_the_modes_are_the_requesters_choice_and_each_counts_once() -> None:
    both = (
        Party(id=BOB),
        Party(id=BOB, mode=PartyMode.GROUP, params={"groupId": "g"}),
    )
    made, _ = Conversation.begin(session(participants=both), wall_now=NOW)
    assert made.peers() == [BOB]
    for wrong in ((), (Party(id=BOB), Party(id=BOB)), (Party(id=ALICE),)):
        with pytest.raises(InteractionError):
            Conversation.begin(session(participants=wrong), wall_now=NOW)


@clause("GBZ-9")
def test_one_agent_is_requester_in_one_session_and_service_in_another() -> None:
    _, bob = working()
    other = session(id="s2", requester=Party(id=BOB), participants=(Party(id=ALICE),))
    made, step = Conversation.begin(other, wall_now=NOW)
    assert made.is_requester
    assert not bob.conversation.is_requester
    assert [send.to for send in step.sends] == [ALICE]


@clause("GBZ-26", "GBZ-Q16")
def test_only_the_executor_reports_and_only_the_requester_cancels() -> None:
    alice, bob = working()
    update = TaskUpdate(
        session="s", content=TaskChange(task="t", state=TaskState.COMPLETED)
    )
    assert refused(bob, update, ALICE) == InteractionFault.NOT_ALLOWED
    cancel = TaskCancel(session="s", task="t")
    assert refused(alice, cancel, BOB) == InteractionFault.NOT_ALLOWED
    unasked = TaskUpdate(
        session="s", content=TaskChange(task="t", state=TaskState.CANCELED)
    )
    assert refused(alice, unasked, BOB) == InteractionFault.NOT_ALLOWED
    with pytest.raises(InteractionError):
        bob.do(lambda one: one.report("t", TaskState.CANCELED, wall_now=NOW))
    with pytest.raises(InteractionError):
        alice.do(lambda one: one.report("t", TaskState.COMPLETED, wall_now=NOW))


@clause("GBZ-Q2")
def test_states_out_of_order_are_refused() -> None:
    alice, _ = working()
    for state in ("accepted", "x-requested", "x-held", "done", "progress"):
        update = TaskUpdate(session="s", content=TaskChange(task="t", state=state))
        assert refused(alice, update, BOB) in ("state", "invalid")


@clause("GBZ-Q14")
def test_a_closed_session_takes_nothing_new_and_its_tasks_end() -> None:
    alice, bob = working()
    alice.do(lambda one: one.create(task("u"), wall_now=alice.wall))
    pump(alice, bob)
    alice.do(lambda one: one.close(wall_now=alice.wall))
    pump(alice, bob)
    # The one that had not begun has ended; the agent is asked to end the other.
    assert bob.steps[-2].stop == ["t"] or bob.steps[-1].stop == ["t"]
    assert alice.conversation.tasks["u"].state == TaskState.CANCELED
    new = TaskCreate(task=task("v"))
    assert refused(bob, new, ALICE) == InteractionFault.CLOSED
    late = MessageSend(message=message("late"))
    assert refused(bob, late, ALICE) == InteractionFault.CLOSED
    for command in (
        lambda one: one.create(task("v"), wall_now=NOW),
        lambda one: one.post(message("late"), wall_now=NOW),
    ):
        with pytest.raises(InteractionError):
            alice.do(command)
    bob.do(lambda one: one.report("t", TaskState.CANCELED, wall_now=bob.wall))
    pump(alice, bob)
    assert alice.conversation.tasks["t"].state == TaskState.CANCELED
    assert alice.conversation.session.state is SessionState.CLOSED


def test_an_expired_session_counts_as_closed() -> None:
    alice, bob = Side(ALICE), Side(BOB)
    alice.begin(session(expires=NOW + timedelta(seconds=10)))
    pump(alice, bob)
    bob.now = alice.now = 10.0
    assert refused(bob, TaskCreate(task=task()), ALICE) == InteractionFault.CLOSED
    with pytest.raises(InteractionError):
        alice.do(lambda one: one.create(task(), wall_now=alice.wall))


def test_a_cancel_that_crosses_the_result_changes_nothing() -> None:
    alice, bob = working()
    bob.do(lambda one: one.report("t", TaskState.COMPLETED, wall_now=bob.wall))
    crossing = bob.sent()
    alice.do(lambda one: one.cancel("t", wall_now=alice.wall))
    cancel = alice.sent()
    for send in cancel:
        bob.receive(send, ALICE)
    for send in crossing:
        alice.receive(send, BOB)
    pump(alice, bob)
    assert states(alice) == states(bob) == ["working", "completed"]
    assert bob.steps[-1].stop == []
    assert not alice.conversation.is_busy


@clause("GBZ-22")
def test_a_cancelled_task_ends_as_its_executor_says() -> None:
    alice, bob = working()
    alice.do(lambda one: one.cancel("t", wall_now=alice.wall))
    alice.do(lambda one: one.cancel("t", wall_now=alice.wall))
    pump(alice, bob)
    assert [step.stop for step in bob.steps if step.stop] == [["t"]]
    assert sum(isinstance(one.content, CancelRequest) for one in alice.log) == 1
    bob.do(lambda one: one.report("t", TaskState.CANCELED, wall_now=bob.wall))
    pump(alice, bob)
    assert states(alice) == states(bob) == ["working", "canceled"]


def test_a_task_that_nobody_answers_can_be_given_up() -> None:
    alice, bob = pair()
    alice.do(lambda one: one.create(task(), wall_now=alice.wall))
    alice.sent()
    alice.do(lambda one: one.give_up("t", reason="24 h", wall_now=alice.wall))
    found = alice.conversation.tasks["t"]
    assert (found.state, found.may_have_run) == (TaskState.CANCELED, True)
    alice.repeat(BOB)
    pump(alice, bob)
    assert bob.conversation.tasks["t"].state == TaskState.CANCELED
    assert not alice.conversation.is_busy


@clause("GBZ-23", "GBZ-27", "GBZ-36", "GBZ-37")
def test_a_task_asks_back_and_goes_on_with_the_answer() -> None:
    alice, bob = working()
    bob.do(lambda one: one.post(message("ask", BOB, task="t"), wall_now=NOW))
    bob.do(lambda one: one.report("t", TaskState.INPUT_REQUIRED, wall_now=NOW))
    pump(alice, bob)
    assert alice.conversation.tasks["t"].state == TaskState.INPUT_REQUIRED
    alice.do(lambda one: one.post(message("answer", task="t"), wall_now=NOW))
    pump(alice, bob)
    assert [one.id for step in bob.steps for one in step.whole] == ["answer"]
    bob.do(lambda one: one.report("t", TaskState.WORKING, wall_now=NOW))
    bob.do(lambda one: one.report("t", TaskState.COMPLETED, wall_now=NOW))
    pump(alice, bob)
    assert states(alice) == ["working", "x-input-required", "working", "completed"]


@clause("GBZ-30", "GBZ-37")
def test_messages_go_both_ways_without_any_task() -> None:
    alice, bob = pair()
    alice.do(lambda one: one.post(message("hi"), wall_now=NOW))
    bob.do(lambda one: one.post(message("ho", BOB), wall_now=NOW))
    pump(alice, bob)
    assert [one.id for step in bob.steps for one in step.whole] == ["hi"]
    assert [one.id for step in alice.steps for one in step.whole] == ["ho"]


@clause("GBZ-34", "GBZ-40", "GBZ-Q8")
def test_a_role_is_the_sessions_and_only_services_have_final_results() -> None:
    alice, bob = working()
    wrong = replace(message("m", task="t"), role=SenderRole.SERVICE)
    assert refused(bob, MessageSend(message=wrong), ALICE) == "not_allowed"
    final = replace(message("m", task="t"), final=True)
    assert refused(bob, MessageSend(message=final), ALICE) == "invalid"
    with pytest.raises(InteractionError):
        alice.do(lambda one: one.post(final, wall_now=NOW))


@clause("GBZ-38")
def test_a_repeat_is_acknowledged_again_and_another_content_is_refused() -> None:
    _, bob = working()
    said = MessageSend(message=message("m", task="t"))
    assert isinstance(answer(bob, said, ALICE, 7), Acknowledgement)
    count = len(bob.events)
    assert answer(bob, said, ALICE, 7) == Acknowledgement(session="s", ref=7)
    assert len(bob.events) == count
    other = replace(message("m", task="t"), metadata={"n": 1.0})
    assert refused(bob, MessageSend(message=other), ALICE) == "conflict"
    created = TaskCreate(task=task(changed_at=NOW))
    assert isinstance(answer(bob, created, ALICE), Acknowledgement)
    assert len(bob.events) == count
    renamed = TaskCreate(task=task(capability="x"))
    assert refused(bob, renamed, ALICE) == InteractionFault.CONFLICT


def test_numbers_that_python_takes_for_equal_are_not() -> None:
    _, bob = working()
    for value in (1, 1.0, True):
        said = replace(message("m", task="t"), metadata={"n": value})
        found = answer(bob, MessageSend(message=said), ALICE)
        assert isinstance(found, Acknowledgement) == (type(value) is int)


def test_an_old_report_that_comes_late_changes_nothing() -> None:
    alice, bob = pair()
    alice.do(lambda one: one.create(task(), wall_now=NOW))
    pump(alice, bob)
    bob.do(lambda one: one.report("t", TaskState.ACCEPTED, wall_now=NOW))
    bob.do(lambda one: one.report("t", TaskState.WORKING, wall_now=NOW))
    accepted, at_work = bob.sent()
    alice.receive(at_work, BOB)
    alice.receive(accepted, BOB)
    assert states(alice) == ["working"]
    pump(alice, bob)
    assert not bob.conversation.unacknowledged(ALICE)


def test_a_result_that_comes_behind_the_end_is_kept_and_a_question_is_not() -> None:
    alice, bob = working()
    bob.do(lambda one: one.post(message("r", BOB, task="t"), wall_now=NOW))
    bob.do(lambda one: one.report("t", TaskState.COMPLETED, wall_now=NOW))
    result, end = bob.sent()
    alice.receive(end, BOB)
    alice.receive(result, BOB)
    assert [one.id for one in alice.steps[-1].whole] == ["r"]
    question = MessageSend(message=message("q", task="t"))
    assert refused(bob, question, ALICE) == InteractionFault.STATE


@clause("GBZ-46", "GBZ-Q2")
def test_progress_is_an_information_and_no_state() -> None:
    alice, bob = working()
    said = TaskProgress(task="t", progress=3, total=2**70, text="three")
    bob.do(lambda one: one.progress(said, wall_now=NOW))
    pump(alice, bob)
    assert alice.conversation.tasks["t"].state == TaskState.WORKING
    assert alice.log[-1].content == said
    bob.do(lambda one: one.report("t", TaskState.COMPLETED, wall_now=NOW))
    with pytest.raises(InteractionError):
        bob.do(lambda one: one.progress(said, wall_now=NOW))
    late = TaskUpdate(session="s", content=said)
    pump(alice, bob)
    assert refused(alice, late, BOB, 100) == InteractionFault.STATE


def test_progress_of_an_accepted_task_says_that_it_is_at_work() -> None:
    alice, bob = pair()
    alice.do(lambda one: one.create(task(), wall_now=NOW))
    pump(alice, bob)
    update = TaskUpdate(session="s", content=TaskProgress(task="t", progress=1))
    answer(alice, update, BOB, 5)
    assert states(alice) == ["working"]


@clause("GBZ-26", "GBZ-49")
def test_a_task_waits_for_others_and_gets_their_results() -> None:
    alice, bob = pair()
    alice.do(lambda one: one.create(task("a"), wall_now=NOW))
    needs = task("b", depends_on=("a",), messages=(message("q", task="b"),))
    alice.do(lambda one: one.create(needs, wall_now=NOW))
    pump(alice, bob)
    assert set(bob.conversation.tasks) == {"a"}
    with pytest.raises(InteractionError):
        alice.do(lambda one: one.release(needs, inputs=(), wall_now=NOW))
    with pytest.raises(InteractionError):
        alice.do(lambda one: one.post(message("x", task="b"), wall_now=NOW))
    bob.do(lambda one: one.post(message("r", BOB, task="a"), wall_now=NOW))
    bob.do(lambda one: one.report("a", TaskState.COMPLETED, wall_now=NOW))
    pump(alice, bob)
    assert [name for step in alice.steps for name in step.ready] == ["b"]
    inputs = (message("r", BOB, task="a"),)
    alice.do(lambda one: one.release(needs, inputs=inputs, wall_now=NOW))
    pump(alice, bob)
    offered = bob.steps[-1].offered or bob.steps[-2].offered
    assert (offered[0].inputs, offered[0].messages) == (inputs, needs.messages)


@pytest.mark.parametrize("end", [TaskState.FAILED, TaskState.REJECTED])
def test_what_depends_on_a_task_that_failed_never_begins(end: TaskState) -> None:
    alice, bob = pair()
    for name, needed in (("a", ()), ("b", ("a",)), ("c", ("b",))):
        made = task(name, depends_on=needed)
        alice.store(alice.conversation.create(made, wall_now=NOW))
    pump(alice, bob)
    bob.do(lambda one: one.report("a", end, wall_now=NOW))
    pump(alice, bob)
    found = {name: one.state for name, one in alice.conversation.tasks.items()}
    assert found == {"a": end, "b": "canceled", "c": "canceled"}
    assert set(bob.conversation.tasks) == {"a"}
    with pytest.raises(InteractionError):
        alice.do(lambda one: one.create(task("d", depends_on=("b",)), wall_now=NOW))
    with pytest.raises(InteractionError):
        alice.do(lambda one: one.create(task("d", depends_on=("x",)), wall_now=NOW))


@clause("GBZ-56")
def test_a_remote_call_hears_of_its_end_alone() -> None:
    alice, bob = Side(ALICE), Side(BOB)
    alice.begin(session(participants=(Party(id=BOB, params={"style": "call"}),)))
    alice.do(lambda one: one.create(task(), wall_now=NOW))
    pump(alice, bob)
    bob.do(lambda one: one.report("t", TaskState.WORKING, wall_now=NOW))
    bob.do(lambda one: one.progress(TaskProgress(task="t"), wall_now=NOW))
    assert bob.outgoing == []
    with pytest.raises(InteractionError):
        bob.do(lambda one: one.report("t", TaskState.INPUT_REQUIRED, wall_now=NOW))
    bob.do(lambda one: one.post(message("r", BOB, task="t"), wall_now=NOW))
    bob.do(lambda one: one.report("t", TaskState.COMPLETED, wall_now=NOW))
    pump(alice, bob)
    # The way from requested to completed is filled in.
    assert alice.conversation.tasks["t"].state == TaskState.COMPLETED


def test_a_state_that_a_standard_skips_is_filled_in() -> None:
    alice, bob = pair()
    alice.do(lambda one: one.create(task(), wall_now=NOW))
    pump(alice, bob)
    bob.do(lambda one: one.report("t", TaskState.INPUT_REQUIRED, wall_now=NOW))
    pump(alice, bob)
    assert states(alice) == states(bob) == ["working", "x-input-required"]


def test_a_refused_task_is_rejected_for_its_requester() -> None:
    limits = InteractionLimits(max_tasks=1)
    alice, bob = Side(ALICE), Side(BOB, limits)
    alice.begin()
    for name in ("a", "b"):
        alice.store(alice.conversation.create(task(name), wall_now=NOW))
    pump(alice, bob)
    found = alice.conversation.tasks["b"]
    assert (found.state, found.code) == (TaskState.REJECTED, InteractionFault.TOO_MANY)
    assert [one.code for step in alice.steps for one in step.refused] == ["too_many"]


@clause("GBZ-62", "GBZ-Q20")
def test_a_task_at_work_is_handed_back_also_to_a_peer_that_knows_no_such_way() -> None:
    alice, bob = pair()
    alice.do(lambda one: one.create(task(), wall_now=NOW))
    pump(alice, bob)
    bob.do(lambda one: one.report("t", TaskState.WORKING, wall_now=NOW))
    pump(alice, bob)
    said: dict[str, Any] = {"code": "409", "reason": "not mine"}
    bob.do(lambda one: one.report("t", TaskState.REJECTED, wall_now=NOW, **said))
    (send,) = bob.outgoing
    refusal = RefusedOperation(session="s", ref=send.ref, code="state", text="no")
    bob.outgoing.clear()
    step = bob.receive(Send(to=BOB, ref=0, operation=refusal), ALICE)
    # What an older daemon is told has the same meaning for who asks the next one.
    change = cast(TaskUpdate, step.sends[0].operation).content
    assert isinstance(change, TaskChange)
    assert (change.state, change.code) == (TaskState.FAILED, "409")
    assert not change.may_have_run
    assert bob.conversation.tasks["t"].state == TaskState.REJECTED
    pump(alice, bob)
    assert alice.conversation.tasks["t"].state == TaskState.FAILED
    assert bob.conversation.unacknowledged(ALICE) == []


def test_an_answer_may_be_asked_for_and_others_tasks_are_not_shown() -> None:
    alice, bob = Side(ALICE), Side(BOB)
    alice.begin(session(participants=(Party(id=BOB), Party(id=CAROL))))
    alice.do(lambda one: one.create(task(), wall_now=NOW))
    pump(alice, bob)
    said = answer(bob, TaskGet(session="s", task="t"), ALICE)
    assert (said.task.id, said.task.state) == ("t", "x-requested")
    get = TaskGet(session="s", task="t")
    assert refused(bob, get, CAROL) == InteractionFault.UNKNOWN_TASK


@clause("GBZ-58", "GBZ-Q12")
def test_only_the_requester_registers_for_news() -> None:
    alice, bob = pair()
    wanted = NotifyRegister(session="s", address="wss://alice.example")
    assert isinstance(answer(bob, wanted, ALICE), Acknowledgement)
    assert refused(alice, wanted, BOB) == InteractionFault.NOT_ALLOWED
    unknown = replace(wanted, task="x")
    assert refused(bob, unknown, ALICE) == InteractionFault.UNKNOWN_TASK


# After a kill


@clause("GBZ-58", "GBZ-Q12")
def test_what_was_not_acknowledged_is_sent_again_after_a_kill() -> None:
    alice, bob = working()
    bob.do(lambda one: one.post(message("r", BOB, task="t"), wall_now=NOW))
    bob.do(lambda one: one.report("t", TaskState.COMPLETED, wall_now=NOW))
    bob.kill()
    assert bob.conversation.is_busy
    bob.repeat(ALICE)
    pump(alice, bob)
    assert alice.conversation.tasks["t"].state == TaskState.COMPLETED
    assert not bob.conversation.is_busy
    alice.kill()
    bob.repeat(ALICE)
    assert bob.outgoing == []


@pytest.mark.parametrize("may_repeat", [False, True])
@pytest.mark.parametrize("state", ["", "accepted", "working", "x-input-required"])
def test_a_task_is_started_once_unless_it_may_be_repeated(
    state: str, may_repeat: bool
) -> None:
    alice, bob = pair()
    alice.do(lambda one: one.create(task(), wall_now=NOW))
    pump(alice, bob)
    if state:
        bob.do(lambda one: one.report("t", state, wall_now=NOW))
    bob.kill()
    step = bob.do(
        lambda one: one.recover(may_repeat=lambda _: may_repeat, wall_now=NOW)
    )
    found = bob.conversation.tasks["t"]
    if not state:
        assert [one.id for one in step.offered] == ["t"]
    elif state == "accepted" or may_repeat:
        assert step.start == ["t"]
    else:
        assert (found.state, found.code, found.may_have_run) == (
            *("failed", "interrupted", True),
        )
    bob.repeat(ALICE)
    alice.repeat(BOB)
    pump(alice, bob)
    assert alice.conversation.tasks["t"].state == (found.state)


def test_a_task_that_asks_what_is_wanted_goes_on_after_a_kill() -> None:
    alice, bob = pair()
    alice.do(lambda one: one.create(task(), wall_now=NOW))
    pump(alice, bob)
    state = TaskState.INPUT_REQUIRED
    bob.do(lambda one: one.report("t", state, code=NOT_CHOSEN, wall_now=NOW))
    bob.kill()
    step = bob.do(lambda one: one.recover(may_repeat=lambda _: False, wall_now=NOW))
    assert step.start == ["t"]
    bob.do(lambda one: one.report("t", TaskState.WORKING, wall_now=NOW))
    bob.kill()
    bob.do(lambda one: one.recover(may_repeat=lambda _: False, wall_now=NOW))
    assert bob.conversation.tasks["t"].may_have_run


def test_a_requesters_kill_fails_nothing() -> None:
    alice, bob = working()
    alice.kill()
    step = alice.do(lambda one: one.recover(may_repeat=lambda _: False, wall_now=NOW))
    assert step == Step()
    bob.do(lambda one: one.report("t", TaskState.COMPLETED, wall_now=NOW))
    pump(alice, bob)
    assert alice.conversation.tasks["t"].state == TaskState.COMPLETED


def test_the_key_of_a_start_is_the_same_after_a_kill_and_for_no_other_task() -> None:
    _, bob = working()
    first = start_key(bob.conversation.session, bob.conversation.tasks["t"])
    bob.kill()
    assert start_key(bob.conversation.session, bob.conversation.tasks["t"]) == first
    assert start_key(bob.conversation.session, task("u")) != first


def test_what_a_peer_does_not_acknowledge_is_bounded() -> None:
    alice = Side(ALICE, InteractionLimits(max_unacknowledged=2))
    alice.begin()
    alice.do(lambda one: one.create(task(), wall_now=NOW))
    with pytest.raises(InteractionError):
        alice.do(lambda one: one.post(message(task="t"), wall_now=NOW))
    # A request to stop is no content, and is always possible.
    alice.do(lambda one: one.cancel("t", wall_now=NOW))


def test_fields_that_nobody_knows_are_kept() -> None:
    alice, bob = pair()
    made = task(extra={"x": 2**80}, trigger={"at": 1.5})
    alice.do(lambda one: one.create(made, wall_now=NOW))
    pump(alice, bob)
    bob.kill()
    found = bob.conversation.tasks["t"]
    assert (found.extra, found.trigger) == ({"x": 2**80}, {"at": 1.5})
