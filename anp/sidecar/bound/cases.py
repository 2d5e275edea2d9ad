"""Test cases with a peer: agreed in words, run over PT=11, kept with the agreement.

The requester proposes requests of its own half, the provider writes the answers of its
half on fixtures, and then the real halves talk (ANP-48 to ANP-54, ANP-75).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final
from typing import Protocol as Interface

from anp.channel.channel import Channel
from anp.sidecar.agreement.outcomes import NOT_RUN, TESTS_KEY
from anp.sidecar.bound.dialogue import DialogueShell, ReportEnd
from anp.sidecar.bound.examiner import Examiner
from anp.sidecar.bound.exchanges import Exchange
from anp.sidecar.bound.verification import NoAnswer, Verification
from anp.sidecar.halves.protocol import Protocol
from cache.records.records import AgreementRecord, HalfRecord
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
from negotiation.document import Document
from negotiation.errors import CasesError, HalfError, NegotiationError
from negotiation.exchange.dialogue import (
    AcceptCases,
    CasesAgreed,
    CasesSkipped,
    CasesVerdict,
    CounterCases,
    RejectCases,
    describe_error,
)
from negotiation.mind import HalfSource, Need, Offer
from negotiation.runner import Validator

__all__ = ["CasesChannel", "ProviderCases", "RequesterCases", "untested"]

logger = logging.getLogger(__name__)

ANSWER_TIMEOUT: Final = 10.0
"Seconds to wait for one answer over PT=11."


class CasesChannel(Interface):
    """A channel as requester, as far as test cases use it."""

    channel: Channel
    "Where the cases are agreed."

    protocol: Protocol
    "What is tested."

    dialogue: DialogueShell
    "What both sides say beside the calls."

    verification: Verification
    "Test requests and their answers (PT=11)."

    examiner: Examiner
    "Asks the model for cases that no schema gives."


def untested(reason: str) -> dict[str, Any]:
    """Return what is kept of an agreement whose cases were not run."""
    report = CasesReport("untested", "", (), reason)
    return {TESTS_KEY: {**report.to_json(), "at": time.time()}}


class RequesterCases:
    """The requester's part: proposes, judges, runs."""

    def __init__(self, session: CasesChannel, need: Need, validator: Validator) -> None:
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
            return untested(agreed.reason)
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
