"""The interface of a mind, which takes the decisions of a negotiation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from negotiation.need import Capability, Need
from negotiation.strict_json import Json
from negotiation.transcript import Turn

__all__ = [
    "Accept",
    "Counter",
    "HalfSource",
    "Mind",
    "Demand",
    "Offer",
    "Reject",
    "Side",
    "Verdict",
]


@dataclass(frozen=True, slots=True)
class Demand:
    """The requester's side of a negotiation."""

    need: Need
    "The caller's need; its schemas limit what may be agreed."

    arguments: Json
    "The data of the call at hand; its shape replaces a missing input schema."

    hints: tuple[str, ...] = ()
    "The owner's hints, newest last; private to our mind (ANP-34)."


@dataclass(frozen=True, slots=True)
class Offer:
    """The provider's side of a negotiation."""

    capabilities: tuple[Capability, ...]
    "The capabilities that this peer may see and use; the mind knows no others."

    hints: tuple[str, ...] = ()
    "The owner's hints, newest last; private to our mind (ANP-34)."


Side = Demand | Offer
"The side that the mind works for."


@dataclass(frozen=True, slots=True)
class Accept:
    """The candidate is accepted as it is (ANP-33)."""


@dataclass(frozen=True, slots=True)
class Counter:
    """The candidate is refused; the mind proposes a complete other one (ANP-27)."""

    document: str
    "The full text of our candidate."

    summary: str
    "Changes from the peer's candidate, in words (ANP-30)."


@dataclass(frozen=True, slots=True)
class Reject:
    """The negotiation ends, as no document can settle it (ANP-Q23)."""

    reason: str
    "Reason in words that the peer may see; names what is missing."


Verdict = Accept | Counter | Reject
"A mind's answer to a candidate of the peer."


@dataclass(frozen=True, slots=True)
class HalfSource:
    """One half of a module as text."""

    text: str
    "Python source in the module contract."

    origin: str
    "Author: `rules`, `model`, `imported` or `hand-written`."

    capabilities: tuple[str, ...] = ()
    "Full names of the capabilities that a provider half may call."

    model: str = field(default="", compare=False)
    "Name of the model that wrote it; empty for other origins or when unknown."

    samples: str = field(default="none", compare=False)
    "`full`, `partial` or `none`: how much of the schemas its check could sample."


class Mind(Protocol):
    """Answers the questions of a negotiation; any method may raise `MindError`."""

    async def propose(self, demand: Demand) -> str:
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
            findings: Faults of a half that was written for this same candidate after an
                `Accept`. The shell then treats another `Accept` as a rejection.
        """
        ...

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        """Write our half for `document`.

        Args:
            findings: Faults of the half from the previous attempt, in words.

        Raises:
            HalfError: This mind cannot write a half for the document.
        """
        ...

    async def answer(self, question: str, side: Side) -> str:
        """Answer a question that the peer asked in words (ANP-64).

        Args:
            question: The peer's text, untrusted.
        """
        ...
