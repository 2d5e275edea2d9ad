"""One agreed protocol, as a channel uses it: a document and our half of its module."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from anp.sidecar.halves import LoadedHalf
from negotiation.acceptance import Validator
from negotiation.document import Document
from negotiation.errors import DocumentError, NegotiationError
from negotiation.layout import error_response_schema, read_layout

__all__ = ["Answer", "DoesNotFit", "Protocol"]


class DoesNotFit(NegotiationError):
    """A message does not fit the document."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A decoded response."""

    message_id: str | None
    "Of the request it answers, when the document has message ids."

    result: Any
    "The result, or None with an error."

    error: tuple[int | str, str] | None
    "Code and message that the document's own error response carried."


class Protocol:
    """Encodes, decodes and handles; every message is judged by the document."""

    def __init__(
        self, digest: str, document: Document, half: LoadedHalf, validator: Validator
    ) -> None:
        self.hash = digest
        self._document = document
        self._half = half
        self._validator = validator

    @property
    def has_message_ids(self) -> bool:
        """Whether answers can be told apart, so that many calls may be in flight."""
        try:
            return read_layout(self._document).message_id is not None
        except DocumentError:
            return False

    async def encode(self, message_id: str, arguments: dict[str, Any]) -> bytes:
        """Return a request's bytes.

        Raises:
            DoesNotFit: The arguments do not give a request of this document.
            HalfError: The half failed.
        """
        data = await self._half.encode_request(message_id, arguments)
        findings = await self._validator.validate_json(
            self._document.request_schema, data
        )
        if findings:
            raise DoesNotFit("; ".join(findings))
        return data

    async def decode(self, data: bytes) -> Answer:
        """Read a response.

        Raises:
            DoesNotFit: It breaks the document.
            HalfError: The half could not read it.
        """
        decoded = await self._half.decode_response(data)
        error = decoded.get("error")
        schema = (
            self._document.response_schema
            if error is None
            else error_response_schema(self._document)
        )
        findings = await self._validator.validate_json(schema, data)
        if findings:
            raise DoesNotFit("; ".join(findings))
        message_id = decoded.get("message_id")
        if message_id is not None and not isinstance(message_id, str):
            raise DoesNotFit("the message id is no text")
        if error is None:
            return Answer(message_id, decoded.get("result"), None)
        if not isinstance(error, dict):
            raise DoesNotFit("the error is no object")
        code, message = error.get("code"), error.get("message")
        if isinstance(code, bool) or not isinstance(code, int | str):
            code = "error"
        return Answer(message_id, None, (code, str(message)[:500]))

    async def handle(
        self, data: bytes, on_call: Callable[[str, Any], Awaitable[Any]]
    ) -> bytes:
        """Answer a request as provider.

        Raises:
            DoesNotFit: The request or our answer breaks the document.
            HalfError: The half failed.
        """
        findings = await self._validator.validate_json(
            self._document.request_schema, data
        )
        if findings:
            raise DoesNotFit(f"request: {'; '.join(findings)}")
        answer = await self._half.handle_request(data, on_call)
        findings = await self._validator.validate_json(
            self._document.response_schema, answer
        )
        if findings and await self._validator.validate_json(
            error_response_schema(self._document), answer
        ):
            raise DoesNotFit(f"response: {'; '.join(findings)}")
        return answer
