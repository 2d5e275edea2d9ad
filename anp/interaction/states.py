"""The states of a task: one table of changes, and who may make them.

The states are those of GBZ-46 with the words of GBZ-Q1. Progress is an information
about a task at work and no state, so it is not in the table.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from anp.interaction.errors import InteractionError, InteractionFault

MAX_STATE: Final = 64
"Longest word for a state, in characters."


class TaskState(StrEnum):
    """The states that have a meaning here; any other word begins with `x-`."""

    HELD = "x-held"
    "The requester waits for tasks that it depends on; the executor knows nothing yet."

    REQUESTED = "x-requested"
    "Created by the requester; the executor has not answered yet."

    ACCEPTED = "accepted"
    "The executor will do it; nothing has begun."

    WORKING = "working"
    "The agent was asked to start; only a record of this state lets it be asked."

    INPUT_REQUIRED = "x-input-required"
    "The agent waits for a message of the requester."

    AUTH_REQUIRED = "x-auth-required"
    "The agent waits until the requester has given it access somewhere."

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"
    """The executor handed the task back: before it began, or when its agent was asked
    and would not do it. No part of a result was given."""


TERMINAL: Final = frozenset(
    {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED}
)
"States that never change again."

OTHER: Final = "x-"
"Row of every state that begins with `x-` and has no row of its own: a pause."

UNREPORTED: Final = frozenset({TaskState.HELD, TaskState.REQUESTED})
"States before the executor has said anything; nobody reports them."


TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    TaskState.HELD: frozenset({TaskState.REQUESTED, TaskState.CANCELED}),
    TaskState.REQUESTED: frozenset(
        {
            TaskState.ACCEPTED,
            TaskState.REJECTED,
            TaskState.WORKING,
            # The requester may take back what nobody has answered.
            TaskState.CANCELED,
        }
    ),
    TaskState.ACCEPTED: TERMINAL | {TaskState.WORKING},
    TaskState.WORKING: TERMINAL | {OTHER},
    OTHER: TERMINAL | {TaskState.WORKING, OTHER},
    **{state: frozenset[str]() for state in TERMINAL},
}
"""The states that may follow each state (GBZ-Q2).

Not in the seed: states that begin with `x-` are pauses of a task at work, and a task at
work may be handed back, since only the agent knows what it will not do (GBZ-62).
"""


def is_legal(word: str) -> bool:
    """Return whether `word` may be a state at all (GBZ-46, GBZ-Q1)."""
    if word in TRANSITIONS and word != OTHER:
        return True
    return word.startswith(OTHER) and len(OTHER) < len(word) <= MAX_STATE


def is_pause(state: str) -> bool:
    """Return whether a task in `state` is at work and waits for its requester."""
    return _row(state) == OTHER


def is_started(state: str) -> bool:
    """Return whether the agent may have been asked to start a task in `state`."""
    return state == TaskState.WORKING or is_pause(state)


def is_terminal(state: str) -> bool:
    """Return whether a task in `state` has ended."""
    return state in TERMINAL


def next_states(state: str) -> frozenset[str]:
    """Return what may follow `state`; the entry `x-` stands for every pause."""
    return TRANSITIONS[_row(state)]


def check_change(
    old: str, new: str, *, by_executor: bool, cancel_requested: bool
) -> None:
    """Check one change of a task's state (GBZ-Q2, GBZ-Q16).

    Args:
        by_executor: True when the executor makes it, False for the requester.
        cancel_requested: The requester has asked for the end of the task. Only then
            may the executor report `canceled`.

    Raises:
        InteractionError: The change is not allowed; the task keeps its state.
    """
    if not is_legal(new) or new in UNREPORTED:
        raise InteractionError(
            InteractionFault.INVALID, f"{new[:MAX_STATE]!r} is no state of a task"
        )
    is_cancel = new == TaskState.CANCELED
    if not by_executor and not is_cancel:
        raise InteractionError(
            InteractionFault.NOT_ALLOWED, f"only the executor may report {new!r}"
        )
    if by_executor and is_cancel and not cancel_requested:
        raise InteractionError(
            InteractionFault.NOT_ALLOWED,
            "only the requester cancels; an executor that gives up reports failed",
        )
    if _row(new) not in next_states(old):
        raise InteractionError(
            InteractionFault.STATE, f"a task that is {old} cannot become {new}"
        )


def outlook(
    states: Sequence[str], wanted: Sequence[str], *, any_of: bool = False
) -> bool | None:
    """Return whether a task may start that depends on others.

    Args:
        states: The present states of those that it depends on.
        wanted: The final states that will do for each, joined by blanks; without them
            each has to be completed.
        any_of: One of them is enough.

    Returns:
        True when it may start, False when it never can, None while that is open.
    """
    enough = [one.split() for one in wanted] or [[TaskState.COMPLETED]] * len(states)
    met = [state in words for state, words in zip(states, enough, strict=True)]
    lost = [
        is_terminal(state) and not good for state, good in zip(states, met, strict=True)
    ]
    if any_of and states:
        return True if any(met) else False if all(lost) else None
    return True if all(met) else False if any(lost) else None


def steps(old: str, new: str) -> tuple[str, ...]:
    """Return the states on the shortest way from `old` to `new`, `new` included.

    Other standards skip states; their codecs insert what is missing with this.

    Raises:
        InteractionError: There is no way.
    """
    wanted = _row(new)
    found: dict[str, tuple[str, ...]] = {_row(old): ()}
    queue = deque([_row(old)])
    while queue:
        state = queue.popleft()
        for following in sorted(TRANSITIONS[state]):
            if following == wanted:
                return (*found[state], new)
            # A pause is never inserted: it would ask the requester for something.
            if following not in found and following != OTHER:
                found[following] = (*found[state], following)
                queue.append(following)
    raise InteractionError(
        InteractionFault.STATE, f"a task that is {old} cannot become {new}"
    )


def _row(state: str) -> str:
    return state if state in TRANSITIONS else OTHER
