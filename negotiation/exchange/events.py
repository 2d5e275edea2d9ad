"""Requests and reports of a negotiation's machine to its shell."""

from __future__ import annotations

from dataclasses import dataclass

from negotiation.errors import FailureKind

__all__ = [
    "NegotiationAgreed",
    "CodeGenerationSlow",
    "Event",
    "Ignored",
    "NeedSpokenAnswer",
    "NeedModule",
    "NeedProposal",
    "NeedVerdict",
    "NegotiationFailed",
    "QuestionAnswered",
    "QuestionEvent",
    "QuestionUnanswered",
]


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
    "The agreed text."


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
    """The peer asks in words; answer with `answer_ready` or `no_answer` (ANP-64)."""

    message_id: str
    "Message id of the question; the answer has the same (ANP-68)."

    text: str
    "The question, untrusted."


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    """The peer answered a question of ours."""

    message_id: str
    "Message id of the question."

    text: str
    "The answer, untrusted."


@dataclass(frozen=True, slots=True)
class QuestionUnanswered:
    """A question of ours gets no answer."""

    message_id: str
    "Message id of the question."

    reason: str
    "Reason in our words."


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
