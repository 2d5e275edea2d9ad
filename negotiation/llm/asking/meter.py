"""The meter between questions and the network, which counts every request. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

from negotiation.llm.asking.answers import Form
from negotiation.llm.asking.questions import Question
from negotiation.llm.asking.replies import Usage

__all__ = ["FREE", "Charge", "Message", "Meter", "ModelRequest"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: str
    "`system`, `user` or `assistant`."

    content: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One HTTP request to a model."""

    messages: tuple[Message, ...]
    "The chat so far."

    form: Form
    "The form in which JSON is requested."

    max_tokens: int
    "Largest number of tokens of the answer, including thoughts."

    tokens_name: str = "max_tokens"
    "The server's name of that parameter."

    schema_bytes: int = 0
    "Bytes of the schema that is sent with the messages."

    @property
    def most_tokens(self) -> Usage:
        """The largest possible cost.

        No tokenizer makes more tokens than there are bytes; 16 for each message cover
        the marks that the chat format adds.
        """
        texts = sum(len(m.content.encode("utf-8")) + 16 for m in self.messages)
        return Usage(texts + self.schema_bytes, self.max_tokens)


@dataclass(slots=True)
class Charge:
    """The result of one request; filled in while its meter is open."""

    outcome: str = "cancelled"
    "A stable word: `ok`, `unfit`, `cut`, `refused`, `http_429`, `silent`…"

    sent: bool = False
    "True if it may have reached the server; a request that did not costs nothing."

    usage: Usage | None = None
    "Tokens used; None when the server did not say."

    answer: str | None = field(default=None, repr=False)
    "The model's text, if there is any."

    model: str = ""
    "The model that the server names as the one that answered."

    def no_cost(self) -> None:
        """Note that the server refused the request, so that no tokens were used."""
        self.usage = Usage(0, 0)


class Meter(Protocol):
    """Allows requests one by one, and counts the cost of each."""

    def charge(
        self, question: Question, request: ModelRequest
    ) -> contextlib.AbstractAsyncContextManager[Charge]:
        """Reserve the largest cost of `request`; settle it when the context ends.

        Raises:
            MindError: On entry: the budget is used up, and nothing may be sent.
        """
        ...


class _Free:
    """Counts nothing; for the owner's own test of an endpoint, and for tests."""

    @contextlib.asynccontextmanager
    async def charge(
        self, question: Question, request: ModelRequest
    ) -> AsyncIterator[Charge]:
        yield Charge()


FREE: Meter = _Free()
"Allows every request."
