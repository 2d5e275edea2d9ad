"""Negotiations in the local API, and the owner's decisions about them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field
from starlette.requests import Request

from anp.sidecar.agreement.rulings import MAX_NOTE, Decision, is_capability_question
from anp.sidecar.api.answers import LEFT_OUT
from anp.sidecar.api.operations.groups.approvals import GroupApproval, GroupApprovals
from anp.sidecar.api.requests import PAGE_QUERY, page_of, switch
from anp.sidecar.api.table import STRICT, LocalScope, get, post
from anp.sidecar.daemon import Daemon
from anp.sidecar.library.state import view_of
from anp.sidecar.library.views import AgreementWithTests, Library, V
from cache.records.negotiations import NegotiationRecord, StandingRecord
from cache.records.records import AgreementRole, Count, Hash
from negotiation.document.reader import read_requirement
from negotiation.errors import APPROVAL_PENDING

MAX_ABOUT = 400
"Most characters of a peer's requirement in a list of negotiations."

MAX_HEAD = 4_096
"Characters of a protocol text in which a list looks for its requirement."

OPEN = switch("open", "1: only those that wait for the owner's decision.")
Note = Annotated[str, Field(max_length=MAX_NOTE)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelBody:
    """A negotiation is to be ended."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    reason: Note = ""
    "Reason for the record; it is not sent."


@dataclass(frozen=True, slots=True, kw_only=True)
class HintBody:
    """A hint for the rules or model of our side."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    text: Annotated[str, Field(min_length=1, max_length=MAX_NOTE)]
    "The hint; it is never sent to the peer."


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteBody:
    """An optional note with a decision."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    note: Note = ""
    "Reason; the peer reads it if the decision is to reject."


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionBody:
    """The owner's decision about a proposal (ANP-34)."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    verdict: Literal["accept", "reject", "edit"]
    "The decision."

    document: str | None = None
    "The edited protocol text; needed with `edit`, refused otherwise."

    note: Note = ""
    "Reason; the peer reads it if the decision is to reject."


@dataclass(frozen=True, slots=True, kw_only=True)
class Negotiation:
    """A negotiation, as a list shows it."""

    id: str
    own_did: str | None
    peer: str
    "DID of the peer, in its canonical form."

    role: AgreementRole
    "Our role."

    need: dict[str, Any] | None
    "The need, if we are the requester."

    about: str
    "The requirement, in the words of the requester; empty if unknown."

    outcome: str
    "`agreed`, `running`, or the kind of failure."

    running: bool
    waiting: bool
    "True while it waits for the owner's decision."

    reason: str
    "Reason of the failure, in words."

    hash: Hash | None
    "SHA-256 of the agreed protocol text."

    started: float
    "Seconds since 1970."

    ended: float | None
    "Seconds since 1970."

    proposals: Count
    "Proposals of both sides together."

    model_calls: Count
    "Model calls on our side."

    tests: dict[str, Any] | None
    "Results of the checks of our code."

    decision: dict[str, Any] | None
    "The owner's decision after its end."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecision:
    """A decision of the owner: stored for a negotiation, or used by one."""

    id: str
    peer_did: str
    role: AgreementRole
    "Our role."

    verdict: Literal["accept", "reject", "edit", "hint", "offer"]
    "The decision; `offer` is the daemon's own: propose the same text again."

    created: float
    "Seconds since 1970."

    expires: float
    "Time after which it is not used, in seconds since 1970."

    hash: Hash | None
    "Hash of the protocol text that is accepted, rejected, or to be proposed."

    document: str | None
    "The protocol text that is to be sent, if we have to send one."

    capability: str | None
    "The capability that the peer may call, or not, where no protocol is agreed."

    module: Hash | None
    "Hash of the code that the owner was shown; null allows all code that passes."

    note: str
    negotiation_id: str | None
    "The negotiation that it is about."

    used: float | None
    "Time of its use, in seconds since 1970."

    used_by: str | None
    "The negotiation that used it."


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiationDetails(Negotiation):
    """A negotiation with its messages and all decisions about it."""

    turns: Sequence[dict[str, Any]]
    "The messages, oldest first."

    verdicts: Sequence[dict[str, Any]]
    "Each decision about a proposal, by rules, model or owner, with its reason."

    hints: Sequence[str]
    "The owner's hints that our rules or model were given."

    model_requests: Sequence[dict[str, Any]]
    "Questions to our model and its answers, cut to a length for people."

    pending: dict[str, Any] | None
    "The protocol text and code, or the capability, that wait for the decision."

    decisions: Sequence[StoredDecision]
    agreement: AgreementWithTests | None = LEFT_OUT
    "The agreement that it led to; null when that was deleted."


@dataclass(frozen=True, slots=True)
class Negotiations:
    """A page of negotiations, the running ones first, then the newest."""

    negotiations: Sequence[Negotiation]
    next: str | None
    "`after` for the next page; null at the end."


@dataclass(frozen=True, slots=True)
class Approvals(Negotiations):
    """Everything that waits for the owner's decision."""

    groups: Sequence[GroupApproval]
    "Invitations of this agent into groups, and applications to its own groups."


@dataclass(frozen=True, slots=True)
class StoredDecisions:
    """The owner's decisions: stored ones, and those that were used."""

    decisions: Sequence[StoredDecision]


@dataclass(frozen=True, slots=True)
class Decided:
    """The effect of a decision or a hint."""

    applied: Literal["now", "next negotiation"]
    decision: StoredDecision | None
    "The stored decision, if the next negotiation will use it."

    @classmethod
    def of(cls, word: StandingRecord | None) -> Decided:
        """Return the effect of a decision."""
        if word is None:
            return cls("now", None)
        return cls("next negotiation", view_of(StoredDecision, word))


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A negotiation was ended."""

    id: str
    cancelled: bool = True


class NegotiationOperations:
    """Operations on negotiations, approvals and the owner's decisions."""

    tag = "negotiations"

    def __init__(self, daemon: Daemon) -> None:
        self._store = daemon.store
        self._desk = daemon.agreer.desk
        self._groups = GroupApprovals(daemon.groups)

    @get(
        "/v1/negotiations",
        Negotiations,
        query=(OPEN, *PAGE_QUERY),
        scope=LocalScope.OWNER,
    )
    async def list_negotiations(self, request: Request) -> Negotiations:
        """List negotiations, the running ones first, then the newest."""
        return await self._page(request, request.query_params.get(OPEN.name) == "1")

    @get("/v1/negotiations/{prefix}", NegotiationDetails, scope=LocalScope.OWNER)
    async def get_negotiation(self, request: Request) -> NegotiationDetails:
        """Show one negotiation with its messages, decisions and costs."""
        return await self._details(request)

    @post(
        "/v1/negotiations/{prefix}/cancel",
        Cancelled,
        body=CancelBody,
        scope=LocalScope.OWNER,
    )
    async def cancel_negotiation(self, request: Request, body: CancelBody) -> Cancelled:
        """End a running negotiation; the peer learns that it was ended."""
        prefix = request.path_params["prefix"]
        return Cancelled((await self._desk.cancel(prefix, body.reason)).id)

    @post(
        "/v1/negotiations/{prefix}/hint", Decided, body=HintBody, scope=LocalScope.OWNER
    )
    async def hint_negotiation(self, request: Request, body: HintBody) -> Decided:
        """Give a hint to our rules or model; it is used once."""
        prefix = request.path_params["prefix"]
        return Decided.of(await self._desk.hint(prefix, body.text))

    @post(
        "/v1/negotiations/{prefix}/decision",
        Decided,
        body=DecisionBody,
        scope=LocalScope.OWNER,
    )
    async def decide_negotiation(self, request: Request, body: DecisionBody) -> Decided:
        """Accept or reject a proposal, or send an edited one."""
        decision = Decision(body.verdict, body.document, body.note)
        return await self._decide(request, decision)

    @get("/v1/approvals", Approvals, query=PAGE_QUERY, scope=LocalScope.OWNER)
    async def list_approvals(self, request: Request) -> Approvals:
        """List the negotiations, invitations and applications that wait."""
        page = await self._page(request, open_only=True)
        return Approvals(page.negotiations, page.next, self._groups.waiting())

    @get("/v1/approvals/{prefix}", NegotiationDetails, scope=LocalScope.OWNER)
    async def get_approval(self, request: Request) -> NegotiationDetails:
        """Show one negotiation that waits for the owner's decision."""
        return await self._details(request)

    @post(
        "/v1/approvals/{prefix}/accept", Decided, body=NoteBody, scope=LocalScope.OWNER
    )
    async def accept_approval(self, request: Request, body: NoteBody) -> Decided:
        """Accept the proposal, invitation or application that waits."""
        return await self._decide(request, Decision("accept", None, body.note))

    @post(
        "/v1/approvals/{prefix}/reject", Decided, body=NoteBody, scope=LocalScope.OWNER
    )
    async def reject_approval(self, request: Request, body: NoteBody) -> Decided:
        """Reject the proposal, invitation or application that waits."""
        return await self._decide(request, Decision("reject", None, body.note))

    @get("/v1/decisions", StoredDecisions, scope=LocalScope.OWNER)
    async def list_decisions(self, request: Request) -> StoredDecisions:
        """List the owner's decisions, stored and used ones."""
        return StoredDecisions(_shown(await self._desk.words()))

    async def _decide(self, request: Request, decision: Decision) -> Decided:
        prefix = request.path_params["prefix"]
        if self._groups.is_one(prefix):
            is_yes = decision.said == "accept"
            await self._groups.decide(prefix, accept=is_yes, note=decision.note)
            return Decided("now", None)
        return Decided.of(await self._desk.decide(prefix, decision))

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
    if cls is NegotiationDetails:
        more["model_requests"] = record.exchanges
    return view_of(
        cls,
        record,
        peer=record.peer_did,
        about=_about(record),
        outcome=APPROVAL_PENDING if waiting else record.outcome,
        running=record.ended is None,
        waiting=waiting,
        proposals=sum(turn.get("status") == "negotiating" for turn in record.turns),
        **more,
    )


def _shown(words: Sequence[StandingRecord]) -> list[StoredDecision]:
    return [view_of(StoredDecision, word) for word in words]


def _about(record: NegotiationRecord) -> str:
    """Return the requirement, in the words of the requester; empty if unknown."""
    if record.need is not None:
        return str(record.need["requirement"])
    if record.pending is not None and is_capability_question(record):
        return str(record.pending["capability"])
    for turn in record.turns:
        if turn["direction"] == "received" and turn["candidate"]:
            return _requirement(turn["candidate"][:MAX_HEAD])
    return ""


@lru_cache(maxsize=1_000)
def _requirement(head: str) -> str:
    """Return the requirement in a protocol text; lists show many again."""
    return " ".join(read_requirement(head).split())[:MAX_ABOUT]
