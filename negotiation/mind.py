"""What takes the decisions of a negotiation: what it is shown and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from negotiation.need import Capability, Task
from negotiation.strict_json import Json
from negotiation.transcript import Turn

__all__ = [
    "Accept",
    "Counter",
    "HalfSource",
    "Mind",
    "Need",
    "Offer",
    "Reject",
    "Side",
    "Verdict",
]


@dataclass(frozen=True, slots=True)
class Need:
    """The requester's side of a negotiation."""

    task: Task
    "What the caller wants; its schemas bind what may be agreed."

    arguments: Json
    "The data of the call at hand; its shape stands in for a missing input schema."

    hints: tuple[str, ...] = ()
    "What the owner says about it, newest last; for our mind alone (ANP-34)."


@dataclass(frozen=True, slots=True)
class Offer:
    """The provider's side of a negotiation."""

    capabilities: tuple[Capability, ...]
    "What this peer may see and use; nothing else exists for the mind."

    hints: tuple[str, ...] = ()
    "What the owner says about it, newest last; for our mind alone (ANP-34)."


Side = Need | Offer
"Whom the mind works for."


@dataclass(frozen=True, slots=True)
class Accept:
    """The candidate is good as it stands (ANP-33)."""


@dataclass(frozen=True, slots=True)
class Counter:
    """The candidate is not good enough; here is a whole other one (ANP-27)."""

    document: str
    "The full text of our candidate."

    summary: str
    "What changed against the peer's candidate, in words (ANP-30)."


@dataclass(frozen=True, slots=True)
class Reject:
    """No document can settle this; it ends the negotiation (ANP-Q23)."""

    reason: str
    "Why, in words that the peer may see; names what is missing."


Verdict = Accept | Counter | Reject
"What a mind says about a candidate of the peer."


@dataclass(frozen=True, slots=True)
class HalfSource:
    """One half of a module as text."""

    text: str
    "Python source in the module contract."

    origin: str
    "Who wrote it: `rules`, `model`, `imported` or `hand-written`."

    capabilities: tuple[str, ...] = ()
    "Full names of the capabilities a provider half may call."

    model: str = field(default="", compare=False)
    "Name of the model that wrote it; empty for other origins, and where unknown."


class Mind(Protocol):
    """Answers the questions of a negotiation; any method may raise `MindError`."""

    async def propose(self, need: Need) -> str:
        """Return the first candidate: need, what the caller can use, format (ANP-4)."""
        ...

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        """Judge the peer's candidate, the last turn of `transcript`.

        Args:
            findings: What went wrong when a half for this same candidate was written
                after an `Accept`. With findings another `Accept` makes no sense; the
                shell takes it as a rejection.
        """
        ...

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        """Write our half for `document`.

        Args:
            findings: What was wrong with the half of the attempt before, in words.

        Raises:
            HalfError: This mind cannot write a half for the document.
        """
        ...

    async def answer(self, question: str, side: Side) -> str:
        """Answer a question that the peer asked in words (ANP-64).

        Args:
            question: The peer's words, untrusted.
        """
        ...
