"""Documents: their parsed form, the shape of our own ones, and their identity.

`candidateProtocols` is Markdown with JSON Schemas in it (ANP-24, ANP-25). Documents
that we write have one shape, so that names never clash: a request is `{messageId,
input}`, a response `{messageId, status: {code, message}, output}`. The identity of a
document is the hash of its exact bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeVar

from negotiation.errors import DocumentError
from negotiation.need import Schema
from negotiation.schema.values import same_schema
from negotiation.strict_json import Json

T = TypeVar("T")

MAX_DOCUMENT_SIZE: Final = 256 * 1024
"Largest candidate, in bytes of UTF-8 (ANP-Q30)."

OTHER_STATUS: Final = 500
"Code of every failure for which a need names no number."

OTHER_ERROR: Final = "error"
"Code of every failure for which a need names no word."

CODE_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")


class MessageKind(StrEnum):
    """The messages of an exchange, as `read_message` names them."""

    REQUEST = "request"
    RESPONSE = "response"
    UPDATE = "update"
    "Comes before the response, any number of times, if the document has updates."


class ExampleKind(StrEnum):
    """The kind of a worked example; a document needs at least one of each."""

    REQUEST = "request"
    RESPONSE = "response"
    ERROR = "error"

    @property
    def message(self) -> MessageKind:
        """The message that the example shows; an error is a response."""
        if self is ExampleKind.REQUEST:
            return MessageKind.REQUEST
        return MessageKind.RESPONSE


@dataclass(frozen=True, slots=True)
class WorkedExample:
    """One message of a document, as its values and as its bytes (ANP-70)."""

    kind: ExampleKind

    values: dict[str, Json]
    "The values that `read_message` returns for `data`."

    data: bytes


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Document:
    """A candidate that was read successfully."""

    text: str
    "The exact text; its bytes determine its identity (ANP-85)."

    requirement: str
    "The need in the caller's words; empty when the text has no such section."

    request_schema: Schema
    "Schema of the request's values, normalised and without `$ref`."

    response_schema: Schema
    "Schema of the response's values, normalised and without `$ref`."

    update_schema: Schema | None = None
    """The same of an update's values; None when nothing comes before the response."""

    encoding: str = "json"
    "`json`, or the text's own words about its encoding."

    base_uri: str | None = None
    "URI of the protocol that the text builds on (ANP-26), or None."

    examples: tuple[WorkedExample, ...] = ()
    "Worked examples, in order, at least one of each kind; none when bytes are JSON."

    _found: dict[str, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    "See `once`."

    @property
    def is_json(self) -> bool:
        """True when messages are JSON on the wire."""
        return self.encoding == "json"

    @property
    def of_values(self) -> Document:
        """The same document, treated as if its messages were JSON.

        The purposes of a message's fields (message id, status, result) depend only on
        its values, so `read_layout(document.of_values)` finds them for any encoding.
        """
        return replace(self, encoding="json", examples=())

    def examples_of(self, kind: ExampleKind) -> tuple[WorkedExample, ...]:
        """Return the worked examples of one kind, in order."""
        return tuple(one for one in self.examples if one.kind is kind)

    def once(self, name: str, find: Callable[[Document], T]) -> T:
        """Return what `find` returns for this document; it is asked once.

        Args:
            name: Of what is found, which is the same for all who ask for it.
        """
        if name not in self._found:
            self._found[name] = find(self)
        found: T = self._found[name]
        return found

    @property
    def input_schema(self) -> Schema | None:
        """Schema of `input` when the document has our own shape, else None."""
        inner = _inner(self.request_schema, "input")
        # What is inside may be large, and stands on both sides of the comparison.
        outer = _with_inner(self.request_schema, "input", True)
        same = inner is not None and same_schema(outer, own_request_schema(True))
        return inner if same else None

    @property
    def output_schema(self) -> Schema | None:
        """Schema of `output` when the document has our own shape, else None."""
        inner = _inner(self.response_schema, "output")
        if inner is None:
            return None
        own = own_response_schema(True)
        code = _inner(_inner(self.response_schema, "status") or True, "code")
        if isinstance(code, dict) and "enum" in code:
            # Codes that the need requires.
            own["properties"]["status"]["properties"]["code"] = code
        outer = _with_inner(self.response_schema, "output", True)
        return inner if same_schema(outer, own) else None

    @property
    def given_before(self) -> Schema | None:
        """Schema of `update` when updates have our own shape, else None."""
        inner = _inner(self.update_schema or True, "update")
        outer = _with_inner(self.update_schema or True, "update", True)
        same = inner is not None and same_schema(outer, own_update_schema(True))
        return inner if same else None


@dataclass(frozen=True, slots=True)
class DocumentErrorCode:
    """A code that a need requires for one kind of failure."""

    code: str
    "The code as written, digits or a word."

    meaning: str
    "The situation in which it is used, in words."

    @property
    def is_number(self) -> bool:
        """True when it can be written as a JSON number."""
        return CODE_NUMBER.fullmatch(self.code) is not None


def document_hash(text: str) -> str:
    """Return the SHA-256 of the UTF-8 bytes of `text`, 64 hex characters (ANP-88).

    Raises:
        DocumentError: `text` cannot be written as UTF-8 (ANP-Q7).
    """
    return hashlib.sha256(encoded(text)).hexdigest()


def encoded(text: str) -> bytes:
    """Return the UTF-8 bytes of `text`.

    Raises:
        DocumentError: The text contains a lone surrogate.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise DocumentError("the text holds a lone surrogate") from None


def own_request_schema(input_schema: Schema) -> dict[str, Any]:
    """Return the schema of a whole request in our own shape."""
    return {
        "type": "object",
        "properties": {
            "messageId": {
                "type": "string",
                "description": "Identifies the request; the response repeats it.",
            },
            "input": input_schema,
        },
        "required": ["messageId", "input"],
        "additionalProperties": False,
    }


def own_response_schema(
    output_schema: Schema, errors: Sequence[DocumentErrorCode] = ()
) -> dict[str, Any]:
    """Return the schema of a whole response in our own shape.

    Args:
        errors: Codes that errors must have; by default HTTP status codes. They are
            numbers if all of them are, otherwise texts.
    """
    code: dict[str, Any] = {
        "type": "integer",
        "description": "HTTP status code; 200 is good.",
    }
    if errors and all(one.is_number for one in errors):
        listed = [200, *(int(one.code) for one in errors), OTHER_STATUS]
        code = {
            "type": "integer",
            "enum": list(dict.fromkeys(listed)),
            "description": "200 is good; the others are listed under Errors.",
        }
    elif errors:
        listed_words = ["ok", *(one.code for one in errors), OTHER_ERROR]
        code = {
            "type": "string",
            "enum": list(dict.fromkeys(listed_words)),
            "description": "ok is good; the others are listed under Errors.",
        }
    status = {
        "type": "object",
        "properties": {
            "code": code,
            "message": {"type": "string", "description": "For people."},
        },
        "required": ["code", "message"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "messageId": {
                "type": "string",
                "description": "The messageId of the request.",
            },
            "status": status,
            "output": output_schema,
        },
        "required": ["messageId", "status"],
        "additionalProperties": False,
    }


def own_update_schema(update_schema: Schema) -> dict[str, Any]:
    """Return the schema of a whole update in our own shape."""
    return {
        "type": "object",
        "properties": {
            "messageId": {
                "type": "string",
                "description": "The messageId of the request.",
            },
            "update": update_schema,
        },
        "required": ["messageId", "update"],
        "additionalProperties": False,
    }


def _inner(schema: Schema, name: str) -> Schema | None:
    found = schema.get("properties", {}).get(name) if isinstance(schema, dict) else None
    return found if isinstance(found, dict | bool) else None


def _with_inner(schema: Schema, name: str, inner: Schema) -> Schema:
    """Return a schema of an object with another schema for one of its properties."""
    if not isinstance(schema, dict) or name not in schema.get("properties", {}):
        return schema
    return {**schema, "properties": {**schema["properties"], name: inner}}
