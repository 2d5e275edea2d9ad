"""ISO 8601 date-times as messages carry them (ENV-10, ENV-Q10)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Final

__all__ = ["MAX_SKEW", "Timestamp", "read_timestamp", "write_timestamp"]

MAX_SKEW = 300.0
"Seconds between a timestamp and our clock beyond which a message is flagged."

_CALENDAR: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_BASIC: Final = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})")
_WEEK: Final = re.compile(r"([0-9]{4})(-?)W([0-9]{2})\2([1-7])")
_ORDINAL: Final = re.compile(r"([0-9]{4})-?([0-9]{3})")
_TIME: Final = re.compile(
    r"([0-9]{2})(?:(:?)([0-9]{2})(?:\2([0-9]{2})(?:[.,]([0-9]{1,32}))?)?)?"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)


@dataclass(frozen=True, slots=True)
class Timestamp:
    """When a message was sent, as its sender says."""

    at: datetime
    "In UTC."

    zoned: bool
    "Whether it said its zone; without one it is taken as UTC (ENV-Q10)."


def write_timestamp(at: datetime) -> str:
    """Return `at` in UTC with milliseconds, as `2026-01-31T12:00:00.000Z`."""
    utc = at.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="milliseconds") + "Z"


def read_timestamp(text: str) -> Timestamp:
    """Read a date with a time of day, in any of the forms of ISO 8601.

    Raises:
        ValueError: It is none, a date alone, or no moment of any calendar.
    """
    day_text, separator, time_text = text.upper().partition("T")
    match = _TIME.fullmatch(time_text)
    if not separator or match is None:
        raise ValueError("not an ISO 8601 date-time")
    day = _day(day_text)
    hour, minute, second = (int(match[group] or 0) for group in (1, 3, 4))
    if hour > 24 or minute > 59 or second > 60:
        raise ValueError("a time of day that does not exist")
    if hour == 24 and (minute or second or int(match[5] or 0)):
        raise ValueError("a time of day that does not exist")
    fraction = int((match[5] or "0")[:6].ljust(6, "0"))
    # 24:00 and leap seconds are moments, though `datetime` has no form for them.
    elapsed = timedelta(
        hours=hour, minutes=minute, seconds=second, microseconds=fraction
    )
    zone = _zone(match[6])
    try:
        at = datetime(day.year, day.month, day.day, tzinfo=zone or UTC) + elapsed
        return Timestamp(at.astimezone(UTC), zone is not None)
    except OverflowError:
        raise ValueError("beyond the calendar") from None


def _day(text: str) -> date:
    if match := _CALENDAR.fullmatch(text) or _BASIC.fullmatch(text):
        return date(int(match[1]), int(match[2]), int(match[3]))
    if match := _WEEK.fullmatch(text):
        return date.fromisocalendar(int(match[1]), int(match[3]), int(match[4]))
    if match := _ORDINAL.fullmatch(text):
        first = date(int(match[1]), 1, 1)
        day = first.toordinal() + int(match[2]) - 1
        if day < first.toordinal() or day > date(first.year, 12, 31).toordinal():
            raise ValueError("a day that does not exist")
        return date.fromordinal(day)
    raise ValueError("not an ISO 8601 date")


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text == "Z":
        return UTC
    hours, minutes = int(text[1:3]), int(text[3:].replace(":", "") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError("a zone that does not exist")
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)
