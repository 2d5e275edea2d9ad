"""Test cases with a peer: agreed in words, run over PT=11, kept with the agreement.

The requester proposes requests of its own half, and the provider writes the answers of
its half on fixtures. Then the real halves talk (ANP-48 to ANP-54, ANP-75).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from anp.errors import CallError, ErrorKind
from anp.phases import waits_for
from anp.sidecar.agreement.outcomes import NOT_RUN, TESTS_KEY, in_words
from anp.sidecar.bound.base import BoundChannel
from anp.sidecar.bound.dialogue import ReportEnd
from anp.sidecar.bound.exchanges import Exchange
from anp.sidecar.bound.verification import NoAnswer, Verification
from anp.sidecar.halves.protocol import Protocol, Update
from cache.records.records import AgreementState
from negotiation.cases.case import CaseResult, CasesReport, Fixtures, TestCase
from negotiation.cases.judge import judge_cases
from negotiation.cases.proposal import complete_cases, derive_cases
from negotiation.cases.run import (
    answer_case,
    compare,
    read_responses,
    run_offline,
    update_samples,
)
from negotiation.cases.text import read_cases, render_cases
from negotiation.errors import CasesError, HalfError, NegotiationError
from negotiation.exchange.dialogue.reports import describe_error
from negotiation.exchange.events import (
    AcceptCases,
    CasesAgreed,
    CasesSkipped,
    CasesVerdict,
    CounterCases,
    RejectCases,
)
from negotiation.mind import Demand, HalfSource, Offer

logger = logging.getLogger(__name__)

ANSWER_TIMEOUT: Final = 10.0
"Seconds to wait for one answer over PT=11."

MAX_UPDATES = 16
"Updates before the answer to one test request."


class RequesterCases:
    """Proposes test cases, judges what the provider fills in, and runs them."""

    def __init__(self, channel: BoundChannel, demand: Demand) -> None:
        self._bound = channel
        self._demand = demand
        self.verification = Verification(channel.channel)
        self._proposed: tuple[TestCase, ...] = ()
        self.running = False
        "True while test cases are agreed or run."
        self.asked: Fixtures = {}
        "Data of our requests, and results read of the responses; private."

    async def verify(self) -> None:
        """Agree test cases with the provider, run them, and keep the outcome.

        The agreement is active afterwards, or failed. With an error of another kind, or
        when this is cancelled, it stays in its tests and is used by nobody. Whenever
        this raises, the channel is closed.

        Raises:
            CallError: A case fails, so the protocol is not to be used.
            ChannelClosed: The link was lost.
        """
        self.running = True
        waits_for("testing the protocol with the peer")
        try:
            tests, state = await self._outcome()
            await self._bound.keep_tests(tests, state)
            if state is AgreementState.FAILED:
                short, failed = self._bound.protocol.hash[:12], in_words(tests)
                logger.warning("test cases failed hash=%s what=%r", short, failed)
                raise CallError(
                    ErrorKind.GENERATED_CODE,
                    f"the protocol that was agreed is not used: {failed}; "
                    f"`anpd protocols show {short}` tells more",
                )
        except BaseException:
            with contextlib.suppress(CallError):
                await self._bound.channel.close("the test cases did not pass")
            raise
        finally:
            self.running = False

    async def _outcome(self) -> tuple[dict[str, Any], AgreementState]:
        """Agree test cases and run them; return what to keep with the agreement.

        Raises:
            ChannelClosed: The link was lost.
        """
        if "testCasesNegotiation" not in self._bound.channel.capabilities:
            return untested(
                "the peer does not negotiate test cases"
            ), AgreementState.ACTIVE
        try:
            text = await self.propose()
            settled = await self._bound.dialogue.agree_cases(text)
            if isinstance(settled, CasesSkipped):
                return untested(settled.reason), AgreementState.ACTIVE
            report = await self.run(settled.text)
        except NegotiationError as exc:
            # Tests are optional (ANP-48): what cannot be tested is used untested.
            logger.warning("test cases not run reason=%r", str(exc)[:200])
            return untested(str(exc)[:500]), AgreementState.ACTIVE
        if report.passed:
            cases = len(report.results)
            logger.info("test cases passed mode=%s cases=%d", report.mode, cases)
        kept = {**report.to_json(), "asked": self.asked, "at": time.time()}
        return {
            TESTS_KEY: kept
        }, AgreementState.ACTIVE if report.passed else AgreementState.FAILED

    async def propose(self) -> str:
        """Return the cases that the rules derive, as text.

        Raises:
            CasesError: None can be made.
        """
        protocol = self._bound.protocol
        derived = await derive_cases(
            protocol.document,
            self._demand,
            runner=protocol.half,
            validator=self._bound.validator,
        )
        if not derived.cases:
            found = await self._bound.examiner.suggest_cases(self._demand, protocol)
            derived = await derive_cases(
                protocol.document,
                self._demand,
                runner=protocol.half,
                validator=self._bound.validator,
                suggested=[(one.title, one.arguments) for one in found],
            )
        if not derived.cases:
            raise CasesError("no request can be made from the schemas")
        self.asked, self._proposed = derived.asked, derived.cases
        return render_cases(derived.cases, protocol.document)

    async def judge(self, text: str, *, may_counter: bool) -> CasesVerdict:
        """Judge the set that the provider filled in.

        Args:
            may_counter: True when a set of ours can still be sent.
        """
        return await self._bound.examiner.judge_cases(
            text,
            self._bound.protocol,
            self._by_rules,
            ours=True,
            may_counter=may_counter,
        )

    async def _by_rules(self, text: str) -> CasesVerdict:
        protocol = self._bound.protocol
        try:
            cases = read_cases(text, protocol.document)
            verdict = await judge_cases(
                cases,
                protocol.document,
                self._demand,
                runner=protocol.half,
                validator=self._bound.validator,
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
        protocol = self._bound.protocol
        cases = read_cases(text, protocol.document)
        self.asked = await read_responses(cases, self.asked, runner=protocol.half)
        if "verificationProtocol" not in self._bound.channel.capabilities:
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
        await self._bound.dialogue.free.wait()
        knows = self._bound.protocol.document.update_schema is not None
        answer = await self.verification.ask(
            case.request, timeout=ANSWER_TIMEOUT, updates=knows
        )
        if knows:
            answer = await self._behind_updates(answer)
        differences = await self._differences(case, answer)
        if (
            differences
            and not isinstance(answer, NoAnswer)
            and self._bound.dialogue.can_report
        ):
            data, envelope = answer
            report = await self._bound.dialogue.report(
                envelope, describe_error(envelope, differences, data)
            )
            if report.end is ReportEnd.REPAIRED:
                answer = await self.verification.next_answer(timeout=ANSWER_TIMEOUT)
                differences = await self._differences(case, answer)
        detail = "; ".join(differences)[:500]
        result = CaseResult(case.title, not differences, detail)
        return result, not isinstance(answer, NoAnswer)

    async def _behind_updates(
        self, answer: tuple[bytes, str] | NoAnswer
    ) -> tuple[bytes, str] | NoAnswer:
        """Read the updates before an answer; return that, or the first wrong one."""
        for _ in range(MAX_UPDATES):
            if isinstance(answer, NoAnswer):
                return answer
            try:
                found = await self._bound.protocol.decode(answer[0])
            except NegotiationError:
                return answer
            if not isinstance(found, Update):
                return answer
            answer = await self.verification.next_answer(timeout=ANSWER_TIMEOUT)
        return NoAnswer(f"more than {MAX_UPDATES} updates came in a test")

    async def _differences(
        self, case: TestCase, answer: tuple[bytes, str] | NoAnswer
    ) -> list[str]:
        if isinstance(answer, NoAnswer):
            return [answer.reason]
        return await _differences(case, answer[0], self._bound.protocol)


class ProviderCases:
    """Fills proposed test cases in, and answers test requests on fixtures."""

    def __init__(self, channel: BoundChannel, offered: Callable[[], Offer]) -> None:
        self._bound = channel
        self._offered = offered
        self._text = ""
        self._fixtures: Fixtures = {}
        agreement = channel.agreement
        kept = agreement.tests.get(TESTS_KEY) if agreement is not None else None
        if isinstance(kept, dict) and isinstance(kept.get("text"), str):
            self._text, self._fixtures = kept["text"], kept.get("fixtures") or {}

    async def judge(self, text: str, *, may_counter: bool) -> CasesVerdict:
        """Fill in what the requester proposes, from our half on fixtures.

        Args:
            may_counter: True when a set of ours can still be sent.
        """
        return await self._bound.examiner.judge_cases(
            text,
            self._bound.protocol,
            partial(self._by_rules, may_counter=may_counter),
            ours=False,
            may_counter=may_counter,
        )

    async def _by_rules(self, text: str, *, may_counter: bool) -> CasesVerdict:
        half, protocol = self._bound.half, self._bound.protocol
        try:
            completed = await complete_cases(
                read_cases(text, protocol.document),
                protocol.document,
                self._offered(),
                HalfSource(half.source, half.origin, tuple(half.capabilities)),
                runner=protocol.half,
                validator=self._bound.validator,
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

    def settled(self, agreed: CasesAgreed | CasesSkipped) -> dict[str, Any]:
        """Return the record of agreed or skipped cases for the agreement."""
        if isinstance(agreed, CasesSkipped):
            return untested(agreed.reason)
        self._text = agreed.text
        return self._kept()

    def failed(self, request: bytes, detail: str) -> dict[str, Any]:
        """Return the record for the agreement when our own half fails a case.

        Args:
            request: The test request.
            detail: The failure, in words.
        """
        document = self._bound.protocol.document
        titles = {case.request: case.title for case in read_cases(self._text, document)}
        result = CaseResult(titles.get(request, "?"), passed=False, detail=detail[:500])
        return self._kept(results=[asdict(result)])

    def _kept(self, **outcome: Any) -> dict[str, Any]:
        kept = {
            "mode": "agreed",
            "text": self._text,
            # Private: the assumed answers of our capabilities (DESIGN.md).
            "fixtures": self._fixtures,
            **outcome,
            "at": time.time(),
        }
        return {TESTS_KEY: kept}

    async def answer(
        self, request: bytes, send: Callable[[bytes], Awaitable[None]] | None = None
    ) -> bytes:
        """Answer a test request with the real half, on fixtures.

        Args:
            send: Sends the updates that the half writes of samples; None for none.

        Raises:
            HalfError: The half failed.
            CasesError: It is no request of an agreed case.
        """
        runner = self._bound.protocol.half
        updates = None if send is None else (send, update_samples(self._offered()))
        return await answer_case(
            request, self._fixtures, runner=runner, updates=updates
        )

    async def differences(self, exchange: Exchange) -> list[str]:
        """Return the differences of our answer in a test from the agreed one."""
        protocol = self._bound.protocol
        if exchange.response is None or not self._text:
            return []
        for case in read_cases(self._text, protocol.document):
            if case.request == exchange.request:
                return await _differences(case, exchange.response, protocol)
        return []


def untested(reason: str) -> dict[str, Any]:
    """Return the record for an agreement whose cases were not run."""
    report = CasesReport("untested", "", (), reason)
    return {TESTS_KEY: {**report.to_json(), "at": time.time()}}


async def _differences(case: TestCase, actual: bytes, protocol: Protocol) -> list[str]:
    try:
        findings = await protocol.judge("response", actual)
        return findings or await compare(
            case, actual, protocol.document, read=protocol.reader, sent=case.request
        )
    except HalfError as exc:
        return [f"the answer cannot be read: {exc}"]
