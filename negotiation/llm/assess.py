"""Questions to a model about words, messages, cases and faults.

Code decides first in all of them; only what it cannot decide is asked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from negotiation.errors import MindError
from negotiation.exchange.dialogue.answers import Fault
from negotiation.llm.asking.questions import Model, Question
from negotiation.llm.discretion import Discretion
from negotiation.llm.steps import examine
from negotiation.llm.steps.answer import (
    Spoken,
    answer_question,
    read_answer,
    read_spoken,
    spoken_question,
)
from negotiation.mind import Demand, Offer, Side

__all__ = ["Assessor"]


class Assessor:
    """Answers in words, and judges what schemas do not cover.

    Args:
        model: Answers the questions; keeps the budget.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, question: str, side: Side) -> str:
        """Answer a question that the peer asked in words (ANP-64).

        Raises:
            MindError: The model failed, or gave an empty answer twice.
        """
        for again in (False, True):
            asked = answer_question(question, side, again=again)
            words = read_answer(await self._ask(asked))
            if words and not Discretion(side, question).tells(words):
                return words
        raise MindError("the model has no words for an answer")

    async def serve_text(self, text: str, offer: Offer) -> Spoken:
        """Return the exposed capability that a natural-language text asks for (ANP-71).

        Raises:
            MindError: The model failed.
        """
        if not offer.capabilities:
            return Spoken("", {}, "nothing is offered to you")
        return read_spoken(await self._ask(spoken_question(text, offer)), offer)

    async def judge_messages(
        self, document: str, messages: Sequence[examine.ShownMessages]
    ) -> tuple[str, ...]:
        """Return the deviations of messages from the document (ANP-9).

        Raises:
            MindError: The model failed.
        """
        question = examine.messages_question(document, messages)
        return examine.read_messages(messages, await self._ask(question))

    async def write_cases(
        self, document: str, demand: Demand, *, most: int = 6
    ) -> tuple[examine.CaseArguments, ...]:
        """Return arguments for test cases, besides those that rules derive (ANP-48).

        Raises:
            MindError: The model failed.
        """
        question = examine.cases_question(document, demand, most=most)
        return examine.read_cases(demand, await self._ask(question), most=most)

    async def judge_cases(
        self, document: str, cases: Sequence[examine.ShownMessages]
    ) -> tuple[str, ...]:
        """Return the faults of test cases, other than those of schemas (ANP-49).

        Raises:
            MindError: The model failed.
        """
        question = examine.judge_cases_question(document, cases)
        return examine.read_messages(cases, await self._ask(question))

    async def judge_fault(
        self,
        document: str,
        message: examine.ShownMessages,
        description: str,
        *,
        findings: tuple[str, ...] = (),
    ) -> Fault:
        """Return the side whose fault a reported error is (ANP-60).

        message: Our message that the peer reports as faulty.
            description: The peer's text, untrusted.
            findings: Faults by the schemas; any of them decides without a question.
            findings: What the schemas say against it; any decides without a question.

        Raises:
            MindError: The model failed.
        """
        if (known := examine.plain_fault(findings)) is not None:
            return known
        question = examine.fault_question(document, message, description)
        return examine.read_fault(document, message, await self._ask(question))

    async def _ask(self, question: Question) -> dict[str, Any]:
        answer = await self._model.ask(question)
        if not isinstance(answer, dict):
            raise MindError(f"the model's answer to {question.step} is no object")
        return answer
