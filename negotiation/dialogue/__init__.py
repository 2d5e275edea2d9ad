"""What two sides say after an agreement: test cases, repairs and questions."""

from __future__ import annotations

from negotiation.dialogue.answers import (
    AcceptCases,
    CasesVerdict,
    CounterCases,
    Fault,
    OurFault,
    PeerFault,
    RejectCases,
)
from negotiation.dialogue.descriptions import describe_error, read_description
from negotiation.dialogue.events import (
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
from negotiation.dialogue.fault import judge_fault
from negotiation.dialogue.limits import DialogueLimits
from negotiation.dialogue.machine import Dialogue
from negotiation.events import (
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
