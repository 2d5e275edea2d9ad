"""Requests and reports of a dialogue to its shell."""

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
    """Our side must judge the peer's test cases; answer with `cases_judged`."""

    text: str
    "The peer's `testCases`, untrusted."

    summary: str
    "The peer's `modificationSummary`, untrusted; empty when it gave none."

    rounds: int
    "Number of `negotiating` messages so far, of both sides together."

    may_counter: bool
    "False when a counter-proposal would exceed the limit and skip the tests (ANP-Q9)."


@dataclass(frozen=True, slots=True)
class CasesAgreed:
    """Both sides have the same test cases; the requester runs them (ANP-53)."""

    text: str
    "The agreed text."

    by_peer: bool
    "True when the peer accepted a set of ours."


@dataclass(frozen=True, slots=True)
class CasesSkipped:
    """There are no agreed test cases: the agreement is untested (ANP-48, ANP-Q9).

    The channel stays usable. It may also follow `CasesAgreed`, when the peer withdraws
    its acceptance because ours never arrived.
    """

    reason: str
    "Reason in words for the owner; may quote the peer."

    by_peer: bool
    "True when the peer refused, was silent or violated the rules."


@dataclass(frozen=True, slots=True)
class NeedFault:
    """The peer reports a fault in our message; answer with `fault_judged` (ANP-60).

    At most one is open: a further one means that the last was not answered in time.
    """

    reference: str | None
    "Message id of the encrypted envelope concerned; None when the peer names none."

    description: str
    "The peer's text without the reference, untrusted."

    rounds: int
    "Number of `negotiating` messages about this message so far, of both sides."

    number: int
    "Counts these events from 1; `fault_judged` uses it to recognise a late answer."


@dataclass(frozen=True, slots=True)
class NeedRepair:
    """We admitted the fault: make new code, then call `repair_ready` (ANP-60)."""

    reference: str | None
    "Message id concerned."

    description: str
    "The peer's text without the reference, untrusted."


@dataclass(frozen=True, slots=True)
class PeerRepairs:
    """The peer accepted our report and makes new code; data is held (ANP-Q25)."""

    reference: str | None
    "Message id concerned."


@dataclass(frozen=True, slots=True)
class PeerRepaired:
    """The peer's new code is in use."""

    reference: str | None
    "Message id concerned."


@dataclass(frozen=True, slots=True)
class RepairFailed:
    """A repair failed, ours or the peer's; `DialogueBroken` follows (ANP-46)."""

    reference: str | None
    "Message id concerned."

    reason: str
    "Reason in words for the owner."

    by_peer: bool
    "True when it was the peer's repair."


@dataclass(frozen=True, slots=True)
class ReportRefused:
    """A report of ours had no effect; it may be repeated with more detail."""

    reference: str | None
    "Message id concerned."

    reason: str
    "Reason in words for the owner; may quote the peer."

    by_peer: bool
    "True when the peer refused it or did not answer; False when we did not send it."


@dataclass(frozen=True, slots=True)
class MessageRefused:
    """The peer cannot answer a message of ours; its call ends (DESIGN.md, calls)."""

    reference: str
    "Message id of the encrypted envelope concerned, as the peer says."

    reason: str
    "The peer's text, untrusted."


@dataclass(frozen=True, slots=True)
class RefusalUnsent:
    """The peer does not support refusals, so its channel must be closed instead."""

    reference: str
    "Message id of the peer's message that gets no answer."

    reason: str
    "Reason in words."


@dataclass(frozen=True, slots=True)
class DialogueBroken:
    """The communication ends: the shell closes the channel (ANP-46)."""

    reason: str
    "Reason in words for the owner."

    by_peer: bool
    "True when the peer violated the rules or its repair failed."


CasesEvent = NeedCasesVerdict | CasesAgreed | CasesSkipped
"Events about test cases."

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
"Events about reports and repairs."

DialogueEvent = CasesEvent | RepairEvent | QuestionEvent | Ignored | DialogueBroken
"All events that the shell handles."
