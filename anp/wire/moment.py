"""Points in time, read from both clocks together. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

__all__ = ["Moment"]


class Moment(NamedTuple):
    """One point in time; the shell makes one for each input of a core."""

    monotonic: float
    "Seconds on a clock that nobody sets, for deadlines."

    utc: datetime
    "Date and time in UTC, for timestamps and the age of messages."
