"""What stands between a question and the network: someone who counts. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

from negotiation.llm.asking.answers import Form
from negotiation.llm.asking.questions import Question
from negotiation.llm.asking.replies import Usage

__all__ = ["FREE", "Charge", "Message", "Meter", "Request"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: str
    "`system`, `user` or `assistant`."

    content: str = field(repr=False)
    "Its text."


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request to a model."""

    messages: tuple[Message, ...]
    "The chat so far."

    form: Form
    "How JSON is asked for."

    max_tokens: int
    "Most tokens of the answer, thoughts included."

    tokens_name: str = "max_tokens"
    "What the server calls that."

    schema_bytes: int = 0
    "Bytes of the schema that goes beside the messages."

    @property
    def most_tokens(self) -> Usage:
        """What it can cost at most.

        No tokenizer makes more tokens than there are bytes; 16 a message are for the
        marks of the chat around it.
        """
        texts = sum(len(m.content.encode("utf-8")) + 16 for m in self.messages)
        return Usage(texts + self.schema_bytes, self.max_tokens)


@dataclass(slots=True)
class Charge:
    """What became of one request; filled in while its meter is open."""

    outcome: str = "cancelled"
    "A stable word: `ok`, `unfit`, `cut`, `refused`, `http_429`, `silent`…"

    sent: bool = False
    "Whether it may have reached the server; what did not costs nothing."

    usage: Usage | None = None
    "What it cost; None when the server did not say."

    answer: str | None = field(default=None, repr=False)
    "The model's words, if there were any."

    model: str = ""
    "The model that the server says answered."

    def no_cost(self) -> None:
        """Note that the server refused the request, so no token was used."""
        self.usage = Usage(0, 0)


class Meter(Protocol):
    """Allows requests one by one, and counts what each cost."""

    def charge(
        self, question: Question, request: Request
    ) -> contextlib.AbstractAsyncContextManager[Charge]:
        """Reserve what `request` can cost; settle it when the context is left.

        Raises:
            MindError: On entry: the budget is used up, and nothing may be sent.
        """
        ...


class _Free:
    """Counts nothing; for the owner's own trial of an endpoint, and for tests."""

    @contextlib.asynccontextmanager
    async def charge(
        self, question: Question, request: Request
    ) -> AsyncIterator[Charge]:
        yield Charge()


FREE: Meter = _Free()
"Lets everything pass."
