"""Reads a candidate, and finds the JSON Schemas of its request and response.

It handles texts by people and models, in English or Chinese, with or without code
fences, as in the seed's example (ANP-24, ANP-25, ANP-35).
"""

from __future__ import annotations

from collections import deque
from typing import Final
from weakref import WeakValueDictionary

from negotiation.document.examples import looks_like_schema, read_examples
from negotiation.document.markdown import (
    JsonText,
    MarkdownSection,
    Outline,
    read_outline,
)
from negotiation.document.prose import (
    JSON,
    NEED_WORDS,
    UPDATE_TITLE,
    DocumentPart,
    encoding_of,
    named_base,
    part_said,
)
from negotiation.document.shape import (
    MAX_DOCUMENT_SIZE,
    Document,
    WorkedExample,
    encoded,
)
from negotiation.errors import DocumentError, JsonError, SchemaError
from negotiation.need import Schema
from negotiation.schema.intake import SchemaLimits, prepared
from negotiation.schema.keywords import cut
from negotiation.strict_json import Json, parse_json

MAX_REQUIREMENT: Final = 16 * 1024
"Longest requirement that is kept of a foreign text, in characters."

LIMITS: Final = SchemaLimits()
MAX_SCHEMA_TEXT: Final = 4 * LIMITS.max_size
"Largest JSON text read as a schema, in bytes; it includes indentation."


KEPT: Final = 16
"Documents that are kept although nobody has them, as between two steps with one."

_known: WeakValueDictionary[str, Document] = WeakValueDictionary()
_latest: deque[Document] = deque(maxlen=KEPT)


def read_document(text: str) -> Document:
    """Return the content of the document `text`.

    All who read the same text share one document, also two agreements with two peers;
    so nobody may change its schemas.

    Raises:
        DocumentError: With a reason in words that the peer may see: the text is too
            large, has no schema of the request or of the response, has one over the
            limits, builds on a protocol that we do not hold (ANP-26), or has another
            encoding than JSON without a worked example of each message (ANP-70).
    """
    if not isinstance(text, str) or not text.strip():
        raise DocumentError("the candidate is empty")
    known = _known.get(text)
    if known is None:
        known = _known[text] = _content(text)
        _latest.append(known)
    return known


def _content(text: str) -> Document:
    if len(text) > MAX_DOCUMENT_SIZE or len(encoded(text)) > MAX_DOCUMENT_SIZE:
        raise DocumentError(f"the candidate has more than {MAX_DOCUMENT_SIZE} bytes")
    outline = read_outline(text)
    base = named_base(outline)
    base_uri = base.uri if base is not None else None
    encoding = encoding_of(outline)
    examples: tuple[WorkedExample, ...] = ()
    shown: frozenset[int] = frozenset()
    if encoding != JSON:
        examples, shown = read_examples(outline)
    request, response, update = _schemas(outline, base_uri, shown)
    return Document(
        text=text,
        requirement=_requirement(outline),
        request_schema=request,
        response_schema=response,
        update_schema=update,
        encoding=encoding,
        base_uri=base_uri,
        examples=examples,
    )


def read_requirement(text: str) -> str:
    """Return the requirement of a text, even if it is not a valid document."""
    return _requirement(read_outline(text[:MAX_DOCUMENT_SIZE]))


def _schemas(
    outline: Outline, base_uri: str | None, shown: frozenset[int]
) -> tuple[Schema, Schema, Schema | None]:
    """Return the schemas of request, response and update.

    Args:
        shown: Positions of values in examples.
    """
    found: dict[DocumentPart, list[dict[str, Json]]] = {
        part: [] for part in DocumentPart
    }
    broken = ""
    for place in outline.jsons:
        if place.position in shown:
            continue
        try:
            value = parse_json(place.text, max_size=MAX_SCHEMA_TEXT)
        except JsonError as exc:
            # Prose may contain braces, so this matters only if a schema is missing
            # later.
            broken = broken or f"; a JSON text cannot be read: {exc}"
            continue
        if isinstance(value, dict) and looks_like_schema(value):
            found[_part(place, value)].append(value)
    unclear = iter(found[DocumentPart.UNCLEAR])
    request = next(iter(found[DocumentPart.REQUEST]), None) or next(unclear, None)
    response = next(
        iter([*found[DocumentPart.RESPONSE], *unclear, *found[DocumentPart.ERROR]]),
        None,
    )
    if request is None or response is None:
        what = " and ".join(
            name
            for name, schema in (("request", request), ("response", response))
            if schema is None
        )
        raise DocumentError(_missing(what, base_uri, outline) + broken)
    update = next(iter(found[DocumentPart.UPDATE]), None)
    return (
        _checked("request", request),
        _checked("response", response),
        None if update is None else _checked("update", update),
    )


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


def _part(place: JsonText, schema: dict[str, Json]) -> DocumentPart:
    """Return the message that a schema describes, by the nearest clear words."""
    if any(UPDATE_TITLE.fullmatch(one[:100]) for one in place.headings[:1]):
        return DocumentPart.UPDATE
    title = schema.get("title")
    clues = [
        *place.headings[:1],
        place.intro,
        title if isinstance(title, str) else "",
        *place.headings[1:],
    ]
    for clue in clues:
        part = part_said(clue)
        if part is not DocumentPart.UNCLEAR:
            return part
    return DocumentPart.UNCLEAR


def _requirement(outline: Outline) -> str:
    for section in outline.sections:
        if NEED_WORDS.fullmatch(section.title[:200]):
            return _text_of(section)
    return ""


def _text_of(section: MarkdownSection) -> str:
    quoted = [line for line in section.lines if line.startswith(">")]
    if quoted and all(line.startswith(">") for line in section.lines if line.strip()):
        return "\n".join(line[2:] if line[1:2] == " " else line[1:] for line in quoted)
    return "\n".join(section.lines).strip()[:MAX_REQUIREMENT]
