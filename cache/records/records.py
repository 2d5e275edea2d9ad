"""Records of agreements as plain data, and the stored form of all records. Pure.

A record is stored in an envelope, a JSON object `{"format", "kind", "sha256",
"record"}`. The checksum covers kind, key and record, so a damaged or misplaced row is
detected. A row that is read must also equal the stored form that we would write for its
value, so any changed byte is detected, even one JSON does not mind.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, NoReturn, Self, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from cache.errors import RecordError

FORMAT = 1
"Version of the envelope and of all records; raised when a meaning changes."

MAX_RECORD = 16 * 1024 * 1024
"Largest record as JSON, in bytes; a document has at most 256 KiB."

Hash = Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]
"A SHA-256, as 64 lower-case hex characters."

Count = Annotated[int, Field(ge=0)]
"A number of things."

Did = Annotated[str, Field(pattern=r"\Adid:[!-.0-~]+\z", max_length=1024)]
"A DID; it is part of keys, so it has no separator and no invisible character."

Party = Annotated[str, Field(pattern=r"\A(did|local):[!-.0-~]+\z", max_length=1024)]
"A peer by its DID, or a caller that has a token of this daemon; also part of keys."

Id = Annotated[str, Field(pattern=r"\A[A-Za-z0-9_-]+\z", max_length=64)]
"A random id of our own."

Seconds = Annotated[float, Field(ge=0, lt=1e11)]
"A time or a duration in seconds."

JsonObject = dict[str, Any]

MAX_REASON = 1000
"Longest reason of an owner, in characters."

_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class AgreementRole(StrEnum):
    """The half of a document that a side speaks: requester or provider."""

    REQUESTER = "requester"
    PROVIDER = "provider"


class AgreementState(StrEnum):
    """The state of an agreement or a half; only an active one may be used."""

    ACTIVE = "active"

    TESTING = "testing"
    "Only for an agreement: its test cases with the peer are not finished."

    FAILED = "failed"
    "Only for an agreement: its test cases with the peer failed."

    STALE = "stale"
    REVOKED = "revoked"


KINDS: dict[str, type[Record]] = {}
"Every kind of record, by its name."


@dataclass(frozen=True)
class Record:
    """Base of all records: conversion to and from JSON.

    Args:
        kind: Name of the kind; it is in the envelope and the first part of a key.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    kind: ClassVar[str]

    def __init_subclass__(cls, *, kind: str) -> None:
        cls.kind = kind
        KINDS[kind] = cls

    def to_json(self) -> dict[str, Any]:
        """Return the record as a JSON object; RecordError if it is invalid."""
        try:
            data = _adapter(type(self)).dump_json(self, warnings="error")
        except ValueError as exc:  # also pydantic's and lone surrogates
            raise RecordError(f"{self.kind} record: {_one_line(exc)}") from None
        # NaN, tuples and keys that are no text would be read back as something else.
        back = self.from_bytes(data)
        if back != self and back != _rounded(self):
            raise RecordError(f"{self.kind} record: holds a value that is not JSON")
        value: dict[str, Any] = json.loads(data)
        return value

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the record in `value`, a JSON object; RecordError if it is invalid."""
        return cls.from_bytes(json.dumps(value).encode("ascii"))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the record in the JSON text `data`; RecordError if it is invalid."""
        if len(data) > MAX_RECORD:
            raise RecordError(
                f"{cls.kind} record: {len(data)} bytes, at most {MAX_RECORD}"
            )
        try:
            record: Self = _adapter(cls).validate_json(data)
        except ValidationError as exc:
            raise RecordError(f"{cls.kind} record: {_one_line(exc)}") from None
        return record


@dataclass(frozen=True)
class DocumentRecord(Record, kind="document"):
    """The agreed text and its hash (ANP-84, ANP-85)."""

    hash: Hash
    "SHA-256 of the text's UTF-8 bytes, 64 lower-case hex characters (ANP-88)."

    text: str
    "The agreed `candidateProtocols`, byte for byte."

    @classmethod
    def of(cls, text: str) -> DocumentRecord:
        """Return the record of `text` under the hash computed here."""
        return cls(hash_text(text), text)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """See `Record.from_bytes`; the hash must match the text."""
        record = super().from_bytes(data)
        if hash_text(record.text) != record.hash:
            raise RecordError("document record: the hash is not that of the text")
        return record


@dataclass(frozen=True)
class HalfRecord(Record, kind="half"):
    """One revision of the code that speaks one role of a document."""

    hash: Hash

    role: AgreementRole

    revision: Count
    "Number from 1; 0 until the store gives it one."

    source: str
    "Python source text."

    origin: Literal["rules", "model", "imported", "hand-written"]
    "Author of the code; decides the isolation level at which it may run."

    capabilities: dict[str, Hash]
    "The capabilities it may call, each with the hash of its schemas."

    created: Seconds
    "Seconds since 1970."

    state: AgreementState = AgreementState.ACTIVE
    "Stale: a schema changed, or an import replaced it. Revoked: by the owner."

    model: Annotated[str, Field(max_length=256)] = ""
    "Name of the model that wrote it; empty for other origins or when unknown."

    bundle: Hash | None = None
    "SHA-256 of the imported bundle's bytes; None for other origins."

    negotiation_id: Id | None = None
    "The negotiation that it was written in or rewritten for."

    meanings: dict[str, Hash] = field(default_factory=dict)
    """Hash of what the capabilities say of themselves beside their schemas, as it was
    when the half was made; one that is not in it is taken as it is."""


@dataclass(frozen=True)
class AgreementRecord(Record, kind="agreement"):
    """An agreement with one peer: document, revision of our half, and history."""

    own_did: Did
    "Our DID in its canonical form."

    peer_did: Did
    "The peer's DID in its canonical form."

    role: AgreementRole
    "Our side."

    need_key: Hash | None
    "Hash that identifies the need; None for a provider, which never learns it."

    hash: Hash

    revision: Count
    "Revision of our half; 0 until the store gives it a number."

    need: JsonObject | None
    "The need as the caller gave it, shown to people."

    samples: Literal["full", "partial", "none"]
    "Share of the schemas for which sample messages could be made."

    tests: JsonObject
    "Findings of the half's acceptance and of agreed test cases."

    negotiation_id: Id | None
    "The negotiation that led to the agreement."

    created: Seconds
    "Seconds since 1970."

    last_used: Seconds | None = None
    "When a call last used it, in seconds since 1970."

    uses: Count = 0
    "Number of calls that used it."

    state: AgreementState = AgreementState.ACTIVE
    """Stale: our half no longer fits, or the owner set a failed one aside. Revoked: by
    the owner."""

    last_run: JsonObject | None = None
    "The owner's last repetition of its test cases: time, manner and result."


@dataclass(frozen=True)
class RevocationRecord(Record, kind="revocation"):
    """The owner revoked a document (DESIGN.md, Links and channels: Revoked).

    It stays when everything else about the document is pruned, so that the same text
    is not agreed again.
    """

    hash: Hash

    peer_did: Did | None
    "Canonical DID of the only peer concerned; None concerns all."

    at: Seconds
    "Seconds since 1970."

    reason: Annotated[str, Field(max_length=MAX_REASON)] = ""
    "The owner's reason; never sent."

    kept: dict[str, AgreementState] = field(default_factory=dict)
    "States of the records that were not active before the revocation, by key."


@dataclass(frozen=True)
class WithdrawnRecord(Record, kind="withdrawn"):
    """The owner withdrew a capability with the revocation of a document.

    It holds for one peer or for all, until the owner allows it again. With `is_open` it
    excepts one peer from a withdrawal for all.
    """

    role: AgreementRole
    "Our side: a provider's own capability, or a requester's use of the peer's."

    peer_did: Party | None
    "The peer in its canonical form; None concerns all."

    capability: Annotated[str, Field(max_length=64 * 1024)]
    "Its full name, or a requester's need where the peer did not tell the name."

    at: Seconds
    "When the owner said so, in seconds since 1970."

    hashes: tuple[Hash, ...]
    "The documents with whose revocation it was withdrawn."

    is_open: bool = False


@dataclass(frozen=True)
class ConfirmedRecord(Record, kind="confirmed"):
    """The owner let one need of a peer have the side effects of a capability."""

    peer_did: Party

    need: Hash
    "Hash of the need in the peer's words."

    capability: Annotated[str, Field(max_length=1024)]

    at: Seconds
    "Seconds since 1970."


@dataclass(frozen=True)
class UsageRecord(Record, kind="usage"):
    """Numbers of calls by outcome, for one document or for all together."""

    hash: Hash | None
    "Hash of the document; None counts all calls."

    agreement: Count = 0
    "Our calls through an existing agreement."

    consensus: Count = 0
    "Our calls through a protocol known by its URI."

    published: Count = 0
    "Our first calls through a document that the peer publishes."

    negotiated: Count = 0
    "Our calls that negotiated first."

    natural_language: Count = 0
    "Our calls in natural language."

    failed: Count = 0
    "Our calls without an answer, failed negotiations among them."

    served: Count = 0
    "Calls of peers that were answered."

    first_used: Seconds | None = None
    "When the first counted call ended, in seconds since 1970."

    last_used: Seconds | None = None
    "When the last counted call ended, in seconds since 1970."

    @property
    def calls(self) -> int:
        """Our calls that went through protocols."""
        return self.agreement + self.consensus + self.published + self.negotiated

    @property
    def hit_rate(self) -> float | None:
        """Share of our calls through protocols that needed no negotiation, or None."""
        return 1 - self.negotiated / self.calls if self.calls else None

    def plus(self, other: UsageRecord) -> UsageRecord:
        """Return the sum of both records, under the hash of this one."""
        firsts = [t for t in (self.first_used, other.first_used) if t is not None]
        lasts = [t for t in (self.last_used, other.last_used) if t is not None]
        sums = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        return replace(
            self,
            **sums,
            first_used=min(firsts, default=None),
            last_used=max(lasts, default=None),
        )


COUNTS = tuple(
    each.name
    for each in fields(UsageRecord)
    if each.name not in {"hash", "first_used", "last_used"}
)
"Names of the fields that count calls."


R = TypeVar("R", bound=Record)


def hash_text(text: str) -> str:
    """Return the SHA-256 of the UTF-8 bytes of `text` as 64 hex characters (ANP-88).

    Raises:
        RecordError: the text has a lone surrogate, so it has no UTF-8 bytes.
    """
    try:
        return hashlib.sha256(text.encode("utf-8")).hexdigest()
    except UnicodeEncodeError:
        raise RecordError("the text holds a lone surrogate") from None


def seal(record: Record, key: str) -> dict[str, Any]:
    """Return the envelope that stores `record` under `key`; RecordError if invalid."""
    value = record.to_json()
    checksum = _checksum(record.kind, key, value)
    return {"format": FORMAT, "kind": record.kind, "sha256": checksum, "record": value}


def open_envelope(kind: type[R], key: str, envelope: object) -> R:
    """Return the record of `kind` in an `envelope` found under `key`.

    Raises:
        RecordError: the format, kind, checksum or record is not as expected.
    """
    if not isinstance(envelope, dict) or envelope.keys() != {
        "format",
        "kind",
        "sha256",
        "record",
    }:
        raise RecordError("not an envelope")
    if envelope["format"] != FORMAT or isinstance(envelope["format"], bool):
        raise RecordError(f"format {envelope['format']!r:.20}, expected {FORMAT}")
    if envelope["kind"] != kind.kind:
        raise RecordError(f"not of kind {kind.kind}")
    value = envelope["record"]
    if envelope["sha256"] != _checksum(kind.kind, key, value):
        raise RecordError("the checksum does not fit")
    return kind.from_json(value)


def _checksum(kind: str, key: str, value: object) -> str:
    # ASCII and sorted, so that the same record always gives the same bytes.
    text = json.dumps([FORMAT, kind, key, value], sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def encode_json(value: object) -> str:
    """Return the only stored form of a JSON value, in ASCII.

    Raises:
        TypeError, ValueError: the value is not JSON.
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def decode_json(text: str) -> object:
    """Return the value of a JSON text; RecordError if it is not our stored form."""
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
        # Another spelling of the same value, such as \u00E9, counts as damage too.
        fits = encode_json(value) == text
    except (ValueError, RecursionError):
        raise RecordError("the value is not JSON") from None
    if not fits:
        raise RecordError("the value is not in its stored form")
    return value


def _rounded(record: R) -> R:
    """Return a record with plain floats in place of numbers that have more digits.

    Only examples and schemas have such numbers; in storage their nearest float will do.
    """
    found = ((one.name, getattr(record, one.name)) for one in fields(record))
    return replace(record, **{name: _plain(value) for name, value in found})


def _plain(value: Any) -> Any:
    if type(value) is dict:
        return {name: _plain(one) for name, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return float(value) if isinstance(value, float) else value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_ADAPTERS: dict[str, TypeAdapter[Any]] = {}


def _adapter(record: type[Record]) -> TypeAdapter[Any]:
    # Made on first use, since each takes about a millisecond.
    if record.kind not in _ADAPTERS:
        _ADAPTERS[record.kind] = TypeAdapter(record)
    return _ADAPTERS[record.kind]


def _one_line(exc: ValueError) -> str:
    """Return the place and kind of the fault, never the value: it may be a peer's."""
    if isinstance(exc, ValidationError):
        first = exc.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:100]
        return f"{where}: {first['msg'][:200]}"
    return str(exc)[:200]


# The record of a call that has an idempotency key.


@dataclass(frozen=True)
class CallRecord(Record, kind="call"):
    """A call of our agent with an idempotency key, from its first byte on the wire."""

    id: Hash
    "Made of the caller's scope and key."

    request: Hash
    "Made of the request, to tell another request with the same key."

    created: Seconds
    "When the request was about to be sent, in seconds since 1970."

    repeatable: bool
    "The peer says that a second call does no more than the first."

    sealed: Annotated[str, Field(max_length=2 * 1024 * 1024)] = ""
    "The outcome, encrypted, in base64; empty while it is unknown."
