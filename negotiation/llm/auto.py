"""Rules first, the model only for the rest (DESIGN.md, Negotiation)."""

from __future__ import annotations

import logging

from negotiation.document.reader import read_document
from negotiation.errors import HalfError, MindError
from negotiation.llm.mind import LlmMind
from negotiation.mind import Accept, Demand, HalfSource, Mind, Reject, Side, Verdict
from negotiation.need import Capability
from negotiation.rules.choice import choose
from negotiation.rules.names import unnamed_effects
from negotiation.transcript import Turn

logger = logging.getLogger(__name__)


class AutoMind:
    """A `Mind` that asks a model only where schemas alone do not decide.

    The side with the model adapts: a candidate that the rules would counter or reject
    goes to the model, and only if that cannot adapt either the candidate is sent back.

    Args:
        rules: Decides without cost.
        llm: Decides the rest.
    """

    def __init__(self, rules: Mind, llm: LlmMind) -> None:
        self._rules = rules
        self._llm = llm
        # Documents whose empty places the model could not fill either.
        self._in_vain: set[str] = set()

    async def propose(self, demand: Demand) -> str:
        """Return the first candidate; the model writes it if there are no schemas."""
        return await self._llm.propose(demand)

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        """Judge by schemas; ask the model about candidates that these do not accept.

        It is asked as well about places that schemas alone leave empty, and where it
        has no source for these the verdict by schemas stands.
        """
        if findings or self._llm.insists_on_format(side):
            return await self._llm.judge(candidate, side, transcript, findings=findings)
        verdict = await self._rules.judge(candidate, side, transcript)
        empty = () if isinstance(verdict, Reject) else verdict.empty
        served = isinstance(verdict, Accept) and not _would_ask(candidate, side)
        if not empty:
            if served:
                return verdict
            return await self._llm.judge(candidate, side, transcript)
        if candidate in self._in_vain:
            return verdict
        try:
            found = await self._llm.judge(candidate, side, transcript)
            if isinstance(found, Accept):
                return found
        except MindError as exc:
            logger.warning("model filled no places reason=%r", str(exc)[:200])
        self._in_vain.add(candidate)
        return verdict

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        """Write by rules where possible, otherwise by the plan that the model found."""
        if findings or self._llm.knows(document, side):
            return await self._llm.write_half(document, side, findings=findings)
        try:
            half = await self._rules.write_half(document, side)
        except HalfError:
            return await self._llm.write_half(document, side)
        if not half.empty or document in self._in_vain:
            return half
        try:
            return await self._llm.write_half(document, side)
        except (HalfError, MindError) as exc:
            logger.warning("model filled no places reason=%r", str(exc)[:200])
            self._in_vain.add(document)
            return half

    async def answer(self, question: str, side: Side) -> str:
        """Answer through the model; if it fails, the rules answer with names only."""
        try:
            return await self._llm.answer(question, side)
        except MindError as exc:
            logger.warning("model gave no answer reason=%r", str(exc)[:200])
            return await self._rules.answer(question, side)


def _would_ask(candidate: str, side: Side) -> bool:
    """Return whether rules chose side effects that only the owner can allow.

    The model may know a capability that is meant, and that need not be asked about.
    """
    if isinstance(side, Demand) or side.hints:
        return False
    document = read_document(candidate)
    chosen = choose(document, side.capabilities)
    return isinstance(chosen, Capability) and bool(
        unnamed_effects(document.requirement, [chosen.name], side.capabilities)
    )
