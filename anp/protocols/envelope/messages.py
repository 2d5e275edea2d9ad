"""The messages of the envelope: their types, words and date-times (ENV-6 to ENV-23)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from anp.protocols.timestamps import write_timestamp
from jsonic.exact_numbers import ExactEncoder
from negotiation.errors import JsonError
from negotiation.long_texts import write_bytes
from negotiation.strict_json import MAX_DEPTH, Json, parse_json, plain_json

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


class RequestPayload(NamedTuple):
    """The content of a request (ENV-16)."""

    action: str
    "A capability's full name, or an action the protocol reserves."

    parameters: dict[str, Any]
    "The data."


class ResponsePayload(NamedTuple):
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


# A tuple, since it is made for each message, and a record takes four times as long.
class EnvelopeMessage(NamedTuple):
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

    metadata: Mapping[str, Json] = MappingProxyType({})
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


USUAL_DEPTH: Final = MAX_DEPTH - 2
"Deepest nesting of a usual message's value, which stands two levels deep."

MAX_PARTS: Final = 256
"Parts of usual messages that are remembered: one for each channel and action."

PLAIN: Final = r"[ !#-\[\]-~]"
"A character that stands for itself in JSON; no others are in usual names and ids."

_is_plain: Final = re.compile(PLAIN + "{1,128}+").fullmatch


def build_message(envelope: EnvelopeMessage, *, max_size: int) -> bytes:
    """Return the bytes of a message of ours.

    Raises:
        TooLarge: It would be over `max_size` bytes.
        JsonError: It is nothing that a strict reader takes.
    """
    usual = _build_usual(envelope)
    data = _build(envelope) if usual is None else usual
    if len(data) > max_size:
        raise TooLarge(f"{len(data)} bytes, at most {max_size} are sent")
    if usual is None:
        # Depth, long numbers and keys that become equal: the peer would drop it unread
        # and its caller would wait for nothing.
        parse_json(data, max_size=max_size)
    return data


def _build_usual(envelope: EnvelopeMessage) -> bytes | None:
    """Return a call's request or result, if a strict reader is sure to take it.

    All but its ids, its moment and its value is the same for each call of a channel and
    is written once. The value is looked at before it is written, so that nothing has to
    be read again.
    """
    payload, correlation = envelope.payload, envelope.correlation_id
    action: str | None = None
    end = b"}}"
    if type(payload) is RequestPayload and correlation is None:
        action, value = payload
    elif type(payload) is ResponsePayload and correlation and _is_plain(correlation):
        status, value, error = payload
        if error or status != EnvelopeStatus.SUCCESS:
            return None
        end = b'},"metadata":{"correlation_id":"%b"}}' % correlation.encode()
    else:
        return None
    if envelope.metadata or not _is_plain(envelope.message_id):
        return None
    written = plain_json(value, max_depth=USUAL_DEPTH)
    if written is None:
        return None
    try:
        first, second = _usual_parts(
            envelope.version, envelope.sender_id, envelope.receiver_id, action
        )
    except ValueError:
        return None
    moment = write_timestamp(envelope.sent_at)
    middle = f'{envelope.message_id}","timestamp":"{moment}'.encode()
    return b"".join((first, middle, second, written, end))


@lru_cache(maxsize=MAX_PARTS)
def _usual_parts(
    version: str, sender_id: str, receiver_id: str, action: str | None
) -> tuple[bytes, bytes]:
    """Return a usual message up to its id, and from behind its moment to its value.

    Args:
        action: That of a request; None for a response.

    Raises:
        ValueError: They cannot be written as UTF-8.
    """
    head = {"protocol_version": version, "message_id": ""}
    payload: dict[str, Any] = {"status": EnvelopeStatus.SUCCESS, "result": 0}
    if action is not None:
        payload = {"action": action, "parameters": 0}
    rest = {
        "sender_id": sender_id,
        "receiver_id": receiver_id,
        "message_type": MessageType.RESPONSE if action is None else MessageType.REQUEST,
        "payload": payload,
    }
    first = _ENCODER.encode(head).removesuffix('"}')
    second = _ENCODER.encode(rest).removeprefix("{").removesuffix("0}}")
    return first.encode(), f'",{second}'.encode()


def _build(envelope: EnvelopeMessage) -> bytes:
    """Return any message."""
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
        return write_bytes(_ENCODER, value)
    except (TypeError, ValueError, RecursionError) as exc:
        raise JsonError(f"cannot be written as JSON: {type(exc).__name__}") from None


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
