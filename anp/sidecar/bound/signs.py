"""Signs that a peer gives of its work on a call of ours, before the answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from negotiation.messages import CallSignal

MAX_WORDS: Final = 500
"Characters of a tool's words that are passed on."

LEFT_OUT: Final = "leftOut"
"Key of the number of reports before one that were too many to be told."


@dataclass(frozen=True, slots=True)
class CallSign:
    """A sign of the peer's that it works on a call; hostile, as all that it says."""

    ms: float
    "Milliseconds since the call began."

    progress: float | None = None
    "Work that is done, in the tool's own unit."

    total: float | None = None
    "All the work in that unit."

    message: str = ""
    "The tool's words."

    left_out: int = 0
    "Reports before this one that were too many to be told."

    @property
    def what(self) -> str:
        """The sign in one line."""
        if self.progress is None and not self.message:
            return "the peer is at work"
        numbers = "" if self.progress is None else f"{self.progress:g}"
        if numbers and self.total is not None:
            numbers += f" of {self.total:g}"
        said = ": ".join(one for one in (numbers, self.message) if one)
        return f"{said} ({self.left_out} left out)" if self.left_out else said


def sign_of(signal: CallSignal, ms: float, *, left_out: int = 0) -> CallSign:
    """Return a peer's signal as a sign, without what is not as it should be.

    Args:
        left_out: Signals before it that were not passed on here.
    """
    data = signal.data or {}
    before = number_in(data.get(LEFT_OUT)) or 0
    message = data.get("message")
    return CallSign(
        ms,
        number_in(data.get("progress")),
        number_in(data.get("total")),
        message[:MAX_WORDS] if isinstance(message, str) else "",
        left_out + max(0, int(before)),
    )


def number_in(value: object) -> float | None:
    """Return a value of a peer's if it is a number that is finite, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
