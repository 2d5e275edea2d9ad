"""A mind that agrees to no text that failed with this very peer, was revoked, or has
patterns that are not run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from anp.channel.stranger_work import own_turn
from anp.errors import CallError, ErrorKind
from anp.sidecar.agreement.access import waits_with
from anp.sidecar.agreement.outcomes import FailedText, failed_texts, proposed_again
from cache.records.negotiations import NegotiationRecord
from cache.records.records import AgreementRecord, AgreementRole, hash_text
from cache.store import Store
from negotiation.document.reader import read_document
from negotiation.errors import DocumentError, MindError, SchemaError
from negotiation.mind import Counter, Demand, HalfSource, Mind, Reject, Side, Verdict
from negotiation.need import Schema
from negotiation.schema.intake import inlined
from negotiation.schema.keywords import keywords_of
from negotiation.strict_json import Json
from negotiation.transcript import Turn
from sandbox.patterns.schemas import pattern_faults

Note = Callable[[str, str, str, str], None]
"Records a verdict on a document; see `Case.note`."


@dataclass(frozen=True, slots=True)
class RevokedText:
    """A text that is refused because the owner took it back."""

    hash: str

    def for_peer(self, *, now: float) -> str:
        """Return the reason of a rejection; it tells the peer no more than needed."""
        return "the owner of this agent took this text back; propose another one"

    def error(self, *, now: float) -> CallError:
        """Return the error that ends a call which would need the text."""
        return CallError(ErrorKind.POLICY, revoked_in_words(self.hash))


def revoked_in_words(digest: str) -> str:
    """Return the message to the owner where a revoked protocol would be needed."""
    short = digest[:12]
    return (
        f"you took protocol {short} back; `anpd protocols approve {short}` allows it "
        "again"
    )


@dataclass(frozen=True, slots=True)
class UnusableText:
    """A text that is refused because of a pattern in one of its schemas."""

    fault: str
    "The place of the pattern, and the construct by name."

    def for_peer(self, *, now: float) -> str:
        """Return the reason of a rejection."""
        return f"the protocol text has a pattern that is not run here: {self.fault}"

    def error(self, *, now: float) -> CallError:
        """Return the error that ends a call which would need the text."""
        return CallError(ErrorKind.NEGOTIATION_REJECTED, self.for_peer(now=now))


@dataclass(frozen=True, slots=True)
class UnfitInput:
    """The peer's terms, which our mind refused because the data does not fit them."""

    findings: tuple[str, ...]

    def for_peer(self, *, now: float) -> str:
        """Return the reason of a rejection."""
        return f"the data does not fit: {'; '.join(self.findings)}"

    def error(self, *, now: float) -> CallError:
        """Return the error that ends the call: its caller has to give other data."""
        return CallError(
            ErrorKind.USAGE,
            f"the peer does not take this input: {'; '.join(self.findings)}",
        )


Refused = FailedText | RevokedText | UnusableText | UnfitInput
Validate = Callable[[Schema, Json], Awaitable[list[str]]]
"Returns the findings against a value; the schema may be a peer's."


class RefusingMind:
    """Refuses texts that failed, were revoked or cannot be used, of the peer or of us.

    No mind is asked about a text of the peer's that is refused anyway.
    """

    def __init__(
        self,
        mind: Mind,
        record: NegotiationRecord,
        store: Store,
        *,
        note: Note,
        validate: Validate | None = None,
    ) -> None:
        """Make the mind.

        Args:
            record: The negotiation; it says with whom, and as what.
            validate: Finds out whether the data of a call was the reason of a
                rejection; without it nobody looks.
        """
        self._validate = validate
        self._mind = mind
        self._record = record
        self._store = store
        self._note = note
        self.refused: Refused | None = None
        "The text that was refused by us, or our data, if that ended the negotiation."

    async def propose(self, demand: Demand) -> str:
        """Return the mind's text.

        Raises:
            MindError: It failed before; the peer is told neutrally, and no text.
        """
        text = await self._mind.propose(demand)
        failed = await self._failed(text)
        if failed is not None:
            self.refused = failed
            now = time.time()
            if isinstance(failed, FailedText):
                await asyncio.to_thread(
                    self._store.set_tests,
                    failed.agreement,
                    proposed_again(failed.agreement, now=now),
                )
            raise MindError(failed.error(now=now).detail)
        return text

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        """Return the mind's verdict, or a rejection of what failed before."""
        failed = await self._failed(candidate)
        if failed is not None:
            return self._reject(failed, candidate)
        await own_turn()
        verdict = await self._mind.judge(candidate, side, transcript, findings=findings)
        if isinstance(verdict, Counter):
            failed = await self._failed(verdict.document)
            if failed is not None:
                return self._reject(failed, verdict.document)
        if isinstance(verdict, Reject) and isinstance(side, Demand):
            self.refused = await self._unfit(candidate, side)
        return verdict

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        """Return the mind's half."""
        await own_turn()
        return await self._mind.write_half(document, side, findings=findings)

    async def answer(self, question: str, side: Side) -> str:
        """Return the mind's answer."""
        return await self._mind.answer(question, side)

    async def _unfit(self, candidate: str, demand: Demand) -> UnfitInput | None:
        """Return the findings against the call's data by terms in the rules' form."""
        if self._validate is None or demand.need.input_schema is not None:
            return None
        try:
            request = inlined(read_document(candidate).request_schema)
        except (DocumentError, SchemaError):
            return None
        wanted = keywords_of(request).get("properties", {}).get("input")
        if wanted is None:
            return None
        findings = await self._validate(wanted, demand.arguments)
        return UnfitInput(tuple(findings)) if findings else None

    def _reject(self, failed: Refused, document: str) -> Reject:
        reason = failed.for_peer(now=time.time())
        by = {FailedText: "tests", RevokedText: "owner"}.get(type(failed), "mind")
        self._note(by, "reject", document, reason)
        return Reject(reason)

    async def _failed(self, document: str) -> Refused | None:
        digest = hash_text(document)
        if await asyncio.to_thread(refuses_text, self._store, digest, self._record):
            return RevokedText(digest)
        known = await asyncio.to_thread(self._store.agreements_of, digest)
        # It may be large, and others negotiate, too.
        await own_turn()
        ours = [one for one in known if self._is_ours(one)]
        failed = next(iter(failed_texts(ours, now=time.time())), None)
        return failed or _unusable(document)

    def _is_ours(self, agreement: AgreementRecord) -> bool:
        wanted = self._record.peer_did, self._record.role
        return (agreement.peer_did, agreement.role) == wanted


def refuses_text(store: Store, digest: str, record: NegotiationRecord) -> bool:
    """Tell whether the owner revoked a text; not if the owner is to be asked about it.

    That is where its capabilities are withdrawn with it, on the side that offers them.
    """
    return store.is_revoked(digest, record.peer_did) and not (
        record.role is AgreementRole.PROVIDER
        and waits_with(store, digest, record.role, record.peer_did)
    )


def _unusable(text: str) -> UnusableText | None:
    try:
        document = read_document(text)
    except DocumentError:
        # The mind says what is wrong with it.
        return None
    for part in ("request", "response"):
        schema = getattr(document, f"{part}_schema")
        for fault in pattern_faults(schema):
            return UnusableText(f"{part} schema, {fault}")
    return None
