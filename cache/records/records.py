"""What the store keeps: plain records, and the envelope each lies in. Pure.

An envelope is a JSON object `{"format", "kind", "sha256", "record"}`. The checksum
covers kind, key and record, so a row that was damaged or copied elsewhere is noticed.
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
    "DocumentRecord",
    "HalfRecord",
    "NegotiationRecord",
    "PeerRecord",
    "PeerState",
    "PinRecord",
    "Record",
    "Role",
    "StandingRecord",
    "State",
    "hash_text",
    "open_envelope",
    "seal",
]

FORMAT = 1
"Version of the envelope and of all records; raised when one changes its meaning."

MAX_RECORD = 16 * 1024 * 1024
"Largest record as JSON, in bytes; a document has at most 256 KiB."

_Hash = Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]
# Parts of keys, so without the separator and anything invisible.
_Did = Annotated[str, Field(pattern=r"\Adid:[!-.0-~]+\z", max_length=1024)]
_Id = Annotated[str, Field(pattern=r"\A[A-Za-z0-9_-]+\z", max_length=64)]
_Url = Annotated[str, Field(pattern=r"\A[!-~]+\z", max_length=2048)]
_Seconds = Annotated[float, Field(ge=0, lt=1e11)]
_Count = Annotated[int, Field(ge=0)]
_Object = dict[str, Any]

_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Role(StrEnum):
    """Which half of a document a side speaks."""

    REQUESTER = "requester"
    PROVIDER = "provider"


class State(StrEnum):
    """Whether an agreement or a half may be used; only an active one may."""

    ACTIVE = "active"

    TESTING = "testing"
    "Of an agreement: its test cases with the peer have not come to an end."

    FAILED = "failed"
    "Of an agreement: its test cases failed with the peer."

    STALE = "stale"
    REVOKED = "revoked"


class PeerState(StrEnum):
    """What the owner said about a peer."""

    UNKNOWN = "unknown"
    WAITING = "waiting"
    ALLOWED = "allowed"
    BLOCKED = "blocked"


@dataclass(frozen=True)
class Record:
    """What all records have in common."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT
    kind: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """Return the record as a JSON object; RecordError if it would not be read."""
        try:
            data = _adapter(type(self)).dump_json(self, warnings="error")
        except ValueError as exc:  # also pydantic's and lone surrogates
            raise RecordError(f"{self.kind} record: {_one_line(exc)}") from None
        # NaN, tuples and keys that are no text would come back as something else.
        if self.from_bytes(data) != self:
            raise RecordError(f"{self.kind} record: holds a value that is not JSON")
        value: dict[str, Any] = json.loads(data)
        return value

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the record that `value`, a JSON object, holds; RecordError if none."""
        return cls.from_bytes(json.dumps(value).encode("ascii"))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the record in the JSON text `data`; RecordError if there is none."""
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

    hash: _Hash
    "SHA-256 of the text's UTF-8 bytes, 64 lower-case hex characters (ANP-88)."

    text: str
    "The agreed `candidateProtocols`, byte for byte."

    @classmethod
    def of(cls, text: str) -> DocumentRecord:
        """Return the record of `text` under the hash computed here."""
        return cls(hash_text(text), text)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """See `Record.from_bytes`; the hash has to be that of the text."""
        record = super().from_bytes(data)
        if hash_text(record.text) != record.hash:
            raise RecordError("document record: the hash is not that of the text")
        return record


@dataclass(frozen=True)
class HalfRecord(Record):
    """One revision of the code that speaks one role of a document."""

    kind: ClassVar[str] = "half"

    hash: _Hash
    "Hash of the document."

    role: Role
    "Which half."

    revision: _Count
    "From 1; 0 before the store gave it a number."

    source: str
    "Python source text."

    origin: Literal["rules", "model", "imported", "hand-written"]
    "Who wrote it; decides at which isolation it may run."

    capabilities: dict[str, _Hash]
    "The capabilities it may call, each with the hash of its schemas."

    created: _Seconds
    "Seconds since 1970."

    state: State = State.ACTIVE
    "Stale: a schema changed, or an import took its place. Revoked: by the owner."

    model: Annotated[str, Field(max_length=256)] = ""
    "Name of the model that wrote it; empty for other origins, and where unknown."

    bundle: _Hash | None = None
    "SHA-256 of the bundle's bytes that it was imported from."

    negotiation_id: _Id | None = None
    "The negotiation it was written in, or whose agreement it was written anew for."


@dataclass(frozen=True)
class AgreementRecord(Record):
    """What was settled with one peer."""

    kind: ClassVar[str] = "agreement"

    own_did: _Did
    "Ours, in its canonical form."

    peer_did: _Did
    "The peer's, in its canonical form."

    role: Role
    "Our side."

    task_key: _Hash | None
    "What it was settled for; the provider never learns it."

    hash: _Hash
    "Hash of the document."

    revision: _Count
    "Revision of our half; 0 before the store gave it a number."

    task: _Object | None
    "The task as the caller gave it, for people."

    samples: Literal["full", "partial", "none"]
    "Whether messages could be made for every schema."

    tests: _Object
    "Findings of the half's acceptance and of agreed test cases."

    negotiation_id: _Id | None
    "The negotiation it came from."

    created: _Seconds
    "Seconds since 1970."

    last_used: _Seconds | None = None
    "When a call last went through it."

    uses: _Count = 0
    "How many calls went through it."

    state: State = State.ACTIVE
    """Stale: our half no longer fits, or the owner put a failed one aside. Revoked: by
    the owner."""

    last_run: _Object | None = None
    "The last time the owner had its test cases run again: when, how, what came of it."


@dataclass(frozen=True)
class NegotiationRecord(Record):
    """One negotiation with its transcript."""

    kind: ClassVar[str] = "negotiation"

    id: _Id
    "Ours, random."

    peer_did: _Did
    "The peer, in its canonical form."

    role: Role
    "Our side."

    task: _Object | None
    "The task, if we are the requester."

    turns: tuple[_Object, ...]
    "The messages and verdicts, oldest first."

    outcome: Annotated[str, Field(max_length=64)]
    "`agreed`, or the kind of failure; `running` until there is one."

    reason: Annotated[str, Field(max_length=64 * 1024)]
    "Why it failed, in words; empty if it did not."

    hash: _Hash | None
    "Hash of the agreed document."

    started: _Seconds
    "Seconds since 1970; with `id` the place in the list, so it never changes."

    ended: _Seconds | None
    "None while it runs."

    own_did: _Did | None = None
    "Ours, in its canonical form; None in records of before the owner's queue."

    subject: _Hash | None = None
    "What it was about: the task key, or a hash of the requirement the peer wrote."

    verdicts: tuple[_Object, ...] = ()
    "What was said about each document, by our mind or the owner, with its reason."

    hints: tuple[Annotated[str, Field(max_length=16 * 1024)], ...] = ()
    "The owner's words that our mind was given."

    pending: _Object | None = None
    "The document and half that wait, or waited in vain, for the owner's approval."

    decision: _Object | None = None
    "What the owner said after its end; empty while nothing was said."

    model_calls: _Count = 0
    "Model calls on our side while it ran."

    tests: _Object | None = None
    "Findings of our half's acceptance."

    exchanges: tuple[_Object, ...] = ()
    "What our model was asked and what it said, cut to a length for people."

    @property
    def agreed(self) -> bool:
        """Whether an agreement came of it; such records are never dropped."""
        return self.outcome == "agreed"


@dataclass(frozen=True)
class StandingRecord(Record):
    """A word that waits for the next negotiation with a peer (DESIGN.md, The owner).

    It is used once, by one negotiation, and lapses at `expires`.
    """

    kind: ClassVar[str] = "standing"

    id: _Id
    "Ours, random."

    peer_did: _Did
    "Whom it is about, in its canonical form."

    role: Role
    "Our side."

    verdict: Literal["accept", "reject", "edit", "hint", "offer"]
    "The owner's; `offer` is the daemon's own: ask again with the same text."

    subject: _Hash | None
    "The task or requirement it is for; None when only `hash` decides."

    created: _Seconds
    "Seconds since 1970; with `id` the place in the list."

    expires: _Seconds
    "Seconds since 1970 from which on it counts no more."

    hash: _Hash | None = None
    "Hash of the document that is accepted, rejected, or to be proposed."

    document: str | None = None
    "The text that is to be sent, if it is ours to send."

    reply_to: _Hash | None = None
    "Hash of the peer's candidate that `document` answers."

    module: _Hash | None = None
    "Hash of the half's text the owner was shown; None allows any that passes."

    half: _Object | None = None
    "That half: `text`, `origin` and `capabilities`."

    note: Annotated[str, Field(max_length=16 * 1024)] = ""
    "The owner's words."

    negotiation_id: _Id | None = None
    "The negotiation it was said about."

    used: _Seconds | None = None
    "When it was taken, in seconds since 1970."

    used_by: _Id | None = None
    "The negotiation that took it."

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """See `Record.from_bytes`; the hash has to be that of the text."""
        record = super().from_bytes(data)
        if record.document is not None and hash_text(record.document) != record.hash:
            raise RecordError("standing record: the hash is not that of the text")
        return record


@dataclass(frozen=True)
class PeerRecord(Record):
    """A peer that proved its DID at least once, or that the owner named."""

    kind: ClassVar[str] = "peer"

    did: _Did
    "In its canonical form."

    state: PeerState
    "The owner's word; `waiting` was turned away and may be allowed."

    first_seen: _Seconds
    "Seconds since 1970."

    last_seen: _Seconds
    "Seconds since 1970."

    names: tuple[Annotated[str, Field(max_length=64)], ...] = ()
    "Names the owner gave it."

    urls: tuple[_Url, ...] = ()
    "Where it was reached."

    aliases: tuple[_Did, ...] = ()
    "Its other DIDs of the same key."


@dataclass(frozen=True)
class PinRecord(Record):
    """Who was first met at a URL."""

    kind: ClassVar[str] = "pin"

    url: _Url
    "Normalised WebSocket URL."

    did: _Did
    "As the peer showed itself."

    created: _Seconds
    "Seconds since 1970."


R = TypeVar("R", bound=Record)


def hash_text(text: str) -> str:
    """Return the SHA-256 of the UTF-8 bytes of `text` as 64 hex characters (ANP-88).

    Raises:
        RecordError: the text holds half of a character and has no UTF-8 bytes.
    """
    try:
        return hashlib.sha256(text.encode("utf-8")).hexdigest()
    except UnicodeEncodeError:
        raise RecordError("the text holds a lone surrogate") from None


def seal(record: Record, key: str) -> dict[str, Any]:
    """Return the envelope to store `record` in under `key`; RecordError if unfit."""
    value = record.to_json()
    checksum = _checksum(record.kind, key, value)
    return {"format": FORMAT, "kind": record.kind, "sha256": checksum, "record": value}


def open_envelope(kind: type[R], key: str, envelope: object) -> R:
    """Return the record of `kind` that lies in `envelope` under `key`.

    Raises:
        RecordError: another format, another kind, a wrong checksum, or not such a
            record.
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
    # Made on first use: each takes about a millisecond.
    if record.kind not in _ADAPTERS:
        _ADAPTERS[record.kind] = TypeAdapter(record)
    return _ADAPTERS[record.kind]


def _one_line(exc: ValueError) -> str:
    """Return where and what, never the value: it may be a peer's text."""
    if isinstance(exc, ValidationError):
        first = exc.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:100]
        return f"{where}: {first['msg'][:200]}"
    return str(exc)[:200]
