"""A limit on the log lines of each cause, so that nobody fills the log from outside.

Peers and programs decide how often most lines are written. The first lines of a cause
come through, later ones are counted, and one line tells the count when the interval
is over.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

INTERVAL: Final = 60.0
"Seconds for which the lines of a cause are counted together."

MAX_LINES: Final = 60
"Lines of one cause in an interval; the owner has seen by then what it is about."

MAX_TRACEBACKS: Final = 3
"Lines with a traceback of one cause in an interval; each is about 100 times a line."

MAX_CAUSES: Final = 1_000
"Causes that are told apart; all that come later in an interval share one limit."

VARYING: Final = re.compile(r"0x[0-9a-fA-F]+|\d+")
"Parts of a text without arguments that may differ from line to line."

MAX_TEMPLATE: Final = 160
"Characters of a line's template that tell it from others."

PHRASE: Final = "more lines like this were suppressed count=%d seconds=%d like=%r"
"Template of the line that tells a count."

Cause = tuple[str, ...]
"Logger, level, template, and what else tells lines apart."


@dataclass(frozen=True, slots=True)
class Suppressed:
    """The lines of one cause that were not written in one interval."""

    cause: Cause

    count: int
    "Number of the lines that were not written; 1 or more."


@dataclass(slots=True)
class _Window:
    """The interval of one cause that runs."""

    ends_at: float

    written: int = 0

    suppressed: int = 0


class LogLimit:
    """Decides which lines are written. Pure.

    `now` is seconds on one monotonic clock.
    """

    def __init__(
        self,
        *,
        interval: float = INTERVAL,
        max_lines: int = MAX_LINES,
        max_tracebacks: int = MAX_TRACEBACKS,
        max_causes: int = MAX_CAUSES,
    ) -> None:
        """Begin with no line written.

        Args:
            interval: In seconds.
            max_lines: Lines of one cause in an interval.
            max_tracebacks: The same for lines with a traceback.
            max_causes: Causes told apart at a time.
        """
        self.interval = interval
        self._max_lines = max_lines
        self._max_tracebacks = max_tracebacks
        self._max_causes = max_causes
        self._windows: dict[Cause, _Window] = {}
        self.suppressed = 0
        "Number of lines that were not written since the start."

    def admits(
        self,
        cause: Cause,
        *,
        now: float,
        traceback: bool = False,
        max_lines: int | None = None,
    ) -> bool:
        """Tell whether a line is written, and count it.

        Args:
            traceback: True for a line that a traceback follows.
            max_lines: Lines of this cause in an interval, if its author said so.
        """
        if cause not in self._windows and len(self._windows) >= self._max_causes:
            # Whoever can vary a template cannot have a share for each variation.
            cause = ("", *cause[1:2], "lines of many causes")
        window = self._windows.get(cause)
        if window is None:
            window = self._windows[cause] = _Window(now + self.interval)
        most = self._max_tracebacks if traceback else self._max_lines
        most = most if max_lines is None else min(most, max_lines)
        if window.written < most:
            window.written += 1
            return True
        window.suppressed += 1
        self.suppressed += 1
        return False

    def ended(self, *, now: float) -> list[Suppressed]:
        """Return the counts of the intervals that are over, and forget those."""
        # All intervals are equally long, so the first that began ends first.
        over = list(
            itertools.takewhile(
                lambda one: now >= one[1].ends_at, self._windows.items()
            )
        )
        for cause, _ in over:
            del self._windows[cause]
        return [
            Suppressed(cause, window.suppressed)
            for cause, window in over
            if window.suppressed
        ]


class LogFilter(logging.Filter):
    """Holds back the lines over the limit, on a handler that all lines pass.

    The author of a line may say more about it: with `extra={"cause": …}` lines of the
    same template are told apart, and `extra={"max_lines": 1}` lets fewer of them
    through. Lines of level DEBUG are not limited: who asks for them wants each one.
    """

    def __init__(
        self,
        limit: LogLimit | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._limit = limit or LogLimit()
        self._clock = clock
        # Lines come from threads too.
        self._lock = threading.Lock()

    @property
    def suppressed(self) -> int:
        """Number of lines that were not written since the start."""
        return self._limit.suppressed

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line is written; first tell the counts that are due."""
        if record.levelno <= logging.DEBUG or record.msg is PHRASE:
            return True
        self.report()
        cause = _cause_of(record)
        with self._lock:
            return self._limit.admits(
                cause,
                now=self._clock(),
                traceback=bool(record.exc_info),
                max_lines=getattr(record, "max_lines", None),
            )

    def report(self, *, everything: bool = False) -> None:
        """Write the counts of the intervals that are over.

        Args:
            everything: Also of those that run; for the end of the process.
        """
        now = float("inf") if everything else self._clock()
        with self._lock:
            ended = self._limit.ended(now=now)
        for one in ended:
            name, level, template, *_ = one.cause
            logging.getLogger(name).log(
                int(level), PHRASE, one.count, self._limit.interval, template
            )

    async def report_regularly(self) -> None:
        """Write the counts also when no other line comes; never ends by itself."""
        try:
            while True:
                await asyncio.sleep(self._limit.interval)
                self.report()
        finally:
            self.report(everything=True)


LOG_LIMIT: Final = LogFilter()
"The limit of this process, as its log is one for the process."


def _cause_of(record: logging.LogRecord) -> Cause:
    """Return the cause of a line, whatever was put into its text."""
    template = str(record.msg)[: 2 * MAX_TEMPLATE]
    if not record.args:
        # Libraries put values into the template itself.
        template = VARYING.sub("#", template.partition("\n")[0])
    parts = [record.name, str(record.levelno), template[:MAX_TEMPLATE]]
    if record.exc_info and record.exc_info[0] is not None:
        parts.append(record.exc_info[0].__name__)
    cause = getattr(record, "cause", None)
    if cause is not None:
        parts.append(str(cause)[:MAX_TEMPLATE])
    return tuple(parts)
