"""Writes a half anew when its messages break the protocol (DESIGN.md, Repairs).

A repaired half is a new revision for one peer's agreement; halves of other peers with
the same document stay as they are.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from anp.sidecar.agreement.offline import retry_cases
from anp.sidecar.agreement.outcomes import TESTS_KEY
from anp.sidecar.agreement.stored import negotiated
from anp.sidecar.bound.examiner import ThinkOnChannel
from anp.sidecar.halves.workshop import HalfTrial, Workshop
from cache.records.records import AgreementRecord, AgreementState, HalfRecord
from cache.store import Store
from negotiation.cases.case import CasesReport
from negotiation.errors import HalfError, MindError
from negotiation.mind import Demand, HalfSource, Mind, Side

logger = logging.getLogger(__name__)


Repaired = tuple[HalfRecord, AgreementRecord]
"A stored revision, and the agreement that names it."


class Repairer:
    """Makes and stores new revisions."""

    def __init__(self, store: Store, workshop: Workshop, *, own_did: str) -> None:
        self._store = store
        self._workshop = workshop
        self._own_did = own_did
        # One repair of a protocol with a peer at a time: its channels share the result.
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = (
            WeakValueDictionary()
        )

    async def repair(
        self,
        document: str,
        half: HalfRecord,
        side: Side,
        *,
        peer_did: str,
        agreement: AgreementRecord | None,
        findings: tuple[str, ...],
        think: ThinkOnChannel,
        by_words: bool = False,
    ) -> Repaired:
        """Return a revision with other code than `half`, checked and stored.

        Args:
            peer_did: The peer in its canonical form.
            agreement: The peer's agreement; None makes one for a provider half that
                came from elsewhere.
            findings: Faults of `half`, in words.
            by_words: True when `half` breaks the words of the document, and no schema.
                Test cases that it filled in break them too, so they count no more.

        Raises:
            HalfError: There is no other code that passes its checks; its cause is the
                `MindError` if it was our mind that failed.
        """
        lock = self._locks.setdefault((half.hash, peer_did), asyncio.Lock())
        async with lock:
            if by_words and agreement is not None:
                agreement = replace(agreement, tests=_without_cases(agreement.tests))
            tests = agreement.tests if agreement is not None else {}
            newer = await asyncio.to_thread(self._newer, half, peer_did, agreement)
            if newer is not None:
                return newer
            async with think(ours=isinstance(side, Demand)) as thinking:
                # Rules write what schemas say, and those are what it did keep.
                first = None if by_words else thinking.first
                written = await self._write(
                    document,
                    side,
                    (first, thinking.mind),
                    tests=tests,
                    findings=findings,
                    replaces=half.source,
                )
            repaired = await asyncio.to_thread(
                self._store_revision, document, side, written, peer_did, agreement
            )
        logger.info(
            "code repaired hash=%s role=%s revision=%d",
            half.hash[:12],
            half.role,
            repaired[0].revision,
        )
        return repaired

    def _newer(
        self, half: HalfRecord, peer_did: str, agreement: AgreementRecord | None
    ) -> Repaired | None:
        """Return the revision that another channel to this peer has led to."""
        for known in self._store.agreements_of(half.hash):
            if (
                known.role is half.role
                and known.peer_did == peer_did
                and known.state is AgreementState.ACTIVE
                # Not the larger one: a repair may come back to an older text.
                and known.revision != half.revision
                and (agreement is None or known.need_key == agreement.need_key)
            ):
                stored = self._store.half(half.hash, half.role, known.revision)
                if stored is not None and stored.state is AgreementState.ACTIVE:
                    return stored, known
        return None

    def _store_revision(
        self,
        document: str,
        side: Side,
        written: HalfSource,
        peer_did: str,
        agreement: AgreementRecord | None,
    ) -> Repaired:
        text, half, fresh = negotiated(
            document,
            written,
            side,
            own_did=self._own_did,
            peer_did=peer_did,
            need=None,
            negotiation_id=None if agreement is None else agreement.negotiation_id,
            begins=AgreementState.ACTIVE,
            created=time.time(),
        )
        known = fresh if agreement is None else replace(agreement, revision=0)
        stored = self._store.save_agreement(text, half, known)
        return replace(half, revision=stored.revision), stored

    async def _write(
        self,
        document: str,
        side: Side,
        minds: Sequence[Mind | None],
        *,
        tests: Mapping[str, Any],
        findings: tuple[str, ...],
        replaces: str,
    ) -> HalfSource:
        """Return other code of the first of `minds` that passes its checks.

        The findings of the sandbox and of the test cases in each attempt go to the mind
        with the next one.

        Args:
            tests: The `tests` of the agreement; agreed cases have to pass again.

        Raises:
            HalfError: There is none.
        """

        async def retry(trial: HalfTrial) -> tuple[str, ...]:
            return (await retry_cases(tests, side, trial)).problems

        problem: HalfError | None = None
        for mind in minds:
            if mind is None:
                continue
            try:
                return await self._workshop.prepare(
                    document,
                    side,
                    mind=mind,
                    name=secrets.token_hex(8),
                    findings=findings,
                    replaces=replaces,
                    also=retry,
                )
            except HalfError as exc:
                problem = exc
            except MindError as exc:
                raise HalfError("rejected", f"no new code: {exc}") from exc
        assert problem is not None, "there is always a mind"
        raise problem


def _without_cases(tests: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agreement's `tests` after its cases turned out to be wrong (ANP-49)."""
    if TESTS_KEY not in tests:
        return dict(tests)
    reason = "the cases were made by code that broke the document"
    report = CasesReport("untested", "", (), reason)
    return {**tests, TESTS_KEY: {**report.to_json(), "at": time.time()}}
