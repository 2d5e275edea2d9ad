"""What a model is asked beside documents and halves: words, messages, cases, faults.

Rules come first in all of them; who asks here has nothing left that code can decide.
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
from negotiation.mind import Need, Offer, Side

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
            MindError: The model failed, or says nothing twice.
        """
        for again in (False, True):
            asked = answer_question(question, side, again=again)
            words = read_answer(await self._ask(asked))
            if words and not Discretion(side, question).tells(words):
                return words
        raise MindError("the model has no words for an answer")

    async def serve_text(self, text: str, offer: Offer) -> Spoken:
        """Say which exposed capability a text of natural language asks for (ANP-71).

        Raises:
            MindError: The model failed.
        """
        if not offer.capabilities:
            return Spoken("", {}, "nothing is offered to you")
        return read_spoken(await self._ask(spoken_question(text, offer)), offer)

    async def judge_messages(
        self, document: str, messages: Sequence[examine.Shown]
    ) -> tuple[str, ...]:
        """Return in which way messages deviate from the document (ANP-9).

        Raises:
            MindError: The model failed.
        """
        question = examine.messages_question(document, messages)
        return examine.read_messages(messages, await self._ask(question))

    async def write_cases(
        self, document: str, need: Need, *, most: int = 6
    ) -> tuple[examine.CaseArguments, ...]:
        """Return arguments worth testing beside those that rules derive (ANP-48).

        Raises:
            MindError: The model failed.
        """
        question = examine.cases_question(document, need, most=most)
        return examine.read_cases(need, await self._ask(question), most=most)

    async def judge_cases(
        self, document: str, cases: Sequence[examine.Shown]
    ) -> tuple[str, ...]:
        """Return what speaks against test cases, beyond their schemas (ANP-49).

        Raises:
            MindError: The model failed.
        """
        question = examine.judge_cases_question(document, cases)
        return examine.read_messages(cases, await self._ask(question))

    async def judge_fault(
        self,
        document: str,
        message: examine.Shown,
        description: str,
        *,
        findings: tuple[str, ...] = (),
    ) -> Fault:
        """Say whose fault a reported error is (ANP-60).

        Args:
            message: Our message that the peer complains about.
            description: The peer's words, untrusted.
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
