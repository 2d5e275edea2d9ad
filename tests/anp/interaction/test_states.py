"""The table of states, walked through."""

from __future__ import annotations

import itertools

import pytest

from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.states import (
    MAX_STATE,
    TERMINAL,
    TRANSITIONS,
    TaskState,
    check_change,
    is_legal,
    is_pause,
    is_started,
    is_terminal,
    next_states,
    outlook,
    steps,
)
from tests.clauses import clause

ENDS = ("completed", "failed", "canceled", "rejected")

WORDS = {
    "x-requested": {"accepted", "rejected", "working", "canceled"},
    "accepted": {"working", *ENDS},
    "working": {*ENDS, "x-input-required", "x-own"},
    "x-input-required": {"working", *ENDS, "x-own"},
    "x-own": {"working", *ENDS, "x-input-required"},
    "completed": set[str](),
    "failed": set[str](),
    "canceled": set[str](),
    "rejected": set[str](),
}


@clause("GBZ-46", "GBZ-Q2")
@pytest.mark.parametrize(("old", "new"), [*itertools.permutations(WORDS, 2)])
def test_only_what_the_table_has_may_follow(old: str, new: str) -> None:
    try:
        check_change(old, new, by_executor=True, cancel_requested=True)
        allowed = True
    except InteractionError:
        allowed = False
    assert allowed == (new in WORDS[old])


@clause("GBZ-22", "GBZ-Q16")
@pytest.mark.parametrize("new", WORDS)
def test_a_requester_may_only_cancel(new: str) -> None:
    if new == "canceled":
        check_change("working", new, by_executor=False, cancel_requested=False)
        return
    with pytest.raises(InteractionError) as caught:
        check_change("working", new, by_executor=False, cancel_requested=True)
    assert caught.value.code in (InteractionFault.NOT_ALLOWED, InteractionFault.INVALID)


@clause("GBZ-Q16")
def test_an_executor_cancels_only_what_it_was_asked_to() -> None:
    check_change("working", "canceled", by_executor=True, cancel_requested=True)
    with pytest.raises(InteractionError):
        check_change("working", "canceled", by_executor=True, cancel_requested=False)


@clause("GBZ-46", "GBZ-Q1")
def test_other_words_are_states_if_they_begin_with_x() -> None:
    assert all(is_legal(state) for state in TaskState)
    assert is_legal("x-" + "a" * (MAX_STATE - 2))
    for word in ("x-", "x-" + "a" * (MAX_STATE - 1), "done", "", "progress", "X-a"):
        assert not is_legal(word)


@clause("GBZ-Q2")
def test_an_end_is_an_end() -> None:
    assert all(next_states(state) == frozenset() for state in TERMINAL)
    assert {state for state in TRANSITIONS if is_terminal(state)} == TERMINAL
    assert [state for state in TaskState if is_started(state)] == [
        *("working", "x-input-required", "x-auth-required"),
    ]
    assert is_pause("x-own")
    assert not is_pause("x-requested")


@pytest.mark.parametrize(
    ("old", "new", "way"),
    [
        ("x-requested", "completed", 2),
        ("x-requested", "x-input-required", 2),
        ("accepted", "x-own", 2),
        ("x-own", "x-other", 1),
        ("working", "failed", 1),
    ],
)
def test_states_that_a_standard_skips_are_inserted(
    old: str, new: str, way: int
) -> None:
    found = steps(old, new)
    assert (len(found), found[-1]) == (way, new)
    for before, after in itertools.pairwise((old, *found)):
        check_change(before, after, by_executor=True, cancel_requested=True)


@pytest.mark.parametrize(
    ("old", "new"), [("completed", "working"), ("rejected", "failed")]
)
def test_where_there_is_no_way_there_is_an_error(old: str, new: str) -> None:
    with pytest.raises(InteractionError):
        steps(old, new)


@clause("A2A-26")
def test_a_task_starts_by_the_ends_of_those_that_it_depends_on() -> None:
    assert outlook([], []) is True
    assert outlook(["completed", "working"], []) is None
    assert outlook(["completed", "completed"], []) is True
    assert outlook(["failed", "working"], []) is False
    needs = ["failed rejected", "completed"]
    assert outlook(["rejected", "completed"], needs) is True
    assert outlook(["completed", "working"], needs) is False
    assert outlook(["completed", "working"], needs, any_of=True) is None
    assert outlook(["completed", "completed"], needs, any_of=True) is True
    assert outlook(["completed", "canceled"], needs, any_of=True) is False
