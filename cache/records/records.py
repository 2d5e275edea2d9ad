"""Records of the store as plain data, and the envelope around each. Pure.

An envelope is a JSON object `{"format", "kind", "sha256", "record"}`. The checksum
covers kind, key and record, so a damaged or misplaced row is detected.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from cache.errors import RecordError

__all__ = [
    "FORMAT",
    "MAX_RECORD",
    "AgreementRecord",
    "Count",
    "DocumentRecord",
    "HalfRecord",
    "Hash",
    "NegotiationRecord",
    "Record",
    "AgreementRole",
    "StandingRecord",
    "AgreementState",
    "hash_text",
    "open_envelope",
    "seal",
]

FORMAT = 1
"Version of the envelope and of all records; raised when a meaning changes."

MAX_RECORD = 16 * 1024 * 1024
"Largest record as JSON, in bytes; a document has at most 256 KiB."

Hash = Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]
"A SHA-256, as 64 lower-case hex characters."

Count = Annotated[int, Field(ge=0)]
"A number of things."

# DIDs are parts of keys, so they have no separator and no invisible character.
_Did = Annotated[str, Field(pattern=r"\Adid:[!-.0-~]+\z", max_length=1024)]
_Id = Annotated[str, Field(pattern=r"\A[A-Za-z0-9_-]+\z", max_length=64)]
_Url = Annotated[str, Field(pattern=r"\A[!-~]+\z", max_length=2048)]
_Seconds = Annotated[float, Field(ge=0, lt=1e11)]
_Object = dict[str, Any]

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


@dataclass(frozen=True)
class Record:
    """Base of all records: conversion to and from JSON."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    kind: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """Return the record as a JSON object; RecordError if it is invalid."""
        try:
            data = _adapter(type(self)).dump_json(self, warnings="error")
        except ValueError as exc:  # also pydantic's and lone surrogates
            raise RecordError(f"{self.kind} record: {_one_line(exc)}") from None
        # NaN, tuples and keys that are no text would be read back as something else.
        if self.from_bytes(data) != self:
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
class DocumentRecord(Record):
    """The agreed text and its hash (ANP-84, ANP-85)."""

    kind: ClassVar[str] = "document"

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
class HalfRecord(Record):
    """One revision of the code that speaks one role of a document."""

    kind: ClassVar[str] = "half"

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

    created: _Seconds
    "Seconds since 1970."

    state: AgreementState = AgreementState.ACTIVE
    "Stale: a schema changed, or an import replaced it. Revoked: by the owner."

    model: Annotated[str, Field(max_length=256)] = ""
    "Name of the model that wrote it; empty for other origins or when unknown."

    bundle: Hash | None = None
    "SHA-256 of the imported bundle's bytes; None for other origins."

    negotiation_id: _Id | None = None
    "The negotiation that it was written in or rewritten for."


@dataclass(frozen=True)
class AgreementRecord(Record):
    """An agreement with one peer: document, revision of our half, and history."""

    kind: ClassVar[str] = "agreement"

    own_did: _Did
    "Our DID in its canonical form."

    peer_did: _Did
    "The peer's DID in its canonical form."

    role: AgreementRole
    "Our side."

    need_key: Hash | None
    "Hash that identifies the need; None for a provider, which never learns it."

    hash: Hash

    revision: Count
    "Revision of our half; 0 until the store gives it a number."

    need: _Object | None
    "The need as the caller gave it, shown to people."

    samples: Literal["full", "partial", "none"]
    "Share of the schemas for which sample messages could be made."

    tests: _Object
    "Findings of the half's acceptance and of agreed test cases."

    negotiation_id: _Id | None
    "The negotiation that led to the agreement."

    created: _Seconds
    "Seconds since 1970."

    last_used: _Seconds | None = None
    "When a call last used it, in seconds since 1970."

    uses: Count = 0
    "Number of calls that used it."

    state: AgreementState = AgreementState.ACTIVE
    """Stale: our half no longer fits, or the owner set a failed one aside. Revoked: by
    the owner."""

    last_run: _Object | None = None
    "The owner's last repetition of its test cases: time, manner and result."


@dataclass(frozen=True)
class NegotiationRecord(Record):
    """One negotiation with its transcript."""

    kind: ClassVar[str] = "negotiation"

    id: _Id
    "A random id of our own."

    peer_did: _Did
    "The peer's DID in its canonical form."

    role: AgreementRole
    "Our side."

    need: _Object | None
    "The need, if we are the requester."

    turns: tuple[_Object, ...]
    "The messages and verdicts, oldest first."

    outcome: Annotated[str, Field(max_length=64)]
    "`agreed`, or the kind of failure; `running` until it ends."

    reason: Annotated[str, Field(max_length=64 * 1024)]
    "Reason of a failure in words; otherwise empty."

    hash: Hash | None
    "Hash of the agreed document."

    started: _Seconds
    "Seconds since 1970; with `id` the position in the list, so it never changes."

    ended: _Seconds | None
    "Seconds since 1970; None while it runs."

    own_did: _Did | None = None
    "Our DID in its canonical form; None in records older than this field."

    subject: Hash | None = None
    "The need's key, or a hash of the requirement that the peer wrote."

    verdicts: tuple[_Object, ...] = ()
    "The decisions of our mind or the owner about each document, with reasons."

    hints: tuple[Annotated[str, Field(max_length=16 * 1024)], ...] = ()
    "Hints of the owner that our mind received."

    pending: _Object | None = None
    "The document and half that wait, or waited in vain, for the owner's approval."

    decision: _Object | None = None
    "The owner's decision after its end; empty until there is one."

    model_calls: Count = 0
    "Model calls on our side while it ran."

    tests: _Object | None = None
    "Findings of our half's acceptance."

    exchanges: tuple[_Object, ...] = ()
    "Requests to our model and its answers, shortened for people."

    @property
    def agreed(self) -> bool:
        """True when it led to an agreement; such records are never dropped."""
        return self.outcome == "agreed"


@dataclass(frozen=True)
class StandingRecord(Record):
    """An owner's decision for the next negotiation with a peer (DESIGN.md, The owner).

    One negotiation uses it once; it lapses at `expires`.
    """

    kind: ClassVar[str] = "standing"

    id: _Id
    "A random id of our own."

    peer_did: _Did
    "Canonical DID of the peer it is about."

    role: AgreementRole
    "Our side."

    verdict: Literal["accept", "reject", "edit", "hint", "offer"]
    "The owner's verdict; `offer`, made by the daemon, offers the same text again."

    subject: Hash | None
    "Hash of the need or requirement it is for; None when only `hash` decides."

    created: _Seconds
    "Seconds since 1970; with `id` the position in the list."

    expires: _Seconds
    "Seconds since 1970 at which it lapses."

    hash: Hash | None = None
    "Hash of the document to accept, reject or propose."

    document: str | None = None
    "The text to send, if we are the side that sends it."

    reply_to: Hash | None = None
    "Hash of the peer's candidate that `document` answers."

    module: Hash | None = None
    "Hash of the half's text that the owner saw; None allows any that passes."

    half: _Object | None = None
    "The half that the owner saw: `text`, `origin` and `capabilities`."

    note: Annotated[str, Field(max_length=16 * 1024)] = ""
    "The owner's note in words."

    negotiation_id: _Id | None = None
    "The negotiation that the decision was made about."

    used: _Seconds | None = None
    "When a negotiation used it, in seconds since 1970."

    used_by: _Id | None = None
    "The negotiation that used it."

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """See `Record.from_bytes`; the hash must match the text."""
        record = super().from_bytes(data)
        if record.document is not None and hash_text(record.document) != record.hash:
            raise RecordError("standing record: the hash is not that of the text")
        return record


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
