"""The code and the words of an error that a tool gave, wherever it put them.

Tools have no common form for errors. These are read: `{"error": {"code", "message"}}`,
the same without `error`, and a text that begins with a code, such as "404: not found".
A code of the tool's own that is no status of HTTP stays in front of the words, since a
document's `status.code` has no place for it.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any, Final

from anp.sidecar.attachments.attachment import MAX_MESSAGE, ToolError
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

CODE_NAMES: Final = ("code", "status", "statusCode", "status_code")
TEXT_NAMES: Final = ("message", "detail", "error", "reason", "text", "title")

MAX_CODE: Final = 64
"Longest code in words, in characters."

MAX_READ: Final = 64 * 1024
"Longest text in which an error is looked for, in bytes."

PREFIX: Final = re.compile(r"Error (?:executing|calling|in) tool [^:]{1,128}: ")
"Words that frameworks put in front of what a tool said."

NAMED: Final = re.compile(
    r"\W{0,3}(?:(?:error|http|status|code|https?/\d(?:\.\d)?)\W{1,3}){1,3}"
    r"([45]\d\d)(?![\w.])",
    re.IGNORECASE,
)
"A text that begins with a code and says that it is one."

BARE: Final = re.compile(r"[\[(]?([45]\d\d)(?:[\])]|:|\s*$|\s+(?=\S))")
"A text that begins with a number that may be a code."


def status_in(value: Any) -> int | None:
    """Return a status of HTTP that says error, or None for any other value."""
    if isinstance(value, str) and len(value) == 3 and value.isdecimal():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 400 <= value <= 599 else None


def tool_error(said: Any, text: str, *, default: int = 500) -> ToolError:
    """Return the error that a tool told by its data or its words.

    Args:
        said: Its structured content, if any.
        text: Its words.
        default: The code when it gave none.
    """
    found = error_in(said) or error_in(_json_in(text))
    if found is not None:
        code, words = found
        return ToolError(code or default, words or text or "the tool gave no reason")
    return ToolError(
        _code_of(text) or default, text or "the tool failed without a word"
    )


def error_in(said: Any) -> tuple[int | None, str] | None:
    """Return the status and the words of an error in JSON; None if it holds no code."""
    if not isinstance(said, dict):
        return None
    inner = said.get("error")
    error = inner if isinstance(inner, dict) else said
    named = [error[name] for name in CODE_NAMES if error.get(name) is not None]
    if not named and isinstance(inner, dict):
        named = [said[name] for name in CODE_NAMES if said.get(name) is not None]
    codes = [one for one in named if isinstance(one, str | int) and one != ""]
    if not codes or isinstance(codes[0], bool):
        return None
    texts = (error[name] for name in TEXT_NAMES if isinstance(error.get(name), str))
    words = next((text for text in texts if text), "")
    status = next((code for one in codes if (code := status_in(one))), None)
    own = next((str(one) for one in codes if status_in(one) is None), "")
    if own and len(own) <= MAX_CODE and own not in words:
        words = f"{own}: {words}" if words else own
    return status, words[:MAX_MESSAGE]


def _json_in(text: str) -> Any:
    text = PREFIX.sub("", text.strip(), count=1)
    if not text.startswith("{"):
        return None
    try:
        return parse_json(text, max_size=MAX_READ)
    except JsonError:
        return None


def _code_of(text: str) -> int | None:
    """Return the code at the beginning of a text."""
    text = PREFIX.sub("", text.strip(), count=1)
    named = NAMED.match(text)
    if named is not None:
        return int(named[1])
    bare = BARE.match(text)
    if bare is None:
        return None
    code, rest = int(bare[1]), text[bare.end() :].casefold()
    if not bare[0][-1].isspace() and not bare[0][-1].isdecimal():
        return code
    # "404 Not Found" is a code, "500 sheets are too many" is none.
    try:
        phrase = HTTPStatus(code).phrase.casefold()
    except ValueError:
        return None
    return code if not rest or rest.startswith(phrase) else None
