"""Limits of time, number and length, and the fixed phrases that a peer may read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from negotiation.errors import MisuseError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def check_limits(
    limits: DataclassInstance, room: str, *, at_least_one: Collection[str]
) -> None:
    """Raise `MisuseError` for a time that is not positive or a number too small.

    Args:
        room: The beginning of the settings' names, with a dot.
        at_least_one: Names of the numbers that may not be 0.
    """
    for one in fields(limits):
        value = getattr(limits, one.name)
        if isinstance(one.default, float) and not value > 0:
            raise MisuseError(f"{room}{one.name} must be > 0 s")
        least = int(one.name in at_least_one)
        if isinstance(one.default, int) and value < least:
            raise MisuseError(f"{room}{one.name} must be >= {least}")


ANSWER_TIMEOUT = 55.0
"Default seconds for a mind's answer; the SDK waits 60."


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiationLimits:
    """Limits of one negotiation."""

    timeout: float = 120.0
    "Seconds for the whole negotiation, until both sides have announced their code."

    message_timeout: float = 60.0
    "Seconds to wait for each message of the peer (WIRE row 46)."

    answer_timeout: float = ANSWER_TIMEOUT
    "Seconds for our own mind's answer; the official SDK waits 60 (WIRE row 46)."

    codegen_timeout: float = 60.0
    """Seconds from `accepted` until both sides have announced their code (ANP-44,
    ANP-Q8)."""

    codegen_slow: float = 15.0
    "Seconds after which a missing `codeGeneration` is logged (ANP-45)."

    max_rounds: int = 10
    "Largest number of `negotiating` messages of both sides together (ANP-23, ANP-Q24)."

    max_ignored: int = 32
    "Largest number of dropped messages of the peer; another is a protocol violation."

    def __post_init__(self) -> None:
        check_limits(self, "negotiation.", at_least_one={"max_rounds"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueLimits:
    """Limits of one dialogue: test cases, repairs and questions on one channel."""

    cases_timeout: float = 180.0
    "Seconds for the whole agreement on test cases, from its first message."

    message_timeout: float = 60.0
    "Seconds to wait for each message of the peer about test cases."

    answer_timeout: float = 55.0
    "Seconds for our own side to judge test cases or to answer a question."

    report_timeout: float = 120.0
    """Seconds to wait for the peer's answer to a report.

    A peer may write its new code before it admits a fault, so that no data is held.
    """

    fault_timeout: float = 110.0
    "Seconds for our own side to judge a report of the peer."

    repair_timeout: float = 60.0
    "Seconds from `accepted` to the `codeGeneration` of a repair, ours or the peer's."

    question_timeout: float = 60.0
    "Seconds to wait for the answer to a question."

    matter_lifetime: float = 300.0
    """Seconds after which the rounds about a message are forgotten.

    They count from its last round; plaintexts are kept as long (DESIGN.md, Repairs).
    """

    max_rounds: int = 10
    """Largest number of `negotiating` messages of both sides (ANP-Q9, ANP-Q25).

    Counted for the test cases as a whole, and for each reported message.
    """

    max_reports: int = 16
    "Largest number of our reports that wait for an earlier one to end."

    max_matters: int = 64
    "Largest number of reported messages whose rounds are remembered."

    max_repairs: int = 10
    "Largest number of repairs of our code on one channel; another ends the channel."

    max_questions: int = 1
    "Largest number of open questions in each direction."

    max_ignored: int = 32
    "Largest number of dropped messages of the peer; another is a protocol violation."

    def __post_init__(self) -> None:
        check_limits(self, "dialogue.", at_least_one={"max_rounds", "max_matters"})


MAX_REASON = 2_000
"Longest reason that we send or pass on, in characters."

MAX_SUMMARY = 16_000
"Longest summary that we send, in characters: at worst 64 KiB of UTF-8."

DEFAULT_SUMMARY = "The document was replaced as a whole."
"Used when a mind gives no summary, which ANP-29 demands."

MIND_REASON = "This side could not work out an answer."
"Sent to the peer when our mind fails; only the owner sees the details."

CANCEL_REASON = "The negotiation was cancelled."
"Sent to the peer when the owner, the caller or the daemon ends the negotiation."

UNCODED_REASON = "This side could not make working code for the document."
"Sent to the peer when our half for its candidate did not pass its tests."
