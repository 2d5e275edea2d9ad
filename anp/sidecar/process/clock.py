"""Asks the system for the time and the state of its clock."""

from __future__ import annotations

import ctypes
import sys
import time
from dataclasses import dataclass

TIME_ERROR = 5
"Returned by `adjtimex` while the clock is not synchronised (Linux, timex.h)."

SIZE_OF_TIMEX = 256
"More than `struct timex` has on any Linux."


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock, and whether it is kept in step."""

    now: float
    "Seconds since 1970."

    synchronised: bool | None
    "True if a time service keeps it in step; None if the system does not tell."

    @classmethod
    def of_system(cls) -> Clock:
        """Ask this system; changes nothing."""
        return cls(time.time(), _synchronised())


def _synchronised() -> bool | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        adjtimex = ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return None
    # All zeros: `modes` = 0 only reads.
    state = adjtimex(ctypes.create_string_buffer(SIZE_OF_TIMEX))
    return None if state < 0 else bool(state != TIME_ERROR)
