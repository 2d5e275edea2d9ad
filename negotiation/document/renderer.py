"""Writes documents: deterministic Markdown with two JSON Schemas.

A document contains nothing that differs between two runs of one need: equal needs give
equal bytes and equal hashes, for any pair of agents (DESIGN.md, Negotiation).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jsonic.exact_numbers import write_json
from negotiation.document.markdown import read_outline
from negotiation.document.prose import JSON, encoding_of
from negotiation.document.reader import read_document
from negotiation.document.shape import (
    MAX_DOCUMENT_SIZE,
    OTHER_ERROR,
    OTHER_STATUS,
    DocumentErrorCode,
    ExampleKind,
    WorkedExample,
    encoded,
    own_request_schema,
    own_response_schema,
    own_update_schema,
)
from negotiation.errors import DocumentError, SchemaError
from negotiation.need import Capability, Schema
from negotiation.schema.intake import prepared
from negotiation.schema.keywords import DIALECT
from negotiation.schema.plan import words
from negotiation.strict_json import Json

REPLY_TIMEOUT: Final = 15
"Seconds after which a request counts as unanswered, as in the seed's example (ANP-35)."

NO_JSON_SAID: Final = "The messages are not JSON."
"Said of an encoding that names no known format, which would be read as JSON."

HEX_LINE: Final = 24
"Bytes in one line of a hex block."

EXAMPLE_TITLES: Final = {
    ExampleKind.REQUEST: "Worked request",
    ExampleKind.RESPONSE: "Worked response",
    ExampleKind.ERROR: "Worked error response",
}

KEYWORD_ORDER: Final = {
    name: place
    for place, name in enumerate(
        ("$schema", "title", "description", "type", "const", "enum", "properties")
    )
}
"Keywords that come first, for readers of a schema; the others follow by name."


def render_document(
    requirement: str,
    input_schema: Schema,
    output_schema: Schema,
    *,
    offered: Sequence[Capability] = (),
    errors: Sequence[DocumentErrorCode] = (),
    updates: Schema | None = None,
) -> str:
    """Return a document of our own shape, always the same bytes for equal arguments.

    Args:
        requirement: The need in words, any text (ANP-4).
        input_schema: Schema of the values that the caller sends.
        output_schema: Schema of the values that it gets back.
        offered: The provider's capabilities that serve the need, when a provider
            writes (ANP-5); empty when the caller does.
        errors: Codes that the need requires for errors; by default HTTP status codes.
        updates: Schema of each value that may come before the result; None for none.

    Raises:
        DocumentError: A schema is over the limits, or the text would be too large.
    """
    try:
        given, wanted = prepared(input_schema), prepared(output_schema)
        request = prepared(own_request_schema(given))
        response = prepared(own_response_schema(wanted, errors))
        before = [] if updates is None else _update_section(prepared(updates))
    except SchemaError as exc:
        raise DocumentError(f"cannot write a document: {exc}") from None
    own_words = any(not one.is_number for one in errors)
    sides = _offer_section(offered) if offered else _caller_section(given, wanted)
    parts = [
        "# Requirement",
        quoted(requirement),
        *sides,
        "# Flow",
        "1. The requester sends one request message.\n"
        "2. The provider does what the requirement asks for with `input`"
        f"{', and may send update messages meanwhile' if before else ''}.\n"
        "3. The provider sends one response message with the same `messageId`.",
        "# Data format",
        "Each message is one JSON object (RFC 8259) in UTF-8. The JSON Schemas "
        "describe the values.",
        "## Request message",
        "`input` holds the values of the request.",
        _fenced(request),
        "## Response message",
        "`output` holds the values of the result. It is present when `status.code` is "
        f"{'ok' if own_words else '200'} and absent otherwise.",
        _fenced(response),
        *before,
        "# Errors",
        "\n".join(
            [
                *_error_lines(errors, own_words=own_words),
                "- `status.message` says in words what went wrong.",
            ]
        ),
        "# Time-out",
        f"A request without a response after {REPLY_TIMEOUT} seconds has failed, "
        "unless the caller set another limit.",
    ]
    text = "\n\n".join(parts) + "\n"
    size = len(encoded(text))
    if size > MAX_DOCUMENT_SIZE:
        raise DocumentError(
            f"the document has {size} bytes, at most {MAX_DOCUMENT_SIZE}"
        )
    return text


def render_encoded_document(
    requirement: str,
    request_schema: Schema,
    response_schema: Schema,
    *,
    encoding: str,
    examples: Sequence[WorkedExample],
) -> str:
    """Return a document with another encoding, the same bytes for equal arguments.

    Args:
        requirement: The need in words, any text (ANP-4).
        request_schema: Schema of the values of a whole request, message id included.
        response_schema: Schema of the values of a whole response, good or bad.
        encoding: Markdown that describes the encoding of values, without a heading.
            Where it names no known format, a sentence says that it is not JSON.
        examples: At least one of each kind (ANP-70).

    Raises:
        DocumentError: The arguments cannot be written so that they are read back.
    """
    try:
        request, response = prepared(request_schema), prepared(response_schema)
    except SchemaError as exc:
        raise DocumentError(f"cannot write a document: {exc}") from None
    said = encoding.strip()
    if said and encoding_of(read_outline(f"# Encoding\n\n{said}\n")) == JSON:
        said = f"{said} {NO_JSON_SAID}"
    parts = [
        *("# Requirement", quoted(requirement)),
        *("# Encoding", said),
        *("# Request message", _fenced(request)),
        *("# Response message", _fenced(response)),
    ]
    for example in examples:
        parts += [
            f"# {EXAMPLE_TITLES[example.kind]}",
            "Values:",
            f"```json\n{_dumped(example.values)}\n```",
            "Bytes:",
            _bytes_block(example.data),
        ]
    text = "\n\n".join(parts) + "\n"
    read = read_document(text)
    if (
        not encoding.strip()
        or read.is_json
        or read.examples != tuple(examples)
        or read.requirement != requirement
        or (read.request_schema, read.response_schema) != (request, response)
    ):
        raise DocumentError(
            "cannot write a document: its parts read as something else; the text about "
            "the encoding has no headings and blocks, and does not speak of JSON"
        )
    return text


def _update_section(updates: Schema) -> list[str]:
    return [
        "# Update Format",
        "Before the response the provider may send any number of update messages with "
        "the same `messageId`, and none after it. `update` holds the next part of the "
        "result; the response has the whole result all the same.",
        _fenced(prepared(own_update_schema(updates))),
    ]


def _bytes_block(data: bytes) -> str:
    """Return `data` as XML if it is XML, for readers, else as hex."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    plain = all(line.isprintable() for line in text.split("\n"))
    # Fence marks inside the data would close the block.
    plain = plain and "```" not in text
    if text.startswith("<") and text.endswith(">") and plain:
        return f"```xml\n{text}\n```"
    lines = [
        data[start : start + HEX_LINE].hex(" ")
        for start in range(0, len(data), HEX_LINE)
    ]
    return "\n".join(["```hex", *lines, "```"])


def _error_lines(errors: Sequence[DocumentErrorCode], *, own_words: bool) -> list[str]:
    if not errors:
        return [
            "- `status.code` is an HTTP status code: 200 is good, 4xx is a fault of "
            "the request, 5xx a fault of the provider."
        ]
    good, other = ("ok", OTHER_ERROR) if own_words else ("200", str(OTHER_STATUS))
    known = {one.code: _one_line(one.meaning) for one in errors}
    known.setdefault(other, "anything else that failed")
    return [
        f"- `status.code` is `{good}` when all went well, else one of these:",
        *(f"  - `{code}`: {meaning}" for code, meaning in known.items()),
    ]


def _caller_section(given: Schema, wanted: Schema) -> list[str]:
    lines = [
        "- Messages as JSON in UTF-8, described by JSON Schema 2020-12.",
        f"- It can send: {_listed(given)}.",
        f"- It can use as a result: {_listed(wanted)}.",
        "- Another format is fine if it takes the same values.",
    ]
    return ["# What the requester can use", "\n".join(lines)]


def _offer_section(offered: Sequence[Capability]) -> list[str]:
    lines = []
    for one in sorted(offered, key=lambda capability: capability.name):
        effect = "changes nothing" if one.read_only else "may change something"
        about = _one_line(one.description)
        lines.append(
            f"- `{_one_line(one.name)}` ({effect}){': ' if about else ''}{about}"
        )
    return ["# What the provider offers", "\n".join(lines)]


def _listed(schema: Schema) -> str:
    """Return the properties of an object in words, or the type of another schema."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or not properties:
        return words(schema)
    required = schema.get("required", ())
    named = [
        f"`{_one_line(name)}` ({words(properties[name])}"
        f"{'' if name in required else ', optional'})"
        for name in sorted(properties)[:20]
    ]
    more = ["and others, see below"] if len(properties) > 20 else []
    return ", ".join([*named, *more])


def _one_line(text: str, limit: int = 200) -> str:
    """Return `text` in one line without Markdown structure."""
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def quoted(text: str) -> str:
    """Return a text as a quotation in Markdown."""
    # Quoted line by line, a requirement may have headings, fences and schemas that
    # nobody can mistake for those of the document.
    return "\n".join(f"> {line}" for line in text.split("\n"))


def _fenced(schema: Schema) -> str:
    assert isinstance(schema, dict)
    ordered = _ordered({"$schema": DIALECT, **schema})
    return f"```json\n{_dumped(ordered)}\n```"


def _dumped(value: Json) -> str:
    return write_json(value, ensure_ascii=False, indent=2, allow_nan=False)


def _ordered(value: Json, *, names: bool = False) -> Json:
    """Return `value` with its keys sorted, independent of their given order."""
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if not isinstance(value, dict):
        return value
    keys = sorted(
        value, key=lambda key: (0 if names else KEYWORD_ORDER.get(key, 99), key)
    )
    return {key: _ordered(value[key], names=key == "properties") for key in keys}
