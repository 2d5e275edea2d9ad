"""What our own side answers when a dialogue asks it."""

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
    """The test cases are good as they stand."""


@dataclass(frozen=True, slots=True)
class CounterCases:
    """Here is a whole other set (ANP-49)."""

    text: str
    "The full set, at most 64 KiB of UTF-8 (ANP-Q30)."

    summary: str
    "What changed against the set before, in words (ANP-51)."


@dataclass(frozen=True, slots=True)
class RejectCases:
    """There will be no test cases; the agreement stays untested (ANP-Q9)."""

    reason: str
    "Why, in words that the peer may see."


CasesVerdict = AcceptCases | CounterCases | RejectCases
"What our side says about a set of test cases."


@dataclass(frozen=True, slots=True)
class OurFault:
    """A message of ours breaks the document; our code is repaired (ANP-60)."""

    findings: tuple[str, ...]
    "What is wrong with it, in words that the peer may see."


@dataclass(frozen=True, slots=True)
class PeerFault:
    """Our message is good; the peer's report is refused (ANP-60)."""

    reason: str
    "The detailed reason, in words that the peer may see."


Fault = OurFault | PeerFault
"Whose fault a reported error is."
