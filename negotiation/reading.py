"""Reads a candidate: which of its JSON Schemas is the request, which the response.

Written for texts of people and models, in English or Chinese, with or without code
fences, as in the seed's example (ANP-24, ANP-25, ANP-35).
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final

from negotiation.errors import DocumentError, JsonError, SchemaError
from negotiation.keywords import TYPES, cut
from negotiation.markdown import JsonText, Outline, Section, read_outline
from negotiation.schemas import SchemaLimits, prepared
from negotiation.shape import MAX_DOCUMENT_SIZE, Document, encoded
from negotiation.strict_json import Json, parse_json
from negotiation.task import Schema

__all__ = ["read_document"]

MAX_REQUIREMENT: Final = 16 * 1024
"Longest requirement kept of a text that is not ours, in characters."

LIMITS: Final = SchemaLimits()
MAX_SCHEMA_TEXT: Final = 4 * LIMITS.max_size
"Largest JSON text read as a schema, in bytes: indentation comes on top of its size."

REQUEST_WORDS: Final = re.compile(r"request|input|请求|請求|输入", re.IGNORECASE)
RESPONSE_WORDS: Final = re.compile(
    r"respon[sd]|reply|replies|answer|result|output|响应|響應|返回|回复|应答|结果|输出",
    re.IGNORECASE,
)
ERROR_WORDS: Final = re.compile(r"error|fail|exception|错误|异常|失败", re.IGNORECASE)
NEED_WORDS: Final = re.compile(
    r"\s*[\d.、)）]*\s*(?:(?:requirements?|needs?|purpose|goals?|tasks?)\b"
    r"|需求|目的|目标|任务).*",
    re.IGNORECASE,
)
ENCODING_WORDS: Final = re.compile(
    r".*(encoding|wire format|byte format|bytes on the wire|编码|字节格式).*",
    re.IGNORECASE,
)
BASE_URI: Final = re.compile(
    r"URI\s{0,3}[::]\s{0,3}([a-z][a-z0-9+.-]{0,20}:[^\s()()<>`\"]{1,500})",
    re.IGNORECASE,
)


class Part(Enum):
    """What a schema of the text describes."""

    REQUEST = auto()
    RESPONSE = auto()
    ERROR = auto()
    UNCLEAR = auto()


def read_document(text: str) -> Document:
    """Return what `text` says.

    Raises:
        DocumentError: With a reason in words that the peer may see: the text is too
            large, holds no schema of the request or of the response, holds one over
            the limits, or builds on a protocol that we do not hold (ANP-26).
    """
    if not isinstance(text, str) or not text.strip():
        raise DocumentError("the candidate is empty")
    if len(text) > MAX_DOCUMENT_SIZE or len(encoded(text)) > MAX_DOCUMENT_SIZE:
        raise DocumentError(f"the candidate has more than {MAX_DOCUMENT_SIZE} bytes")
    outline = read_outline(text)
    base = BASE_URI.search(text)
    base_uri = base[1] if base else None
    request, response = _schemas(outline, base_uri)
    return Document(
        text=text,
        requirement=_requirement(outline),
        request_schema=request,
        response_schema=response,
        encoding=_encoding(outline),
        base_uri=base_uri,
    )


def read_requirement(text: str) -> str:
    """Return the requirement of a text that is perhaps no document at all."""
    return _requirement(read_outline(text[:MAX_DOCUMENT_SIZE]))


def _schemas(outline: Outline, base_uri: str | None) -> tuple[Schema, Schema]:
    found: dict[Part, list[dict[str, Json]]] = {part: [] for part in Part}
    broken = ""
    for place in outline.jsons:
        try:
            value = parse_json(place.text, max_size=MAX_SCHEMA_TEXT)
        except JsonError as exc:
            # Prose may hold braces, so this counts only if a schema is missing later.
            broken = broken or f"; a JSON text cannot be read: {exc}"
            continue
        if isinstance(value, dict) and _looks_like_schema(value):
            found[_part(place, value)].append(value)
    unclear = iter(found[Part.UNCLEAR])
    request = next(iter(found[Part.REQUEST]), None) or next(unclear, None)
    response = next(iter([*found[Part.RESPONSE], *unclear, *found[Part.ERROR]]), None)
    if request is None or response is None:
        what = " and ".join(
            name
            for name, schema in (("request", request), ("response", response))
            if schema is None
        )
        raise DocumentError(_missing(what, base_uri, outline) + broken)
    return _checked("request", request), _checked("response", response)


def _missing(what: str, base_uri: str | None, outline: Outline) -> str:
    if base_uri is not None:
        return (
            f"the candidate builds on {cut(base_uri)}, which is not held here, and has "
            f"no JSON Schema of the {what}; send the whole protocol"
        )
    size = "" if outline.complete else " in the part that was looked at"
    return (
        f"no JSON Schema of the {what}{size}; put one under a heading of its own, such "
        "as 'Request message' and 'Response message'"
    )


def _checked(what: str, schema: dict[str, Json]) -> Schema:
    try:
        return prepared(schema, LIMITS)
    except SchemaError as exc:
        raise DocumentError(f"the {what} schema cannot be used: {exc}") from None


def _looks_like_schema(value: dict[str, Json]) -> bool:
    if "$schema" in value or isinstance(value.get("properties"), dict):
        return True
    kind = value.get("type")
    if isinstance(kind, str) and kind in TYPES:
        return True
    if "$ref" in value:
        return True
    return any(isinstance(value.get(one), list) for one in ("anyOf", "oneOf", "allOf"))


def _part(place: JsonText, schema: dict[str, Json]) -> Part:
    """Return what a schema describes, by the nearest words that say so."""
    title = schema.get("title")
    clues = [
        *place.headings[:1],
        place.intro,
        title if isinstance(title, str) else "",
        *place.headings[1:],
    ]
    for clue in clues:
        part = _said(clue[:500])
        if part is not Part.UNCLEAR:
            return part
    return Part.UNCLEAR


def _said(words: str) -> Part:
    request = REQUEST_WORDS.search(words)
    response = RESPONSE_WORDS.search(words)
    if ERROR_WORDS.search(words):
        return Part.ERROR
    if request and not response:
        return Part.REQUEST
    if response and not request:
        return Part.RESPONSE
    return Part.UNCLEAR


def _requirement(outline: Outline) -> str:
    for section in outline.sections:
        if NEED_WORDS.fullmatch(section.title[:200]):
            return _text_of(section)
    return ""


def _text_of(section: Section) -> str:
    quoted = [line for line in section.lines if line.startswith(">")]
    if quoted and all(line.startswith(">") for line in section.lines if line.strip()):
        return "\n".join(line[2:] if line[1:2] == " " else line[1:] for line in quoted)
    return "\n".join(section.lines).strip()[:MAX_REQUIREMENT]


def _encoding(outline: Outline) -> str:
    for section in outline.sections:
        if ENCODING_WORDS.fullmatch(section.title[:200]):
            body = " ".join([section.title, *section.lines])[:2_000]
            if "json" not in body.lower():
                return " ".join(body.split())[:200]
    return "json"
