"""Tells tests whether processes have ended."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

PATIENCE = 15.0
"Seconds until a process that stays counts as left behind; generous, for busy machines."


def left_behind(pids: Iterable[int]) -> list[int]:
    """Return those of the processes that do not go away."""
    until = time.monotonic() + PATIENCE
    while (left := [pid for pid in pids if _runs(pid)]) and time.monotonic() < until:
        time.sleep(0.01)
    return left


def _runs(pid: int) -> bool:
    """Return whether a process is there; one that only waits to be reaped is not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
