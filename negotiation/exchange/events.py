"""Requests and reports of the machines to their shell, and its answers."""

from __future__ import annotations

from dataclasses import dataclass

from negotiation.errors import FailureKind


@dataclass(frozen=True, slots=True)
class NeedProposal:
    """Our mind must write the first candidate; answer with `proposal_ready`."""


@dataclass(frozen=True, slots=True)
class NeedVerdict:
    """Our mind must judge the peer's candidate; answer with `verdict_ready`."""

    candidate: str
    "The peer's `candidateProtocols`, untrusted."

    summary: str
    "The peer's `modificationSummary`, untrusted; empty when it gave none."

    messages: int
    "Number of `negotiating` messages so far, of both sides together."

    may_counter: bool
    """False when a counter-proposal would exceed the limit; it is then a rejection
    (ANP-Q24)."""


@dataclass(frozen=True, slots=True)
class NeedModule:
    """A document is agreed but our half is not ready; answer with `module_ready`."""

    document: str


@dataclass(frozen=True, slots=True)
class CodeGenerationSlow:
    """The seed's 15 s for `codeGeneration` are over; we wait on (ANP-45, ANP-Q8)."""

    waiting_for_peer: bool
    "True when our code is announced and the peer's is missing."


@dataclass(frozen=True, slots=True)
class Ignored:
    """A message was dropped and counted (ANP-Q17, WIRE row 50)."""

    reason: str
    "Reason in words; quotes nothing of the peer."


@dataclass(frozen=True, slots=True)
class NeedSpokenAnswer:
    """The peer asks in words; answer with `answer_ready` (ANP-64)."""

    message_id: str
    "Message id of the question; the answer has the same (ANP-68)."

    text: str
    "The question, untrusted."


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    """The peer answered a question of ours."""

    message_id: str

    text: str
    "The answer, untrusted."


@dataclass(frozen=True, slots=True)
class QuestionUnanswered:
    """A question of ours gets no answer."""

    message_id: str
    reason: str


QuestionEvent = NeedSpokenAnswer | QuestionAnswered | QuestionUnanswered
"Events about questions (ANP-64), during a negotiation and after it."


@dataclass(frozen=True, slots=True)
class NegotiationAgreed:
    """Both sides have the same document and announced their code; the last event."""

    document: str
    "The agreed text (ANP-Q6)."

    hash: str
    "SHA-256 of its UTF-8 bytes, 64 hex characters (ANP-88)."


@dataclass(frozen=True, slots=True)
class NegotiationFailed:
    """The negotiation ended without an agreement; the last event."""

    kind: FailureKind
    "Reason, for programs."

    reason: str
    "Reason in words for the owner; may quote the peer."

    by_peer: bool
    "True when the peer ended it or was at fault."


Event = (
    NeedProposal
    | NeedVerdict
    | NeedModule
    | CodeGenerationSlow
    | Ignored
    | QuestionEvent
    | NegotiationAgreed
    | NegotiationFailed
)
"All events that the shell handles."


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

    description: str
    "The peer's text without the reference, untrusted."


@dataclass(frozen=True, slots=True)
class PeerRepairs:
    """The peer accepted our report and makes new code; data is held (ANP-Q25)."""

    reference: str | None


@dataclass(frozen=True, slots=True)
class PeerRepaired:
    """The peer's new code is in use."""

    reference: str | None


@dataclass(frozen=True, slots=True)
class RepairFailed:
    """A repair failed, ours or the peer's; `DialogueBroken` follows (ANP-46)."""

    reference: str | None
    reason: str

    by_peer: bool
    "True when it was the peer's repair."


@dataclass(frozen=True, slots=True)
class ReportRefused:
    """A report of ours had no effect; it may be repeated with more detail."""

    reference: str | None

    reason: str
    "Reason in words for the owner; may quote the peer."

    by_peer: bool
    "True when the peer refused it or did not answer; False when we did not send it."


@dataclass(frozen=True, slots=True)
class MessageRefused:
    """The peer cannot answer a message of ours; its call ends (DESIGN.md, calls)."""

    reference: str | None
    "Message id of its encrypted envelope, as the peer says; None means the last one."

    reason: str
    "The peer's text, untrusted."


@dataclass(frozen=True, slots=True)
class RefusalUnsent:
    """The peer does not support refusals, so its channel must be closed instead."""

    reference: str
    "Message id of the peer's message that gets no answer."

    reason: str


@dataclass(frozen=True, slots=True)
class DialogueBroken:
    """The communication ends: the shell closes the channel (ANP-46)."""

    reason: str

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
