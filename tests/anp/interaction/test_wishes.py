"""Subscriptions in a session: only the requester gives them, and their tasks come."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from anp.interaction.conversation import Conversation
from anp.interaction.elements import Party, Session, Task, TaskChange
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import SubscribeCreate, TaskUpdate
from anp.interaction.states import TaskState
from anp.interaction.stored import event_bytes, head_bytes, read_event, read_head
from tests.clauses import clause

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ASKS, WORKS = "did:key:zAsks", "did:key:zWorks"
SESSION = Session(id="s", requester=Party(id=ASKS), participants=(Party(id=WORKS),))
WANTED = {"task": {"capability": "report"}, "triggers": [{"type": "time", "every": 60}]}


def pair() -> tuple[Conversation, Conversation]:
    """Return the requester's side and the executor's."""
    asks, _ = Conversation.begin(SESSION, wall_now=NOW)
    works, _ = Conversation.join(SESSION, own=WORKS, sender=ASKS, ref=1, wall_now=NOW)
    return asks, works


def run_of(name: str, number: int) -> Task:
    return Task(id=f"{name}/{number}", session="s", requester=ASKS, executor=WORKS)


@clause("GBZ-65")
def test_the_first_report_of_a_run_makes_its_task() -> None:
    asks, works = pair()
    step = asks.subscribe("sub", WANTED, wall_now=NOW)
    (send,) = step.sends
    assert isinstance(send.operation, SubscribeCreate)
    works.receive(send.operation, sender=ASKS, ref=send.ref, now=0, wall_now=NOW)
    step = works.trigger(run_of("sub", 1), wall_now=NOW)
    assert [one.id for one in step.offered] == ["sub/1"]
    # A second start is none.
    assert works.trigger(run_of("sub", 1), wall_now=NOW).offered == []
    step = works.report("sub/1", TaskState.ACCEPTED, wall_now=NOW)
    (send,) = step.sends
    step = asks.receive(send.operation, sender=WORKS, ref=send.ref, now=0, wall_now=NOW)
    task = asks.tasks["sub/1"]
    assert (task.state, task.executor) == (TaskState.ACCEPTED, WORKS)
    assert task.capability == "report"
    # It is in the log, and what is stored of it says the same.
    assert [read_event(event_bytes(one)) for one in step.events] == step.events
    assert read_head(head_bytes(asks.head)).subscriptions == {"sub": "report"}


def test_a_peer_makes_no_other_tasks_and_gives_the_requester_none() -> None:
    asks, works = pair()
    change = TaskChange(task="sub/1", state=TaskState.ACCEPTED)
    update = TaskUpdate(session="s", content=change)
    with pytest.raises(InteractionError) as refused:
        asks.receive(update, sender=WORKS, ref=5, now=0, wall_now=NOW)
    assert refused.value.code is InteractionFault.UNKNOWN_TASK
    asks.subscribe("sub", WANTED, wall_now=NOW)
    last = asks.last
    for wrong in ("other/1", "sub/x", "sub/", "sub"):
        named = replace(update, content=replace(change, task=wrong))
        with pytest.raises(InteractionError):
            asks.receive(named, sender=WORKS, ref=6, now=0, wall_now=NOW)
    # What is refused changes nothing, also when the task would have been new.
    bad = replace(update, content=replace(change, state="nonsense"))
    with pytest.raises(InteractionError):
        asks.receive(bad, sender=WORKS, ref=7, now=0, wall_now=NOW)
    assert (asks.last, asks.tasks) == (last, {})
    given = SubscribeCreate(session="s", id="mine", subscription=WANTED)
    with pytest.raises(InteractionError) as refused:
        asks.receive(given, sender=WORKS, ref=8, now=0, wall_now=NOW)
    assert refused.value.code is InteractionFault.NOT_ALLOWED
    with pytest.raises(InteractionError) as refused:
        works.trigger(run_of("unknown", 1), wall_now=NOW)
    assert refused.value.code is InteractionFault.UNKNOWN_SUBSCRIPTION
