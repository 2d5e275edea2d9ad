"""Negotiations in the local API, and the owner's word about them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field
from starlette.requests import Request

from anp.sidecar.agreement.rulings import APPROVAL_PENDING, MAX_NOTE, Decision
from anp.sidecar.api.answers import LEFT_OUT
from anp.sidecar.api.requests import PAGE_QUERY, page_of, switch
from anp.sidecar.api.table import STRICT, get, post
from anp.sidecar.daemon import Daemon
from anp.sidecar.library.views import AgreementWithTests, Library, V, view_of
from cache.records.records import (
    AgreementRole,
    Count,
    Hash,
    NegotiationRecord,
    StandingRecord,
)
from negotiation.document.reader import read_requirement

__all__ = ["Negotiation", "NegotiationOperations"]

MAX_ABOUT = 400
"Most characters of a peer's requirement in a list of negotiations."

MAX_HEAD = 4_096
"Characters of a document among which its requirement is looked for in a list."

OPEN = switch("open", "1: only those that wait for the owner.")
Note = Annotated[str, Field(max_length=MAX_NOTE)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelBody:
    """The end of a negotiation."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    reason: Note = ""
    "The reason, for the record."


@dataclass(frozen=True, slots=True, kw_only=True)
class HintBody:
    """Words for our mind."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    text: Annotated[str, Field(min_length=1, max_length=MAX_NOTE)]
    "The words."


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteBody:
    """The owner's word without more."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    note: Note = ""
    "Why; a rejection passes it on to the peer."


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionBody:
    """The owner's word about a document (ANP-34)."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    verdict: Literal["accept", "reject", "edit"]
    "The word."

    document: str | None = None
    "The edited text; needed with `edit`, refused without."

    note: Note = ""
    "Why; a rejection passes it on to the peer."


@dataclass(frozen=True, slots=True, kw_only=True)
class Negotiation:
    """A negotiation, as it stands in a list."""

    id: str
    own_did: str | None
    peer: str
    "DID of the peer, in its canonical form."

    role: AgreementRole
    "Our side."

    need: dict[str, Any] | None
    "The need, if we are the caller."

    about: str
    "The need it is about, in the words of the side that has it; empty if unknown."

    outcome: str
    "`agreed`, `running`, or the kind of failure."

    running: bool
    waiting: bool
    "True while it waits for the owner."

    reason: str
    "The reason of its failure, in words."

    hash: Hash | None
    "SHA-256 of the agreed document."

    started: float
    "Seconds since 1970."

    ended: float | None
    "Seconds since 1970."

    rounds: Count
    "Documents that were proposed."

    model_calls: Count
    "Model calls on our side."

    tests: dict[str, Any] | None
    "Findings of the tests of our half."

    decision: dict[str, Any] | None
    "The owner's word after its end."


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerWord:
    """A word of the owner that waits for a negotiation, or was used by one."""

    id: str
    peer_did: str
    role: AgreementRole
    "Our side."

    verdict: Literal["accept", "reject", "edit", "hint", "offer"]
    "The owner's; `offer` is the daemon's own: ask again with the same text."

    created: float
    "Seconds since 1970."

    expires: float
    "Seconds since 1970 from which on it counts no more."

    hash: Hash | None
    "Hash of the document that is accepted, rejected, or to be proposed."

    document: str | None
    "The text that is to be sent, if it is ours to send."

    module: Hash | None
    "Hash of the half's text that the owner was shown; null allows any that passes."

    note: str
    negotiation_id: str | None
    "The negotiation it was said about."

    used: float | None
    "The time at which it was taken, in seconds since 1970."

    used_by: str | None
    "The negotiation that took it."


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiationDetails(Negotiation):
    """A negotiation with its transcript, its verdicts and the owner's words."""

    turns: Sequence[dict[str, Any]]
    "The messages, oldest first."

    verdicts: Sequence[dict[str, Any]]
    "Each verdict on a document, of our mind or the owner, with its reason."

    hints: Sequence[str]
    "The owner's words that our mind was given."

    exchanges: Sequence[dict[str, Any]]
    "Questions to our model and its answers, cut to a length for people."

    pending: dict[str, Any] | None
    "The document and half that wait, or waited in vain, for the owner's approval."

    decisions: Sequence[OwnerWord]
    agreement: AgreementWithTests | None = LEFT_OUT
    "The resulting agreement; null when it is not kept any more."


@dataclass(frozen=True, slots=True)
class Negotiations:
    """A page of negotiations, the running ones first, then the newest."""

    negotiations: Sequence[Negotiation]
    next: str | None
    "`after` for the next page; null at the end."


@dataclass(frozen=True, slots=True)
class OwnerWords:
    """The owner's words that wait for a negotiation, or were used by one."""

    decisions: Sequence[OwnerWord]


@dataclass(frozen=True, slots=True)
class Said:
    """The owner's word was taken."""

    applied: Literal["now", "next negotiation"]
    decision: OwnerWord | None
    "The word that waits for the next negotiation."

    @classmethod
    def of(cls, word: StandingRecord | None) -> Said:
        """Return what became of the owner's word."""
        if word is None:
            return cls("now", None)
        return cls("next negotiation", view_of(OwnerWord, word))


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A negotiation was ended."""

    id: str
    cancelled: bool = True


class NegotiationOperations:
    """Operations on negotiations, approvals and the owner's words."""

    tag = "negotiations"

    def __init__(self, daemon: Daemon) -> None:
        self._store = daemon.store
        self._desk = daemon.agreer.desk

    @get("/v1/negotiations", Negotiations, query=(OPEN, *PAGE_QUERY))
    async def list_negotiations(self, request: Request) -> Negotiations:
        """List negotiations, the running ones first, then the newest."""
        return await self._page(request, request.query_params.get(OPEN.name) == "1")

    @get("/v1/negotiations/{prefix}", NegotiationDetails)
    async def get_negotiation(self, request: Request) -> NegotiationDetails:
        """Show one negotiation with its transcript, verdicts and costs."""
        return await self._details(request)

    @post("/v1/negotiations/{prefix}/cancel", Cancelled, body=CancelBody)
    async def cancel_negotiation(self, request: Request, body: CancelBody) -> Cancelled:
        """End a running negotiation; the peer is told."""
        prefix = request.path_params["prefix"]
        return Cancelled((await self._desk.cancel(prefix, body.reason)).id)

    @post("/v1/negotiations/{prefix}/hint", Said, body=HintBody)
    async def hint_negotiation(self, request: Request, body: HintBody) -> Said:
        """Give our mind a hint for its next answer, or the next negotiation."""
        prefix = request.path_params["prefix"]
        return Said.of(await self._desk.hint(prefix, body.text))

    @post("/v1/negotiations/{prefix}/decision", Said, body=DecisionBody)
    async def decide_negotiation(self, request: Request, body: DecisionBody) -> Said:
        """Accept or reject a document, or send an edited one."""
        decision = Decision(body.verdict, body.document, body.note)
        return await self._decide(request, decision)

    @get("/v1/approvals", Negotiations, query=PAGE_QUERY)
    async def list_approvals(self, request: Request) -> Negotiations:
        """List what waits for the owner's word."""
        return await self._page(request, open_only=True)

    @get("/v1/approvals/{prefix}", NegotiationDetails)
    async def get_approval(self, request: Request) -> NegotiationDetails:
        """Show one."""
        return await self._details(request)

    @post("/v1/approvals/{prefix}/accept", Said, body=NoteBody)
    async def accept_approval(self, request: Request, body: NoteBody) -> Said:
        """Accept the document that waits."""
        return await self._decide(request, Decision("accept", None, body.note))

    @post("/v1/approvals/{prefix}/reject", Said, body=NoteBody)
    async def reject_approval(self, request: Request, body: NoteBody) -> Said:
        """Reject the document that waits."""
        return await self._decide(request, Decision("reject", None, body.note))

    @get("/v1/decisions", OwnerWords)
    async def list_decisions(self, request: Request) -> OwnerWords:
        """List what the owner said that waits for a negotiation, or was used."""
        return OwnerWords(_shown(await self._desk.words()))

    async def _decide(self, request: Request, decision: Decision) -> Said:
        prefix = request.path_params["prefix"]
        return Said.of(await self._desk.decide(prefix, decision))

    async def _page(self, request: Request, open_only: bool) -> Negotiations:
        found = await self._desk.negotiations(open_only=open_only)
        page, following = page_of(request, found, lambda record: record.id)
        return Negotiations(
            [
                negotiation_view(
                    Negotiation, record, waiting=self._desk.waits(record.id)
                )
                for record in page
            ],
            following,
        )

    async def _details(self, request: Request) -> NegotiationDetails:
        record = await self._desk.find(request.path_params["prefix"])
        agreement = LEFT_OUT
        words = await self._desk.words(record.id)
        waiting = self._desk.waits(record.id)
        if record.hash is not None:
            library = Library(self._store)
            agreement = await asyncio.to_thread(library.of_negotiation, record)
        return negotiation_view(
            NegotiationDetails,
            record,
            waiting=waiting,
            decisions=_shown(words),
            agreement=agreement,
        )


def negotiation_view(
    cls: type[V], record: NegotiationRecord, *, waiting: bool = False, **more: Any
) -> V:
    """Return a negotiation as `Negotiation` or `NegotiationDetails`.

    Args:
        waiting: It runs and waits for the owner at this moment.
        more: Fields that are not in the record.
    """
    return view_of(
        cls,
        record,
        peer=record.peer_did,
        about=_about(record),
        outcome=APPROVAL_PENDING if waiting else record.outcome,
        running=record.ended is None,
        waiting=waiting,
        rounds=sum(turn.get("status") == "negotiating" for turn in record.turns),
        **more,
    )


def _shown(words: Sequence[StandingRecord]) -> list[OwnerWord]:
    return [view_of(OwnerWord, word) for word in words]


def _about(record: NegotiationRecord) -> str:
    """Return the need, in the words of the side that has it; empty if unknown."""
    if record.need is not None:
        return str(record.need["requirement"])
    for turn in record.turns:
        if turn["direction"] == "received" and turn["candidate"]:
            return _requirement(turn["candidate"][:MAX_HEAD])
    return ""


@lru_cache(maxsize=1_000)
def _requirement(head: str) -> str:
    """Return the requirement at the head of a document; lists show many again."""
    return " ".join(read_requirement(head).split())[:MAX_ABOUT]
