"""The dialogue after an agreement: test cases, repairs and questions."""

from __future__ import annotations

from negotiation.exchange.dialogue.answers import (
    AcceptCases,
    CasesVerdict,
    CounterCases,
    Fault,
    OurFault,
    PeerFault,
    RejectCases,
)
from negotiation.exchange.dialogue.descriptions import describe_error, read_description
from negotiation.exchange.dialogue.events import (
    CasesAgreed,
    CasesSkipped,
    DialogueBroken,
    DialogueEvent,
    MessageRefused,
    NeedCasesVerdict,
    NeedFault,
    NeedRepair,
    PeerRepaired,
    PeerRepairs,
    RefusalUnsent,
    RepairFailed,
    ReportRefused,
)
from negotiation.exchange.dialogue.fault import judge_fault
from negotiation.exchange.dialogue.limits import DialogueLimits
from negotiation.exchange.dialogue.machine import Dialogue
from negotiation.exchange.events import (
    Ignored,
    NeedAnswer,
    QuestionAnswered,
    QuestionUnanswered,
)

__all__ = [
    "AcceptCases",
    "CasesAgreed",
    "CasesSkipped",
    "CasesVerdict",
    "CounterCases",
    "Dialogue",
    "DialogueBroken",
    "DialogueEvent",
    "DialogueLimits",
    "Fault",
    "Ignored",
    "MessageRefused",
    "NeedAnswer",
    "NeedCasesVerdict",
    "NeedFault",
    "NeedRepair",
    "OurFault",
    "PeerFault",
    "PeerRepaired",
    "PeerRepairs",
    "QuestionAnswered",
    "QuestionUnanswered",
    "RefusalUnsent",
    "RejectCases",
    "RepairFailed",
    "ReportRefused",
    "describe_error",
    "judge_fault",
    "read_description",
]
