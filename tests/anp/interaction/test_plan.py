"""Tasks that are made of others: when the whole ends, and the way through daemons."""

from __future__ import annotations

from typing import Any

import pytest

from anp.interaction.elements import Message, Part, SenderRole, Task
from anp.interaction.plan import (
    MAX_HOPS,
    Dispatch,
    Subtask,
    TaskPlan,
    Wait,
    goes_on,
    loop_problem,
    visited_of,
)
from tests.clauses import clause

HELD, WORKING, DONE, FAILED = "x-held", "working", "completed", "failed"


def plan(dispatch: str = "parallel", wait: str = "all") -> TaskPlan:
    return TaskPlan(
        subtasks=(Subtask(peers=("lab",)), Subtask(find="weather.now", parts=1)),
        dispatch=Dispatch(dispatch),
        wait=Wait(wait),
    )


def task(metadata: Any = None, **fields: Any) -> Task:
    message = Message(
        id="m",
        session="s",
        sender="a",
        role=SenderRole.REQUESTER,
        task="t",
        parts=(Part.text("x"),),
        metadata=metadata or {},
    )
    base: dict[str, Any] = {"id": "t", "session": "s", "requester": "a"}
    return Task(**{**base, "executor": "b", "messages": (message,), **fields})


@clause("GBZ-61")
@pytest.mark.parametrize(
    ("wait", "states", "verdict"),
    [
        ("all", (HELD, HELD), None),
        ("all", (DONE, HELD), None),
        ("all", (DONE, DONE), "completed"),
        # The others come to their end; what was not given away stays here.
        ("all", (FAILED, WORKING), None),
        ("all", (FAILED, DONE), "failed"),
        ("all", (FAILED, HELD), "failed"),
        ("any", (DONE, WORKING), "completed"),
        ("any", (FAILED, WORKING), None),
        ("any", (FAILED, HELD), None),
        ("any", (FAILED, "rejected"), "failed"),
        ("any", ("canceled", "rejected"), "failed"),
    ],
)
def test_the_whole_ends_with_its_parts(
    wait: str, states: tuple[str, ...], verdict: str | None
) -> None:
    assert plan(wait=wait).verdict(states) == verdict


@clause("GBZ-61")
def test_parts_are_given_away_together_or_one_after_the_other() -> None:
    assert (plan().at_a_time, plan("serial").at_a_time) == (2, 1)


def test_a_plan_comes_back_from_the_request_that_it_is() -> None:
    made = plan("serial", "any")
    contents = [Part.value({"city": "Oslo"})]
    request = task().messages[0]
    read, found = TaskPlan.read(
        task(messages=(_with(request, made.request(contents)),)),
    )
    assert read == made
    assert found == [(), tuple(contents)]


def _with(message: Message, parts: tuple[Part, ...]) -> Message:
    return Message(**{**_fields(message), "parts": parts})


def _fields(message: Message) -> dict[str, Any]:
    names = ("id", "session", "sender", "role", "task")
    return {name: getattr(message, name) for name in names}


@clause("GBZ-62")
@pytest.mark.parametrize(
    ("state", "may_have_run", "repeatable", "expected"),
    [
        ("rejected", False, False, True),
        ("failed", False, False, True),
        ("failed", True, False, False),
        ("failed", True, True, True),
        ("completed", False, True, False),
        ("canceled", False, True, False),
    ],
)
def test_the_next_candidate_gets_only_what_did_not_run_or_may_run_twice(
    state: str, may_have_run: bool, repeatable: bool, expected: bool
) -> None:
    ended = task(state=state, may_have_run=may_have_run)
    assert goes_on(ended, repeatable=repeatable) is expected


@clause("GBZ-62")
def test_a_task_that_goes_in_a_circle_or_too_far_is_found_out() -> None:
    way = visited_of(task({"visited": ["did:a", "did:b"]}))
    assert way == ("did:a", "did:b")
    problem = loop_problem(way, lambda did: did == "did:a")
    assert problem == "the task goes in a circle: did:a -> did:b and back"
    assert loop_problem(way, lambda did: did == "did:c") == ""
    long = [f"did:{number}" for number in range(MAX_HOPS + 1)]
    assert "more than 8 daemons" in loop_problem(long, lambda did: False)
    assert loop_problem(long[:-1], lambda did: False) == ""


@pytest.mark.parametrize("visited", [None, "did:a", {"a": 1}, [1, "did:a"], [None]])
def test_what_is_no_way_counts_as_none(visited: Any) -> None:
    assert visited_of(task({"visited": visited})) == ()
    assert visited_of(task(messages=())) == ()
