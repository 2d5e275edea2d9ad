"""The times at which a time trigger is due.

All times are seconds since 1970. A time trigger has no state: the times after a moment
follow from that moment alone, so that a restart changes none of them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from anp.interaction.errors import InteractionError, InteractionFault

LOOKS_BACK: Final = (60.0, 3_600.0, 86_400.0, 31 * 86_400.0, 366 * 86_400.0)
"Stretches in which the last due time is looked for, in seconds, the shortest first."

LATEST: Final = 253_370_764_800.0
"The beginning of the year 9999; nothing is due after it."


class Schedule(Protocol):
    """The times at which something is due."""

    def next_due(self, after: float) -> float | None:
        """Return the first due time after a moment, or None if there is none."""


@dataclass(frozen=True, slots=True)
class At:
    """Once, at one moment."""

    at: float

    def next_due(self, after: float) -> float | None:
        """See `Schedule`."""
        return self.at if self.at > after else None


@dataclass(frozen=True, slots=True)
class Every:
    """Again and again after the same time."""

    seconds: float
    "At least 1."

    start: float
    "The moment from which it is counted; the first one is due `seconds` later."

    def next_due(self, after: float) -> float | None:
        """See `Schedule`."""
        count = max(1, math.floor((after - self.start) / self.seconds) + 1)
        due = self.start + count * self.seconds
        # What was rounded may fall on the moment itself.
        return due if due > after else self.start + (count + 1) * self.seconds


@dataclass(frozen=True, slots=True)
class Cron:
    """At the times of a cron expression, by the clocks of a zone.

    As in Debian's cron, a job at fixed hours and minutes runs once on a day whose
    clocks change: at the end of the hour that is left out, and in the first of two
    equal ones. One whose minute or hour begins with a star follows the clocks on the
    wall: it does not run in an hour that is left out, and twice in a doubled one.
    """

    expression: str
    "Five fields, or six with the seconds first."

    zone: str = "UTC"
    "Name in the database of time zones."

    def check(self) -> None:
        """Check expression and zone; InteractionError if they are none."""
        try:
            self.next_due(0.0)
        except (CronSimError, AssertionError) as exc:
            reason = str(exc) or "not understood"
            raise InteractionError(
                InteractionFault.INVALID, f"cron: {reason}"[:200]
            ) from exc
        except (OSError, ValueError, KeyError) as exc:
            raise InteractionError(
                InteractionFault.INVALID,
                f"zone: {self.zone[:64]!r} is not known{_no_zones()}",
            ) from exc

    def next_due(self, after: float) -> float | None:
        """See `Schedule`."""
        zone = _zone(self.zone)
        fields = self.expression.split()
        fixed = len(fields) == 5 and not fields[0].startswith("*")
        if fixed and not fields[1].startswith("*"):
            return self._next_fixed(after, zone)
        return self._next_on_wall(after, zone)

    def _next_fixed(self, after: float, zone: ZoneInfo) -> float | None:
        moment = datetime.fromtimestamp(math.floor(after), UTC).astimezone(zone)
        for due in CronSim(self.expression, moment):
            # In the second of two equal hours the library may go back to the first.
            if due.timestamp() > after:
                return due.timestamp()
        return None

    def _next_on_wall(self, after: float, zone: ZoneInfo) -> float | None:
        """Find the time in one stretch after another in which clocks do not change.

        The library counts hours across a change of half an hour wrongly, as in
        Australia/Lord_Howe, so it never sees a change here.
        """
        start, offset = after, _offset(after, zone)
        while True:
            local = datetime.fromtimestamp(math.floor(after + offset), UTC)
            found = next(CronSim(self.expression, local), None)
            if found is None:
                return None
            due = found.timestamp() - offset
            change = _first_change(start, due, zone)
            if change is None:
                return due
            # One that is due with the change counts.
            start, after, offset = change, change - 1, _offset(change, zone)


def dues(schedule: Schedule, *, after: float, until: float) -> Iterator[float]:
    """Yield the due times after one moment and not after another, in order."""
    due = schedule.next_due(after)
    while due is not None and due <= until:
        yield due
        due = schedule.next_due(due)


def last_due(schedule: Schedule, *, after: float, until: float) -> float | None:
    """Return the last of these times, however many there are, or None."""
    if isinstance(schedule, Every):
        count = math.floor((until - schedule.start) / schedule.seconds)
        last = schedule.start + max(0, count) * schedule.seconds
        return last if count > 0 and after < last <= until else None
    for back in (*LOOKS_BACK, until - after):
        times = dues(schedule, after=max(after, until - back), until=until)
        newest = deque(times, 1)
        if newest or until - back <= after:
            return newest.pop() if newest else None
    return None


def _no_zones() -> str:
    """Return a remedy for a machine that knows no zone at all, else ""."""
    try:
        _zone("UTC")
    except KeyError:
        return ", as no zone is here; install the system's tzdata, or anpd[zones]"
    return ""


@lru_cache(maxsize=1_024)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _offset(moment: float, zone: ZoneInfo) -> float:
    """Return by how many seconds the clocks of a zone are ahead of UTC."""
    shown = datetime.fromtimestamp(moment, UTC).astimezone(zone)
    return (shown.utcoffset() or timedelta()).total_seconds()


def _first_change(after: float, until: float, zone: ZoneInfo) -> float | None:
    """Return when the clocks of a zone change first between two moments, or None."""
    offset = _offset(after, zone)
    low = after
    while low < until:
        # Two changes within one day have never been.
        high = min(low + 86_400.0, until)
        if _offset(high, zone) != offset:
            while high - low > 1:
                middle = math.floor((low + high) / 2)
                if middle <= low:
                    break
                if _offset(middle, zone) == offset:
                    low = middle
                else:
                    high = middle
            return float(math.floor(high))
        low = high
    return None
