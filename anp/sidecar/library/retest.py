"""Runs agreed test cases again for the owner, by our side alone or with the peer."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from anp.channel.channel import ChannelClosed
from anp.errors import CallError, ErrorKind
from anp.sidecar.agreement.offline import (
    ASKED,
    Retried,
    kept_fixtures,
    likely_arguments,
    need_of,
    retry_cases,
)
from anp.sidecar.agreement.outcomes import TESTS_KEY
from anp.sidecar.calls.binder import Binder
from anp.sidecar.halves.workshop import Workshop
from anp.sidecar.offer.exposure import Exposure, misfit
from anp.sidecar.peers.finder import PeerFinder
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    HalfRecord,
)
from cache.store import Store
from negotiation.document.reader import read_document
from negotiation.document.shape import Document
from negotiation.errors import HalfError, NegotiationError
from negotiation.mind import Demand, HalfSource, Offer, Side

MAX_AGREEMENTS: Final = 32
"Agreements on one document that are tested at once."

TIMEOUT: Final = 120.0
"Seconds for a run with the peer."

MAX_PROBLEMS: Final = 20
"Problems of one run that are kept."

MAX_WORDS: Final = 500
"Characters of each."


@dataclass(frozen=True, slots=True)
class TestRun:
    """The outcome of one test of a half."""

    __test__ = False  # pytest would take it for a test.

    half: HalfRecord
    "The half."

    agreement: AgreementRecord | None
    "The agreement it was tested for; None for a half that serves anybody."

    mode: str
    "`wire`, `offline`, or `acceptance` when no test cases are kept."

    problems: tuple[str, ...]
    "Failures in words; empty when all is well."

    results: tuple[dict[str, Any], ...]
    "One for each test case: title, passed, detail."

    at: float
    "Seconds since 1970."

    def to_json(self) -> dict[str, Any]:
        """Return the run as it is kept with the agreement, and shown."""
        failed = sum(one.get("passed") is not True for one in self.results)
        if self.problems:
            outcome = self.problems[0]
        elif self.results:
            outcome = f"{len(self.results)} test cases passed"
        else:
            outcome = "the code passed its checks; no test cases are kept"
        return {
            "at": self.at,
            "mode": self.mode,
            "passed": not self.problems,
            "cases": len(self.results),
            "failed": failed,
            "outcome": outcome,
            "problems": list(self.problems),
            "results": list(self.results),
            "revision": self.half.revision,
        }


class Retester:
    """Runs the test cases that are kept with agreements, and keeps the outcome.

    It changes nothing about what is used: a failed run is the owner's to act on.
    """

    def __init__(
        self,
        *,
        store: Store,
        workshop: Workshop,
        exposure: Exposure,
        binder: Binder,
        finder: PeerFinder,
    ) -> None:
        self._store = store
        self._workshop = workshop
        self._exposure = exposure
        self._binder = binder
        self._finder = finder

    async def offline(self, digest: str) -> list[TestRun]:
        """Try every half of a document that is in use, each on its fixtures (ANP-Q9).

        Raises:
            CallError: `usage`, nothing of it can be tested, or too much at once.
        """
        text, agreements = await self._held(digest)
        document = read_document(text)
        halves = {
            (half.role, half.revision): half
            for half in await asyncio.to_thread(self._store.halves, digest)
        }
        if len(agreements) > MAX_AGREEMENTS:
            raise CallError(
                ErrorKind.USAGE,
                f"{len(agreements)} agreements are on {digest[:12]}; at most "
                f"{MAX_AGREEMENTS} are tested at once: test it with one peer (--peer)",
            )
        runs = []
        for agreement in agreements:
            half = halves.get((agreement.role, agreement.revision))
            if half is not None:
                runs.append(await self._try(half, agreement, text, document))
        bound = {
            run.half.revision for run in runs if run.half.role is AgreementRole.PROVIDER
        }
        served = next(
            (
                half
                for half in halves.values()
                if half.role is AgreementRole.PROVIDER
                and half.state is AgreementState.ACTIVE
            ),
            None,
        )
        if served is not None and served.revision not in bound:
            runs.append(await self._try(served, None, text, document))
        if not runs:
            raise CallError(
                ErrorKind.USAGE,
                f"no code of {digest[:12]} is in use here; "
                f"`anpd protocols show {digest[:12]}` shows the reason",
            )
        return [await self._kept(run) for run in runs]

    async def with_peer(self, digest: str, peer: str, peer_did: str) -> list[TestRun]:
        """Run the agreed cases with the peer, over PT=11 where it is common (ANP-75).

        Args:
            peer: As the owner names it, to find its address.
            peer_did: In its canonical form.

        Raises:
            CallError: `usage`, there is nothing to run; or the peer cannot be reached,
                or declines.
        """
        text, agreements = await self._held(digest)
        ours = [
            one
            for one in agreements
            if one.role is AgreementRole.REQUESTER and one.peer_did == peer_did
        ]
        if not ours:
            raise CallError(
                ErrorKind.USAGE,
                f"no call of ours to this peer goes through {digest[:12]}; only who "
                "calls can begin a test: run it at the peer, or here without --peer",
            )
        target = await self._finder.find(peer, trust_first_use=False)
        runs = []
        for agreement in ours:
            half = await asyncio.to_thread(
                self._store.half, digest, AgreementRole.REQUESTER, agreement.revision
            )
            cases = agreement.tests.get(TESTS_KEY)
            known = cases.get("text") if isinstance(cases, dict) else None
            if half is None or not isinstance(known, str) or not known:
                raise CallError(
                    ErrorKind.USAGE,
                    f"no agreed test cases are kept for {digest[:12]}; without --peer "
                    "only our own code is tested",
                )
            document = read_document(text)
            demand = await self._demand(document, agreement)
            try:
                async with asyncio.timeout(TIMEOUT):
                    bound = await self._binder.channel_for_tests(
                        target, agreement, half, demand
                    )
                    try:
                        bound.cases.asked = kept_fixtures(agreement.tests, ASKED)
                        report = await bound.cases.run(known)
                    finally:
                        await bound.channel.close("the test is done")
            except TimeoutError:
                raise CallError(
                    ErrorKind.TIMEOUT, f"the test took over {TIMEOUT:g} s"
                ) from None
            except ChannelClosed as exc:
                raise CallError(
                    ErrorKind.PEER_UNREACHABLE, f"the channel was closed: {exc.detail}"
                ) from exc
            except NegotiationError as exc:
                raise CallError(
                    ErrorKind.GENERATED_CODE, f"the cases cannot be run: {exc}"
                ) from exc
            made = report.to_json()
            runs.append(
                _run(half, agreement, report.mode, report.problems, made["results"])
            )
        return [await self._kept(run) for run in runs]

    async def _held(self, digest: str) -> tuple[str, list[AgreementRecord]]:
        record = await asyncio.to_thread(self._store.document, digest)
        if record is None:
            raise CallError(ErrorKind.USAGE, f"the text of {digest[:12]} was not kept")
        if await asyncio.to_thread(self._store.is_revoked, digest):
            raise CallError(
                ErrorKind.POLICY,
                f"you took {digest[:12]} back, so nothing of it runs; `anpd protocols "
                f"approve {digest[:12]}` allows it again",
            )
        found = await asyncio.to_thread(self._store.agreements_of, digest)
        return record.text, [
            one for one in found if one.state is not AgreementState.REVOKED
        ]

    async def _try(
        self,
        half: HalfRecord,
        agreement: AgreementRecord | None,
        text: str,
        document: Document,
    ) -> TestRun:
        """Try a half as every half is tried, then with its test cases."""
        source = HalfSource(half.source, half.origin, tuple(half.capabilities))
        problems: list[str] = []
        retried = Retried((), None)
        offered = self._exposure.offered_to_some()
        unfit = misfit(half.capabilities, offered)
        if unfit is not None:
            problems.append(unfit)
        side: Side
        if half.role is AgreementRole.REQUESTER and agreement is not None:
            side = await self._demand(document, agreement)
        else:
            # The capabilities it may call were settled when it was made.
            side = Offer(offered, hints=tuple(half.capabilities))
        try:
            name = f"test:{secrets.token_hex(4)}"
            async with self._workshop.trial(source, text, name=name) as trial:
                problems += (await trial.check(side)).problems
                tests = agreement.tests if agreement is not None else {}
                retried = await retry_cases(tests, side, trial)
                problems += retried.problems
        except HalfError as exc:
            problems.append(str(exc))
        results = (retried.kept or {}).get("results") or []
        mode = "offline" if results else "acceptance"
        return _run(half, agreement, mode, problems, results)

    async def _demand(self, document: Document, agreement: AgreementRecord) -> Demand:
        need = need_of(agreement, document)
        arguments = await likely_arguments(
            document, need, agreement.tests, self._workshop.validator
        )
        return Demand(need, arguments)

    async def _kept(self, run: TestRun) -> TestRun:
        if run.agreement is None:
            return run
        stored = await asyncio.to_thread(
            self._store.note_run, run.agreement, run.to_json()
        )
        return replace(run, agreement=stored)


def _run(
    half: HalfRecord,
    agreement: AgreementRecord | None,
    mode: str,
    problems: Sequence[str],
    results: Sequence[dict[str, Any]],
) -> TestRun:
    shown = [" ".join(one.split())[:MAX_WORDS] for one in problems[:MAX_PROBLEMS]]
    more = len(problems) - MAX_PROBLEMS
    if more > 0:
        shown.append(f"and {more} more")
    return TestRun(half, agreement, mode, tuple(shown), tuple(results), time.time())
