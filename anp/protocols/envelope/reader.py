"""Bytes of a peer become a message of the envelope, or a reason why they do not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from anp.protocols.envelope.messages import (
    BROADCAST,
    CORRELATION,
    ENVELOPE_VERSION,
    MAJOR_VERSION,
    MAX_SKEW,
    PLAIN,
    USUAL_DEPTH,
    EnvelopeErrorCode,
    EnvelopeMessage,
    EnvelopeStatus,
    ErrorPayload,
    EventPayload,
    MessageType,
    OtherPayload,
    Payload,
    RequestPayload,
    ResponsePayload,
    read_code,
    read_event_name,
    read_status,
)
from anp.protocols.timestamps import read_timestamp
from negotiation.errors import JsonError, NegotiationError
from negotiation.long_texts import LONG
from negotiation.strict_json import Json, parse_json

MAX_ID = 128
"Longest message id, in characters (ENV-Q11)."

MAX_NAME = 256
"Longest action, event name, status or code, in characters."

MAX_AGENT = 2048
"Longest agent id, in characters."

MAX_TEXT = 8192
"Longest `message` of an error, in characters."

_MAX_WORD = 64
_VERSION: Final = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")


@dataclass(frozen=True, slots=True)
class Head:
    """The readable fields of a message that is not valid."""

    message_id: str | None = None
    "Its id, when that is a good one."

    message_type: str | None = None
    "Its type, when that is text."

    receiver_id: str | None = None
    "For whom it is, when that is text."

    correlation_id: str | None = None
    "Id of the message it answers, when that is a good one."


class EnvelopeError(NegotiationError):
    """A message cannot be processed; `code` and the text are for the peer as well."""

    def __init__(
        self,
        reason: str,
        head: Head | None = None,
        *,
        code: EnvelopeErrorCode = EnvelopeErrorCode.INVALID_PAYLOAD,
        details: dict[str, Any] | None = None,
        fault: bool = True,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.head = head or Head()
        self.code = code
        self.details = details or {}
        self.fault = fault


class _Invalid(Exception):
    """A field is not as it has to be."""


def read_message(
    data: bytes, *, max_size: int, wall_now: datetime, version: str = ENVELOPE_VERSION
) -> EnvelopeMessage:
    """Read one message (ENV-6).

    Args:
        max_size: Most bytes.
        wall_now: Our clock, to flag messages from another time (ENV-Q10).
        version: The version of the channel's protocol, told to who speaks another.

    Raises:
        EnvelopeError: It is not valid, or of a version that we do not speak.
    """
    if len(data) <= min(LONG, max_size):
        usual = _read_usual(data, wall_now)
        if usual is not None:
            return usual
    try:
        value = parse_json(data, max_size=max_size)
    except JsonError as exc:
        raise EnvelopeError(str(exc)) from None
    if not isinstance(value, dict):
        raise EnvelopeError("a message is one JSON object")
    try:
        _check_version(value, version)
        return _envelope(value, wall_now)
    except _Invalid as exc:
        raise EnvelopeError(str(exc), _head(value)) from None


def _form(pattern: str) -> re.Pattern[bytes]:
    # Names in printable ASCII stand for themselves, without quotes and escapes.
    return re.compile(pattern.replace("PLAIN", PLAIN).encode())


_match_start: Final = _form(
    rf'\{{"protocol_version":"({MAJOR_VERSION}\.(?:0|[1-9][0-9]{{0,5}}))",'
    rf'"message_id":"(PLAIN{{1,{MAX_ID}}}+)","timestamp":"(PLAIN{{1,{_MAX_WORD}}}+)",'
    rf'"sender_id":"(PLAIN{{1,{MAX_AGENT}}}+)",'
    rf'"receiver_id":"(PLAIN{{1,{MAX_AGENT}}}+)","message_type":"(?:'
    rf'request","payload":\{{"action":"(PLAIN{{1,{MAX_NAME}}}+)","parameters":|'
    r'response","payload":\{"status":"success","result":)'
).match
"Matches a call's request or result up to its value, as we write them."

_END: Final = b'},"metadata":{"correlation_id":"'

_match_end: Final = _form(rf'(PLAIN{{1,{MAX_ID}}}+)"\}}\}}').fullmatch


def _read_usual(data: bytes, wall_now: datetime) -> EnvelopeMessage | None:
    """Read a call's request or result as `build_message` spells it.

    Its parts stand at known places, so that only its value needs a parser. Of anything
    else `read_message` says what it is, or what is wrong with it.
    """
    start = _match_start(data)
    if start is None:
        return None
    version, message_id, moment, sender_id, receiver_id, action = start.groups()
    correlation = None
    if action is not None:
        end = len(data) - len("}}")
        if not data.endswith(b"}}"):
            return None
    else:
        end = data.rfind(_END)
        found = None if end < 0 else _match_end(data, end + len(_END))
        if found is None:
            return None
        correlation = found[1].decode()
    try:
        value = parse_json(
            data[start.end() : end], max_size=LONG, max_depth=USUAL_DEPTH
        )
        stamp = read_timestamp(moment.decode())
    except (JsonError, ValueError):
        return None
    sender, receiver, sent_at = sender_id.decode(), receiver_id.decode(), stamp.at
    is_odd = abs((sent_at - wall_now).total_seconds()) > MAX_SKEW
    if is_odd or not stamp.zoned or not isinstance(value, dict):
        return None
    if BROADCAST in (sender, receiver):
        return None
    payload: Payload
    if action is None:
        payload = ResponsePayload(EnvelopeStatus.SUCCESS, value, {})
    else:
        payload = RequestPayload(action.decode(), value)
    return EnvelopeMessage(
        message_id=message_id.decode(),
        sender_id=sender,
        receiver_id=receiver,
        message_type=MessageType.REQUEST if action else MessageType.RESPONSE,
        payload=payload,
        sent_at=sent_at,
        metadata={},
        correlation_id=correlation,
        version=version.decode(),
    )


def _head(value: dict[str, Any]) -> Head:
    metadata = value.get("metadata")
    correlation = metadata.get(CORRELATION) if isinstance(metadata, dict) else None
    return Head(
        message_id=_readable(value.get("message_id"), MAX_ID),
        message_type=_readable(value.get("message_type"), _MAX_WORD),
        receiver_id=_readable(value.get("receiver_id"), MAX_AGENT),
        correlation_id=_readable(correlation, MAX_ID),
    )


def _readable(value: Json, limit: int) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= limit else None


def _check_version(value: dict[str, Any], version: str) -> None:
    """Refuse other major versions before anything that they may have changed."""
    match = _VERSION.fullmatch(_text(value, "protocol_version", _MAX_WORD))
    if match is None:
        raise _Invalid("protocol_version is not `major.minor`")
    if int(match[1]) != MAJOR_VERSION:
        raise EnvelopeError(
            f"version {match[0]} is not spoken here",
            _head(value),
            code=EnvelopeErrorCode.UNSUPPORTED_VERSION,
            details={"supported": [version]},
            fault=False,
        )


def _envelope(value: dict[str, Any], wall_now: datetime) -> EnvelopeMessage:
    message_id = _text(value, "message_id", MAX_ID)
    flags: list[str] = []
    sent_at = _sent_at(value, wall_now, flags)
    sender_id = _text(value, "sender_id", MAX_AGENT)
    if sender_id == BROADCAST:
        raise _Invalid("no agent is named `broadcast`")
    receiver_id = _text(value, "receiver_id", MAX_AGENT)
    message_type = _text(value, "message_type", _MAX_WORD)
    read = _PAYLOADS.get(message_type, OtherPayload)
    payload = read(_object(value, "payload"))
    metadata = _optional_object(value, "metadata")
    return EnvelopeMessage(
        message_id=message_id,
        sender_id=sender_id,
        receiver_id=receiver_id,
        message_type=message_type,
        payload=payload,
        sent_at=sent_at,
        metadata={name: item for name, item in metadata.items() if name != CORRELATION},
        correlation_id=_correlation(metadata, message_type, receiver_id),
        version=value["protocol_version"],
        flags=tuple(flags),
    )


def _sent_at(value: dict[str, Any], wall_now: datetime, flags: list[str]) -> datetime:
    text = _text(value, "timestamp", _MAX_WORD)
    try:
        timestamp = read_timestamp(text)
    except ValueError as exc:
        raise _Invalid(f"timestamp: {exc}") from None
    if not timestamp.zoned:
        flags.append("its timestamp has no zone and is taken as UTC")
    skew = (timestamp.at - wall_now).total_seconds()
    if abs(skew) > MAX_SKEW:
        # Only noted: the transport's own replay protection decides (ENV-Q10).
        word = "ahead of" if skew > 0 else "behind"
        flags.append(f"its timestamp is {abs(skew):.0f} s {word} our clock")
    return timestamp.at


def _correlation(
    metadata: Mapping[str, Json], message_type: str, receiver_id: str
) -> str | None:
    if message_type not in (MessageType.RESPONSE, MessageType.ERROR):
        # Other types may use the entry for what they like; it means nothing to us.
        return _readable(metadata.get(CORRELATION), MAX_ID)
    if message_type == MessageType.RESPONSE:
        if receiver_id == BROADCAST:
            raise _Invalid("a response is never broadcast")
        if CORRELATION not in metadata:
            raise _Invalid("a response needs metadata.correlation_id")
    elif metadata.get(CORRELATION) is None:
        return None
    elif receiver_id == BROADCAST:
        raise _Invalid("an error that answers a request is never broadcast")
    correlation = _readable(metadata[CORRELATION], MAX_ID)
    if correlation is None:
        raise _Invalid(f"metadata.correlation_id is no text of 1 to {MAX_ID}")
    return correlation


# Payloads.


def _request(payload: dict[str, Any]) -> Payload:
    return RequestPayload(
        _text(payload, "action", MAX_NAME), _object(payload, "parameters")
    )


def _response(payload: dict[str, Any]) -> Payload:
    status = read_status(_text(payload, "status", MAX_NAME))
    if status == EnvelopeStatus.SUCCESS:
        result = _object(payload, "result")
    else:
        result = _optional_object(payload, "result")
    error = _optional_object(payload, "error")
    if status == EnvelopeStatus.FAILURE and not error:
        raise _Invalid("a failure needs a payload.error with details")
    if status in (EnvelopeStatus.SUCCESS, EnvelopeStatus.IN_PROGRESS) and error:
        raise _Invalid(f"{status} and a payload.error contradict each other")
    return ResponsePayload(status, result, error)


def _event(payload: dict[str, Any]) -> Payload:
    name = read_event_name(_text(payload, "event_name", MAX_NAME))
    return EventPayload(name, _object(payload, "event_data"))


def _error(payload: dict[str, Any]) -> Payload:
    code = read_code(_text(payload, "code", MAX_NAME))
    message = payload.get("message")
    if not isinstance(message, str) or len(message) > MAX_TEXT:
        raise _Invalid(f"message is no text of at most {MAX_TEXT}")
    return ErrorPayload(code, message, _optional_object(payload, "details"))


_PAYLOADS: dict[str, Callable[[dict[str, Any]], Payload]] = {
    MessageType.REQUEST: _request,
    MessageType.RESPONSE: _response,
    MessageType.EVENT: _event,
    MessageType.ERROR: _error,
}


# Fields.


def _text(value: dict[str, Any], name: str, limit: int) -> str:
    text = value.get(name)
    if not isinstance(text, str) or not 0 < len(text) <= limit:
        raise _Invalid(f"{name} is no text of 1 to {limit} characters")
    return text


def _object(value: dict[str, Any], name: str) -> dict[str, Any]:
    item = value.get(name)
    if not isinstance(item, dict):
        raise _Invalid(f"{name} is no object")
    return item


def _optional_object(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Read an object that may be left out; many writers send null for that."""
    return {} if value.get(name) is None else _object(value, name)
