"""Reads the values of messages, and validates them against the document.

JSON is read by the validator and by our own parser; other bytes by `read_message` of
the half, which was tested with the worked examples when the half was accepted
(DESIGN.md, The module contract; ANP-70).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from negotiation.document.layout import (
    Layout,
    ResponseLayout,
    error_schema_of,
    find_layout,
)
from negotiation.document.shape import Document, MessageKind
from negotiation.errors import HalfError, JsonError
from negotiation.mind import MessageParser, Validator
from negotiation.need import Schema
from negotiation.strict_json import Json, canonical_json, parse_json

MAX_VALUES: Final = 4 * 1024 * 1024
"Largest size of a message's values as JSON, in bytes; packed bytes grow when read."

RAISED: Final = "error"
"The outcome of a half that raised an error, but did not have to be stopped."


class MessageJudge:
    """Reads and judges the messages of one document."""

    def __init__(
        self, document: Document, half: MessageParser, validator: Validator
    ) -> None:
        self._document = document
        self._is_json = document.is_json
        self._half = half
        self._validator = validator
        # Read here, once: a document never changes, and each call asks for it.
        plain = document.of_values
        self.layout: Layout | None = find_layout(plain)
        "The fields of both messages; None where the rules do not cover the document."
        self.error_schema: Schema = error_schema_of(plain, self.layout)
        "Schema of an error response in the document's own form."

    async def values(self, kind: MessageKind, data: bytes) -> Json:
        """Return the values of a message; an object when the bytes are not JSON.

        Raises:
            JsonError: The bytes should be JSON and are not.
            HalfError: The half cannot read them, or returns no JSON object.
        """
        if self._is_json:
            return parse_json(data, max_size=MAX_VALUES)
        values = await self._half.read_message(kind.value, data)
        if not isinstance(values, dict):
            raise HalfError(RAISED, "read_message did not return a dict")
        try:
            # The result comes from generated code, so it is checked like a peer's JSON.
            return parse_json(canonical_json(values), max_size=MAX_VALUES)
        except JsonError as exc:
            raise HalfError(
                RAISED, f"read_message gives what is no JSON: {exc}"
            ) from None

    async def fields(self, kind: MessageKind, data: bytes) -> dict[str, Any]:
        """Return the values of a message; an empty object if they cannot be read."""
        try:
            values = await self.values(kind, data)
        except (HalfError, JsonError):
            return {}
        return values if isinstance(values, dict) else {}

    async def findings(
        self, kind: MessageKind, schema: Schema, data: bytes, values: Json = None
    ) -> list[str]:
        """Return the faults of `data` as a message with values of `schema`.

        Args:
            values: What the bytes say as strict JSON, if they were read already.

        Raises:
            HalfError: The half had to be stopped; the bytes may still be right.
        """
        if self._is_json:
            return await self._validator.validate_json(schema, data, values)
        read = await self._read(kind, data)
        if isinstance(read, _Unreadable):
            return [read.reason]
        return await self._validator.validate(schema, read.value)

    async def judge(
        self, kind: MessageKind, data: bytes, values: Json = None
    ) -> list[str]:
        """Return the faults of `data` as a message of the document.

        A response that reports an error need not have the result; one that reports
        success must have it (DESIGN.md, How a call flows). If the outcome is unknown,
        both forms are valid.

        Raises:
            HalfError: See `findings`.
        """
        if kind is MessageKind.REQUEST:
            wanted = self._document.request_schema
            return await self.findings(kind, wanted, data, values)
        if kind is MessageKind.UPDATE:
            schema = self._document.update_schema
            if schema is None:
                return ["the document describes no updates"]
            return await self.findings(kind, schema, data)
        read = await self._read(kind, data)
        if isinstance(read, _Unreadable):
            return [read.reason]
        good, values = self._document.response_schema, read.value
        if self.layout is None:
            findings = await self._validator.validate(good, values)
            if findings and not await self._validator.validate(
                self.error_schema, values
            ):
                return []
            return findings
        response = self.layout.response
        if not says_good(response, values):
            return await self._validator.validate(self.error_schema, values)
        findings = await self._validator.validate(good, values)
        place = response.places[0]
        if not findings and place.path and not _has(values, place.path):
            findings = [f"it says good and has no result in {place.path[0]!r}"]
        return findings

    async def _read(self, kind: MessageKind, data: bytes) -> _Readable | _Unreadable:
        try:
            return _Readable(await self.values(kind, data))
        except JsonError as exc:
            return _Unreadable(str(exc))
        except HalfError as exc:
            if exc.outcome != RAISED:
                raise
            return _Unreadable(f"the message cannot be read: {exc.reason}")


@dataclass(frozen=True, slots=True)
class _Readable:
    value: Json


@dataclass(frozen=True, slots=True)
class _Unreadable:
    reason: str


def says_good(response: ResponseLayout, values: Json) -> bool:
    """Return whether the values of a response report success."""
    if response.error is not None and find(values, (response.error,)):
        return False
    return all(
        (found := find(values, mark.path)) in mark.good
        or (found is None and not mark.required)
        for mark in response.marks
    )


def find(message: Json, path: Sequence[str]) -> Json:
    """Return the value at `path`, or None if it is absent."""
    for name in path:
        if not isinstance(message, dict):
            return None
        message = message.get(name)
    return message


def _has(values: Json, path: Sequence[str]) -> bool:
    return isinstance(values, dict) and path[0] in values
