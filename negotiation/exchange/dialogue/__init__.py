"""The talk of two sides after an agreement: test cases, repairs and questions.

* `machine`: everything of one channel as one pure object, for both roles.
* `case_turns`: the turns in which test cases are agreed (ANP-48 to ANP-53).
* `repairs`: reports of errors and their repairs, with the theory of operation.
* `questions`: questions in words, and their answers (ANP-64 to ANP-69).
* `descriptions`: the text of an error description, written and read.
* `fault`: decides by the document's schemas whose fault an error is.
* `answers`: the answers of our own side to what a dialogue asks.
* `events`: the events and questions of a dialogue for its shell.
* `limits`: limits on time and number of messages.
"""

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
    NeedSpokenAnswer,
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
    "NeedSpokenAnswer",
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
