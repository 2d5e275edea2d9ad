"""Rules first, the model only for what is left (DESIGN.md, Negotiation)."""

from __future__ import annotations

import logging

from negotiation.errors import HalfError, MindError
from negotiation.llm.mind import LlmMind
from negotiation.mind import Accept, HalfSource, Mind, Need, Side, Verdict
from negotiation.transcript import Turn

__all__ = ["AutoMind"]

logger = logging.getLogger(__name__)


class AutoMind:
    """A `Mind` that asks a model only where schemas alone do not decide.

    The side with the model adapts: what the rules would counter or reject goes to the
    model, and only what that cannot adapt to either is sent back.

    Args:
        rules: Costs nothing.
        llm: Is asked for what is left.
    """

    def __init__(self, rules: Mind, llm: LlmMind) -> None:
        self._rules = rules
        self._llm = llm

    async def propose(self, need: Need) -> str:
        """Return the first candidate; prose without schemas is the model's."""
        return await self._llm.propose(need)

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        """Judge by schemas, and ask the model about what they do not accept."""
        if not findings:
            verdict = await self._rules.judge(candidate, side, transcript)
            if isinstance(verdict, Accept):
                return verdict
        return await self._llm.judge(candidate, side, transcript, findings=findings)

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        """Write by rules where they reach, else by what the model found."""
        if not findings and not self._llm.knows(document, side):
            try:
                return await self._rules.write_half(document, side)
            except HalfError:
                return await self._llm.write_half(document, side)
        return await self._llm.write_half(document, side, findings=findings)

    async def answer(self, question: str, side: Side) -> str:
        """Answer in words; the rules, which a model fails over to, have only names."""
        try:
            return await self._llm.answer(question, side)
        except MindError as exc:
            logger.warning("model gave no answer reason=%r", str(exc)[:200])
            return await self._rules.answer(question, side)
