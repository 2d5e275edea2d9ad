"""Points in time, read from both clocks together. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Final, NamedTuple

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Moment(NamedTuple):
    """One point in time; the shell makes one for each input of a core."""

    monotonic: float
    "Seconds on a clock that nobody sets, for deadlines."

    unix_ns: int
    "Nanoseconds since 1970, for timestamps and the age of messages."

    @classmethod
    def at(cls, monotonic: float, utc: datetime) -> Moment:
        """Return the moment at which a calendar shows `utc`."""
        return cls(monotonic, unix_ns(utc))

    @property
    def utc(self) -> datetime:
        """Date and time in UTC."""
        return _EPOCH + timedelta(microseconds=self.unix_ns // 1000)


moment_of: Final = partial(tuple.__new__, Moment)
"Returns the moment of both fields as a tuple, in half the time of `Moment` itself."


def unix_ns(utc: datetime) -> int:
    """Return the nanoseconds since 1970 at a time with a zone."""
    return (utc - _EPOCH) // _MICROSECOND * 1000


# A busy link writes many messages in one second.
@lru_cache(maxsize=16)
def second_text(second: int) -> str:
    """Return a second since 1970 as `YYYY-MM-DDTHH:MM:SS` in UTC."""
    return (_EPOCH + timedelta(seconds=second)).isoformat().removesuffix("+00:00")
