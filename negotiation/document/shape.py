"""What a document says once it is read, the shape of our own ones, and their identity.

`candidateProtocols` is Markdown with JSON Schemas in it (ANP-24, ANP-25). What we
write has one shape, so that names never clash: a request is `{messageId, input}`, a
response `{messageId, status: {code, message}, output}`. The identity of a document is
the hash of its exact bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from negotiation.errors import DocumentError
from negotiation.need import Schema
from negotiation.schema.values import same_schema
from negotiation.strict_json import Json

__all__ = [
    "MAX_DOCUMENT_SIZE",
    "OTHER_ERROR",
    "OTHER_STATUS",
    "Document",
    "ErrorCode",
    "ExampleKind",
    "MessageKind",
    "WorkedExample",
    "document_hash",
    "encoded",
    "own_request_schema",
    "own_response_schema",
]

MAX_DOCUMENT_SIZE: Final = 256 * 1024
"Largest candidate, in bytes of UTF-8 (ANP-Q30)."

OTHER_STATUS: Final = 500
"Code of every failure for which a task names no number of its own."

OTHER_ERROR: Final = "error"
"Code of every failure for which a task names no word of its own."

CODE_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")


class MessageKind(StrEnum):
    """The two messages of an exchange, as `read_message` names them."""

    REQUEST = "request"
    RESPONSE = "response"


class ExampleKind(StrEnum):
    """What a worked example shows; each kind is needed once at least."""

    REQUEST = "request"
    RESPONSE = "response"
    ERROR = "error"

    @property
    def message(self) -> MessageKind:
        """The message it is; an error is a response."""
        if self is ExampleKind.REQUEST:
            return MessageKind.REQUEST
        return MessageKind.RESPONSE


@dataclass(frozen=True, slots=True)
class WorkedExample:
    """One message of a document, as its values and as its bytes (ANP-70)."""

    kind: ExampleKind
    "What it shows."

    values: dict[str, Json]
    "What `read_message` gives for `data`."

    data: bytes
    "The message as it travels."


@dataclass(frozen=True, slots=True)
class Document:
    """A candidate that was read."""

    text: str
    "The exact text; its bytes are its identity (ANP-85)."

    requirement: str
    "What the caller wants, in its words; empty when the text has no such section."

    request_schema: Schema
    "Schema of the request's values, normalised and without `$ref`."

    response_schema: Schema
    "Schema of the response's values, normalised and without `$ref`."

    encoding: str = "json"
    "`json`, or what the text says under a heading of its own about its bytes."

    base_uri: str | None = None
    "URI of the protocol that the text builds on, if it names one (ANP-26)."

    examples: tuple[WorkedExample, ...] = ()
    "Worked examples, in order, at least one of each kind; none when bytes are JSON."

    @property
    def is_json(self) -> bool:
        """Whether messages travel as JSON."""
        return self.encoding == "json"

    @property
    def of_values(self) -> Document:
        """The same document as if the values travelled as JSON.

        What the fields of a message are for (message id, status, result) is a matter of
        its values: `read_layout(document.of_values)` tells it for any encoding.
        """
        return replace(self, encoding="json", examples=())

    def examples_of(self, kind: ExampleKind) -> tuple[WorkedExample, ...]:
        """Return the worked examples of one kind, in order."""
        return tuple(one for one in self.examples if one.kind is kind)

    @property
    def input_schema(self) -> Schema | None:
        """Schema of `input` when the document has our own shape, else None."""
        inner = _inner(self.request_schema, "input")
        same = inner is not None and same_schema(
            self.request_schema, own_request_schema(inner)
        )
        return inner if same else None

    @property
    def output_schema(self) -> Schema | None:
        """Schema of `output` when the document has our own shape, else None."""
        inner = _inner(self.response_schema, "output")
        if inner is None:
            return None
        own = own_response_schema(inner)
        code = _inner(_inner(self.response_schema, "status") or True, "code")
        if isinstance(code, dict) and "enum" in code:
            # Codes that the task wanted.
            own["properties"]["status"]["properties"]["code"] = code
        return inner if same_schema(self.response_schema, own) else None


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A code that a task wants for one kind of failure."""

    code: str
    "The code as written, digits or a word."

    meaning: str
    "When it is used, in words."

    @property
    def is_number(self) -> bool:
        """Whether it can be written as a JSON number."""
        return CODE_NUMBER.fullmatch(self.code) is not None


def document_hash(text: str) -> str:
    """Return the SHA-256 of the UTF-8 bytes of `text`, 64 hex characters (ANP-88).

    Raises:
        DocumentError: `text` cannot be written as UTF-8 (ANP-Q7).
    """
    return hashlib.sha256(encoded(text)).hexdigest()


def encoded(text: str) -> bytes:
    """Return the bytes of `text`.

    Raises:
        DocumentError: It holds a lone surrogate.
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
    output_schema: Schema, errors: Sequence[ErrorCode] = ()
) -> dict[str, Any]:
    """Return the schema of a whole response in our own shape.

    Args:
        errors: Codes that the errors have to have; HTTP status codes when empty. They
            are numbers if all of them are, else texts.
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


def _inner(schema: Schema, name: str) -> Schema | None:
    found = schema.get("properties", {}).get(name) if isinstance(schema, dict) else None
    return found if isinstance(found, dict | bool) else None
