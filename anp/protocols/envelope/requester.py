"""The side that calls: its requests, and the answers they get (ENV-16 to ENV-18)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from anp.protocols.envelope.messages import (
    BROADCAST,
    WRAPPED,
    EnvelopeErrorCode,
    EnvelopeMessage,
    EnvelopeStatus,
    ErrorPayload,
    RequestPayload,
    ResponsePayload,
    TooLarge,
)
from anp.protocols.envelope.reader import MAX_NAME, Head
from anp.protocols.envelope.side import Side, SideSetting
from anp.protocols.sides import CallingSide
from negotiation.consensus.written import (
    Ask,
    CallAnswered,
    CallRefused,
    Progress,
    Refusal,
)
from negotiation.errors import JsonError, MisuseError
from negotiation.strict_json import Json

NOT_PROCESSED = frozenset(
    {
        EnvelopeErrorCode.INVALID_PAYLOAD,
        EnvelopeErrorCode.AGENT_UNAVAILABLE,
        EnvelopeErrorCode.UNSUPPORTED_VERSION,
        EnvelopeErrorCode.UNKNOWN_ACTION,
        EnvelopeErrorCode.UNKNOWN_MESSAGE_TYPE,
    }
)
"Errors that say that a request was not processed; with any other it may have run."

MAX_COLLECTED = 64
"Most answers to one request to all that are kept."


@dataclass(slots=True)
class _Waiting:
    """A request of ours that has no final answer yet."""

    call: Ask
    silent_until: float
    ends_at: float
    answers: list[Json] = field(default_factory=list)
    answered_by: set[str] = field(default_factory=set)

    @property
    def due(self) -> float:
        return (
            self.ends_at if self.call.to_all else min(self.silent_until, self.ends_at)
        )


class EnvelopeRequester(CallingSide, Side):
    """The requester's side of one channel; see `WrittenProtocol`."""

    def __init__(self, setting: SideSetting) -> None:
        """See `Side`."""
        super().__init__(setting)
        self._waiting: dict[str, _Waiting] = {}
        "By the id of the request's message."
        self._asked: dict[str, str] = {}
        "Those ids, by the ids of the calls."
        self._due = math.inf
        "No request is over its time before this moment; it may be too early."

    @property
    def waiting(self) -> int:
        """See `WrittenProtocol`."""
        return len(self._waiting)

    def ask(self, call: Ask, *, now: float, wall_now: datetime) -> None:
        """See `WrittenProtocol`.

        Raises:
            MisuseError: The channel has ended, or the call's id is in use.
        """
        if self._ended:
            raise MisuseError("the channel has ended")
        if call.call_id in self._asked:
            raise MisuseError(f"the call id {call.call_id} is in use")
        if len(self._waiting) >= self._limits.max_asked:
            self._refused(
                call, Refusal.TOO_MANY, f"{len(self._waiting)} calls already wait"
            )
            return
        if not 0 < len(call.action) <= MAX_NAME:
            self._refused(
                call, Refusal.TOO_LARGE, f"an action has 1 to {MAX_NAME} characters"
            )
            return
        if call.reference is not None:
            self._wait(call, call.reference, now)
            return
        try:
            self._send(
                RequestPayload(call.action, call.arguments),
                wall_now=wall_now,
                receiver_id=BROADCAST if call.to_all else None,
                metadata=call.metadata,
            )
        except TooLarge as exc:
            self._refused(call, Refusal.TOO_LARGE, str(exc))
        except JsonError as exc:
            self._refused(call, Refusal.NOT_JSON, str(exc))
        else:
            self._wait(call, self._last_id, now)

    def _wait(self, call: Ask, message_id: str, now: float) -> None:
        """Wait for the answer to a message of ours."""
        silent, total = self._limits.answer_timeout, self._limits.total_timeout
        if call.timeout is not None:
            silent = total = call.timeout
        if message_id in self._waiting:
            # Of two calls that fetch one answer the later one gets it.
            self._over(message_id)
        self._waiting[message_id] = one = _Waiting(
            call,
            silent_until=now + silent,
            # A request to all stays open for its whole time (ENV-Q6).
            ends_at=now + (silent if call.to_all else total),
        )
        self._asked[call.call_id] = message_id
        self._due = min(self._due, one.due)

    def _over(self, message_id: str) -> None:
        """Wait for an answer no longer."""
        del self._asked[self._waiting.pop(message_id).call.call_id]

    def reference(self, call_id: str) -> str | None:
        """See `WrittenProtocol`; it is the id of the request's message."""
        return self._asked.get(call_id)

    def abandon(self, call_id: str) -> None:
        """See `WrittenProtocol`."""
        if call_id in self._asked:
            self._over(self._asked[call_id])

    def get_timer(self) -> float | None:
        """See `WrittenProtocol`."""
        return self._due if self._waiting and not self._ended else None

    def handle_timer(self, *, now: float, wall_now: datetime) -> None:
        """See `WrittenProtocol`."""
        if self._ended or now < self._due:
            return
        self._due = math.inf
        for message_id, one in list(self._waiting.items()):
            if now < one.due:
                self._due = min(self._due, one.due)
                continue
            self._over(message_id)
            if one.call.to_all:
                answers: Json = {"answers": one.answers}
                self._events.append(CallAnswered(one.call.call_id, answers))
            else:
                self._refused(
                    one.call, Refusal.TIMEOUT, "no answer in time", may_have_run=True
                )

    # What the peer sends.

    def _request(
        self, message: EnvelopeMessage, *, now: float, wall_now: datetime
    ) -> None:
        """Calls go from requester to provider only (DESIGN.md, Words)."""
        self._memory.take(message.message_id)
        self._note("a request of the provider was refused")
        if message.receiver_id != BROADCAST:
            self._send_error(
                EnvelopeErrorCode.AGENT_UNAVAILABLE,
                "calls go one way on this channel; open one of your own",
                correlation_id=message.message_id,
                wall_now=wall_now,
            )

    def _response(
        self, message: EnvelopeMessage, payload: ResponsePayload, now: float
    ) -> None:
        key = message.correlation_id or ""
        one = self._waiting.get(key)
        if one is None:
            self._note("an answer to nothing that waits was dropped")
        elif one.call.to_all:
            self._collect(one, message, payload)
        elif payload.status == EnvelopeStatus.SUCCESS:
            self._over(key)
            result = _unwrapped(message, payload)
            self._events.append(CallAnswered(one.call.call_id, result))
        elif payload.status == EnvelopeStatus.FAILURE:
            self._over(key)
            code, text = _told(payload.error)
            self._events.append(
                CallAnswered(one.call.call_id, None, (code, text), payload.error)
            )
        else:
            # Every other word says how far the work is: only two words end a call.
            one.silent_until = max(one.silent_until, now + self._limits.answer_timeout)
            self._events.append(
                Progress(one.call.call_id, payload.status, payload.result)
            )

    def _error(self, message: EnvelopeMessage, payload: ErrorPayload) -> bool:
        key = message.correlation_id or ""
        one = self._waiting.get(key)
        if one is None:
            return False
        if one.call.to_all:
            self._collect(one, message, payload)
            return True
        self._over(key)
        self._events.append(
            CallRefused(
                one.call.call_id,
                payload.code,
                payload.message,
                payload.details,
                may_have_run=payload.details.get("may_have_run") is True
                or payload.code not in NOT_PROCESSED,
            )
        )
        return True

    def _broken_answer(self, head: Head, reason: str) -> None:
        key = head.correlation_id or ""
        one = self._waiting.get(key)
        if one is not None and not one.call.to_all:
            self._over(key)
            self._refused(
                one.call,
                Refusal.BROKEN_ANSWER,
                f"the answer breaks the protocol: {reason}",
                may_have_run=True,
            )

    def _collect(
        self,
        one: _Waiting,
        message: EnvelopeMessage,
        payload: ResponsePayload | ErrorPayload,
    ) -> None:
        """Keep one answer of each member to a request to all (ENV-Q6)."""
        sender = message.sender_id
        entry: dict[str, Any] = {"sender_id": sender}
        match payload:
            case ResponsePayload(status=EnvelopeStatus.SUCCESS):
                entry |= {"status": "success", "result": _unwrapped(message, payload)}
            case ResponsePayload(status=EnvelopeStatus.FAILURE):
                entry |= {"status": "failure", "error": payload.error}
            case ErrorPayload():
                entry |= {
                    "status": "error",
                    "error": {"code": payload.code, "message": payload.message},
                }
            case ResponsePayload():
                self._events.append(
                    Progress(one.call.call_id, payload.status, payload.result)
                )
                return
        if sender in one.answered_by or len(one.answers) >= MAX_COLLECTED:
            self._note("a further answer to a request to all was dropped")
            return
        one.answered_by.add(sender)
        one.answers.append(entry)

    def _refused(
        self, call: Ask, code: Refusal, message: str, *, may_have_run: bool = False
    ) -> None:
        self._events.append(
            CallRefused(
                call.call_id, code, message, may_have_run=may_have_run, by_peer=False
            )
        )


def _unwrapped(message: EnvelopeMessage, payload: ResponsePayload) -> Json:
    if message.metadata.get(WRAPPED) is True and payload.result.keys() == {"value"}:
        value: Json = payload.result["value"]
        return value
    return payload.result


def _told(error: dict[str, Any]) -> tuple[str, str]:
    """Return code and message of a failure; the seed does not name its fields."""
    code, message = error.get("code"), error.get("message")
    if isinstance(code, bool) or not isinstance(code, str | int):
        code = EnvelopeErrorCode.PROCESSING_FAILED
    return str(code)[:MAX_NAME], str(error if message is None else message)[:500]
