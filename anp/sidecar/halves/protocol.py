"""An agreed protocol as a channel uses it: a document and our half of its module."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from anp.sidecar.halves.planned import PlannedHalf
from negotiation.document.message_judge import MessageJudge
from negotiation.document.shape import Document, MessageKind
from negotiation.errors import NOT_RUN, NegotiationError
from negotiation.mind import HalfRunner, OnStream, Validator
from negotiation.rules.plan_run import read_message
from negotiation.strict_json import Json


class DoesNotFit(NegotiationError):
    """A message does not fit the document."""


class UpdateDoesNotFit(DoesNotFit):
    """A message before the answer does not fit the document."""

    def __init__(self, message_id: str | None, reason: str) -> None:
        super().__init__(reason)
        self.message_id = message_id


@dataclass(frozen=True, slots=True)
class Answer:
    """A decoded response."""

    message_id: str | None
    "Id of the request that it answers, when the document has message ids."

    result: Any
    "The result, or None with an error."

    error: tuple[int | str, str] | None
    "Code and message that the document's own error response carried."

    not_run: bool = False
    "True when the peer says that it failed before anything was run."


@dataclass(frozen=True, slots=True)
class Update:
    """A decoded update, which comes before the response."""

    message_id: str | None
    "Id of the request, when the document has message ids."

    value: Any
    "The next part of the result."


class Protocol:
    """Encodes, decodes and handles messages, and validates each by the document."""

    def __init__(
        self, digest: str, document: Document, half: HalfRunner, validator: Validator
    ) -> None:
        self.hash = digest
        self.document = document
        self.half = half
        self._judge = MessageJudge(document, half, validator)
        self._fits = validator.fits
        self._planned: PlannedHalf | None = None
        if isinstance(half, PlannedHalf) and document.is_json:
            self._planned = half
        layout = self._judge.layout
        self.has_message_ids = layout is not None and layout.message_id is not None
        "True when answers can be told apart, so that many calls may be in flight."

    @property
    def is_plan(self) -> bool:
        """True if our half is a plan of our rules, which is proved to be right."""
        return self._planned is not None

    def read(self, data: bytes) -> Json:
        """Read a message for `judge` and `handle`, so that it is read once.

        Returns:
            None: It cannot be read, or our half is no plan and works on bytes.
        """
        return None if self._planned is None else read_message(data)

    @property
    def reader(self) -> Callable[[str, bytes], Awaitable[dict[str, Any]]] | None:
        """Our half's `read_message`, checked; None when the bytes are JSON."""
        return None if self.document.is_json else self._read

    async def judge(
        self,
        kind: Literal["request", "response", "update"],
        data: bytes,
        values: Json = None,
    ) -> list[str]:
        """Return the findings against `data` as a message of the document.

        A response may be a good one or one that says error in the document's own way.

        Args:
            values: What a request says, if `read` has read it.

        Raises:
            HalfError: Our `read_message` had to be ended; says nothing about `data`.
        """
        return await self._judge.judge(MessageKind(kind), data, values)

    async def values(self, kind: Literal["request", "response"], data: bytes) -> Json:
        """Return the values of a message, for comparing; it may break the schemas.

        Raises:
            JsonError: The bytes should be JSON and are not.
            HalfError: Our half cannot read them.
        """
        return await self._judge.values(MessageKind(kind), data)

    async def _read(self, kind: str, data: bytes) -> dict[str, Any]:
        values = await self._judge.values(MessageKind(kind), data)
        assert isinstance(values, dict), "of bytes that are not JSON"
        return values

    async def encode(self, message_id: str, arguments: dict[str, Any]) -> bytes:
        """Return a request's bytes.

        Our own request is judged: it is how data is noticed that an agreement does not
        take (DESIGN.md, Needs and schemas).

        Raises:
            DoesNotFit: The arguments do not give a request of this document.
            HalfError: The half failed.
        """
        values: Json = None
        written = None
        if self._planned is not None:
            written = self._planned.encode_now(message_id, arguments)
        if written is None:
            data = await self.half.encode_request(message_id, arguments)
        else:
            data, values = written
            if self._fits(self.document.request_schema, data, values):
                return data
        findings = await self.judge("request", data, values)
        if findings:
            raise DoesNotFit("; ".join(findings))
        return data

    async def decode(self, data: bytes) -> Answer | Update:
        """Read a response, or an update if the document has these.

        Raises:
            UpdateDoesNotFit: It is an update that breaks the document.
            DoesNotFit: It breaks the document.
            HalfError: The half could not read it.
        """
        answer = self.decode_now(data)
        if answer is not None:
            return answer
        decoded = await self.half.decode_response(data)
        if "update" in decoded and self.document.update_schema is not None:
            findings = await self.judge("update", data)
            message_id = _message_id(decoded)
            if findings:
                raise UpdateDoesNotFit(message_id, "; ".join(findings))
            return Update(message_id, decoded["update"])
        error = decoded.get("error")
        schema = (
            self.document.response_schema if error is None else self._judge.error_schema
        )
        findings = await self._judge.findings(MessageKind.RESPONSE, schema, data)
        if findings:
            raise DoesNotFit("; ".join(findings))
        message_id = _message_id(decoded)
        if error is None:
            return Answer(message_id, decoded.get("result"), None)
        if not isinstance(error, dict):
            raise DoesNotFit("the error is no object")
        code, message = error.get("code"), error.get("message")
        if isinstance(code, bool) or not isinstance(code, int | str):
            code = "error"
        words = str(message)[:500]
        return Answer(message_id, None, (code, words), words.startswith(NOT_RUN))

    def decode_now(self, data: bytes) -> Answer | None:
        """Return a good response that a plan can read and that surely fits.

        Anything else gives None, and is for `decode`.

        Raises:
            HalfError: Our code is in quarantine.
        """
        read = None if self._planned is None else self._planned.decode_now(data)
        if read is None or "error" in read.told:
            return None
        if not self._fits(self.document.response_schema, data, read.values):
            return None
        return Answer(read.told["message_id"], read.told["result"], None)

    async def handle(
        self,
        data: bytes,
        values: Json,
        on_call: Callable[[str, Any], Awaitable[Any]],
        *,
        on_stream: OnStream | None = None,
        judge_request: bool = True,
        judge_answer: bool = True,
    ) -> bytes:
        """Answer a request as provider.

        Args:
            data: The request; may be empty with `values`.
            values: What it says, by `read`; None if it was not read, or cannot be.
            on_stream: Makes the calls whose updates the half writes; see `HalfRunner`.
            judge_request: False when `judge` has seen the request already.
            judge_answer: True to judge our own answer before it goes out; the receiver
                does so in any case.

        Raises:
            DoesNotFit: The request, or our answer if judged, breaks the document.
            HalfError: The half failed.
        """
        if judge_request:
            findings = await self.judge("request", data, values)
            if findings:
                raise DoesNotFit(f"request: {'; '.join(findings)}")
        if self._planned is None:
            answering = self.half.handle_request(data, on_call, on_stream)
        else:
            answering = self._planned.handle_request(data, on_call, on_stream, values)
        # Both may be long, and the call may take long.
        del data, values
        answer = await answering
        if judge_answer:
            findings = await self.judge("response", answer)
            if findings:
                raise DoesNotFit(f"response: {'; '.join(findings)}")
        return answer


def _message_id(decoded: dict[str, Any]) -> str | None:
    message_id = decoded.get("message_id")
    if message_id is not None and not isinstance(message_id, str):
        raise DoesNotFit("the message id is no text")
    return message_id
