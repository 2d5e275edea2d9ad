"""Records of negotiations, of the owner's decisions, and of model spending. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field

from cache.errors import RecordError
from cache.records.records import (
    AgreementRole,
    Count,
    Did,
    Hash,
    Id,
    JsonObject,
    Party,
    Record,
    Seconds,
    hash_text,
)

# Parts of keys, so without the separator and anything invisible.
_Day = Annotated[str, Field(pattern=r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z")]
_Account = Annotated[
    str, Field(pattern=r"\A(owner|unlisted|(did|local):[!-.0-~]+)\z", max_length=1024)
]
_Word = Annotated[str, Field(pattern=r"\A[a-z0-9_]+\z", max_length=32)]
_Count = Annotated[int, Field(ge=0, lt=2**53)]
_Money = Annotated[float, Field(ge=0, lt=1e12)]


@dataclass(frozen=True)
class NegotiationRecord(Record, kind="negotiation"):
    """One negotiation with its transcript."""

    id: Id
    "A random id of our own."

    peer_did: Party
    "The peer's DID in its canonical form."

    role: AgreementRole
    "Our side."

    need: JsonObject | None
    "The need, if we are the requester."

    turns: tuple[JsonObject, ...]
    "The messages and verdicts, oldest first."

    outcome: Annotated[str, Field(max_length=64)]
    "`agreed`, or the kind of failure; `running` until it ends."

    reason: Annotated[str, Field(max_length=64 * 1024)]
    "Reason of a failure in words; otherwise empty."

    hash: Hash | None
    "Hash of the agreed document."

    started: Seconds
    "Seconds since 1970; with `id` the position in the list, so it never changes."

    ended: Seconds | None
    "Seconds since 1970; None while it runs."

    own_did: Did | None = None
    "Our DID in its canonical form; None in records older than this field."

    subject: Hash | None = None
    "The need's key, or a hash of the requirement that the peer wrote."

    verdicts: tuple[JsonObject, ...] = ()
    "The decisions of our mind or the owner about each document, with reasons."

    hints: tuple[Annotated[str, Field(max_length=16 * 1024)], ...] = ()
    "Hints of the owner that our mind received."

    pending: JsonObject | None = None
    "The document and half that wait, or waited in vain, for the owner's approval."

    decision: JsonObject | None = None
    "The owner's decision after its end; empty until there is one."

    model_calls: Count = 0
    "Model calls on our side while it ran."

    tests: JsonObject | None = None
    "Findings of our half's acceptance."

    exchanges: tuple[JsonObject, ...] = ()
    "Requests to our model and its answers, shortened for people."

    @property
    def agreed(self) -> bool:
        """True when it led to an agreement; such records are never dropped."""
        return self.outcome == "agreed"

    @property
    def owner_approved(self) -> bool:
        """True when the owner wanted the agreed document, or wrote it."""
        said = [
            one.get("verdict")
            for one in self.verdicts
            if one.get("by") == "owner" and one.get("hash") == self.hash
        ]
        return bool(said) and said[-1] != "reject"


@dataclass(frozen=True)
class StandingRecord(Record, kind="standing"):
    """An owner's decision for the next negotiation with a peer (DESIGN.md, The owner).

    One negotiation uses it once; it lapses at `expires`.
    """

    id: Id
    "A random id of our own."

    peer_did: Party
    "Canonical DID of the peer it is about."

    role: AgreementRole
    "Our side."

    verdict: Literal["accept", "reject", "edit", "hint", "offer"]
    "The owner's verdict; `offer`, made by the daemon, offers the same text again."

    subject: Hash | None
    "Hash of the need or requirement it is for; None when only `hash` decides."

    created: Seconds
    "Seconds since 1970; with `id` the position in the list."

    expires: Seconds
    "Seconds since 1970 at which it lapses."

    hash: Hash | None = None
    "Hash of the document to accept, reject or propose."

    document: str | None = None
    "The text to send, if we are the side that sends it."

    reply_to: Hash | None = None
    "Hash of the peer's candidate that `document` answers."

    module: Hash | None = None
    "Hash of the half's text that the owner saw; None allows any that passes."

    half: JsonObject | None = None
    "The half that the owner saw: `text`, `origin` and `capabilities`."

    capability: Annotated[str, Field(max_length=1024)] | None = None
    "Full name of the capability that is allowed or refused; None for a document."

    note: Annotated[str, Field(max_length=16 * 1024)] = ""
    "The owner's note in words."

    negotiation_id: Id | None = None
    "The negotiation that the decision was made about."

    used: Seconds | None = None
    "When a negotiation used it, in seconds since 1970."

    used_by: Id | None = None
    "The negotiation that used it."

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """See `Record.from_bytes`; the hash must match the text."""
        record = super().from_bytes(data)
        if record.document is not None and hash_text(record.document) != record.hash:
            raise RecordError("standing record: the hash is not that of the text")
        return record


@dataclass(frozen=True)
class AnswerRecord(Record, kind="answer"):
    """An answer that was paid for, so that the same question costs nothing."""

    question: Hash
    "Hash over all that the answer depends on, the model included."

    answer: JsonObject
    "The answer, as the model or our mind gave it."

    at: Seconds
    "Seconds since 1970."

    expires: Seconds
    "Seconds since 1970 after which it is asked again."


@dataclass(frozen=True)
class SpendRecord(Record, kind="spend"):
    """The use of models by one account on one day (DESIGN.md, Trust)."""

    day: _Day
    "The day in UTC, `2026-01-31`."

    account: _Account
    "`owner`, `unlisted`, or the canonical DID of a listed peer."

    calls: _Count
    "Model calls, those still running included."

    input_tokens: _Count
    "Tokens of prompts."

    output_tokens: _Count
    "Tokens of answers."

    held_tokens: _Count = 0
    "Tokens reserved for calls that have no recorded end."

    cost: _Money = 0.0
    "Cost in money, by the prices set at the time."


@dataclass(frozen=True)
class ModelCallRecord(Record, kind="model_call"):
    """One model call in the ledger, without any text of it."""

    id: Id
    "A random id of our own."

    day: _Day
    "The day in UTC whose account it counts for."

    at: Seconds
    "When it began, in seconds since 1970."

    account: _Account
    "The account that paid: `owner`, `unlisted`, or a listed peer's canonical DID."

    peer: Party | None
    "Canonical DID of the peer in the negotiation."

    negotiation_id: Id | None
    "The negotiation it was made for."

    step: _Word
    "The step of the negotiation that asked."

    model: Annotated[str, Field(max_length=200)]
    "The model that was asked."

    outcome: _Word
    "Result of the call: `ok`, `unfit`, `cut`, `http_429`…"

    input_tokens: _Count
    "Tokens of the prompt."

    output_tokens: _Count
    "Tokens of the answer."

    estimated: bool
    "True when the server gave no token counts, so that the reserved ones count."

    ms: Annotated[float, Field(ge=0, lt=1e9)]
    "Duration in milliseconds."

    cost: _Money = 0.0
    "Cost in money, by the prices set at the time."
