"""How long and how much two sides may say after their agreement."""

from __future__ import annotations

from dataclasses import dataclass

from negotiation.errors import MisuseError

__all__ = ["DialogueLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueLimits:
    """Limits of one dialogue: test cases, repairs and questions on one channel."""

    cases_timeout: float = 180.0
    "Seconds for the whole agreement on test cases, from its first message."

    message_timeout: float = 60.0
    "Seconds to wait for each turn of the peer about test cases."

    answer_timeout: float = 55.0
    "Seconds our own side has to judge test cases or to answer a question."

    report_timeout: float = 120.0
    """Seconds to wait for the peer's answer to a report.

    A peer may write its new code before it admits a fault, so that nothing is held.
    """

    fault_timeout: float = 110.0
    "Seconds our own side has to judge a report of the peer."

    repair_timeout: float = 60.0
    "Seconds from `accepted` to the `codeGeneration` of a repair, ours or the peer's."

    question_timeout: float = 60.0
    "Seconds to wait for the answer to a question."

    matter_lifetime: float = 300.0
    """Seconds after the last round until the rounds about a message are forgotten.

    As long as plaintexts are kept (DESIGN.md, Repairs).
    """

    max_rounds: int = 10
    """Most `negotiating` messages of both sides together (ANP-Q9, ANP-Q25).

    Counted for the test cases as a whole, and for each message that is reported.
    """

    max_reports: int = 16
    "Most reports of ours that wait until the one before them ended."

    max_matters: int = 64
    "Most reported messages whose rounds are remembered."

    max_repairs: int = 10
    "Most repairs of our code on one channel; a next one ends the communication."

    max_questions: int = 1
    "Most open questions in each direction."

    max_ignored: int = 32
    "Most messages of the peer that were dropped and counted before it is a fault."

    def __post_init__(self) -> None:
        for name in (
            "cases_timeout",
            "message_timeout",
            "answer_timeout",
            "report_timeout",
            "fault_timeout",
            "repair_timeout",
            "question_timeout",
            "matter_lifetime",
        ):
            if not getattr(self, name) > 0:
                raise MisuseError(f"dialogue.{name} must be > 0 s")
        for name, least in (
            ("max_rounds", 1),
            ("max_reports", 0),
            ("max_matters", 1),
            ("max_repairs", 0),
            ("max_questions", 0),
            ("max_ignored", 0),
        ):
            if getattr(self, name) < least:
                raise MisuseError(f"dialogue.{name} must be >= {least}")
