"""The message types of the envelope, read and written (ENV-6 to ENV-23)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from anp.protocols.envelope.timestamps import write_timestamp
from anp.protocols.envelope.words import ENVELOPE_VERSION
from negotiation.errors import JsonError
from negotiation.strict_json import Json, parse_json

__all__ = [
    "CORRELATION",
    "WRAPPED",
    "EnvelopeMessage",
    "ErrorPayload",
    "EventPayload",
    "OtherPayload",
    "Payload",
    "RequestPayload",
    "ResponsePayload",
    "TooLarge",
    "build_message",
]

CORRELATION = "correlation_id"
"Entry of `metadata` that names the request that is answered (ENV-18, ENV-23)."

WRAPPED = "wrapped"
"""Entry of `metadata` that says that `result` is `{"value": …}` around no object.

Not in the seed: a result has to be an object (ENV-17), and a capability may give any
JSON value.
"""


@dataclass(frozen=True, slots=True)
class RequestPayload:
    """What a request asks for (ENV-16)."""

    action: str
    "A capability's full name, or an action the protocol reserves."

    parameters: dict[str, Any]
    "The data."


@dataclass(frozen=True, slots=True)
class ResponsePayload:
    """What came of a request (ENV-17)."""

    status: str
    "Our word for it if we have one, else the sender's."

    result: dict[str, Any]
    "The data; empty when there is none."

    error: dict[str, Any]
    "What went wrong; empty except for a failure."


@dataclass(frozen=True, slots=True)
class EventPayload:
    """What happened (ENV-19)."""

    event_name: str
    "Our word for it if we have one, else the sender's."

    event_data: dict[str, Any]
    "About it."


@dataclass(frozen=True, slots=True)
class ErrorPayload:
    """What was not processed, and why (ENV-21, ENV-22)."""

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
"What a message says."


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeMessage:
    """One whole message (ENV-6)."""

    message_id: str
    "Unique for its sender (ENV-8)."

    sender_id: str
    "Who says that it sent it."

    receiver_id: str
    "For whom, or `broadcast`."

    message_type: str
    "`MessageType`, or another word."

    payload: Payload
    "What it says."

    sent_at: datetime
    "When, by the sender's clock, in UTC."

    metadata: Mapping[str, Json] = field(default_factory=dict)
    "Entries for context (ENV-15)."

    correlation_id: str | None = None
    "The request that it answers."

    version: str = ENVELOPE_VERSION
    "Its `protocol_version`."

    flags: tuple[str, ...] = ()
    "What is odd about it though it is valid, in our words."


class TooLarge(JsonError):
    """A message of ours would be over the limit."""


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
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        data = text.encode("utf-8")
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
