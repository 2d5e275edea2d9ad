"""The worked examples of a document whose bytes are not JSON.

An example is a JSON block with the values of one message and a block with its bytes:
`hex` (blanks and `# comments` allowed), `base64`, or text such as `xml`, which is the
UTF-8 of its lines joined by LF. Both are under one heading, or under two that share the
heading above them, in either order, with no other block of bytes in between. Headings
and the line above a block tell what it shows (DESIGN.md, Negotiation; ANP-70).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from negotiation.document.markdown import Fence, JsonText, Outline
from negotiation.document.prose import DocumentPart, part_said
from negotiation.document.shape import ExampleKind, WorkedExample
from negotiation.errors import DocumentError, JsonError
from negotiation.schema.keywords import TYPES
from negotiation.strict_json import Json, parse_json

MAX_EXAMPLES: Final = 32
"Largest number of worked examples in one document."

MAX_EXAMPLE: Final = 64 * 1024
"Largest size of an example in bytes, and of its values as JSON."

HEX_LANGUAGES: Final = frozenset({"hex", "hexdump"})
BASE64_LANGUAGES: Final = frozenset({"base64", "b64"})
TEXT_LANGUAGES: Final = frozenset(
    {"xml", "text", "txt", "plain", "plaintext", "csv", "tsv", "yaml", "yml", "toml"}
    | {"ini", "html", "edi", "edifact", "form"}
)
"Languages of a block whose own characters are the bytes."

COMMENT: Final = re.compile(r"(?:#|//).*")
KINDS: Final = {
    DocumentPart.REQUEST: ExampleKind.REQUEST,
    DocumentPart.RESPONSE: ExampleKind.RESPONSE,
    DocumentPart.ERROR: ExampleKind.ERROR,
}
NAMES: Final = {
    ExampleKind.REQUEST: "request",
    ExampleKind.RESPONSE: "response",
    ExampleKind.ERROR: "error response",
}


@dataclass(frozen=True, slots=True)
class _Pair:
    """The two blocks of one example."""

    fence: Fence
    values: JsonText


def read_examples(outline: Outline) -> tuple[tuple[WorkedExample, ...], frozenset[int]]:
    """Return the examples, and the positions of their values in the text.

    Raises:
        DocumentError: A kind has no example, one cannot be read, or there are too
            many.
    """
    pairs = list(_pairs(outline))
    if len(pairs) > MAX_EXAMPLES:
        raise DocumentError(
            f"the document has {len(pairs)} worked examples, at most {MAX_EXAMPLES}"
        )
    examples: list[WorkedExample] = []
    for pair in pairs:
        kind = _kind(pair)
        if kind is not None:
            examples.append(_example(kind, pair))
    missing = [
        name
        for kind, name in NAMES.items()
        if not any(one.kind is kind for one in examples)
    ]
    if missing:
        raise DocumentError(
            f"the messages are not JSON and there is no worked {' or '.join(missing)}; "
            "show each under a heading of its own as values in a json block and bytes "
            "in a hex, base64 or text block, or use JSON"
        )
    return tuple(examples), frozenset(pair.values.position for pair in pairs)


def looks_like_schema(value: dict[str, Json]) -> bool:
    """Return whether a JSON object of a document is a schema and not an example."""
    if "$schema" in value or isinstance(value.get("properties"), dict):
        return True
    kind = value.get("type")
    if isinstance(kind, str) and kind in TYPES:
        return True
    if "$ref" in value:
        return True
    return any(isinstance(value.get(one), list) for one in ("anyOf", "oneOf", "allOf"))


def _pairs(outline: Outline) -> Iterable[_Pair]:
    """Yield each block of bytes together with its block of values."""
    fences = [one for one in outline.fences if _holds_bytes(one)]
    taken = {one.position for one in fences}
    blocks: list[Fence | JsonText] = sorted(
        [*fences, *(one for one in outline.jsons if one.position not in taken)],
        key=lambda block: block.position,
    )
    for place, block in enumerate(blocks):
        if not isinstance(block, Fence):
            continue
        beside = [
            other
            for other in (*blocks[max(0, place - 1) : place], *blocks[place + 1 :][:1])
            if isinstance(other, JsonText)
            and other.position not in taken
            and _belong(block, other)
        ]
        # Of two neighbours it takes the one that is no schema, else the first.
        beside.sort(key=_is_schema)
        if beside:
            taken.add(beside[0].position)
            yield _Pair(block, beside[0])


def _holds_bytes(fence: Fence) -> bool:
    return fence.language in HEX_LANGUAGES | BASE64_LANGUAGES | TEXT_LANGUAGES


def _belong(fence: Fence, values: JsonText) -> bool:
    """Return whether both are under one heading, or share the one above."""
    if fence.section == values.section:
        return True
    above = fence.headings[1:]
    return bool(above) and above == values.headings[1:] and not _is_schema(values)


def _is_schema(place: JsonText) -> bool:
    try:
        value = parse_json(place.text, max_size=4 * MAX_EXAMPLE)
    except JsonError:
        return True
    return not isinstance(value, dict) or looks_like_schema(value)


def _kind(pair: _Pair) -> ExampleKind | None:
    intros = pair.values.intro, pair.fence.intro
    clues = [
        *pair.values.headings[:1],
        *pair.fence.headings[:1],
        *intros,
        *pair.values.headings[1:],
    ]
    said = [part_said(clue) for clue in clues]
    part = next(
        (one for one in said if one is not DocumentPart.UNCLEAR), DocumentPart.UNCLEAR
    )
    # Under "Response" a line such as "when it fails:" marks an error.
    if part is DocumentPart.RESPONSE and DocumentPart.ERROR in map(part_said, intros):
        part = DocumentPart.ERROR
    return KINDS.get(part)


def _example(kind: ExampleKind, pair: _Pair) -> WorkedExample:
    name = NAMES[kind]
    try:
        values = parse_json(pair.values.text, max_size=MAX_EXAMPLE)
    except JsonError as exc:
        raise DocumentError(
            f"the values of the worked {name} cannot be read: {exc}"
        ) from None
    if not isinstance(values, dict):
        raise DocumentError(f"the values of the worked {name} are no JSON object")
    try:
        data = _bytes(pair.fence)
    except (ValueError, binascii.Error):
        raise DocumentError(
            f"the bytes of the worked {name} are not {pair.fence.language}"
        ) from None
    if not data:
        raise DocumentError(f"the worked {name} has no bytes")
    if len(data) > MAX_EXAMPLE:
        raise DocumentError(
            f"the worked {name} has {len(data)} bytes, at most {MAX_EXAMPLE}"
        )
    return WorkedExample(kind, values, data)


def _bytes(fence: Fence) -> bytes:
    if fence.language in HEX_LANGUAGES:
        digits = "".join(COMMENT.sub("", line) for line in fence.text.split("\n"))
        return bytes.fromhex("".join(digits.split()))
    if fence.language in BASE64_LANGUAGES:
        return base64.b64decode("".join(fence.text.split()), validate=True)
    return fence.text.encode("utf-8")
