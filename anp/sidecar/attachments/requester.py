"""The requester of a call at work, as the attachment sees it before its answer.

An attachment that streams, or that asks back, looks for `current_requester`. A call of
one turn has none: what would be streamed is joined there, and nobody answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Protocol

from anp.interaction.elements import Message, Part, PartKind

ACTION = "action"
"Entry in the metadata of an answer to a question, with a `ReplyAction`."

LAST_CHUNK: Final = "lastChunk"
"Entry that is true in the metadata of the part with which a result is complete."

LAST_WAIT: Final = 0.05
"Seconds for which a part is held to see whether the agent ends after it."


def as_last(part: Part) -> Part:
    """Return a part with the mark that its result is complete with it."""
    return replace(part, metadata={**part.metadata, LAST_CHUNK: True})


class ReplyAction(StrEnum):
    """The requester's decision about a question."""

    ACCEPT = "accept"
    "It answered."

    DECLINE = "decline"
    "It does not answer, and the work may go on without."

    CANCEL = "cancel"
    "It does not want to be asked; the tool decides about what that means."


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something that the agent wants to know before it goes on."""

    text: str
    "In words, for a person or an agent."

    schema: Mapping[str, Any] | None = None
    "JSON Schema of the wanted value; None for an answer in words."

    url: str = ""
    "Page on which the requester has to do something; nobody opens it by itself."

    auth: bool = False
    "The requester has to sign in or to prove something, with or without a page."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The requester's answer to a question."""

    action: ReplyAction = ReplyAction.ACCEPT

    value: Any = None
    "The JSON value of an answer that has one."

    parts: Sequence[Part] = field(default_factory=tuple)
    "The answer as it came."

    @classmethod
    def of(cls, message: Message) -> Reply:
        """Return a message of the requester as its answer."""
        action = message.metadata.get(ACTION, ReplyAction.ACCEPT)
        known = action if action in set(ReplyAction) else ReplyAction.ACCEPT
        value = next(
            (p.content for p in message.parts if p.kind is PartKind.JSON), None
        )
        return cls(action=ReplyAction(known), value=value, parts=message.parts)

    @property
    def files(self) -> list[Part]:
        """The files of the answer."""
        return [p for p in self.parts if p.kind is PartKind.BYTES or p.is_file]

    @property
    def text(self) -> str:
        """The texts of the answer, joined by line ends."""
        return "\n".join(
            str(part.content) for part in self.parts if part.kind is PartKind.TEXT
        )


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file that the agent gives, in the folder of its call."""

    path: str
    "Absolute; the agent's words, so that it has to be checked."

    name: str = ""
    "Name for people; empty for that of the path."

    media_type: str = ""
    "Empty for the usual one of the name."


class Requester(Protocol):
    """Takes what comes before the answer, and answers questions."""

    @property
    def key(self) -> str:
        """Key of this start, by which an agent can drop a repeated one."""

    @property
    def was_told(self) -> bool:
        """True when a part of the result was passed on before the answer."""

    @property
    def said(self) -> Sequence[Part]:
        """The contents of the request in the order in which the requester said them.

        The arguments are made of them. A call of one turn has arguments alone.
        """

    async def begin(self) -> bool:
        """Store that the agent is asked now; return True if it was asked before.

        Only an attachment whose `begins_itself` is true calls it.
        """

    async def say(self, parts: Sequence[Part]) -> None:
        """Pass on a message that is no part of the result."""

    async def update(self, parts: Sequence[Part]) -> None:
        """Pass on the next part of the result; return when there is room for more."""

    @property
    def folder(self) -> str:
        """Path of the folder of this call; the agent may write its files there."""

    async def send_file(self, file: GivenFile) -> None:
        """Pass on a file as the next part of the result.

        Raises:
            ToolError: It is not in the call's folder, or there is no room for it.
        """

    async def lay(self, files: Sequence[Part]) -> list[str]:
        """Lay files of an answer in the folder of this call; return their paths.

        Raises:
            ToolError: One did not come.
        """

    async def ask(self, question: Question) -> Reply:
        """Ask, and wait for the answer."""

    async def listen(self, hear: Callable[[Message], None]) -> None:
        """Pass on everything that is said besides the arguments and the answers.

        It is the rest of the request, then messages that nobody asked for; also those
        that came before now, or before a restart.
        """


class Threads(Protocol):
    """The names by which agents know the conversation that a call is part of."""

    async def thread(self, agent: str) -> str:
        """Return the name that an agent has for it; empty for none.

        Args:
            agent: Name of the attachment.
        """

    async def keep_thread(self, agent: str, thread: str) -> None:
        """Note that name for the later tasks of the same conversation."""


current_threads: ContextVar[Threads | None] = ContextVar(
    "current_threads", default=None
)
"The conversation of the task at hand; a call of one turn is part of none."

current_requester: ContextVar[Requester | None] = ContextVar(
    "current_requester", default=None
)
"""The requester of the task at hand. The asyncio task that makes the call sets it."""

joins_updates: ContextVar[bool] = ContextVar("joins_updates", default=False)
"""True when the answer has to have everything although the requester is told of each
part as it comes: a protocol that was negotiated promises a whole result."""
