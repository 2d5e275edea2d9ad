"""What is said beside a written protocol (PT=00), where there is no half."""

from __future__ import annotations

import logging

from negotiation.exchange.dialogue import (
    CasesAgreed,
    CasesSkipped,
    CasesVerdict,
    Fault,
    PeerFault,
    RejectCases,
)

__all__ = ["FixedAnswers"]

logger = logging.getLogger(__name__)


class FixedAnswers:
    """What a channel with a written protocol says in a dialogue: there is no half.

    Code of ours is not negotiated about, tested in cases or repaired on a channel.
    """

    def __init__(self, uri: str, peer: str) -> None:
        self._uri = uri
        self._peer = peer

    async def judge_cases(self, text: str, *, may_counter: bool) -> CasesVerdict:
        """See `Answers`."""
        return RejectCases(f"{self._uri} is a consensus protocol; its text is its test")

    async def cases_settled(self, settled: CasesAgreed | CasesSkipped) -> None:
        """See `Answers`."""
        logger.info("test cases settled outcome=%s", type(settled).__name__)

    async def judge_fault(self, reference: str | None, description: str) -> Fault:
        """See `Answers`; faults are told in the protocol's own way."""
        logger.warning(
            "peer reports an error peer=%s text=%r", self._peer, description[:200]
        )
        return PeerFault(
            f"the code for {self._uri} is written by hand and not changed on a channel"
        )

    async def repaired(self, reference: str | None) -> None:
        """Nothing is reported, so nothing is repaired."""
        logger.info("peer repaired something peer=%s", self._peer)

    def message_refused(self, reference: str, reason: str) -> None:
        """See `Answers`; the call ends by the protocol's own answer or its deadline."""
        logger.warning(
            "peer refuses a message peer=%s reason=%r", self._peer, reason[:200]
        )

    async def answer(self, question: str) -> str:
        """See `Answers`."""
        return (
            f"This channel speaks {self._uri}. Its request with the action `discover` "
            "lists what there is."
        )
