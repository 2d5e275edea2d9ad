"""Judges test cases by the document: messages, ids and outcomes."""

from __future__ import annotations

from typing import Any

from negotiation.document.layout import Layout
from negotiation.document.message_judge import MessageJudge, says_good
from negotiation.document.shape import Document, MessageKind
from negotiation.errors import HalfError, JsonError
from negotiation.need import Schema
from negotiation.runner import MessageParser, Validator
from negotiation.strict_json import Json

__all__ = ["CaseJudge"]


class CaseJudge:
    """Judges the messages of cases by one document."""

    def __init__(
        self, document: Document, half: MessageParser, validator: Validator
    ) -> None:
        self._judge = MessageJudge(document, half, validator)
        self._validator = validator
        self._layout = self._judge.layout
        self._present = _present_schema(document.response_schema, self._layout)

    async def contradictions(self, kind: MessageKind, data: bytes) -> list[str]:
        """Return the contradictions between a message of a case and the document.

        It is stricter than in a call, where an error may have null in place of the
        result: here every present value must fit its schema (ANP-Q22).

        Raises:
            HalfError: The half had to be stopped; the bytes may still be right.
        """
        findings = await self._judge.judge(kind, data)
        if findings or kind is MessageKind.REQUEST or self._layout is None:
            return findings
        values = await self._values(kind, data)
        return await self._validator.validate(self._present, values)

    async def message_id(self, kind: MessageKind, data: bytes) -> Json:
        """Return the message id of a message, or None if it cannot be read."""
        if self._layout is None or self._layout.message_id is None:
            return None
        values = await self._values(kind, data)
        return values.get(self._layout.message_id)

    async def says_good(self, response: bytes) -> bool | None:
        """Return whether a response reports success; None if that is unknown."""
        if self._layout is None:
            return None
        values = await self._values(MessageKind.RESPONSE, response)
        return says_good(self._layout.response, values) if values else None

    async def _values(self, kind: MessageKind, data: bytes) -> dict[str, Any]:
        """Return the values of a message; an empty object if they cannot be read."""
        try:
            values = await self._judge.values(kind, data)
        except (HalfError, JsonError):
            return {}
        return values if isinstance(values, dict) else {}


def _present_schema(schema: Schema, layout: Layout | None) -> Schema:
    """Return a schema of responses in which the result may be absent but not wrong."""
    if layout is None or not isinstance(schema, dict):
        return True
    kept = [
        name for name in schema.get("required", ()) if name in layout.response.taken
    ]
    return {**schema, "required": kept}
