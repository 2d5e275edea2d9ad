"""The owner's queue: running, waiting and failed negotiations, and answers to them."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from anp.errors import CallError, ErrorKind, UnknownError
from anp.sidecar.agreement.access import StrangerPlaces, carry_out
from anp.sidecar.agreement.approvals import CapabilityWords
from anp.sidecar.agreement.case import Case
from anp.sidecar.agreement.rulings import (
    LIFETIME,
    MAX_NOTE,
    Decision,
    check_edit,
    is_capability_question,
    standing_of,
    waits_for_owner,
)
from cache.records.negotiations import NegotiationRecord, StandingRecord
from cache.store import Store
from negotiation.errors import APPROVAL_PENDING
from negotiation.mind import Side

logger = logging.getLogger(__name__)

MAX_LISTED = 1000
"Most negotiations that are looked through for those that wait."


class OwnerDesk:
    """Shows negotiations to the owner and takes the owner's answers (ANP-34)."""

    def __init__(
        self,
        store: Store,
        *,
        approve: str,
        approval_wait: float,
        is_listed: Callable[[str], bool],
    ) -> None:
        """Make the queue.

        Args:
            is_listed: Tells by its canonical DID if the owner listed a peer; may block.
            approve: The rule for asking the owner: `never`, `first-use`,
                `side-effects` or `always`.
            approval_wait: Seconds a negotiation waits for the owner, at most.
        """
        self._store = store
        self._approve = approve
        self._approval_wait = approval_wait
        self._cases: dict[str, Case] = {}
        self._places = StrangerPlaces(
            is_listed, lambda: self.negotiations(open_only=True)
        )
        self.words_on_capabilities = CapabilityWords(
            store,
            approve=approve,
            is_listed=is_listed,
            on_waiting=self._waits,
            places=self._places,
        )
        "The owner's words about calls that have no protocol."
        self.on_event: Callable[[str, dict[str, Any]], None] = _nobody
        "Called with the type and the data of every event of a negotiation."

    @property
    def rule(self) -> str:
        """The cases in which the owner is asked, such as `first-use`."""
        return self._approve

    @property
    def running(self) -> dict[str, NegotiationRecord]:
        """The records of negotiations that run, by id."""
        return {name: case.record for name, case in self._cases.items()}

    def open_case(self, record: NegotiationRecord, side: Side) -> Case:
        """Begin a negotiation."""
        case = Case(
            record,
            side,
            store=self._store,
            approve=self._approve,
            approval_wait=self._approval_wait,
            on_waiting=self._waits,
            on_turn=self._turned,
            places=self._places,
        )
        self._cases[record.id] = case
        self._tell("started", case.record)
        return case

    def close_case(self, case: Case) -> None:
        """End a negotiation, however it ended."""
        self._cases.pop(case.record.id, None)
        if case.record.outcome != APPROVAL_PENDING and case.asked_owner:
            self._places.free(case.record.peer_did)
        self._tell(
            "ended",
            case.record,
            outcome=case.record.outcome,
            reason=case.record.reason,
            hash=case.record.hash,
        )

    def _waits(self, record: NegotiationRecord) -> None:
        _log_waiting(record)
        self._tell("waiting", record)

    def _turned(self, record: NegotiationRecord) -> None:
        self._tell("turn", record, **turn_summary(record))

    def _tell(self, what: str, record: NegotiationRecord, **more: Any) -> None:
        about = {"id": record.id, "peer": record.peer_did, "role": record.role.value}
        self.on_event(f"negotiation.{what}", {**about, **more})

    # Views for the owner.

    async def negotiations(self, *, open_only: bool = False) -> list[NegotiationRecord]:
        """Return negotiations, the running ones first, then the newest.

        Args:
            open_only: Only those that wait for the owner's word.
        """
        cases = sorted(self._cases.values(), key=lambda case: -case.record.started)
        if not open_only:
            stored = await asyncio.to_thread(self._store.negotiations)
            return [*(case.record for case in cases), *stored]
        stored = await asyncio.to_thread(self._store.negotiations, limit=MAX_LISTED)
        found = [case.record for case in cases if case.waiting]
        newer: set[tuple[str, str, str | None]] = set()
        for record in [*(case.record for case in cases), *stored]:
            if waits_for_owner(record, newer):
                found.append(record)
            newer.add((record.peer_did, record.role.value, record.subject))
        return found

    def waits(self, negotiation_id: str) -> bool:
        """Tell whether a running negotiation waits for the owner at this moment."""
        case = self._cases.get(negotiation_id)
        return case is not None and case.waiting

    async def find(self, prefix: str) -> NegotiationRecord:
        """Return the one negotiation whose id begins with `prefix`.

        Raises:
            CallError: `usage`, none or several do.
        """
        # Held on to: it may end while the store is asked.
        running = {
            name: case
            for name, case in self._cases.items()
            if prefix and name.startswith(prefix)
        }
        stored = await asyncio.to_thread(self._store.negotiation_ids, prefix)
        ids = sorted({*running, *stored})
        if len(ids) > 1:
            raise CallError(
                ErrorKind.USAGE,
                f"several negotiations begin with {prefix}: {', '.join(ids)}, …; "
                "write more of the id",
            )
        for case in running.values():
            return case.record
        record = (
            await asyncio.to_thread(self._store.negotiation, ids[0]) if ids else None
        )
        if record is None:
            raise UnknownError(
                f"no negotiation begins with {prefix}; see `anpd negotiations list`"
            )
        return record

    async def words(self, negotiation_id: str | None = None) -> list[StandingRecord]:
        """Return the words of the owner and the daemon, used ones too, newest first.

        Args:
            negotiation_id: Only those said about it, or used by it.
        """
        found = await asyncio.to_thread(self._store.standing)
        if negotiation_id is None:
            return found
        return [
            word
            for word in found
            if negotiation_id in {word.negotiation_id, word.used_by}
        ]

    # The owner's words.

    async def cancel(self, prefix: str, reason: str) -> NegotiationRecord:
        """End a running negotiation; the peer is told that, not why.

        Raises:
            CallError: `usage`, it does not run.
        """
        record = await self.find(prefix)
        case = self._cases.get(record.id)
        if case is None:
            raise CallError(
                ErrorKind.USAGE,
                f"negotiation {record.id} does not run, it ended: {record.outcome}",
            )
        case.cancel(reason or "cancelled by the owner")
        return case.record

    async def hint(self, prefix: str, text: str) -> StandingRecord | None:
        """Give our mind words for its next answer, now or in the next negotiation.

        Returns:
            The word that waits for the next negotiation; None when one is running.

        Raises:
            CallError: `usage`, there is nothing the hint could be about.
        """
        text = _checked_note(text)
        if not text:
            raise CallError(ErrorKind.USAGE, "the hint is empty")
        record = await self.find(prefix)
        if is_capability_question(record):
            raise CallError(
                ErrorKind.USAGE,
                f"{record.id} is a question about a capability, not a negotiation",
            )
        case = self._cases.get(record.id)
        if case is not None:
            case.hint(text)
            return None
        if record.subject is None:
            raise CallError(
                ErrorKind.USAGE,
                f"the peer of negotiation {record.id} proposed nothing, so no next "
                "one can be told to be about the same",
            )
        now = time.time()
        word = StandingRecord(
            id=secrets.token_hex(8),
            peer_did=record.peer_did,
            role=record.role,
            verdict="hint",
            subject=record.subject,
            created=now,
            expires=now + LIFETIME,
            note=text,
            negotiation_id=record.id,
        )
        await asyncio.to_thread(self._store.save_standing, word, now=now)
        return word

    async def decide(self, prefix: str, decision: Decision) -> StandingRecord | None:
        """Carry out the owner's decision, now or in the next negotiation.

        Returns:
            The standing verdict; None when a negotiation waited and has its answer.

        Raises:
            CallError: `usage`, there is nothing to decide, or the edited text is no
                document.
        """
        decision = replace(decision, note=_checked_note(decision.note))
        if (decision.said == "edit") != (decision.document is not None):
            raise CallError(
                ErrorKind.USAGE,
                "an edit needs the edited protocol text; accept and reject take none",
            )
        if decision.document is not None:
            await asyncio.to_thread(check_edit, decision.document)
        record = await self.find(prefix)
        case = self._cases.get(record.id)
        if case is not None:
            case.decide(decision)
            self._tell("decided", record, said=decision.said)
            return None
        now = time.time()
        word = standing_of(record, decision, word_id=secrets.token_hex(8), now=now)
        await asyncio.to_thread(self._store.save_standing, word, now=now)
        if decision.said == "accept":
            await asyncio.to_thread(carry_out, self._store, record)
        self._places.free(record.peer_did)
        decided = {"said": decision.said, "note": decision.note, "at": now}
        await asyncio.to_thread(
            self._store.change_negotiation,
            record.id,
            lambda stored: replace(stored, decision=decided),
        )
        self._tell("decided", record, said=decision.said)
        return word


def turn_summary(record: NegotiationRecord) -> dict[str, Any]:
    """Return the newest turn without its document, for those who watch."""
    *before, turn = record.turns
    older = [one["candidate"] for one in before if one["candidate"]]
    old = Counter(older[-1].splitlines() if older else ())
    new = Counter(turn["candidate"].splitlines()) if turn["candidate"] else old
    return {
        "direction": turn["direction"],
        "status": turn["status"],
        "sequence_id": turn["sequence_id"],
        "summary": turn["summary"][:500],
        "seconds": turn["seconds"],
        "proposal": sum(one["status"] == "negotiating" for one in record.turns),
        "lines_added": (new - old).total(),
        "lines_removed": (old - new).total(),
        "tokens": sum(
            one["input_tokens"] + one["output_tokens"] for one in record.exchanges
        ),
    }


def _nobody(event_type: str, data: dict[str, Any]) -> None:
    """Ignore an event, while nobody watches."""


def _checked_note(text: str) -> str:
    text = text.strip()
    if len(text) > MAX_NOTE:
        raise CallError(
            ErrorKind.USAGE, f"{len(text)} characters of text, at most {MAX_NOTE}"
        )
    if not text.isprintable() and any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        raise CallError(ErrorKind.USAGE, "the text is no valid Unicode")
    return text


def _log_waiting(record: NegotiationRecord) -> None:
    logger.info(
        "negotiation waits for approval id=%s peer=%s decide_with=%r",
        record.id,
        record.peer_did,
        f"anpd negotiations decide {record.id} accept|reject",
    )
