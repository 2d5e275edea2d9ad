"""What happens to the daemon, its attachments and its peers, and when. Pure.

The daemon itself is killed in the first third alone, so that the second half shows the
growth of one life.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

KILLS = (0.1, 0.2, 0.32)
"Parts of the run after which the daemon is killed."


class Trouble(StrEnum):
    """One thing that happens."""

    KILL_DAEMON = "the daemon killed and started again"
    RELOAD = "reloads"
    DETACH = "an attachment taken away"
    ATTACH = "an attachment attached again"
    KILL_CHILD = "a process of an attachment killed"
    KILL_PEERS = "a process with some peers killed and started again"


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """Something at a moment."""

    at: float
    "Seconds since the start."

    trouble: Trouble
    "What happens."


def plan(seconds: float) -> list[Event]:
    """Return all that happens, in order; a longer run has more of it."""
    every = max(6.0, min(24.0, seconds / 12))
    events = [Event(seconds * part, Trouble.KILL_DAEMON) for part in KILLS]
    cycle = (
        (0.15, Trouble.KILL_CHILD),
        (0.35, Trouble.RELOAD),
        (0.55, Trouble.DETACH),
        (0.65, Trouble.ATTACH),
        (0.85, Trouble.KILL_CHILD),
    )
    # The last part is quiet, so that every call can end.
    last = seconds - min(10.0, seconds / 5)
    begins = 0.0
    while begins + every <= last:
        events += [Event(begins + every * part, what) for part, what in cycle]
        begins += every
    each = max(8.0, seconds / 15)
    at = each / 2
    while at < last:
        events.append(Event(at, Trouble.KILL_PEERS))
        at += each
    return sorted(events)
