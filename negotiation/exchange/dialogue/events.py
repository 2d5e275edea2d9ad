"""What a dialogue asks of its shell, and tells it."""

from __future__ import annotations

from dataclasses import dataclass

from negotiation.exchange.events import Ignored, QuestionEvent

__all__ = [
    "CasesAgreed",
    "CasesEvent",
    "CasesSkipped",
    "DialogueBroken",
    "DialogueEvent",
    "MessageRefused",
    "NeedCasesVerdict",
    "NeedFault",
    "NeedRepair",
    "PeerRepaired",
    "PeerRepairs",
    "RefusalUnsent",
    "RepairEvent",
    "RepairFailed",
    "ReportRefused",
]


@dataclass(frozen=True, slots=True)
class NeedCasesVerdict:
    """Our side is to judge the peer's test cases; answer with `cases_judged`."""

    text: str
    "The peer's `testCases`, untrusted."

    summary: str
    "The peer's `modificationSummary`, untrusted, empty when it gave none."

    rounds: int
    "`negotiating` messages so far, both sides together."

    may_counter: bool
    "False when a counter would be over the limit and skips the tests (ANP-Q9)."


@dataclass(frozen=True, slots=True)
class CasesAgreed:
    """Both sides hold the same test cases; the requester runs them (ANP-53)."""

    text: str
    "The agreed text."

    by_peer: bool
    "True when the peer accepted a set of ours."


@dataclass(frozen=True, slots=True)
class CasesSkipped:
    """There are no agreed test cases: the agreement is untested (ANP-48, ANP-Q9).

    The channel stays usable. It may also follow `CasesAgreed`, when the peer takes its
    word back because it never got ours.
    """

    reason: str
    "Why, in words for the owner; may quote the peer."

    by_peer: bool
    "True when the peer refused, was silent or broke the rules."


@dataclass(frozen=True, slots=True)
class NeedFault:
    """The peer says a message of ours is wrong; answer with `fault_judged` (ANP-60).

    At most one is open: a next one means that the one before was not answered in time.
    """

    reference: str | None
    "Message id of the encrypted envelope in question; None when the peer names none."

    description: str
    "The peer's words without the reference, untrusted."

    rounds: int
    "`negotiating` messages about this message so far, both sides together."

    number: int
    "Counts these events from 1; with it `fault_judged` tells a late answer apart."


@dataclass(frozen=True, slots=True)
class NeedRepair:
    """We admitted the fault: make new code and answer with `repair_ready` (ANP-60)."""

    reference: str | None
    "Message id in question."

    description: str
    "The peer's words without the reference, untrusted."


@dataclass(frozen=True, slots=True)
class PeerRepairs:
    """The peer accepted our report and makes new code; data is held (ANP-Q25)."""

    reference: str | None
    "Message id in question."


@dataclass(frozen=True, slots=True)
class PeerRepaired:
    """The peer's new code is in use."""

    reference: str | None
    "Message id in question."


@dataclass(frozen=True, slots=True)
class RepairFailed:
    """A repair failed, ours or the peer's; `DialogueBroken` follows (ANP-46)."""

    reference: str | None
    "Message id in question."

    reason: str
    "Why, in words for the owner."

    by_peer: bool
    "True when it was the peer's repair."


@dataclass(frozen=True, slots=True)
class ReportRefused:
    """A report of ours comes to nothing; it may be made again with more detail."""

    reference: str | None
    "Message id in question."

    reason: str
    "Why, in words for the owner; may quote the peer."

    by_peer: bool
    "True when the peer refused it or did not answer, False when we did not send it."


@dataclass(frozen=True, slots=True)
class MessageRefused:
    """The peer cannot answer a message of ours; its call ends (DESIGN.md, calls)."""

    reference: str
    "Message id of the encrypted envelope in question, as the peer says."

    reason: str
    "The peer's words, untrusted."


@dataclass(frozen=True, slots=True)
class RefusalUnsent:
    """The peer does not understand refusals; its channel is to be closed instead."""

    reference: str
    "Message id of the peer's message that has no answer."

    reason: str
    "Why it has none."


@dataclass(frozen=True, slots=True)
class DialogueBroken:
    """The communication ends: the shell closes the channel (ANP-46)."""

    reason: str
    "Why, in words for the owner."

    by_peer: bool
    "True when the peer broke the rules or its repair failed."


CasesEvent = NeedCasesVerdict | CasesAgreed | CasesSkipped
"What happens to test cases."

RepairEvent = (
    NeedFault
    | NeedRepair
    | PeerRepairs
    | PeerRepaired
    | RepairFailed
    | ReportRefused
    | MessageRefused
    | RefusalUnsent
)
"What happens to reports and repairs."

DialogueEvent = CasesEvent | RepairEvent | QuestionEvent | Ignored | DialogueBroken
"What the shell acts on."
