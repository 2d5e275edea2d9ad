"""The meta messages (PT=00): fields, limits, and conversion from and to bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from jsonic.exact_numbers import write_json
from negotiation.errors import JsonError, MessageError, MessageFault, MisuseError
from negotiation.strict_json import parse_json

MAX_CANDIDATE_SIZE = 256 * 1024
"Largest `candidateProtocols`, in bytes of UTF-8 (ANP-Q30)."

MAX_TEXT_SIZE = 64 * 1024
"Largest size of every other text, in bytes of UTF-8 (ANP-Q30)."

MAX_MESSAGE_SIZE = 1024 * 1024
"Largest meta message, in bytes (ANP-Q30)."

MAX_SENT_CANDIDATE = 640 * 1024
"""Largest candidate that we send, in bytes of JSON text.

JSON escapes may make 256 KiB grow six times, and a frame to a peer without
`maxMessage` has room for 768 KiB (WIRE row 34).
"""


MAX_SIGNAL_ID = 1024
"Longest id of a message that a `callSignal` names, in characters."


class Action(StrEnum):
    """The five actions of the seed (ANP-19), and our own extensions' two."""

    PROTOCOL_NEGOTIATION = "protocolNegotiation"
    CODE_GENERATION = "codeGeneration"
    TEST_CASES_NEGOTIATION = "testCasesNegotiation"
    FIX_ERROR_NEGOTIATION = "fixErrorNegotiation"
    NATURAL_LANGUAGE_NEGOTIATION = "naturalLanguageNegotiation"
    CHANNEL_CLOSE = "channelClose"
    CALL_SIGNAL = "callSignal"


class Status(StrEnum):
    """State of a negotiation, as given in a message (ANP-32, ANP-52, ANP-59)."""

    NEGOTIATING = "negotiating"
    REJECTED = "rejected"
    ACCEPTED = "accepted"


class CodeStatus(StrEnum):
    """State of the sender's code (ANP-40)."""

    GENERATED = "generated"
    ERROR = "error"


class SignalKind(StrEnum):
    """Kinds of `callSignal`, our extension `work` (WIRE)."""

    DEADLINE = "deadline"
    "The requester waits for so long; `data` is `{milliseconds}` that remain."

    WORKING = "working"
    "The provider is still at work."

    PROGRESS = "progress"
    "The provider's tool reports `{progress, total?, message?}`."

    CANCEL = "cancel"
    "Nobody waits for the answer any more."

    SPENT = "spent"
    "The provider's model calls and their cost."

    UPDATES = "updates"
    "The requester takes the updates of a document that has them; before the request."

    FETCH = "fetch"
    """The requester wants the answer on this channel; in the other direction `data` is
    `{state: "unknown"}`, there is none and nothing is being done for it."""


class NaturalLanguageType(StrEnum):
    """Direction of a `naturalLanguageNegotiation` (ANP-67)."""

    REQUEST = "REQUEST"
    RESPONSE = "RESPONSE"


def _at_most(limit: int) -> AfterValidator:
    def check(text: str) -> str:
        if len(text) > limit or len(text.encode("utf-8")) > limit:
            raise PydanticCustomError(
                "too_large", "over {limit} bytes of UTF-8", {"limit": limit}
            )
        return text

    return AfterValidator(check)


def _empty_for_null(value: object) -> object:
    return "" if value is None else value


# Peers send `null` or leave a field out; both mean that it is empty.
_OptionalText = Annotated[
    str, BeforeValidator(_empty_for_null), _at_most(MAX_TEXT_SIZE)
]
_Candidate = Annotated[
    str, BeforeValidator(_empty_for_null), _at_most(MAX_CANDIDATE_SIZE)
]
_Text = Annotated[str, _at_most(MAX_TEXT_SIZE)]
# Without `strict` a bool, 1.0 and "1" would pass as numbers (ANP-Q4).
_Integer = Annotated[int, Field(strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolNegotiation:
    """One turn of the negotiation (ANP-20)."""

    action: ClassVar[Action] = Action.PROTOCOL_NEGOTIATION

    sequence_id: Annotated[_Integer, Field(alias="sequenceId")]
    "Number from the counter that both directions share (ANP-21, ANP-Q4)."

    candidate_protocols: Annotated[_Candidate, Field(alias="candidateProtocols")] = ""
    "The complete candidate; a missing one reads as empty (ANP-24, WIRE row 41)."

    modification_summary: Annotated[
        _OptionalText, Field(alias="modificationSummary")
    ] = ""
    "Changes, or a reason; left out when empty (ANP-30, WIRE row 43)."

    status: Status
    "State of the negotiation for the sender (ANP-32)."


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeGeneration:
    """The sender's code is ready, or cannot be made (ANP-40)."""

    action: ClassVar[Action] = Action.CODE_GENERATION

    status: CodeStatus
    "`error` ends the communication (ANP-46)."


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCasesNegotiation:
    """One turn of the agreement on test cases (ANP-49)."""

    action: ClassVar[Action] = Action.TEST_CASES_NEGOTIATION

    test_cases: Annotated[_OptionalText, Field(alias="testCases")] = ""
    "The complete set of test cases (ANP-50)."

    modification_summary: Annotated[
        _OptionalText, Field(alias="modificationSummary")
    ] = ""
    "Changes from the previous set (ANP-51)."

    status: Status
    "State of the agreement on test cases for the sender (ANP-52)."


@dataclass(frozen=True, slots=True, kw_only=True)
class FixErrorNegotiation:
    """One turn of a repair (ANP-57)."""

    action: ClassVar[Action] = Action.FIX_ERROR_NEGOTIATION

    error_description: Annotated[_Text, Field(alias="errorDescription")]
    "The fault of a message, in words (ANP-58)."

    status: Status
    "State of the repair for the sender (ANP-59)."


@dataclass(frozen=True, slots=True, kw_only=True)
class NaturalLanguageNegotiation:
    """A question or answer in words (ANP-66)."""

    action: ClassVar[Action] = Action.NATURAL_LANGUAGE_NEGOTIATION

    type: NaturalLanguageType
    "Question or answer (ANP-67)."

    message_id: Annotated[str, Field(alias="messageId", min_length=16, max_length=16)]
    "16 characters; an answer has those of its question (ANP-68, ANP-Q13)."

    message: _Text
    "The question or answer (ANP-69)."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelClose:
    """Ends one channel. Not in the seed: our extension `close` (WIRE)."""

    action: ClassVar[Action] = Action.CHANNEL_CLOSE

    code: _Integer
    "A code of the outer `response` (WIRE row 25)."

    reason: _Text


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSignal:
    """Something about one call. Not in the seed: our extension `work` (WIRE)."""

    action: ClassVar[Action] = Action.CALL_SIGNAL

    message_id: Annotated[
        str, Field(alias="messageId", min_length=1, max_length=MAX_SIGNAL_ID)
    ]
    "Id of the envelope that carried, or will carry, the request."

    kind: SignalKind
    "The kind."

    data: dict[str, Any] | None = None
    "Values of the kind; left out where it has none."


MetaMessage = (
    ProtocolNegotiation
    | CodeGeneration
    | TestCasesNegotiation
    | FixErrorNegotiation
    | NaturalLanguageNegotiation
    | ChannelClose
    | CallSignal
)
"All messages that PT=00 may carry."

_CLASSES: tuple[type[MetaMessage], ...] = (
    ProtocolNegotiation,
    CodeGeneration,
    TestCasesNegotiation,
    FixErrorNegotiation,
    NaturalLanguageNegotiation,
    ChannelClose,
    CallSignal,
)
_KINDS: dict[str, type[MetaMessage]] = {kind.action.value: kind for kind in _CLASSES}


@cache
def reader_of(action: str) -> TypeAdapter[MetaMessage]:
    """Return what reads messages of one action; made at its first use, being slow."""
    return TypeAdapter(_KINDS[action])


def prepare() -> None:
    """Make every reader now, and the names with which messages are written."""
    for action in _KINDS:
        _wire_names(action)


def parse_meta(data: bytes) -> MetaMessage:
    """Parse the Protocol Data of a PT=00 frame (ANP-16 to ANP-19).

    Unknown fields are ignored (ANP-Q16); missing texts read as empty (WIRE row 41,
    WIRE row 43).

    Raises:
        MessageError: The caller drops and counts `NOT_JSON` and `UNKNOWN_ACTION`
            (WIRE row 50); `BAD_FIELD` and `TOO_LARGE` are protocol errors.
    """
    if len(data) > MAX_MESSAGE_SIZE:
        raise MessageError(
            MessageFault.TOO_LARGE,
            f"a message of {len(data)} bytes, at most {MAX_MESSAGE_SIZE} are allowed",
        )
    try:
        value = parse_json(data, max_size=MAX_MESSAGE_SIZE)
    except JsonError as exc:
        raise MessageError(MessageFault.NOT_JSON, str(exc)) from None
    if not isinstance(value, dict):
        raise MessageError(MessageFault.NOT_JSON, "not a JSON object")
    action = value.get("action")
    reader = reader_of(action) if isinstance(action, str) and action in _KINDS else None
    if reader is None:
        # `verificationProtocol` is not supported either: the seed only names it
        # (ANP-Q11).
        raise MessageError(MessageFault.UNKNOWN_ACTION, "unknown action")
    try:
        return reader.validate_python(value)
    except ValidationError as exc:
        raise _message_error(str(action), exc) from None


def render_meta(message: MetaMessage) -> bytes:
    """Return the Protocol Data for `message`; an empty summary is left out.

    Raises:
        MisuseError: A text of ours cannot be written as UTF-8.
    """
    content: dict[str, Any] = {"action": message.action.value}
    for field, name in _wire_names(message.action.value):
        value = getattr(message, field)
        if value is not None and (name != "modificationSummary" or value):
            content[name] = value
    try:
        text = write_json(content, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise MisuseError(f"cannot send a text with lone surrogates: {exc}") from exc


def candidate_problem(text: str) -> str | None:
    """Return the reason why `text` cannot be sent as a candidate, or None."""
    if not text.strip():
        return "the document is empty"
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        return "the document has lone surrogates, which UTF-8 cannot carry (ANP-Q7)"
    if size > MAX_CANDIDATE_SIZE:
        return (
            f"the document has {size} bytes, at most {MAX_CANDIDATE_SIZE} are allowed"
        )
    written = len(json.dumps(text, ensure_ascii=False).encode("utf-8"))
    if written > MAX_SENT_CANDIDATE:
        return f"the document has {written} bytes as JSON, {MAX_SENT_CANDIDATE} fit"
    return None


def cut_text(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, without lone surrogates."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return short.encode("utf-8", errors="replace").decode("utf-8")


def _message_error(action: str, error: ValidationError) -> MessageError:
    first = error.errors(include_input=False, include_url=False, include_context=False)
    where = ".".join(str(part) for part in first[0]["loc"]) or "message"
    too_large = any(item["type"] == "too_large" for item in first)
    return MessageError(
        MessageFault.TOO_LARGE if too_large else MessageFault.BAD_FIELD,
        f"{action}: {where}: {first[0]['msg']}",
    )


@cache
def _wire_names(action: str) -> tuple[tuple[str, str], ...]:
    """Return (field, name on the wire) of one class, in the order of the seed."""
    properties = reader_of(action).json_schema(by_alias=True)["properties"]
    names = [field.name for field in fields(_KINDS[action])]
    return tuple(zip(names, properties, strict=True))
