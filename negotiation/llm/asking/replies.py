"""Reads what an OpenAI-compatible server sends back. Pure; every byte is untrusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from negotiation.errors import JsonError
from negotiation.strict_json import Json, parse_json

__all__ = [
    "MAX_BODY",
    "Clean",
    "Reply",
    "ServerError",
    "Usage",
    "read_error",
    "read_reply",
]

MAX_BODY: Final = 2 * 1024 * 1024
"Largest body of a server's answer, in bytes."

MAX_USAGE: Final = 10_000_000
"Above this a count of tokens is a mistake; no model reads or writes so many."

MAX_WORDS: Final = 200
"Longest piece of a server's words that is repeated to the owner, in characters."


@dataclass(frozen=True, slots=True)
class Usage:
    """What one request cost, in tokens."""

    input_tokens: int
    "Tokens of the prompt."

    output_tokens: int
    "Tokens of the answer, with those of thoughts that are not shown."

    @property
    def total(self) -> int:
        """Both together; what budgets count."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """One answered request."""

    text: str = field(repr=False)
    "The model's words; empty when there are none."

    finish_reason: str
    "Why it stopped: `stop`, `length`, `content_filter` or a word of the server's."

    refusal: str = field(default="", repr=False)
    "The model's words when it declines."

    usage: Usage | None = None
    "What the server says it cost, if it says so in a sensible way."

    model: str = ""
    "The model that the server says answered."


@dataclass(frozen=True, slots=True)
class ServerError:
    """A request that was answered with an error."""

    status: int
    "HTTP status, or the one that stands for it in an answer with status 200."

    words: str
    "The server's, cut."

    retry_after: float | None = None
    "Seconds it asks to wait."

    may_retry: bool | None = None
    "What it says about asking again, if it says so (`x-should-retry`)."


Clean = Callable[[str], str]
"Takes secrets out of a text; before it is cut, or a half of one would be left."


def read_reply(data: bytes, *, clean: Clean) -> Reply | ServerError:
    """Return what the body of an answer with status 200 says.

    Some proxies put an error into such a body.

    Args:
        clean: Applied to an error's words.

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
    """Return the words of an error's body, cut; empty when there are none."""
    try:
        body = parse_json(data, max_size=MAX_BODY)
    except JsonError:
        text = data.decode("utf-8", "replace").strip()
        return "" if text.startswith("<") else _cut(clean(text))
    found = body.get("error", body) if isinstance(body, dict) else body
    return _cut(clean(_words(found)))


def _error_in(error: Json, clean: Clean) -> ServerError:
    code = error.get("code") if isinstance(error, dict) else None
    status = code if type(code) is int and 400 <= code < 600 else 500
    return ServerError(status, _cut(clean(_words(error))))


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
        # The findings of pydantic, which vLLM and others give back as they are.
        said = [str(_dict(detail).get("msg", "")) for detail in details[:3]]
    return "; ".join(dict.fromkeys(said))


def _cut(text: str) -> str:
    # Room for the name of the parameter, which often stands at the end.
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
