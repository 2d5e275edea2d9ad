"""The documents we write: deterministic Markdown with two JSON Schemas.

Nothing that differs between two runs of one task stands in a document: equal needs give
equal bytes and equal hashes, whoever the agents are (DESIGN.md, Negotiation).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from negotiation.errors import DocumentError, SchemaError
from negotiation.keywords import DIALECT
from negotiation.reasons import words
from negotiation.schemas import prepared
from negotiation.shape import (
    MAX_DOCUMENT_SIZE,
    encoded,
    own_request_schema,
    own_response_schema,
)
from negotiation.strict_json import Json
from negotiation.task import Capability, Schema

__all__ = ["render_document"]

REPLY_TIMEOUT: Final = 15
"Seconds after which a request counts as unanswered, as in the seed's example (ANP-35)."

KEYWORD_ORDER: Final = {
    name: place
    for place, name in enumerate(
        ("$schema", "title", "description", "type", "const", "enum", "properties")
    )
}
"Keywords that stand first where a person reads a schema; the others follow by name."


def render_document(
    requirement: str,
    input_schema: Schema,
    output_schema: Schema,
    *,
    offered: Sequence[Capability] = (),
) -> str:
    """Return the document of our own shape for these values, always the same bytes.

    Args:
        requirement: The need, any text (ANP-4).
        input_schema: Schema of the values the caller sends.
        output_schema: Schema of the values it gets back.
        offered: The provider's capabilities that serve it, when a provider writes
            (ANP-5); empty when the caller does.

    Raises:
        DocumentError: A schema is over the limits, or the text would be too large.
    """
    try:
        given, wanted = prepared(input_schema), prepared(output_schema)
        request = prepared(own_request_schema(given))
        response = prepared(own_response_schema(wanted))
    except SchemaError as exc:
        raise DocumentError(f"cannot write a document: {exc}") from None
    sides = _offer_section(offered) if offered else _caller_section(given, wanted)
    parts = [
        "# Requirement",
        _quoted(requirement),
        *sides,
        "# Flow",
        "1. The requester sends one request message.\n"
        "2. The provider does what the requirement asks for with `input`.\n"
        "3. The provider sends one response message with the same `messageId`.",
        "# Data format",
        "Each message is one JSON object (RFC 8259) in UTF-8. The JSON Schemas "
        "describe the values.",
        "## Request message",
        "`input` holds the values of the request.",
        _fenced(request),
        "## Response message",
        "`output` holds the values of the result. It is present when `status.code` is "
        "200 and absent otherwise.",
        _fenced(response),
        "# Errors",
        "- `status.code` is an HTTP status code: 200 is good, 4xx is a fault of the "
        "request, 5xx a fault of the provider.\n"
        "- `status.message` says in words what went wrong.",
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
    """Return the properties of an object in words, or what else the schema takes."""
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
    """Return `text` without what could be read as Markdown structure."""
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def _quoted(text: str) -> str:
    # Quoted line by line, a requirement can hold headings, fences and schemas of its
    # own without anybody taking them for those of the document.
    return "\n".join(f"> {line}" for line in text.split("\n"))


def _fenced(schema: Schema) -> str:
    assert isinstance(schema, dict)
    ordered = _ordered({"$schema": DIALECT, **schema})
    text = json.dumps(ordered, ensure_ascii=False, indent=2, allow_nan=False)
    return f"```json\n{text}\n```"


def _ordered(value: Json, *, names: bool = False) -> Json:
    """Return `value` with its keys in one order, whatever order they came in."""
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if not isinstance(value, dict):
        return value
    keys = sorted(
        value, key=lambda key: (0 if names else KEYWORD_ORDER.get(key, 99), key)
    )
    return {key: _ordered(value[key], names=key == "properties") for key in keys}
