"""The words of the message envelope: what we send, and what we read as equal."""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "AGENT_ONLINE",
    "BROADCAST",
    "ENVELOPE_URI",
    "ENVELOPE_VERSION",
    "MAJOR_VERSION",
    "EnvelopeAction",
    "EnvelopeErrorCode",
    "MessageType",
    "EnvelopeStatus",
    "read_code",
    "read_event_name",
    "read_status",
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
    """How far a request is (ENV-17); other words pass through (ENV-Q2)."""

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
