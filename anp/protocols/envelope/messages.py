"""The messages of the envelope: their types, words and date-times (ENV-6 to ENV-23)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from anp.protocols.timestamps import read_timestamp, write_timestamp
from negotiation.errors import JsonError
from negotiation.exact_numbers import ExactEncoder
from negotiation.long_texts import write_bytes
from negotiation.strict_json import Json, parse_json

__all__ = [
    "AGENT_ONLINE",
    "BROADCAST",
    "CORRELATION",
    "EnvelopeErrorCode",
    "ENVELOPE_URI",
    "ENVELOPE_VERSION",
    "EnvelopeAction",
    "EnvelopeMessage",
    "EnvelopeStatus",
    "ErrorPayload",
    "EventPayload",
    "MAJOR_VERSION",
    "MAX_SKEW",
    "MessageType",
    "OtherPayload",
    "Payload",
    "RequestPayload",
    "ResponsePayload",
    "TooLarge",
    "WRAPPED",
    "build_message",
    "read_code",
    "read_event_name",
    "read_status",
    "read_timestamp",
    "write_timestamp",
]


ENVELOPE_VERSION = "1.0"
"Value of `protocol_version` in what we send (ENV-7)."

MAJOR_VERSION = 1
"Messages of every version with this major number are understood (ENV-Q8)."

ENVELOPE_URI = f"urn:anpd:message-envelope:{ENVELOPE_VERSION}"
"""URI of this version of the consensus protocol (ANP-91).

A name and no address: what it means is fixed by the text beside this file, and a name
of this form needs no host that has to be kept for as long as anybody uses it.
"""

BROADCAST = "broadcast"
"`receiver_id` that means every member of the group (ENV-12, ENV-Q14)."

AGENT_ONLINE = "agent_online"
"Name of the event by which an agent says that it is there (ENV-Q15)."


class MessageType(StrEnum):
    """The types the seed describes; the list is open (ENV-13)."""

    REQUEST = "request"
    RESPONSE = "response"
    EVENT = "event"
    ERROR = "error"


class EnvelopeStatus(StrEnum):
    """The progress of a request (ENV-17); other words pass through (ENV-Q2)."""

    SUCCESS = "success"
    FAILURE = "failure"
    IN_PROGRESS = "in_progress"


class EnvelopeErrorCode(StrEnum):
    """Why a request was not processed (ENV-21); other words pass through (ENV-Q2)."""

    INVALID_PAYLOAD = "invalid_payload"
    AGENT_UNAVAILABLE = "agent_unavailable"
    PROCESSING_FAILED = "processing_failed"
    UNSUPPORTED_VERSION = "unsupported_version"
    UNKNOWN_ACTION = "unknown_action"
    UNKNOWN_MESSAGE_TYPE = "unknown_message_type"
    TIMEOUT = "timeout"


class EnvelopeAction(StrEnum):
    """Actions that name no capability (ENV-25, ENV-Q15)."""

    DISCOVER = "discover"
    REGISTER = "register"
    UNREGISTER = "unregister"


_STATUSES = {
    "成功": EnvelopeStatus.SUCCESS,
    "失败": EnvelopeStatus.FAILURE,
    "进行中": EnvelopeStatus.IN_PROGRESS,
}
_CODES = {
    "无效负载": EnvelopeErrorCode.INVALID_PAYLOAD,
    "智能体不可用": EnvelopeErrorCode.AGENT_UNAVAILABLE,
    "处理失败": EnvelopeErrorCode.PROCESSING_FAILED,
}
_EVENTS = {"智能体在线": AGENT_ONLINE}


def read_status(word: str) -> str:
    """Return our word for a status; one we do not know comes back as it is."""
    return _STATUSES.get(word, word)


def read_code(word: str) -> str:
    """Return our word for an error code; one we do not know comes back as it is."""
    return _CODES.get(word, word)


def read_event_name(word: str) -> str:
    """Return our word for an event; one we do not know comes back as it is."""
    return _EVENTS.get(word, word)


MAX_SKEW = 300.0
"Seconds between a timestamp and our clock beyond which a message is flagged."

CORRELATION = "correlation_id"
"Entry of `metadata` that names the request that is answered (ENV-18, ENV-23)."

WRAPPED = "wrapped"
"""Entry of `metadata` that says that `result` is `{"value": …}` around no object.

Not in the seed: a result has to be an object (ENV-17), and a capability may give any
JSON value.
"""


@dataclass(frozen=True, slots=True)
class RequestPayload:
    """The content of a request (ENV-16)."""

    action: str
    "A capability's full name, or an action the protocol reserves."

    parameters: dict[str, Any]
    "The data."


@dataclass(frozen=True, slots=True)
class ResponsePayload:
    """The outcome of a request (ENV-17)."""

    status: str
    "Our word for it if we have one, else the sender's."

    result: dict[str, Any]
    "The data; empty when there is none."

    error: dict[str, Any]
    "The reason of a failure; empty otherwise."


@dataclass(frozen=True, slots=True)
class EventPayload:
    """The content of an event (ENV-19)."""

    event_name: str
    "Our word for it if we have one, else the sender's."

    event_data: dict[str, Any]
    "About it."


@dataclass(frozen=True, slots=True)
class ErrorPayload:
    """The reason why a message was not processed (ENV-21, ENV-22)."""

    code: str
    "Our word for it if we have one, else the sender's."

    message: str
    "For people."

    details: dict[str, Any]
    "More about it; may be empty."


@dataclass(frozen=True, slots=True)
class OtherPayload:
    """The content of a type that the seed does not describe (ENV-13, ENV-Q9)."""

    value: dict[str, Any]
    "As received."


Payload = RequestPayload | ResponsePayload | EventPayload | ErrorPayload | OtherPayload
"The content of a message."


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeMessage:
    """One whole message (ENV-6)."""

    message_id: str
    "Unique for its sender (ENV-8)."

    sender_id: str
    "The sender, as it names itself."

    receiver_id: str
    "For whom, or `broadcast`."

    message_type: str
    "`MessageType`, or another word."

    payload: Payload

    sent_at: datetime
    "When, by the sender's clock, in UTC."

    metadata: Mapping[str, Json] = field(default_factory=dict)
    "Entries for context (ENV-15)."

    correlation_id: str | None = None
    "The request that it answers."

    version: str = ENVELOPE_VERSION
    "Its `protocol_version`."

    flags: tuple[str, ...] = ()
    "Oddities of a valid message, in our words."


class TooLarge(JsonError):
    """A message of ours would be over the limit."""


# Made once: `json.dumps` with options makes a new one for each call.
_ENCODER: Final = ExactEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
)


def build_message(envelope: EnvelopeMessage, *, max_size: int) -> bytes:
    """Return the bytes of a message of ours.

    Raises:
        TooLarge: It would be over `max_size` bytes.
        JsonError: It is nothing that a strict reader takes.
    """
    value: dict[str, Any] = {
        "protocol_version": envelope.version,
        "message_id": envelope.message_id,
        "timestamp": write_timestamp(envelope.sent_at),
        "sender_id": envelope.sender_id,
        "receiver_id": envelope.receiver_id,
        "message_type": envelope.message_type,
        "payload": _payload(envelope.payload),
    }
    metadata = dict(envelope.metadata)
    if envelope.correlation_id is not None:
        metadata[CORRELATION] = envelope.correlation_id
    if metadata:
        value["metadata"] = metadata
    try:
        data = write_bytes(_ENCODER, value)
    except (TypeError, ValueError, RecursionError) as exc:
        raise JsonError(f"cannot be written as JSON: {type(exc).__name__}") from None
    if len(data) > max_size:
        raise TooLarge(f"{len(data)} bytes, at most {max_size} are sent")
    # Depth, long numbers and keys that become equal: the peer would drop it unread and
    # its caller would wait for nothing.
    parse_json(data, max_size=max_size)
    return data


def _payload(payload: Payload) -> dict[str, Any]:
    match payload:
        case RequestPayload(action, parameters):
            return {"action": action, "parameters": parameters}
        case ResponsePayload(status, result, error):
            value: dict[str, Any] = {"status": status, "result": result}
            return {**value, "error": error} if error else value
        case EventPayload(event_name, event_data):
            return {"event_name": event_name, "event_data": event_data}
        case ErrorPayload(code, message, details):
            value = {"code": code, "message": message}
            return {**value, "details": details} if details else value
        case OtherPayload(value):
            return value
