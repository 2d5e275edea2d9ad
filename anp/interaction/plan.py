"""A task that is made of others, and the way that a task takes through daemons.

The master of GBZ-60 gives the parts of its task to others, all at a time or one after
the other (GBZ-61). The proxy of GBZ-62 is a master of one part with several
candidates. The daemon of the program that asks is the executor of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, cast

from anp.interaction.elements import LOCAL, Part, Task
from anp.interaction.states import TaskState, is_terminal, outlook

MAX_CANDIDATES: Final = 8
"Peers that one part is offered to."

MAX_HOPS: Final = 8
"Daemons that a task goes through, the one that executes it not counted."

VISITED: Final = "visited"
"Entry in a request's metadata: the DIDs of the daemons that it came through, in order."

PLANNER: Final = f"{LOCAL}:"
"Prefix of the id of the program that wants a plan carried out; no token is named so."


class Dispatch(StrEnum):
    """The order in which the parts are given away (GBZ-61)."""

    PARALLEL = "parallel"
    SERIAL = "serial"


class Wait(StrEnum):
    """The parts that have to be completed."""

    ALL = "all"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtask:
    """One part of a plan."""

    peers: tuple[str, ...] = ()
    "Peers to whom it is offered, in this order; none where one is found."

    find: str = ""
    "Name of the capability by which peers are found."

    group: str = ""
    "Id of the group to whose members it is offered."

    capability: str = ""
    "Name of the capability at those peers; empty when the words say what to do."

    parts: int = 0
    "Number of contents that are its own, of those of the request, in order."


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """The parts of a task, and when it is done."""

    subtasks: tuple[Subtask, ...]
    dispatch: Dispatch = Dispatch.PARALLEL
    wait: Wait = Wait.ALL

    deadline: float | None = None
    "Seconds since 1970 at which the whole has to be done; None for no such time."

    visited: tuple[str, ...] = ()
    "DIDs of the daemons that the task came through before."

    def request(self, contents: Sequence[Part]) -> tuple[Part, ...]:
        """Return the contents of the request that `read` reads.

        Args:
            contents: Those of all parts, one after the other.
        """
        return Part.value(asdict(self)), *contents

    @classmethod
    def read(cls, task: Task) -> tuple[TaskPlan, list[tuple[Part, ...]]]:
        """Return the plan in a task that `request` made, and the contents of each."""
        first, *contents = task.messages[0].parts
        value = dict(cast(Mapping[str, Any], first.content))
        subtasks = tuple(
            Subtask(**{**one, "peers": tuple(one["peers"])})
            for one in value.pop("subtasks")
        )
        plan = cls(
            subtasks=subtasks,
            dispatch=Dispatch(value["dispatch"]),
            wait=Wait(value["wait"]),
            deadline=value["deadline"],
            visited=tuple(value["visited"]),
        )
        found, begin = [], 0
        for one in subtasks:
            found.append(tuple(contents[begin : begin + one.parts]))
            begin += one.parts
        return plan, found

    @property
    def at_a_time(self) -> int:
        """Most parts that are given away at a time."""
        return 1 if self.dispatch is Dispatch.SERIAL else len(self.subtasks)

    def verdict(self, states: Sequence[str]) -> TaskState | None:
        """Return how the whole ends, or None while that is open.

        With `all`, parts that were given away together all come to their end, since the
        results of the others may be of use; a part is not given away after one that
        failed.

        Args:
            states: Those of the parts, `x-held` for one that was not given away.
        """
        may_end = outlook(states, (), any_of=self.wait is Wait.ANY)
        if may_end:
            return TaskState.COMPLETED
        at_work = any(not is_terminal(one) and one != TaskState.HELD for one in states)
        if may_end is False and not at_work:
            return TaskState.FAILED
        return None


def planner(maker: str) -> str:
    """Return the id of the local program that wants a plan carried out."""
    return f"{PLANNER}{maker}"


def is_plan(task: Task) -> bool:
    """Return whether this daemon is to do a task by giving its parts to others."""
    return task.requester.startswith(PLANNER)


def goes_on(task: Task, *, repeatable: bool) -> bool:
    """Return whether the next candidate is given what one did not do (GBZ-62).

    Args:
        repeatable: A second run does no more than the first.
    """
    if task.state == TaskState.REJECTED:
        return not task.may_have_run or repeatable
    return task.state == TaskState.FAILED and (not task.may_have_run or repeatable)


def visited_of(task: Task) -> tuple[str, ...]:
    """Return the DIDs of the daemons that a task came through, as its requester says.

    What is no such list counts as none: it only guards the one who sends it.
    """
    found = task.messages[0].metadata if task.messages else {}
    way = found.get(VISITED) if isinstance(found, Mapping) else None
    if not isinstance(way, list) or not all(isinstance(one, str) for one in way):
        return ()
    return tuple(one[:512] for one in way[: MAX_HOPS + 1])


def loop_problem(visited: Sequence[str], is_here: Callable[[str], bool]) -> str:
    """Return why a task may not go where it is sent; empty if it may.

    Args:
        visited: DIDs of the daemons that it came through.
        is_here: Tells if a DID is that of the daemon that is to have it.
    """
    way = " -> ".join(visited)
    if any(is_here(one) for one in visited):
        return f"the task goes in a circle: {way} and back"
    if len(visited) > MAX_HOPS:
        return f"the task came through more than {MAX_HOPS} daemons: {way}"
    return ""
