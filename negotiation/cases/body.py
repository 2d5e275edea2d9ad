"""The data of a test case inside its text: JSON, or bytes in hex or base64."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Final

from negotiation.document.shape import Document
from negotiation.errors import CasesError, JsonError
from negotiation.messages import MAX_TEXT_SIZE
from negotiation.strict_json import parse_json

__all__ = ["Opening", "fenced", "is_closing", "opening_of", "read_body"]

MAX_TRIES: Final = 8
"Largest number of brackets in one body at which a JSON value is tried."

_FENCE: Final = re.compile(
    r"([ \t]{0,12})(`{3,}|~{3,})[ \t]{0,4}([A-Za-z0-9_+-]{0,20})"
)
_BRACKET: Final = re.compile(r"[{\[]")
_HEX: Final = re.compile(r"[0-9A-Fa-f]+")


@dataclass(frozen=True, slots=True)
class Opening:
    """The first line of a code fence."""

    mark: str
    "The backticks or tildes."

    language: str
    "The language word after the marks, in lower case."

    indentation: int
    "Number of blanks in front of the marks."


def opening_of(line: str) -> Opening | None:
    """Return the fence that `line` opens, or None."""
    found = _FENCE.match(line)
    if found is None or "`" in line[found.end() :]:
        return None
    return Opening(found[2], found[3].lower(), len(found[1]))


def is_closing(line: str, mark: str) -> bool:
    """Return whether `line` closes a fence that `mark` opened."""
    bare = line.strip(" \t")
    return bare.startswith(mark) and not bare.strip(mark[0])


def fenced(data: bytes, document: Document) -> str:
    """Return a fence from which `read_body` reads exactly these bytes again."""
    text = _json_text(data) if document.is_json else None
    if text is None:
        return f"```hex\n{data.hex()}\n```"
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}json\n{text}\n{mark}"


def read_body(lines: list[str], document: Document, what: str) -> bytes | None:
    """Return the bytes that the lines under one label represent; None for no data.

    The first fence counts; without a fence the first JSON value or the whole text.

    Args:
        what: Name of the data for the error message.

    Raises:
        CasesError: The data cannot be read.
    """
    opened, text = _fence_in(lines)
    language = opened.language if opened is not None else ""
    if opened is None:
        text = _outdented(lines).strip("` \t\n")
    try:
        if language == "hex":
            return bytes.fromhex("".join(text.split())) or None
        if language in ("base64", "b64"):
            return base64.b64decode("".join(text.split()), validate=True) or None
        if not document.is_json:
            return _packed(text, as_is=bool(language))
        if not text.strip():
            return None
        if opened is None:
            return _first_json(text)
        data = text.encode("utf-8")
        parse_json(data, max_size=MAX_TEXT_SIZE)
        return data
    except (JsonError, ValueError, binascii.Error) as exc:
        raise CasesError(f"{what} cannot be read: {_words(exc)}") from None


def _json_text(data: bytes) -> str | None:
    """Return JSON as the text of a fence; None if a fence would change it."""
    try:
        text = data.decode("utf-8")
        parse_json(data, max_size=MAX_TEXT_SIZE)
    except (UnicodeDecodeError, JsonError):
        return None
    # Reading a text drops carriage returns, so such data would not survive a fence.
    return None if "\r" in text else text


def _fence_in(lines: list[str]) -> tuple[Opening | None, str]:
    for start, line in enumerate(lines):
        opened = opening_of(line)
        if opened is None:
            continue
        inside: list[str] = []
        for other in lines[start + 1 :]:
            if is_closing(other, opened.mark):
                break
            blanks = len(other) - len(other.lstrip(" \t"))
            inside.append(other[min(blanks, opened.indentation) :])
        return opened, "\n".join(inside)
    return None, ""


def _outdented(lines: list[str]) -> str:
    """Return the lines without the indentation that all of them share."""
    depths = [len(line) - len(line.lstrip(" \t")) for line in lines[1:] if line.strip()]
    depth = min(depths, default=0)
    return "\n".join([*lines[:1], *(line[depth:] for line in lines[1:])])


def _first_json(text: str) -> bytes | None:
    """Return the exact text of the first JSON value inside prose.

    Raises:
        JsonError: There is a bracket, but no JSON value begins at one.
    """
    reader = json.JSONDecoder()
    problem: JsonError | None = None
    for tried, bracket in enumerate(_BRACKET.finditer(text)):
        if tried == MAX_TRIES:
            break
        try:
            _, end = reader.raw_decode(text, bracket.start())
            data = text[bracket.start() : end].encode("utf-8")
            parse_json(data, max_size=MAX_TEXT_SIZE)
            return data
        except (JsonError, ValueError, RecursionError) as exc:
            problem = problem or JsonError(_words(exc))
    if problem is not None:
        raise problem
    return None


def _packed(text: str, *, as_is: bool) -> bytes | None:
    """Return the bytes of a message that is not JSON.

    Args:
        as_is: True when the text itself is the message, as with XML.
    """
    if as_is:
        return text.encode("utf-8") or None
    bare = "".join(text.split())
    if not bare:
        return None
    if _HEX.fullmatch(bare) and len(bare) % 2 == 0:
        return bytes.fromhex(bare)
    return base64.b64decode(bare, validate=True)


def _words(exc: Exception) -> str:
    if isinstance(exc, JsonError):
        return str(exc)
    if isinstance(exc, RecursionError):
        return "it is nested too deep"
    # Messages of other errors may quote the text.
    return "it is neither JSON nor hex nor base64"
