"""Points in time, read from both clocks together. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["Moment"]


@dataclass(frozen=True, slots=True)
class Moment:
    """One point in time; the shell makes one for each input of a core."""

    monotonic: float
    "Seconds on a clock that nobody sets, for deadlines."

    utc: datetime
    "Date and time in UTC, for timestamps and the age of messages."
