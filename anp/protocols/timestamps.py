"""Date-times of ISO 8601 in the messages of several protocols."""

from __future__ import annotations

import re
from calendar import isleap
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from anp.wire.moment import second_text, unix_ns

_DATE_TIME: Final = re.compile(
    r"""(?P<year>[0-9]{4})
    (?: (?P<dash>-?)[0-9]{2}(?P=dash)[0-9]{2}          # month and day
      | (?P<hyphen>-?)W[0-9]{2}(?P=hyphen)[1-7]        # week and day of the week
      | -?(?P<day>[0-9]{3}) )                          # day of the year
    T(?P<hour>[0-9]{2})
    (?P<rest>(?:(?P<colon>:?)[0-9]{2}(?:(?P=colon)(?P<second>[0-9]{2})
        (?:[.,][0-9]{1,32})?)?)?)
    (?P<zone>Z|[+-][0-9]{2}(?::?[0-5][0-9])?)?""",
    re.VERBOSE,
)
"The forms that are read; `datetime` would also read others."

_SECOND: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?!24)[0-9]{2}:[0-9]{2}:[0-9]{2}"
)
"""A second as we write it. Midnight at the end of a day is none: as it has no
milliseconds, it is read as a whole."""

_REST: Final = re.compile(r"\.[0-9]{3}Z")

USUAL: Final = len("2026-01-31T12:00:00.000Z")
"Characters of a moment as we write it."

SECONDS: Final = len("2026-01-31T12:00:00")
"Characters of it up to its second."


class Timestamp(NamedTuple):
    """When a message was sent, as its sender says."""

    at: datetime
    "In UTC."

    zoned: bool
    "Its zone was given; without one it is taken as UTC (ENV-Q10)."


def write_timestamp(at: datetime) -> str:
    """Return `at` in UTC with milliseconds, as `2026-01-31T12:00:00.000Z`."""
    second, rest = divmod(unix_ns(at), 1_000_000_000)
    return f"{second_text(second)}.{rest // 1_000_000:03}Z"


def read_timestamp(text: str) -> Timestamp:
    """Read a date with a time of day, in any of the forms of ISO 8601.

    Raises:
        ValueError: It is none, a date alone, or no moment of any calendar.
    """
    if len(text) == USUAL:
        try:
            # Of the many messages of one second only the first is read.
            second, rest = _read_second(text[:SECONDS]), _read_rest(text[SECONDS:])
            return Timestamp(second + rest, zoned=True)
        except ValueError:
            return _read(text)
    return _read(text)


@lru_cache(maxsize=16)
def _read_second(text: str) -> datetime:
    if not _SECOND.fullmatch(text):
        raise ValueError("not written as usual")
    return _read(f"{text}Z").at


@lru_cache(maxsize=1_000)
def _read_rest(text: str) -> timedelta:
    """Return the milliseconds of a moment, given with their point and their zone."""
    if _REST.fullmatch(text) is None:
        raise ValueError("not written as usual")
    return timedelta(milliseconds=int(text[1:-1]))


def _read(text: str) -> Timestamp:
    text = text.upper()
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        raise ValueError("not an ISO 8601 date-time")
    # `datetime` has no form for days of a year, midnight at the end of a day and leap
    # seconds: it reads the moment before, and the difference is added.
    later = timedelta()
    if match["second"] == "60":
        text = text[: match.start("second")] + "59" + text[match.end("second") :]
        later = timedelta(seconds=1)
    if match["hour"] == "24" and not match["rest"].strip("0:.,"):
        text = text.replace("T24", "T00")
        later = timedelta(days=1)
    if match["day"]:
        days = int(match["day"])
        if not 1 <= days <= 365 + isleap(int(match["year"])):
            raise ValueError("a day that does not exist")
        text = match["year"] + "0101" + text[match.end("day") :]
        later += timedelta(days=days - 1)
    at = datetime.fromisoformat(text)
    try:
        at = (at if match["zone"] else at.replace(tzinfo=UTC)) + later
        return Timestamp(at.astimezone(UTC), match["zone"] is not None)
    except OverflowError:
        raise ValueError("beyond the calendar") from None
