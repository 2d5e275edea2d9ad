"""Asks the model about messages that schemas alone cannot judge (ANP-9).

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
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeVar
from typing import Protocol as Interface

from anp.sidecar.halves.protocol import Protocol
from anp.sidecar.minds.minds import Thinking
from negotiation.cases.case import TestCase
from negotiation.cases.text import read_cases, render_cases
from negotiation.errors import CasesError, HalfError, JsonError, MindError
from negotiation.exchange.events import (
    AcceptCases,
    CasesVerdict,
    CounterCases,
    Fault,
    OurFault,
    RejectCases,
)
from negotiation.exchange.limits import DialogueLimits
from negotiation.mind import Demand
from negotiation.strict_json import canonical_json

if TYPE_CHECKING:
    # A model is loaded where the owner set one.
    from negotiation.llm.assess import CaseArguments, ShownMessages
    from negotiation.llm.mind import LlmMind

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_QUESTIONS: Final = 4
"Most questions to the model about messages and test cases of one channel."

ANSWER: Final = "the response"
"Title of an answer of the peer's in a question."

MAX_HEX: Final = 2_000
"Most bytes of a message that a prompt shows in hex."

Judge = Callable[[str], Awaitable[CasesVerdict]]
"Judges a set of test cases by rules."


class ThinkOnChannel(Interface):
    """Gives a mind for one matter of a channel; its cost joins the channel's bill."""

    def __call__(self, *, ours: bool) -> AbstractAsyncContextManager[Thinking]: ...


class Examiner:
    """Asks the model about the messages of one channel, within limits."""

    def __init__(self, think: ThinkOnChannel, limits: DialogueLimits) -> None:
        """Make the examiner.

        Args:
            limits: They say how long the peer waits; what takes the model most of that
                time stays undecided.
        """
        self._think = think
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
        """Judge whose fault a reported error is when the schemas find nothing (ANP-60).

        Args:
            kind: Kind of our message.
            data: Its bytes.
            description: The peer's words, without the reference.
            found: The finding of the rules; it stands unless the model can tell more.
        """
        if isinstance(found, OurFault) or not description.strip():
            return found

        async def question(model: LlmMind) -> Fault:
            shown = await _shown(f"our {kind}", kind, data, protocol)
            return await model.judge_fault(protocol.document.text, shown, description)

        return await self._ask(
            "fault",
            data,
            question,
            ours=False,
            seconds=self._message_timeout,
            otherwise=found,
        )

    async def deviations(
        self, request: bytes | None, response: bytes, protocol: Protocol
    ) -> tuple[str, ...]:
        """Return the deviations of an answer from the document's words.

        Args:
            request: Our request that it answers, if that is known; it is not judged.
        """

        async def question(model: LlmMind) -> tuple[str, ...]:
            messages = [await _shown(ANSWER, "response", response, protocol)]
            if request is not None:
                asked = await _shown("our request", "request", request, protocol)
                messages.insert(0, asked)
            return await model.judge_messages(protocol.document.text, messages)

        nothing: tuple[str, ...] = ()
        found = await self._ask(
            "messages",
            response,
            question,
            ours=True,
            seconds=self._message_timeout,
            otherwise=nothing,
        )
        return tuple(one for one in found if one.startswith(ANSWER))

    async def suggest_cases(
        self, demand: Demand, protocol: Protocol
    ) -> tuple[CaseArguments, ...]:
        """Return arguments for test cases where the rules made none (ANP-48)."""
        return await self._ask(
            "cases",
            b"cases",
            lambda model: model.write_cases(protocol.document.text, demand),
            ours=True,
            seconds=self._cases_timeout,
            otherwise=(),
        )

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
            ours: True when a call of ours started this, and pays.
            may_counter: True when a set of ours can still be sent.
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
        """Return the objections of the model to the cases whose words are unclear."""
        unclear = [case for case in cases if case.good is None]
        if not unclear:
            return {}

        async def question(model: LlmMind) -> dict[TestCase, str]:
            shown = [
                await _shown_case(number, case, protocol)
                for number, case in enumerate(unclear, 1)
            ]
            found = await model.judge_cases(protocol.document.text, shown)
            return {
                case: problem
                for case, one in zip(unclear, shown, strict=True)
                for problem in found
                if problem.startswith(f"{one.title}: ")
            }

        return await self._ask(
            "judge_cases",
            repr(unclear).encode(),
            question,
            ours=ours,
            seconds=self._cases_timeout,
            otherwise={},
        )

    async def _ask(
        self,
        step: str,
        about: bytes,
        question: Callable[[LlmMind], Awaitable[T]],
        *,
        ours: bool,
        seconds: float,
        otherwise: T,
    ) -> T:
        """Put one question to the model.

        Args:
            step: Name of the question, for the log.
            about: Identifies its matter; nothing is asked twice about that.
            ours: True when a call of ours started this, and pays.
            seconds: Time for everything.
            otherwise: Stands where the model cannot say, and where the owner set none.
        """
        if not self._may_ask(about):
            return otherwise
        try:
            async with asyncio.timeout(seconds), self._think(ours=ours) as thinking:
                if thinking.model is None:
                    return otherwise
                return await question(thinking.model)
        except (MindError, TimeoutError) as exc:
            reason = str(exc)[:200] or type(exc).__name__
            logger.info("model did not judge step=%s reason=%r", step, reason)
            return otherwise

    def _may_ask(self, about: bytes) -> bool:
        """Count a question; not twice about the same, and not without end."""
        digest = hashlib.sha256(about).hexdigest()
        if digest in self._asked or len(self._asked) >= MAX_QUESTIONS:
            return False
        self._asked.add(digest)
        return True


async def _shown_case(number: int, case: TestCase, protocol: Protocol) -> ShownMessages:
    from negotiation.llm.assess import ShownMessages

    request = await _shown("", "request", case.request, protocol)
    parts = [f"Request: {request.text}", f"Expected, in words: {case.expected}"]
    if case.response is not None:
        response = await _shown("", "response", case.response, protocol)
        parts.append(f"Response: {response.text}")
    return ShownMessages(f"test case {number}", "\n".join(parts))


async def _shown(
    title: str, kind: Literal["request", "response"], data: bytes, protocol: Protocol
) -> ShownMessages:
    """Return a message as its values, and its bytes where they are not JSON."""
    from negotiation.llm.assess import ShownMessages

    raw = "" if protocol.document.is_json else f"\nBytes in hex: {data[:MAX_HEX].hex()}"
    try:
        values = canonical_json(await protocol.values(kind, data)).decode()
    except (HalfError, JsonError) as exc:
        values = f"(cannot be read: {exc})"
        raw = raw or f"\nBytes in hex: {data[:MAX_HEX].hex()}"
    return ShownMessages(title, f"{values}{raw}")
