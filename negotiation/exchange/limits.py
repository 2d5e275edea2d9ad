"""Limits of time and number for a negotiation."""

from __future__ import annotations

from dataclasses import dataclass

from negotiation.errors import MisuseError

__all__ = ["ANSWER_TIMEOUT", "NegotiationLimits"]

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
        for name in (
            "timeout",
            "message_timeout",
            "answer_timeout",
            "codegen_timeout",
            "codegen_slow",
        ):
            if not getattr(self, name) > 0:
                raise MisuseError(f"negotiation.{name} must be > 0 s")
        if self.max_rounds < 1 or self.max_ignored < 0:
            raise MisuseError("negotiation.max_rounds must be >= 1, max_ignored >= 0")
