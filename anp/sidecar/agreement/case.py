"""A running negotiation with its record, and a mind that follows the owner's words."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from anp.errors import CallError, ErrorKind
from anp.phases import waits_for
from anp.sidecar.agreement.access import (
    StrangerPlaces,
    carry_out,
    first_words,
    refusal_of,
)
from anp.sidecar.agreement.rulings import (
    EDIT_SUMMARY,
    LIFETIME,
    Decision,
    answer_for,
    digest_of,
    half_from,
    half_json,
    hints_for,
    pending_reason,
    proposal_for,
    said,
    subject_of_candidate,
    verdict_of,
)
from anp.sidecar.minds.accounts import MAX_EXCHANGES, Exchanged
from anp.sidecar.offer.ways import asks_owner
from cache.errors import StoreUnavailable
from cache.records.negotiations import NegotiationRecord, StandingRecord
from cache.records.records import AgreementRole, AgreementState
from cache.store import Store
from negotiation.messages import Status
from negotiation.mind import (
    Accept,
    Counter,
    Demand,
    HalfSource,
    Mind,
    Offer,
    Reject,
    Side,
    Verdict,
)
from negotiation.rules.names import unnamed_effects
from negotiation.transcript import Direction, NegotiationEnded, Turn

logger = logging.getLogger(__name__)

MAX_HINTS = 16
"Most hints that count in one negotiation; the newest ones do."

NO_VERDICT = {ErrorKind.TIMEOUT, ErrorKind.PEER_UNREACHABLE, ErrorKind.INTERRUPTED}
"Failures that say nothing about the quality of the document."

MAX_REASON = 2_000
"Most characters of a reason that the record of a verdict keeps."


class Case:
    """A running negotiation: its record, and the owner's words about it meanwhile."""

    def __init__(
        self,
        record: NegotiationRecord,
        side: Side,
        *,
        store: Store,
        approve: str,
        approval_wait: float,
        on_waiting: Callable[[NegotiationRecord], None],
        on_turn: Callable[[NegotiationRecord], None] = lambda record: None,
        places: StrangerPlaces | None = None,
    ) -> None:
        """Begin a negotiation.

        Args:
            places: Places in the owner's queue for strangers; None has room for all.
        """
        self._places = places
        self.asked_owner = False
        "True once a proposal took a place in the owner's queue."
        self.record = record
        self._side = side
        self._store = store
        self._rule = approve
        self._wait = approval_wait
        self._on_waiting = on_waiting
        self._on_turn = on_turn
        self.failure: NegotiationEnded | None = None
        self._taken: list[StandingRecord] = []
        self._asked: asyncio.Future[Decision] | None = None
        self._stop: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def cancelled(self) -> asyncio.Future[str]:
        """Set to the reason when the owner ends the negotiation."""
        return self._stop

    @property
    def asks_owner(self) -> bool:
        """True if documents of this negotiation may need the owner's approval."""
        return self._rule != "never" or isinstance(self._side, Offer)

    @property
    def waiting(self) -> bool:
        """True while the negotiation waits for the owner's answer."""
        return self._asked is not None

    @property
    def half(self) -> tuple[str, HalfSource] | None:
        """The document hash and the half that the owner approved earlier, if any."""
        for word in self._taken:
            half = half_from(word.half)
            if word.verdict == "accept" and word.hash and half is not None:
                return word.hash, half
        return None

    # The owner's words.

    def decide(self, decision: Decision) -> None:
        """Answer the question that waits.

        Raises:
            CallError: `usage`, nothing waits.
        """
        if self._asked is None or self._asked.done():
            raise CallError(
                ErrorKind.USAGE,
                f"negotiation {self.record.id} runs and does not wait for you; decide "
                "after its end, or cancel it",
            )
        self._asked.set_result(decision)

    def exchanged(self, exchanged: Exchanged) -> None:
        """Keep what our model was asked and what it said, for the owner."""
        kept = (*self.record.exchanges, exchanged.shown())[-MAX_EXCHANGES:]
        self.record = replace(self.record, exchanges=kept)

    def hint(self, text: str) -> None:
        """Give our mind a word for its next answer."""
        hints = (*self.record.hints, text)[-MAX_HINTS:]
        self.record = replace(self.record, hints=hints)

    def cancel(self, reason: str) -> None:
        """End the negotiation; the peer is told."""
        if not self._stop.done():
            self._stop.set_result(reason)

    # Reports of the negotiation.

    def turn(self, turn: Turn) -> None:
        """Keep one turn of the transcript."""
        entry = {
            key: str(value) if key in {"direction", "status"} else value
            for key, value in asdict(turn).items()
        }
        subject = self.record.subject
        if (
            subject is None
            and turn.direction is Direction.RECEIVED
            and turn.candidate.strip()
        ):
            subject = subject_of_candidate(turn.candidate)
        self.record = replace(
            self.record, turns=(*self.record.turns, entry), subject=subject
        )
        waits_for(self._phase(turn))
        self._on_turn(self.record)

    def _phase(self, turn: Turn) -> str:
        """Return what the negotiation waits for after a turn, in words."""
        if turn.status is not Status.NEGOTIATING:
            return "writing and checking the code of the protocol"
        number = sum(one["status"] == "negotiating" for one in self.record.turns)
        judge = "the peer judges" if turn.direction is Direction.SENT else "we judge"
        return f"negotiating: {judge} proposal {number}"

    def end(self, failure: NegotiationEnded) -> None:
        """Keep why there is no agreement."""
        self.failure = failure

    def note(self, by: str, verdict: str, document: str, reason: str = "") -> None:
        """Keep what was said about a document.

        Args:
            by: `mind`, `owner`, or `tests` that failed before.
            verdict: `propose`, `accept`, `counter` or `reject`.
        """
        entry: dict[str, Any] = {
            "seconds": round(time.time() - self.record.started, 3),
            "turn": len(self.record.turns),
            "by": by,
            "verdict": verdict,
            "hash": digest_of(document),
            "reason": reason[:MAX_REASON],
        }
        self.record = replace(self.record, verdicts=(*self.record.verdicts, entry))

    # Words of before.

    async def proposal(self, demand: Demand) -> str | None:
        """Return the text that the owner wants to be our first proposal, or None."""
        words = await self._words()
        word = proposal_for(words, demand, subject=self.record.subject or "")
        if word is None or not await self._take(word):
            return None
        assert word.document is not None
        if word.verdict != "offer":
            self.note("owner", "propose", word.document, word.note)
        return word.document

    async def answer(
        self, candidate: str, transcript: tuple[Turn, ...]
    ) -> Verdict | None:
        """Return the owner's standing verdict about the peer's candidate, or None."""
        sent = {
            digest_of(turn.candidate)
            for turn in transcript
            if turn.direction is Direction.SENT and turn.candidate
        }
        word = answer_for(
            await self._words(),
            candidate,
            role=self.record.role,
            subject=self.record.subject,
            sent=sent,
        )
        if word is None or not await self._take(word):
            return None
        verdict = verdict_of(word, candidate)
        self.note("owner", type(verdict).__name__.lower(), candidate, word.note)
        return verdict

    async def hints(self) -> tuple[str, ...]:
        """Return every hint that counts now, oldest first."""
        waiting = hints_for(
            await self._words(), role=self.record.role, subject=self.record.subject
        )
        for word in waiting:
            if await self._take(word):
                self.hint(word.note)
        return self.record.hints

    async def give_back_after(self, exc: BaseException) -> None:
        """Put the owner's words back for the next negotiation, if they had no use."""
        said_something = isinstance(exc, CallError) and exc.kind not in NO_VERDICT
        if said_something or self.record.agreed:
            return
        taken, self._taken = self._taken, []
        for word in taken:
            try:
                await asyncio.to_thread(self._store.give_back_standing, word)
            except StoreUnavailable as exc:
                logger.error("decision not put back id=%s reason=%s", word.id, exc)

    async def offer_again(self, *, word_id: str) -> None:
        """Keep our last candidate, to be proposed byte for byte the next time."""
        document = next(
            (
                str(turn["candidate"])
                for turn in reversed(self.record.turns)
                if turn["direction"] == "sent" and turn["candidate"]
            ),
            None,
        )
        if document is None:
            return
        now = time.time()
        word = StandingRecord(
            id=word_id,
            peer_did=self.record.peer_did,
            role=self.record.role,
            verdict="offer",
            subject=self.record.subject,
            created=now,
            expires=now + LIFETIME,
            hash=digest_of(document),
            document=document,
            negotiation_id=self.record.id,
        )
        await asyncio.to_thread(self._store.save_standing, word, now=now)

    async def _words(self) -> list[StandingRecord]:
        found = await asyncio.to_thread(self._store.standing, self.record.peer_did)
        now = time.time()
        return [word for word in found if word.used is None and word.expires > now]

    async def _take(self, word: StandingRecord) -> bool:
        taken = await asyncio.to_thread(
            self._store.take_standing, word, by=self.record.id, now=time.time()
        )
        if taken is not None:
            self._taken.append(taken)
        return taken is not None

    # Approval.

    async def approve(
        self, document: str, half: HalfSource | None, seconds: float
    ) -> Verdict:
        """Say whether `document` may be agreed; ask the owner if the rule wants it.

        Args:
            half: Our half for it, if there is one.
            seconds: Time for which the peer can be kept waiting.
        """
        doubts = {
            "unnamed": await self._unnamed(half),
            "withdrawn": await self._withdrawn(half),
            "need": self.record.subject,
        }
        why = refusal_of(doubts)
        if not why and not await self._is_needed(document, half):
            return Accept()
        role = self.record.role
        word = said(self._taken, document, half, role=role)
        if word is None:
            word = said(await self._words(), document, half, role=role)
            if word is not None and not await self._take(word):
                word = None
        if word is not None and word.verdict == "reject":
            self.note("owner", "reject", document, word.note)
            return Reject(word.note or "the owner of this agent does not want this")
        if word is not None and not doubts["withdrawn"]:
            # The gate asks for it when the agreement is to be used.
            self.note("owner", "accept", document, word.note)
            return Accept()
        if why and self._places is not None:
            record = self.record
            if not await self._places.take(record.peer_did, record.subject or ""):
                return Reject(why)
            self.asked_owner = True
        return await self._ask(document, half, min(seconds, self._wait), doubts)

    async def _withdrawn(self, half: HalfSource | None) -> list[str]:
        """Return what our half calls that the owner withdrew from the peer."""
        if half is None:
            return []
        return await asyncio.to_thread(
            self._store.withdrawn,
            self.record.role,
            self.record.peer_did,
            half.capabilities,
        )

    async def _unnamed(self, half: HalfSource | None) -> list[str]:
        """Return what our half calls with side effects that only the owner can allow.

        The peer did not name it in its first proposal, and the owner did not confirm
        it for this need.
        """
        if not isinstance(self._side, Offer) or half is None:
            return []
        found = unnamed_effects(
            first_words(self.record.turns), half.capabilities, self._side.capabilities
        )
        if found and self.record.subject is not None:
            confirmed = await asyncio.to_thread(
                self._store.confirmed, self.record.peer_did, self.record.subject
            )
            found = [one for one in found if one not in confirmed]
        return found

    async def _is_needed(self, document: str, half: HalfSource | None) -> bool:
        effects = False
        if isinstance(self._side, Offer) and half is not None:
            harmless = {one.name for one in self._side.capabilities if one.read_only}
            effects = not harmless.issuperset(half.capabilities)
        if not asks_owner(self._rule, side_effects=effects):
            return False
        return self._rule != "first-use" or not await asyncio.to_thread(
            self._is_agreed, document
        )

    def _is_agreed(self, document: str) -> bool:
        return any(
            agreement.peer_did == self.record.peer_did
            and agreement.role is self.record.role
            and agreement.state is not AgreementState.REVOKED
            for agreement in self._store.agreements_of(digest_of(document))
        )

    async def _ask(
        self,
        document: str,
        half: HalfSource | None,
        seconds: float,
        doubts: dict[str, Any],
    ) -> Verdict:
        received = self._last_received()
        ours = document != received
        pending = {
            "document": document,
            "hash": digest_of(document),
            "ours": ours,
            "reply_to": digest_of(received) if ours and received else None,
            "half": half_json(half),
            **doubts,
        }
        self.record = replace(self.record, pending=pending)
        self._asked = asked = asyncio.get_running_loop().create_future()
        self._on_waiting(self.record)
        waits_for(f"waiting for your approval: anpd approvals show {self.record.id}")
        try:
            async with asyncio.timeout(seconds):
                decision = await asked
        except TimeoutError:
            # The owner may have been told "done" in the very last moment.
            if not asked.done() or asked.cancelled():
                return Reject(pending_reason())
            decision = asked.result()
        finally:
            self._asked = None
        if decision.said == "accept":
            await asyncio.to_thread(carry_out, self._store, self.record)
        self.record = replace(self.record, pending=None)
        match decision.said:
            case "accept":
                self.note("owner", "accept", document, decision.note)
                return Accept()
            case "edit":
                assert decision.document is not None
                self.note("owner", "counter", decision.document, decision.note)
                return Counter(decision.document, decision.note or EDIT_SUMMARY)
            case _:
                self.note("owner", "reject", document, decision.note)
                return Reject(
                    decision.note or "the owner of this agent does not want this"
                )

    def _last_received(self) -> str | None:
        if self.record.role is AgreementRole.REQUESTER and not any(
            turn["direction"] == "received" for turn in self.record.turns
        ):
            return None
        return next(
            (
                str(turn["candidate"])
                for turn in reversed(self.record.turns)
                if turn["direction"] == "received" and turn["candidate"]
            ),
            None,
        )


class GuidedMind:
    """A mind that asks the owner's standing words before another mind.

    The owner's word replaces a verdict, never a check: a half is still written, tried
    and limited to what is exposed.
    """

    def __init__(self, mind: Mind, case: Case) -> None:
        self._mind = mind
        self._case = case
        self._replaced = False

    async def propose(self, demand: Demand) -> str:
        """Return the owner's text for this need, or the mind's."""
        text = await self._case.proposal(demand)
        if text is None:
            text = await self._mind.propose(
                replace(demand, hints=await self._case.hints())
            )
            self._case.note("mind", "propose", text)
        return text

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        """Return the owner's standing verdict, or the mind's."""
        # An accepted document whose half failed is the mind's again.
        if not findings:
            verdict = await self._case.answer(candidate, transcript)
            if verdict is not None:
                return verdict
        side = replace(side, hints=await self._case.hints())
        verdict = await self._mind.judge(candidate, side, transcript, findings=findings)
        match verdict:
            case Accept():
                reason = ""
            case Counter(_, summary):
                reason = summary
            case Reject(why):
                reason = why
        self._case.note("mind", type(verdict).__name__.lower(), candidate, reason)
        return verdict

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        """Return the half that the owner was shown, and else one of the mind."""
        known = self._case.half
        if known is not None and known[0] == digest_of(document):
            if not findings:
                return known[1]
            # The mind did not write what failed, so it starts afresh.
            if not self._replaced:
                self._replaced, findings = True, ()
        side = replace(side, hints=await self._case.hints())
        return await self._mind.write_half(document, side, findings=findings)

    async def answer(self, question: str, side: Side) -> str:
        """Let the mind answer a question of the peer's."""
        side = replace(side, hints=await self._case.hints())
        return await self._mind.answer(question, side)
