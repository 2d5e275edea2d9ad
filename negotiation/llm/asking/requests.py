"""One request to a model's server: its cost and its reply. Pure.

Every byte of a reply is untrusted.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from negotiation.errors import JsonError
from negotiation.llm.asking.answers import Form
from negotiation.llm.asking.questions import Question
from negotiation.strict_json import Json, parse_json

MAX_BODY: Final = 2 * 1024 * 1024
"Largest body of a server's answer, in bytes."

MAX_USAGE: Final = 10_000_000
"Largest plausible number of tokens; no model reads or writes so many."

MAX_WORDS: Final = 200
"Longest quotation of a server's message for the owner, in characters."


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of one request, in tokens."""

    input_tokens: int

    output_tokens: int
    "Tokens of the answer, including thoughts that are not shown."

    @property
    def total(self) -> int:
        """The sum of both, as counted by budgets."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """A successfully answered request."""

    text: str = field(repr=False)
    "The model's text; empty when there is none."

    finish_reason: str
    "Reason of the end: `stop`, `length`, `content_filter` or a word of the server's."

    refusal: str = field(default="", repr=False)
    "The model's text when it declines."

    usage: Usage | None = None
    "The cost according to the server; None when it gives no plausible numbers."

    model: str = ""
    "The model that the server names as the one that answered."


@dataclass(frozen=True, slots=True)
class ModelServerError:
    """A request that was answered with an error."""

    status: int
    "HTTP status; for an error inside an answer with status 200 an equivalent one."

    words: str
    "The server's message, shortened."

    retry_after: float | None = None
    "Seconds that the server asks to wait."

    may_retry: bool | None = None
    "The server's advice about a repetition (`x-should-retry`); None without advice."


Clean = Callable[[str], str]
"Removes secrets from a text; applied before shortening, which could split one."


def read_reply(data: bytes, *, clean: Clean) -> Reply | ModelServerError:
    """Return the content of the body of an answer with status 200.

    Some proxies return errors with such a status.

    Args:
        clean: Applied to an error's message.

    Raises:
        JsonError: It is no chat completion; the reason quotes nothing of it.
    """
    body = parse_json(data, max_size=MAX_BODY)
    if not isinstance(body, dict):
        raise JsonError("not an object")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        if body.get("error"):
            return _error_in(body["error"], clean)
        raise JsonError("no choices")
    choice = _dict(choices[0])
    message = _dict(choice.get("message"))
    return Reply(
        text=_content(message.get("content")),
        finish_reason=_word(choice.get("finish_reason"), default="stop"),
        refusal=_word(message.get("refusal")),
        usage=_usage(body.get("usage")),
        model=_word(body.get("model")),
    )


def read_error(data: bytes, *, clean: Clean) -> str:
    """Return the shortened message of an error's body; empty when there is none."""
    try:
        body = parse_json(data, max_size=MAX_BODY)
    except JsonError:
        text = data.decode("utf-8", "replace").strip()
        return "" if text.startswith("<") else _cut(clean(text))
    found = body.get("error", body) if isinstance(body, dict) else body
    return _cut(clean(_words(found)))


def _error_in(error: Json, clean: Clean) -> ModelServerError:
    code = error.get("code") if isinstance(error, dict) else None
    status = code if type(code) is int and 400 <= code < 600 else 500
    return ModelServerError(status, _cut(clean(_words(error))))


def _words(error: Json) -> str:
    """Return an error's message with its code and parameter."""
    if isinstance(error, str):
        return error
    if isinstance(error, list) and error and not isinstance(error[0], list):
        return _words(error[0])
    if not isinstance(error, dict):
        return ""
    names = ("message", "msg", "detail", "code", "param", "type")
    said = [error[name] for name in names if isinstance(error.get(name), str)]
    details = error.get("detail")
    if not said and isinstance(details, list):
        # The findings of pydantic, which vLLM and others return unchanged.
        said = [str(_dict(detail).get("msg", "")) for detail in details[:3]]
    return "; ".join(dict.fromkeys(said))


def _cut(text: str) -> str:
    # Leaves room for the name of the parameter, which is often at the end.
    line = " ".join(text.split())
    if len(line) <= 2 * MAX_WORDS:
        return line
    return f"{line[:MAX_WORDS]}…{line[-MAX_WORDS:]}"


def _content(content: Json) -> str:
    """Return the text of a message, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(_word(_dict(part).get("text")) for part in content)
    return _word(content)


def _usage(usage: Json) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    counts = [usage.get(f"{name}_tokens") for name in ("prompt", "completion")]
    good = [n for n in counts if type(n) is int and 0 <= n <= MAX_USAGE]
    return Usage(*good) if len(good) == 2 else None


def _dict(value: Json) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _word(value: Json, *, default: str = "") -> str:
    return value if isinstance(value, str) else default


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
    form: Form

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
