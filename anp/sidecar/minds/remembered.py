"""A mind that remembers its refusals, so that the same one is not paid for twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from anp.sidecar.minds.accounts import Cost, Spending
from negotiation.document.shape import document_hash
from negotiation.llm.memory import side_key
from negotiation.mind import Demand, HalfSource, Mind, Reject, Side, Verdict
from negotiation.strict_json import canonical_json
from negotiation.transcript import Direction, Turn

KEPT = 10 * 365 * 86_400.0
"Seconds that a refusal is kept: until it makes room, or one of its causes changes."


class RememberingMind:
    """Refuses again, without a model call, what a model refused before.

    A refusal holds for one document, one peer, the need or the offered capabilities
    with their schemas and hints, and one model; with another of these it is asked anew.
    """

    def __init__(
        self,
        mind: Mind,
        spending: Spending,
        *,
        peer: str,
        model: str,
        cost: Callable[[], Cost],
    ) -> None:
        """Make the mind.

        Args:
            peer: The peer in its canonical form.
            model: Name of the model behind `mind`.
            cost: Returns the model calls so far.
        """
        self._mind = mind
        self._spending = spending
        self._peer = peer
        self._model = model
        self._cost = cost

    async def propose(self, demand: Demand) -> str:
        """Return the mind's text."""
        return await self._mind.propose(demand)

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        """Return the mind's verdict, or its refusal of before."""
        sent = [one for one in transcript if one.direction is Direction.SENT]
        if findings or any(one.candidate for one in sent):
            # The verdict depends on more than the document then.
            return await self._mind.judge(
                candidate, side, transcript, findings=findings
            )
        key = self._key(candidate, side)
        known = await self._spending.known(key)
        if known is not None and isinstance(known.get("refused"), str):
            return Reject(known["refused"], str(known.get("told", "")))
        before = self._cost().model_calls
        verdict = await self._mind.judge(candidate, side, transcript)
        if isinstance(verdict, Reject) and self._cost().model_calls > before:
            kept = {"refused": verdict.reason, "told": verdict.told}
            await self._spending.keep(key, kept, seconds=KEPT)
        return verdict

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        """Return the mind's half."""
        return await self._mind.write_half(document, side, findings=findings)

    async def answer(self, question: str, side: Side) -> str:
        """Return the mind's answer."""
        return await self._mind.answer(question, side)

    def _key(self, candidate: str, side: Side) -> str:
        parts = [
            "refusal",
            document_hash(candidate),
            side_key(side),
            self._peer,
            self._model,
        ]
        return hashlib.sha256(canonical_json(parts)).hexdigest()
