"""Writes a half anew when its messages break the protocol (DESIGN.md, Repairs).

A repaired half is a new revision for one peer's agreement; halves of other peers with
the same document stay as they are.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anp.sidecar.agreement.outcomes import TESTS_KEY
from anp.sidecar.minds.afterwards import Afterwards, Bill
from cache.records.records import (
    AgreementRecord,
    DocumentRecord,
    HalfRecord,
    Role,
    State,
)
from cache.store import Store
from negotiation.cases import CasesReport
from negotiation.errors import HalfError, MindError
from negotiation.exchange.preparation import prepare_half
from negotiation.mind import HalfSource, Mind, Need, Side
from negotiation.need import schema_hash

__all__ = ["Repaired", "Repairer"]

logger = logging.getLogger(__name__)

Check = Callable[[HalfSource, str, Side, Mapping[str, Any]], Awaitable[tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Repaired:
    """A new revision, stored."""

    agreement: AgreementRecord
    "The agreement, which names the revision."

    half: HalfRecord
    "The revision."


class Repairer:
    """Makes and stores new revisions."""

    def __init__(
        self, *, store: Store, afterwards: Afterwards, check: Check, own_did: str
    ) -> None:
        self._store = store
        self._afterwards = afterwards
        self._check = check
        self._own_did = own_did
        # One repair of a protocol with a peer at a time: its channels share the result.
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}

    async def repair(
        self,
        document: str,
        half: HalfRecord,
        side: Side,
        *,
        peer_did: str,
        agreement: AgreementRecord | None,
        findings: tuple[str, ...],
        bill: Bill | None = None,
        by_words: bool = False,
    ) -> Repaired:
        """Return a revision with other code than `half`, checked and stored.

        Args:
            peer_did: The peer in its canonical form.
            agreement: The peer's agreement; None makes one for a provider half that
                came from elsewhere.
            findings: What is wrong with `half`, in words.
            bill: Gets what the model costs.
            by_words: Whether `half` breaks what the document says in words. Test cases
                that it filled in break that too, so they count no more.

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
            negotiation_id = agreement.negotiation_id if agreement is not None else None
            async with self._afterwards.think(
                peer_did,
                ours=isinstance(side, Need),
                negotiation_id=negotiation_id,
                bill=bill,
            ) as thinking:
                # Rules write what schemas say, and those are what it did keep.
                first = None if by_words else thinking.first
                written = await _written(
                    document,
                    side,
                    (first, thinking.mind),
                    check=lambda one, text: self._check(one, text, side, tests),
                    findings=findings,
                    replaces=half.source,
                )
            repaired = await asyncio.to_thread(
                self._store_revision, document, half, side, written, peer_did, agreement
            )
        logger.info(
            "half repaired hash=%s role=%s revision=%d",
            half.hash[:12],
            half.role,
            repaired.half.revision,
        )
        return repaired

    def keep_tests(
        self,
        agreement: AgreementRecord,
        tests: Mapping[str, Any],
        state: State | None = None,
    ) -> AgreementRecord:
        """Store the outcome of test cases with an agreement, and return it.

        Args:
            state: What the agreement is from now on; None leaves that.
        """
        kept = {**agreement.tests, **tests}
        return self._store.set_tests(agreement, kept, state=state)

    def _newer(
        self, half: HalfRecord, peer_did: str, agreement: AgreementRecord | None
    ) -> Repaired | None:
        """Return the revision that another channel to this peer has led to."""
        for known in self._store.agreements_of(half.hash):
            if (
                known.role is half.role
                and known.peer_did == peer_did
                and known.state is State.ACTIVE
                # Not the larger one: a repair may come back to an older text.
                and known.revision != half.revision
                and (agreement is None or known.task_key == agreement.task_key)
            ):
                stored = self._store.half(half.hash, half.role, known.revision)
                if stored is not None and stored.state is State.ACTIVE:
                    return Repaired(known, stored)
        return None

    def _store_revision(
        self,
        document: str,
        old: HalfRecord,
        side: Side,
        written: HalfSource,
        peer_did: str,
        agreement: AgreementRecord | None,
    ) -> Repaired:
        now = time.time()
        calls = (
            {}
            if isinstance(side, Need)
            else {
                capability.name: schema_hash(capability)
                for capability in side.capabilities
                if capability.name in written.capabilities
            }
        )
        half = HalfRecord.from_json(
            {
                "hash": old.hash,
                "role": old.role.value,
                "revision": 0,
                "source": written.text,
                "origin": written.origin,
                "capabilities": calls,
                "created": now,
                "model": written.model,
                "negotiation_id": agreement.negotiation_id if agreement else None,
            }
        )
        known = agreement or AgreementRecord.from_json(
            {
                "own_did": self._own_did,
                "peer_did": peer_did,
                "role": Role.PROVIDER.value,
                "task_key": None,
                "hash": old.hash,
                "revision": 0,
                "task": None,
                "samples": "partial",
                "tests": {"acceptance": "passed"},
                "negotiation_id": None,
                "created": now,
            }
        )
        stored = self._store.save_agreement(
            DocumentRecord.of(document), half, replace(known, revision=0)
        )
        return Repaired(stored, replace(half, revision=stored.revision))


def _without_cases(tests: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agreement's `tests` after its cases turned out to be wrong (ANP-49)."""
    if TESTS_KEY not in tests:
        return dict(tests)
    reason = "the cases were made by code that broke the document"
    report = CasesReport("untested", "", (), reason)
    return {**tests, TESTS_KEY: {**report.to_json(), "at": time.time()}}


async def _written(
    document: str,
    side: Side,
    minds: Sequence[Mind | None],
    *,
    check: Callable[[HalfSource, str], Awaitable[tuple[str, ...]]],
    findings: tuple[str, ...],
    replaces: str,
) -> HalfSource:
    """Return other code of the first of `minds` that passes its checks.

    What the sandbox and the test cases find in each attempt goes to the mind with the
    next one.

    Raises:
        HalfError: There is none.
    """
    problem: HalfError | None = None
    for mind in minds:
        if mind is None:
            continue
        try:
            return await prepare_half(
                document,
                side,
                mind=mind,
                check=check,
                findings=findings,
                replaces=replaces,
            )
        except HalfError as exc:
            problem = exc
        except MindError as exc:
            raise HalfError("rejected", f"no new code: {exc}") from exc
    assert problem is not None, "there is always a mind"
    raise problem
