"""Test cases with a peer: agreed in words, run over PT=11, kept with the agreement.

The requester proposes requests of its own half, the provider writes the answers of its
half on fixtures, and then the real halves talk (ANP-48 to ANP-54, ANP-75).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from anp.channel.channel import ChannelClosed
from anp.errors import CallError, ErrorKind
from anp.sidecar.case_outcomes import NOT_RUN, TESTS_KEY, in_words
from anp.sidecar.dialogues import ReportEnd
from anp.sidecar.exchanges import Exchange
from anp.sidecar.protocol import Protocol
from anp.sidecar.verifying import NoAnswer
from cache.records import AgreementRecord, HalfRecord, State
from negotiation.cases import (
    CaseResult,
    CasesReport,
    Fixtures,
    TestCase,
    answer_case,
    compare,
    complete_cases,
    derive_cases,
    judge_cases,
    read_cases,
    read_responses,
    render_cases,
    run_offline,
)
from negotiation.dialogue import (
    AcceptCases,
    CasesAgreed,
    CasesSkipped,
    CasesVerdict,
    CounterCases,
    RejectCases,
    describe_error,
)
from negotiation.document import Document
from negotiation.errors import CasesError, HalfError, NegotiationError
from negotiation.mind import HalfSource, Need, Offer
from negotiation.runner import Validator

if TYPE_CHECKING:
    from anp.sidecar.session import Session

__all__ = ["ProviderCases", "RequesterCases", "verify_with_peer"]

logger = logging.getLogger(__name__)

ANSWER_TIMEOUT: Final = 10.0
"Seconds to wait for one answer over PT=11."


class RequesterCases:
    """The requester's part: proposes, judges, runs."""

    def __init__(self, session: Session, need: Need, validator: Validator) -> None:
        self._session = session
        self._need = need
        self._validator = validator
        self._proposed: tuple[TestCase, ...] = ()
        self.asked: Fixtures = {}
        "What our requests were made of, and how the responses were read; private."

    async def propose(self) -> str:
        """Return the cases that the rules derive, as text.

        Raises:
            CasesError: None can be made.
        """
        protocol = self._session.protocol
        derived = await derive_cases(
            protocol.document,
            self._need,
            runner=protocol.half,
            validator=self._validator,
        )
        if not derived.cases:
            found = await self._session.examiner.suggest_cases(self._need, protocol)
            derived = await derive_cases(
                protocol.document,
                self._need,
                runner=protocol.half,
                validator=self._validator,
                suggested=[(one.title, one.arguments) for one in found],
            )
        if not derived.cases:
            raise CasesError("no request can be made from the schemas")
        self.asked, self._proposed = derived.asked, derived.cases
        return render_cases(derived.cases, protocol.document)

    async def judge(self, text: str) -> CasesVerdict:
        """Judge the set that the provider filled in."""
        protocol = self._session.protocol
        try:
            cases = read_cases(text, protocol.document)
            verdict = await judge_cases(
                cases,
                protocol.document,
                self._need,
                runner=protocol.half,
                validator=self._validator,
                proposed=self._proposed,
            )
        except NegotiationError as exc:
            return RejectCases(str(exc)[:1000])
        if not verdict.problems:
            return AcceptCases()
        reasons = "; ".join(verdict.problems)[:2000]
        if not verdict.cases:
            return RejectCases(reasons)
        return CounterCases(render_cases(verdict.cases, protocol.document), reasons)

    async def run(self, text: str) -> CasesReport:
        """Run agreed cases over PT=11, or offline where that is not common (ANP-Q9).

        Raises:
            ChannelClosed: The channel ended.
        """
        protocol = self._session.protocol
        cases = read_cases(text, protocol.document)
        self.asked = await read_responses(cases, self.asked, runner=protocol.half)
        if "verificationProtocol" not in self._session.channel.capabilities:
            return await run_offline(
                cases,
                text,
                self.asked,
                runner=protocol.half,
                document=protocol.document,
            )
        results: list[CaseResult] = []
        answered = True
        for case in cases:
            if answered:
                result, answered = await self._run_one(case)
            else:
                # A peer that falls silent is not waited for once for every case.
                result = CaseResult(case.title, passed=False, detail=NOT_RUN)
            results.append(result)
        return CasesReport("wire", text, tuple(results), "")

    async def _run_one(self, case: TestCase) -> tuple[CaseResult, bool]:
        """Run one case; return how it went, and whether there was an answer."""
        await self._session.dialogue.wait_free()
        verification = self._session.verification
        answer = await verification.ask(case.request, timeout=ANSWER_TIMEOUT)
        differences = await self._differences(case, answer)
        if (
            differences
            and not isinstance(answer, NoAnswer)
            and self._session.dialogue.can_report
        ):
            data, envelope = answer
            report = await self._session.dialogue.report(
                envelope, describe_error(envelope, differences, data)
            )
            if report.end is ReportEnd.REPAIRED:
                answer = await verification.next_answer(timeout=ANSWER_TIMEOUT)
                differences = await self._differences(case, answer)
        detail = "; ".join(differences)[:500]
        result = CaseResult(case.title, not differences, detail)
        return result, not isinstance(answer, NoAnswer)

    async def _differences(
        self, case: TestCase, answer: tuple[bytes, str] | NoAnswer
    ) -> list[str]:
        if isinstance(answer, NoAnswer):
            return [answer.reason]
        return await _differences(case, answer[0], self._session.protocol)


async def verify_with_peer(session: Session, need: Need, validator: Validator) -> None:
    """Agree test cases with the provider, run them, and keep the outcome.

    The agreement is active afterwards, or failed. With an error of another kind, or
    when this is cancelled, it stays in its tests and is used by nobody. Whenever
    this raises, the channel is closed.

    Raises:
        CallError: A case fails, so the protocol is not to be used.
        ChannelClosed: The link was lost.
    """
    try:
        await _verify(session, need, validator)
    except BaseException:
        with contextlib.suppress(CallError):
            await session.channel.close("the test cases did not pass")
        raise


async def _verify(session: Session, need: Need, validator: Validator) -> None:
    if "testCasesNegotiation" not in session.channel.capabilities:
        await session.tested(_untested("the peer does not negotiate test cases"))
        return
    cases = RequesterCases(session, need, validator)
    try:
        text = await cases.propose()
        settled = await session.agree_cases(cases, text)
        if isinstance(settled, CasesSkipped):
            await session.tested(_untested(settled.reason))
            return
        report = await cases.run(settled.text)
    except ChannelClosed:
        raise
    except NegotiationError as exc:
        # Tests are optional (ANP-48): what cannot be tested is used untested.
        logger.warning("test cases not run reason=%r", str(exc)[:200])
        await session.tested(_untested(str(exc)[:500]))
        return
    kept = {**report.to_json(), "asked": cases.asked, "at": time.time()}
    tests = {TESTS_KEY: kept}
    if not report.passed:
        await session.tested(tests, State.FAILED)
        short = session.agreement.hash[:12]
        logger.warning("test cases failed hash=%s what=%r", short, in_words(tests))
        raise CallError(
            ErrorKind.GENERATED_CODE,
            f"the protocol that was agreed is not used: {in_words(tests)}; "
            f"`anpd protocols show {short}` tells more",
        )
    await session.tested(tests)
    logger.info("test cases passed mode=%s cases=%d", report.mode, len(report.results))


class ProviderCases:
    """The provider's part: fills cases in, and answers them on fixtures."""

    def __init__(
        self,
        validator: Validator,
        offered: Callable[[], Offer],
        agreement: AgreementRecord | None,
    ) -> None:
        self._validator = validator
        self._offered = offered
        self._text = ""
        self._fixtures: Fixtures = {}
        kept = agreement.tests.get(TESTS_KEY) if agreement is not None else None
        if isinstance(kept, dict) and isinstance(kept.get("text"), str):
            self._text, self._fixtures = kept["text"], kept.get("fixtures") or {}

    async def judge(
        self, text: str, half: HalfRecord, protocol: Protocol, *, may_counter: bool
    ) -> CasesVerdict:
        """Fill in what the requester proposes, from our half on fixtures."""
        try:
            completed = await complete_cases(
                read_cases(text, protocol.document),
                protocol.document,
                self._offered(),
                HalfSource(half.source, half.origin, tuple(half.capabilities)),
                runner=protocol.half,
                validator=self._validator,
            )
        except NegotiationError as exc:
            return RejectCases(str(exc)[:1000])
        reasons = "; ".join(completed.removed)[:2000]
        if not completed.cases:
            return RejectCases(reasons or "none of the cases can be answered")
        ours = render_cases(completed.cases, protocol.document)
        self._text, self._fixtures = ours, completed.fixtures
        if ours == text:
            return AcceptCases()
        if not may_counter:
            return RejectCases("the cases are not complete, and no round is left")
        summary = "The responses were filled in."
        return CounterCases(
            ours, f"{summary} Taken out: {reasons}" if reasons else summary
        )

    def settled(self, agreed: CasesAgreed | CasesSkipped) -> Mapping[str, Any]:
        """Return what to keep with the agreement."""
        if isinstance(agreed, CasesSkipped):
            return _untested(agreed.reason)
        self._text = agreed.text
        kept = {
            "mode": "agreed",
            "text": agreed.text,
            # Private: what our capabilities are taken to answer (DESIGN.md).
            "fixtures": self._fixtures,
            "at": time.time(),
        }
        return {TESTS_KEY: kept}

    def failed(self, request: bytes, detail: str, document: Document) -> dict[str, Any]:
        """Return what to keep when our own half fails one of the cases.

        Args:
            request: The test request.
            detail: How it fails, in words.
        """
        titles = {case.request: case.title for case in read_cases(self._text, document)}
        result = CaseResult(titles.get(request, "?"), passed=False, detail=detail[:500])
        kept = {
            "mode": "agreed",
            "text": self._text,
            "fixtures": self._fixtures,
            "results": [asdict(result)],
            "at": time.time(),
        }
        return {TESTS_KEY: kept}

    async def answer(self, request: bytes, protocol: Protocol) -> bytes:
        """Answer a test request with the real half, on fixtures.

        Raises:
            HalfError: The half failed.
            CasesError: It is no request of an agreed case.
        """
        return await answer_case(request, self._fixtures, runner=protocol.half)

    async def differences(self, exchange: Exchange, protocol: Protocol) -> list[str]:
        """Return what our answer to a test request has other than agreed."""
        if exchange.response is None or not self._text:
            return []
        for case in read_cases(self._text, protocol.document):
            if case.request == exchange.request:
                return await _differences(case, exchange.response, protocol)
        return []


async def _differences(case: TestCase, actual: bytes, protocol: Protocol) -> list[str]:
    try:
        findings = await protocol.judge("response", actual)
        return findings or await compare(
            case, actual, protocol.document, read=protocol.reader, sent=case.request
        )
    except HalfError as exc:
        return [f"the answer cannot be read: {exc}"]


def _untested(reason: str) -> dict[str, Any]:
    report = CasesReport("untested", "", (), reason)
    return {TESTS_KEY: {**report.to_json(), "at": time.time()}}
