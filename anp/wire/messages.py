"""The JSON messages of a link: reads all of them and makes the small ones (WIRE §2)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StrictStr,
    TypeAdapter,
    ValidationError,
)
from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.encrypted import EncryptedData, Envelope, EnvelopeHead
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.moment import second_text, unix_ns
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json


class UnreadableMessage(PeerError):
    """A text that is no message of ours; its sender can be told.

    Args:
        raw: Its members, if it is a JSON object at all.
    """

    def __init__(self, detail: str, raw: dict[str, Any] | None = None) -> None:
        super().__init__(ErrorCode.NOT_ALLOWED, detail)
        self.raw = raw or {}

    def text(self, name: str) -> str:
        """Return a member that is a text, cut to 500 characters, else nothing."""
        value = self.raw.get(name)
        return value[:500] if isinstance(value, str) else ""


_RENDER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

_NOT_PLAIN: Final = "\\", "\x7f", "NaN", "Infinity"
"Pieces of a text that the fast writer may have written otherwise than the strict one."


def render(message: dict[str, Any]) -> str:
    """Return a message as the text of one WebSocket frame, ASCII only.

    Raises:
        ValueError: It has a number that JSON does not have.
    """
    # The writer of pydantic takes a third of the time, and escapes nothing beyond what
    # JSON demands: it is good for texts without anything to escape, as nearly all are.
    try:
        text = to_json(message).decode()
    except ValueError:
        return _RENDER(message)
    # It also writes numbers that JSON does not have, which the other one refuses.
    if text.isascii() and not any(piece in text for piece in _NOT_PLAIN):
        return text
    return _RENDER(message)


# What was parsed holds no circles that would have to be looked for.
canonical_text: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), check_circular=False
).encode
"""Returns JSON as it is signed (WIRE row 9): keys are sorted at every level, and
anything outside ASCII is escaped."""


def canonical_bytes(hello: dict[str, Any]) -> bytes:
    """Return the bytes that are signed: `hello` without `proofValue` (WIRE row 9).

    Every other field counts, unknown ones too.
    """
    proof = {k: v for k, v in hello["proof"].items() if k != "proofValue"}
    return canonical_text({**hello, "proof": proof}).encode("ascii")


def format_timestamp(moment: datetime, *, milliseconds: bool = True) -> str:
    """Return `moment` in UTC with Z, and with milliseconds (WIRE rows 11, 13).

    Raises:
        LocalError: `moment` has no time zone.
    """
    if moment.tzinfo is None:
        raise LocalError("a timestamp needs a time zone")
    return format_ns(unix_ns(moment), milliseconds=milliseconds)


def format_ns(unix_ns: int, *, milliseconds: bool = True) -> str:
    """Return nanoseconds since 1970 as `format_timestamp` does."""
    second, part = divmod(unix_ns // 1_000_000, 1000)
    text = second_text(second)
    return f"{text}.{part:03}Z" if milliseconds else f"{text}Z"


_CONFIG = ConfigDict(alias_generator=to_camel, extra="ignore")
_MAX_EXPIRES_DIGITS = 20


def _read_expires(value: Any) -> int:
    # The SDK reads digits in a text as well (WIRE row 16).
    if isinstance(value, str) and len(value) <= _MAX_EXPIRES_DIGITS:
        value = int(value) if value.isascii() and value.isdigit() else None
    if type(value) is not int or value <= 0:
        raise ValueError("not a positive number of seconds")
    return value


def _read_code(value: Any) -> ErrorCode:
    if type(value) is not int:
        raise ValueError("not an integer")
    # A code of some later version is a refusal all the same; `raw` has the number.
    return ErrorCode(value) if value in set(ErrorCode) else ErrorCode.NOT_ALLOWED


def _check_did(value: str) -> str:
    if not value.startswith("did:"):
        raise ValueError("not a DID")
    return value


_Text = Annotated[StrictStr, Field(min_length=1)]
_Did = Annotated[StrictStr, AfterValidator(_check_did)]
_Texts = tuple[StrictStr, ...]
_Meta = Annotated[
    MetaProtocol, PlainValidator(MetaProtocol.from_json), Field(alias="metaProtocol")
]


@dataclass(frozen=True, slots=True)
class VerificationMethod:
    """The sender's key as its hello gives it (WIRE rows 4, 5)."""

    __pydantic_config__ = _CONFIG

    id: _Text
    "DID, `#` and the name of the key."

    type: _Text
    "Always EcdsaSecp256r1VerificationKey2019."

    public_key_hex: _Text
    "130 hex characters, uncompressed."


@dataclass(frozen=True, slots=True)
class HelloProof:
    """The signature of a hello (WIRE rows 8 to 12)."""

    __pydantic_config__ = _CONFIG

    type: _Text
    "Name of the signature suite."

    verification_method: _Text
    "The id of the key; that of `VerificationMethod`."

    created: _Text
    "When it was signed: UTC, `YYYY-MM-DDTHH:MM:SSZ`."

    proof_value: _Text
    "r and s, base64url."


@dataclass(frozen=True, slots=True)
class KeyShare:
    """One ephemeral public key (WIRE rows 15, 16)."""

    __pydantic_config__ = _CONFIG

    group: _Text
    "Name of the curve."

    expires: Annotated[int, BeforeValidator(_read_expires)]
    "Lifetime its sender gives the derived keys, in seconds; a duration."

    key_exchange: _Text
    "The public key in hex."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Received:
    __pydantic_config__ = _CONFIG

    kind: ClassVar[str]
    "Its `type` on the wire."

    message_id: StrictStr = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hello(_Received):
    session_id: _Text
    "Names the handshake."

    source_did: _Did
    "The sender; the sides change places in the answer (WIRE row 18)."

    destination_did: _Did
    "The receiver."

    verification_method: VerificationMethod
    "The sender's key."

    random: _Text
    "Key input, used as the UTF-8 bytes of this text (WIRE row 3)."

    proof: HelloProof
    "The signature."

    signed: bytes
    "The bytes that the signature covers: `canonical_bytes` of all that was received."

    version: StrictStr = "1.0"
    "Version of the message."

    meta: _Meta = field(default_factory=MetaProtocol)
    "The sender's side of the meta-protocol: its offers, or its answer to them."


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHello(_Hello):
    """The requester's hello. What the SDK never reads may be missing (WIRE row 13)."""

    kind: ClassVar[str] = "sourceHello"

    cipher_suites: _Texts
    "Suites offered."

    key_shares: tuple[KeyShare, ...]
    "Ephemeral keys, one a group."

    supported_versions: _Texts = ("1.0",)
    "Versions offered."


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationHello(_Hello):
    """The provider's hello."""

    kind: ClassVar[str] = "destinationHello"

    cipher_suite: _Text
    "The suite chosen."

    key_share: KeyShare
    "The sender's ephemeral key."

    selected_version: StrictStr = "1.0"
    "The version chosen."


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(_Received):
    """Proof that the sender holds the keys (WIRE row 21)."""

    kind: ClassVar[str] = "finished"

    session_id: _Text
    "Names the handshake."

    source_did: _Did
    "The sender."

    destination_did: _Did
    "The receiver."

    verify_data: EncryptedData
    "The key id, encrypted under the sender's key."


@dataclass(frozen=True, slots=True, kw_only=True)
class _EnvelopeFields:
    """The fields of a `message` as they are read; see `Envelope`."""

    __pydantic_config__ = _CONFIG

    message_id: _Text
    source_did: _Did
    destination_did: _Did
    secret_key_id: _Text
    encrypted_data: EncryptedData
    version: StrictStr | None = None

    def envelope(self) -> Envelope:
        """Return them as its channel needs them."""
        head = EnvelopeHead(
            self.version, self.secret_key_id, self.source_did, self.destination_did
        )
        return Envelope(head, self.message_id, self.encrypted_data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(_Received):
    """A ping or a pong (WIRE row 31)."""

    kind: ClassVar[str] = "heartbeat"

    message_id: _Text
    "A pong has the id of its ping."

    message: Literal["ping", "pong"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Register(_Received):
    """A client's request to a message proxy, which we are not (WIRE row 32)."""

    kind: ClassVar[str] = "register"


@dataclass(frozen=True, slots=True, kw_only=True)
class Response(_Received):
    """An error answer. Nothing in it is authenticated (WIRE row 25).

    The SDK's generator puts the original's id into `message_id`.
    """

    kind: ClassVar[str] = "response"

    code: Annotated[ErrorCode, PlainValidator(_read_code)]
    "The kind of error; a code we do not know reads as `NOT_ALLOWED`."

    detail: StrictStr = ""
    "In the peer's words: quote and cut it before showing it."

    source_did: StrictStr = ""
    "The sender, if it says so."

    destination_did: StrictStr = ""
    "The receiver, if it says so."

    original_type: StrictStr = ""
    "Type of the message it answers."

    original_message_id: StrictStr = ""
    "Id of the message it answers."


Message = (
    SourceHello
    | DestinationHello
    | Finished
    | Envelope
    | Heartbeat
    | Register
    | Response
)

_KINDS: dict[str, type] = {
    "sourceHello": SourceHello,
    "destinationHello": DestinationHello,
    "finished": Finished,
    "message": _EnvelopeFields,
    "heartbeat": Heartbeat,
    "register": Register,
    "response": Response,
}


@cache
def reader_of(kind: str) -> TypeAdapter[Any]:
    """Return what reads messages of one kind; made at its first use, which is slow."""
    return TypeAdapter(_KINDS[kind])


def prepare() -> None:
    """Make every reader now."""
    for kind in _KINDS:
        reader_of(kind)


def parse_message(text: str | bytes, *, max_size: int) -> Message:
    """Read one WebSocket message.

    Args:
        max_size: Largest message accepted, in bytes.

    Raises:
        UnreadableMessage: It is too large, no strict JSON, of an unknown type, or a
            field is missing or has a wrong type.
    """
    try:
        value = parse_json(text, max_size=max_size)
    except JsonError as exc:
        raise UnreadableMessage(f"message: {exc}"[:200]) from exc
    if not isinstance(value, dict):
        raise UnreadableMessage("the message is not a JSON object")
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UnreadableMessage(f"unknown message type {kind!r:.60}", value)
    is_hello = issubclass(_KINDS[kind], _Hello)
    fields = {**value, "signed": b""} if is_hello else value
    try:
        read = reader_of(kind).validate_python(fields)
    except PeerError as exc:
        raise UnreadableMessage(exc.detail, value) from None
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UnreadableMessage(
            f"{kind}: {where}: {first['msg']}"[:200], value
        ) from None
    if isinstance(read, _Hello):
        # Only now: it takes as long as all else, and many messages are none of these.
        read = replace(read, signed=canonical_bytes(value))
    message: Message = read.envelope() if isinstance(read, _EnvelopeFields) else read
    return message


def make_response(
    code: ErrorCode,
    detail: str,
    *,
    source_did: str,
    destination_did: str,
    original_type: str,
    original_message_id: str,
    message_id: str,
    timestamp: datetime,
) -> str:
    """Return an error answer as the spec has it (WIRE row 25)."""
    return render(
        {
            "version": "1.0",
            "type": "response",
            "timestamp": format_timestamp(timestamp),
            "messageId": message_id,
            "sourceDid": source_did,
            "destinationDid": destination_did,
            "originalType": original_type,
            "originalMessageId": original_message_id,
            "code": int(code),
            "detail": detail,
        }
    )


def make_heartbeat(
    message: Literal["ping", "pong"], *, message_id: str, timestamp: datetime
) -> str:
    """Return a heartbeat (WIRE row 31)."""
    return render(
        {
            "version": "1.0",
            "type": "heartbeat",
            "timestamp": format_timestamp(timestamp),
            "messageId": message_id,
            "message": message,
        }
    )


def make_pong(heartbeat: Heartbeat, *, timestamp: datetime) -> str:
    """Return the answer to a ping, with its message id (WIRE row 31)."""
    return make_heartbeat("pong", message_id=heartbeat.message_id, timestamp=timestamp)
