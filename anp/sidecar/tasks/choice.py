"""The words of a requester: the capability that it means, and its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from anp.interaction.elements import Message, Part, PartKind
from anp.sidecar.attachments.requester import Reply, ReplyAction

__all__ = ["ACTION", "Choice", "Chooser", "Chosen", "NoSkill", "TaskAnswer", "Wanted"]

ACTION = "action"
"Entry in the metadata of an answer: see `ReplyAction`."


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


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """A message of the requester for a task that waits for it."""

    message: Message

    @property
    def reply(self) -> Reply:
        """The message as an answer to a question."""
        action = self.message.metadata.get(ACTION, ReplyAction.ACCEPT)
        value = next(
            (p.content for p in self.message.parts if p.kind is PartKind.JSON), None
        )
        known = action if action in set(ReplyAction) else ReplyAction.ACCEPT
        return Reply(
            action=ReplyAction(known), value=value, parts=tuple(self.message.parts)
        )
