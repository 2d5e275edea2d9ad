"""The answers of our own side to the questions of a dialogue."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "AcceptCases",
    "CasesVerdict",
    "CounterCases",
    "Fault",
    "OurFault",
    "PeerFault",
    "RejectCases",
]


@dataclass(frozen=True, slots=True)
class AcceptCases:
    """Accepts the test cases as they are."""


@dataclass(frozen=True, slots=True)
class CounterCases:
    """Proposes a complete other set of test cases (ANP-49)."""

    text: str
    "The full set, at most 64 KiB of UTF-8 (ANP-Q30)."

    summary: str
    "Changes from the previous set, in words (ANP-51)."


@dataclass(frozen=True, slots=True)
class RejectCases:
    """Refuses test cases; the agreement stays untested (ANP-Q9)."""

    reason: str
    "Reason in words that the peer may see."


CasesVerdict = AcceptCases | CounterCases | RejectCases
"Our side's answer to a set of test cases."


@dataclass(frozen=True, slots=True)
class OurFault:
    """A message of ours violates the document; our code is repaired (ANP-60)."""

    findings: tuple[str, ...]
    "Faults of our message, in words that the peer may see."


@dataclass(frozen=True, slots=True)
class PeerFault:
    """Our message is right; the peer's report is refused (ANP-60)."""

    reason: str
    "The detailed reason, in words that the peer may see."


Fault = OurFault | PeerFault
"The side whose fault a reported error is."
