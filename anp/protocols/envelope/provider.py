"""The side that is called: requests become capability calls, and those answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from anp.protocols.envelope.discovery import BadParameters, describe, read_announcement
from anp.protocols.envelope.memory import Seen
from anp.protocols.envelope.messages import (
    BROADCAST,
    WRAPPED,
    EnvelopeAction,
    EnvelopeErrorCode,
    EnvelopeMessage,
    EnvelopeStatus,
    RequestPayload,
    ResponsePayload,
)
from anp.protocols.envelope.reader import Head
from anp.protocols.envelope.side import MAX_SHOWN, Side, SideSetting
from anp.protocols.sides import ServingSide, writable
from negotiation.consensus.written import (
    CallCapability,
    Declined,
    Deliver,
    PeerAnnouncement,
    PeerWithdrawal,
)
from negotiation.errors import APPROVAL_PENDING, JsonError
from negotiation.strict_json import Json

ROOM_FOR_FIELDS = 8 * 1024
"Bytes of a message that are left for everything beside a list."

MAX_NAMED = 1000
"Most characters of names in an `unknown_action`."


@dataclass(slots=True)
class _Work:
    """A request of the peer that a capability works on."""

    message: EnvelopeMessage
    progress_at: float


class EnvelopeProvider(ServingSide, Side):
    """The provider's side of one channel; see `WrittenProtocol`."""

    def __init__(self, setting: SideSetting) -> None:
        """See `Side`."""
        super().__init__(setting)
        self._work: dict[str, _Work] = {}
        self._calls = 0
        self._due = math.inf
        "Nobody is told of progress before this moment; it may be too early."

    @property
    def full(self) -> bool:
        """See `WrittenProtocol`."""
        return len(self._work) >= self._limits.max_served

    def end(self) -> None:
        """See `WrittenProtocol`."""
        super().end()
        self._work.clear()

    def get_timer(self) -> float | None:
        """See `WrittenProtocol`."""
        return self._due if self._work else None

    def handle_timer(self, *, now: float, wall_now: datetime) -> None:
        """Tell the peer of what takes long (ENV-Q5)."""
        if now < self._due:
            return
        self._due = math.inf
        for one in self._work.values():
            if now >= one.progress_at:
                one.progress_at = now + self._limits.progress_after
                self._answer(
                    one.message,
                    ResponsePayload(EnvelopeStatus.IN_PROGRESS, {}, {}),
                    wall_now=wall_now,
                    last=False,
                )
            self._due = min(self._due, one.progress_at)

    def capability_answered(
        self, call_id: str, output: Json, *, now: float, wall_now: datetime
    ) -> None:
        """See `WrittenProtocol`."""
        one = self._work.pop(call_id, None)
        if one is None:
            return
        # A result is an object (ENV-17), a capability's output need not be one.
        wrapped = not isinstance(output, dict)
        result = {"value": output} if not isinstance(output, dict) else output
        try:
            self._answer(
                one.message,
                ResponsePayload(EnvelopeStatus.SUCCESS, result, {}),
                wall_now=wall_now,
                metadata={WRAPPED: True} if wrapped else None,
            )
        except JsonError as exc:
            self._note(f"an output could not be sent: {exc}")
            self._failed(
                one.message, EnvelopeErrorCode.PROCESSING_FAILED, str(exc), wall_now
            )

    def capability_failed(
        self,
        call_id: str,
        code: str,
        message: str,
        *,
        ran: bool,
        now: float,
        wall_now: datetime,
    ) -> None:
        """See `WrittenProtocol`.

        What ran and failed is a response, what was not processed an error (ENV-Q3).
        """
        one = self._work.pop(call_id, None)
        if one is None:
            return
        if ran:
            self._failed(one.message, code, message, wall_now)
        else:
            wrong, pending = code == "400", code == APPROVAL_PENDING
            self._not_processed(
                one.message,
                EnvelopeErrorCode.INVALID_PAYLOAD
                if wrong
                else EnvelopeErrorCode.AGENT_UNAVAILABLE,
                message,
                wall_now=wall_now,
                details={"reason": code, "may_have_run": False} if pending else None,
            )

    # What the peer sends.

    def _request(
        self, message: EnvelopeMessage, *, now: float, wall_now: datetime
    ) -> None:
        assert isinstance(message.payload, RequestPayload), "see `Side`"
        self._memory.open(message.message_id, self)
        action, parameters = message.payload.action, message.payload.parameters
        try:
            match action:
                case EnvelopeAction.DISCOVER:
                    page = describe(
                        list(self._offered.values()),
                        parameters,
                        max_size=self._limits.max_message - ROOM_FOR_FIELDS,
                    )
                    self._succeeded(message, page, wall_now)
                case EnvelopeAction.REGISTER:
                    entries = read_announcement(parameters)
                    self._events.append(Deliver(PeerAnnouncement(tuple(entries))))
                    self._succeeded(message, {"registered": len(entries)}, wall_now)
                case EnvelopeAction.UNREGISTER:
                    self._events.append(Deliver(PeerWithdrawal()))
                    self._succeeded(message, {"registered": 0}, wall_now)
                case _ if action in self._offered:
                    self._call(message, action, parameters, now)
                case _:
                    self._unknown(message, action, wall_now)
        except BadParameters as exc:
            self._not_processed(
                message, EnvelopeErrorCode.INVALID_PAYLOAD, str(exc), wall_now=wall_now
            )

    def _call(
        self, message: EnvelopeMessage, name: str, arguments: dict[str, Any], now: float
    ) -> None:
        self._calls += 1
        call_id = str(self._calls)
        progress_at = now + self._limits.progress_after
        self._work[call_id] = _Work(message, progress_at)
        self._due = min(self._due, progress_at)
        self._events.append(CallCapability(call_id, name, arguments))

    def _unknown(
        self, message: EnvelopeMessage, action: str, wall_now: datetime
    ) -> None:
        if message.receiver_id == BROADCAST:
            # Whoever cannot serve a request to all leaves it to the others.
            self._memory.answered(message.message_id, b"", last=True)
            self._note("a request to all named no capability of ours")
            return
        reason = "no capability of that name is offered to this peer"
        self._events.append(Declined(action, reason))
        known, length = [], 0
        for name in sorted(self._offered):
            length += len(name)
            if length > MAX_NAMED:
                break
            known.append(name)
        self._not_processed(
            message,
            EnvelopeErrorCode.UNKNOWN_ACTION,
            f"there is no action {action[:MAX_SHOWN]!r} here; `discover` lists them",
            wall_now=wall_now,
            details={"actions": known},
        )

    def _repeated(self, message: EnvelopeMessage, *, wall_now: datetime) -> None:
        """Process nothing twice; repeat the answer that there was (ENV-Q11)."""
        self._note("a repeated request was not processed again")
        matter = self._memory.find(message.message_id)
        assert matter is not None, "`Side` found it"
        if matter.answer is not None:
            if matter.answer:
                self._outgoing.append(matter.answer)
        elif matter.seen is not Seen.OPEN:
            # The answer is gone, or never came to be: nobody knows what was done.
            self._send_error(
                EnvelopeErrorCode.PROCESSING_FAILED,
                "this request was taken before, and its answer is not kept",
                correlation_id=message.message_id,
                wall_now=wall_now,
                details={"may_have_run": True},
            )

    def _broken_answer(self, head: Head, reason: str) -> None:
        """Nothing was asked on this side; it is flagged, and that is all."""

    # Answers.

    def _succeeded(
        self, message: EnvelopeMessage, result: dict[str, Any], wall_now: datetime
    ) -> None:
        try:
            payload = ResponsePayload(EnvelopeStatus.SUCCESS, result, {})
            self._answer(message, payload, wall_now=wall_now)
        except JsonError as exc:
            # A schema of the owner's nested deeper than a message may be.
            self._failed(
                message, EnvelopeErrorCode.PROCESSING_FAILED, str(exc), wall_now
            )

    def _failed(
        self, message: EnvelopeMessage, code: str, reason: str, wall_now: datetime
    ) -> None:
        error = {"code": writable(code[:MAX_SHOWN]), "message": writable(reason[:500])}
        payload = ResponsePayload(EnvelopeStatus.FAILURE, {}, error)
        self._answer(message, payload, wall_now=wall_now)

    def _not_processed(
        self,
        message: EnvelopeMessage,
        code: EnvelopeErrorCode,
        reason: str,
        *,
        wall_now: datetime,
        details: dict[str, Any] | None = None,
    ) -> None:
        data = self._send_error(
            code,
            writable(reason),
            correlation_id=message.message_id,
            wall_now=wall_now,
            details=details,
        )
        self._memory.answered(message.message_id, data, last=True)

    def _answer(
        self,
        message: EnvelopeMessage,
        payload: ResponsePayload,
        *,
        wall_now: datetime,
        last: bool = True,
        metadata: dict[str, Json] | None = None,
    ) -> None:
        # Also to a broadcast the answer goes to its sender alone (ENV-Q6).
        data = self._send(
            payload,
            correlation_id=message.message_id,
            wall_now=wall_now,
            metadata=metadata,
        )
        self._memory.answered(message.message_id, data, last=last)
