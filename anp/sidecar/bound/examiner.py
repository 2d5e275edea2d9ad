"""Has the model look at what schemas do not decide, on one channel (ANP-9).

Code judges every message; the model is asked about one only when somebody has doubts
that code cannot settle: our half cannot read an answer that fits its schemas, a peer
complains about a message of ours that fits them, or the words of a test case leave open
what is expected. Each costs one question, each message is asked about once, and a
channel has a number of them, so that complaints cost a bounded amount. Calls that
nobody doubts cost nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, Literal

from anp.sidecar.halves.protocol import Protocol
from anp.sidecar.minds.afterwards import Afterwards, Bill
from negotiation.cases import TestCase, read_cases, render_cases
from negotiation.errors import CasesError, HalfError, JsonError, MindError
from negotiation.exchange.dialogue import (
    AcceptCases,
    CasesVerdict,
    CounterCases,
    DialogueLimits,
    Fault,
    OurFault,
    RejectCases,
)
from negotiation.llm.mind import LlmMind
from negotiation.llm.steps.examine import CaseArguments, Shown
from negotiation.mind import Need
from negotiation.strict_json import canonical_json

__all__ = ["MAX_QUESTIONS", "Examiner"]

logger = logging.getLogger(__name__)

MAX_QUESTIONS: Final = 4
"Most questions to the model about messages and test cases of one channel."

ANSWER: Final = "the response"
"How an answer of the peer's is called in a question."

MAX_HEX: Final = 2_000
"Most bytes of a message that a prompt shows in hex."

Judge = Callable[[str], Awaitable[CasesVerdict]]
"Judges a set of test cases by rules."


class Examiner:
    """Asks the model about the messages of one channel, within limits."""

    def __init__(
        self,
        afterwards: Afterwards,
        peer_did: str,
        negotiation_id: Callable[[], str | None],
        bill: Bill,
        *,
        limits: DialogueLimits,
    ) -> None:
        """Make the examiner.

        Args:
            peer_did: The peer in its canonical form.
            negotiation_id: Gives the negotiation the protocol came from.
            bill: Gets the cost.
            limits: How long the peer waits; what takes the model most of that stays
                undecided.
        """
        self._afterwards = afterwards
        self._peer = peer_did
        self._negotiation_id = negotiation_id
        self._bill = bill
        # After a judgement a repair has to fit in; test cases have their checks.
        self._message_timeout = limits.fault_timeout / 2
        self._cases_timeout = limits.answer_timeout * 0.8
        self._asked: set[str] = set()

    async def judge_fault(
        self,
        kind: Literal["request", "response"],
        data: bytes,
        description: str,
        *,
        found: Fault,
        protocol: Protocol,
    ) -> Fault:
        """Say whose fault a reported error is when the schemas find nothing (ANP-60).

        Args:
            kind: What our message was.
            data: Its bytes.
            description: The peer's words, without the reference.
            found: What the rules say; it stands unless the model can tell more.
        """
        if isinstance(found, OurFault) or not description.strip():
            return found
        if not self._may_ask(data):
            return found
        try:
            async with self._model(ours=False, seconds=self._message_timeout) as model:
                if model is None:
                    return found
                shown = await _shown(f"our {kind}", kind, data, protocol)
                text = protocol.document.text
                return await model.judge_fault(text, shown, description)
        except (MindError, TimeoutError) as exc:
            _note("fault", exc)
            return found

    async def deviations(
        self, request: bytes | None, response: bytes, protocol: Protocol
    ) -> tuple[str, ...]:
        """Return how an answer that fits its schemas breaks the document's words.

        Args:
            request: What it answers, if that is known; our own, and not judged.
        """
        if not self._may_ask(response):
            return ()
        try:
            async with self._model(ours=True, seconds=self._message_timeout) as model:
                if model is None:
                    return ()
                messages = [await _shown(ANSWER, "response", response, protocol)]
                if request is not None:
                    asked = await _shown("our request", "request", request, protocol)
                    messages.insert(0, asked)
                text = protocol.document.text
                found = await model.judge_messages(text, messages)
        except (MindError, TimeoutError) as exc:
            _note("messages", exc)
            return ()
        return tuple(one for one in found if one.startswith(ANSWER))

    async def suggest_cases(
        self, need: Need, protocol: Protocol
    ) -> tuple[CaseArguments, ...]:
        """Return arguments for test cases where the rules made none (ANP-48)."""
        if not self._may_ask(b"cases"):
            return ()
        try:
            async with self._model(ours=True, seconds=self._cases_timeout) as model:
                if model is None:
                    return ()
                return await model.write_cases(protocol.document.text, need)
        except (MindError, TimeoutError) as exc:
            _note("cases", exc)
            return ()

    async def judge_cases(
        self,
        text: str,
        protocol: Protocol,
        judge: Judge,
        *,
        ours: bool,
        may_counter: bool,
    ) -> CasesVerdict:
        """Judge test cases by rules, after those whose words the rules cannot read.

        The rules know whether a good result or an error is expected where the words
        say so; a set in which all do costs nothing.

        Args:
            judge: The rules.
            ours: Whether a call of ours started this, and pays.
            may_counter: Whether a set of ours can still be sent.
        """
        document = protocol.document
        try:
            cases = read_cases(text, document)
        except CasesError:
            return await judge(text)
        problems = await self._case_problems(cases, protocol, ours=ours)
        if not problems:
            return await judge(text)
        kept = [case for case in cases if case not in problems]
        reasons = "; ".join(problems.values())[:2000]
        if not kept:
            return RejectCases(reasons)
        verdict = await judge(render_cases(kept, document))
        if isinstance(verdict, CounterCases):
            return replace(verdict, summary=f"{verdict.summary} {reasons}"[:4000])
        if isinstance(verdict, AcceptCases) and may_counter:
            return CounterCases(render_cases(kept, document), reasons)
        return verdict if isinstance(verdict, RejectCases) else RejectCases(reasons)

    async def _case_problems(
        self, cases: Sequence[TestCase], protocol: Protocol, *, ours: bool
    ) -> dict[TestCase, str]:
        """Return what the model says against the cases whose words are unclear."""
        unclear = [case for case in cases if case.good is None]
        if not unclear or not self._may_ask(repr(unclear).encode()):
            return {}
        try:
            async with self._model(ours=ours, seconds=self._cases_timeout) as model:
                if model is None:
                    return {}
                shown = [
                    await _shown_case(number, case, protocol)
                    for number, case in enumerate(unclear, 1)
                ]
                found = await model.judge_cases(protocol.document.text, shown)
        except (MindError, TimeoutError) as exc:
            _note("judge_cases", exc)
            return {}
        return {
            case: problem
            for case, one in zip(unclear, shown, strict=True)
            for problem in found
            if problem.startswith(f"{one.title}: ")
        }

    @asynccontextmanager
    async def _model(
        self, *, ours: bool, seconds: float
    ) -> AsyncIterator[LlmMind | None]:
        """Give the model for one question, None where the owner set none.

        Raises:
            TimeoutError: What was done with it took too long.
        """
        async with (
            asyncio.timeout(seconds),
            self._afterwards.think(
                self._peer,
                ours=ours,
                negotiation_id=self._negotiation_id(),
                bill=self._bill,
            ) as thinking,
        ):
            yield thinking.model

    def _may_ask(self, about: bytes) -> bool:
        """Count a question; not twice about the same, and not without end."""
        digest = hashlib.sha256(about).hexdigest()
        if digest in self._asked or len(self._asked) >= MAX_QUESTIONS:
            return False
        self._asked.add(digest)
        return True


async def _shown_case(number: int, case: TestCase, protocol: Protocol) -> Shown:
    request = await _shown("", "request", case.request, protocol)
    parts = [f"Request: {request.text}", f"Expected, in words: {case.expected}"]
    if case.response is not None:
        response = await _shown("", "response", case.response, protocol)
        parts.append(f"Response: {response.text}")
    return Shown(f"test case {number}", "\n".join(parts))


async def _shown(
    title: str,
    kind: Literal["request", "response"],
    data: bytes,
    protocol: Protocol,
) -> Shown:
    """Return a message as its values, and its bytes where they are not JSON."""
    raw = "" if protocol.document.is_json else f"\nBytes in hex: {data[:MAX_HEX].hex()}"
    try:
        values = canonical_json(await protocol.values(kind, data)).decode()
    except (HalfError, JsonError) as exc:
        values = f"(cannot be read: {exc})"
        raw = raw or f"\nBytes in hex: {data[:MAX_HEX].hex()}"
    return Shown(title, f"{values}{raw}")


def _note(step: str, exc: Exception) -> None:
    reason = str(exc)[:200] or type(exc).__name__
    logger.info("model did not judge step=%s reason=%r", step, reason)
