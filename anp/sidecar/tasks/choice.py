"""The capability that a task without a name of one asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from anp.interaction.elements import Message, Part

__all__ = ["Choice", "Chooser", "Chosen", "NoSkill", "Wanted"]


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

    async def choose(self, peer: str, messages: Sequence[Message]) -> Chosen:
        """Return it.

        Args:
            peer: Id of the requester.
            messages: Everything that it said about the task so far.
        """
