"""The words of a requester: the capability that it means, its reach, its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from anp.interaction.elements import Message, Part, Task

REACH: Final = "anpd/reach"
"Key of the reach among the fields of a task that the model does not know."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The capabilities that a task may use, of those that are exposed to its caller."""

    agent: str = ""
    "Name of the attachment that was called by its own address; empty for all."

    expose: tuple[str, ...] | None = None
    "Patterns as in `expose`; None for all."

    def has(self, name: str) -> bool:
        """Return whether a capability is within it."""
        attachment, _, short = name.partition(".")
        if self.agent and attachment != self.agent:
            return False
        return self.expose is None or not {"*", name, short}.isdisjoint(self.expose)

    @property
    def names_one(self) -> bool:
        """True when its caller was allowed exactly one, by its name."""
        return (
            self.expose is not None and len(self.expose) == 1 and "*" not in self.expose
        )

    def to_extra(self) -> dict[str, Any]:
        """Return what is kept of it with a task: nothing, when all is within it."""
        if self == Reach():
            return {}
        expose = None if self.expose is None else list(self.expose)
        return {REACH: {"agent": self.agent, "expose": expose}}


def read_reach(extra: Mapping[str, Any]) -> Reach:
    """Return the reach of a task; one that cannot be read has nothing within it."""
    found = extra.get(REACH)
    if found is None:
        return Reach()
    agent = found.get("agent") if isinstance(found, Mapping) else None
    if not isinstance(agent, str):
        return Reach(expose=())
    expose = found.get("expose", ())
    return Reach(agent=agent, expose=None if expose is None else tuple(expose))


@dataclass(frozen=True, slots=True)
class Choice:
    """A capability, with what it is to be called with."""

    capability: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Something that the requester has to say first."""

    text: str


@dataclass(frozen=True, slots=True)
class NoSkill:
    """There is no such capability, so the task is handed back."""

    text: str


Chosen = Choice | Wanted | NoSkill


class Chooser(Protocol):
    """Finds what the messages of a task ask for."""

    async def choose(self, task: Task, messages: Sequence[Message]) -> Chosen:
        """Return it.

        Args:
            messages: Everything that the requester said about the task so far.
        """
