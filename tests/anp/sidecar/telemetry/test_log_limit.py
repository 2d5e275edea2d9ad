"""The limit on log lines of one cause."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from anp.cli.logs import JsonFormatter
from anp.sidecar.telemetry.log_limit import LogFilter, LogLimit
from tests.waiting import until

NAME = "anp.made_for_limits"


@dataclass
class Log:
    """One logger whose lines pass a filter, and the time of that filter."""

    logger: logging.Logger
    stream: io.StringIO
    filter: LogFilter = field(init=False)
    now: float = 0.0

    def use(self, limit: LogLimit) -> None:
        """Filter lines by `limit`, on a clock of ours."""
        self.filter = LogFilter(limit, clock=lambda: self.now)
        handler = logging.StreamHandler(self.stream)
        handler.addFilter(self.filter)
        self.logger.handlers[:] = [handler]

    @property
    def lines(self) -> list[str]:
        """The lines that were written."""
        return self.stream.getvalue().splitlines()


@pytest.fixture
def log() -> Iterator[Log]:
    """Give a logger of its own."""
    logger = logging.getLogger(NAME)
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    made = Log(logger, io.StringIO())
    made.use(LogLimit(interval=60.0, max_lines=3, max_tracebacks=1, max_causes=4))
    yield made
    logger.handlers.clear()
    logger.propagate = True


def test_the_first_lines_come_through_and_the_rest_is_counted(log: Log) -> None:
    for number in range(10):
        log.logger.warning("peer fault peer=%s", number)
    assert log.lines == [f"peer fault peer={number}" for number in range(3)]
    assert log.filter.suppressed == 7
    log.now = 60.0
    log.logger.warning("something else")
    assert log.lines[3:] == [
        "more lines like this were suppressed count=7 seconds=60 "
        "like='peer fault peer=%s'",
        "something else",
    ]


def test_a_new_interval_begins_anew(log: Log) -> None:
    for _ in range(5):
        log.logger.warning("full")
    log.now = 60.0
    log.logger.warning("full")
    assert log.lines[-1] == "full"
    log.now = 120.0
    log.filter.report()
    # Nothing was held back in the second interval, so nothing is told of it.
    assert sum("suppressed" in line for line in log.lines) == 1


def test_other_causes_are_not_touched(log: Log) -> None:
    for _ in range(10):
        log.logger.warning("one")
    log.logger.warning("two")
    log.logger.error("one")
    for _ in range(4):
        log.logger.warning("one", extra={"cause": "did:key:a"})
    assert log.lines[3:] == ["two", "one", "one", "one", "one"]


def test_the_author_of_a_line_may_say_how_many_are_enough(log: Log) -> None:
    for _ in range(5):
        log.logger.warning("door is full", extra={"max_lines": 1})
    assert log.lines == ["door is full"]
    assert log.filter.suppressed == 4


def test_tracebacks_are_limited_harder(log: Log) -> None:
    for _ in range(5):
        try:
            raise ValueError("made")
        except ValueError:
            log.logger.exception("failed")
    assert log.stream.getvalue().count("Traceback") == 1
    assert log.filter.suppressed == 4


def test_values_inside_a_template_are_no_causes(log: Log) -> None:
    for number in range(20):
        log.logger.error(f"Task-{number} at 0x{number:x} failed\nfuture: {number}")
    assert log.filter.suppressed == 17


def test_templates_without_end_share_one_limit(log: Log) -> None:
    for number in range(100):
        log.logger.warning("word " + "x" * number)
    # Four causes of one line, and three lines of all others together.
    assert len(log.lines) == 7
    assert log.filter.suppressed == 93


def test_debug_lines_are_not_limited(log: Log) -> None:
    for _ in range(10):
        log.logger.debug("message")
    assert len(log.lines) == 10


def test_a_count_has_the_fields_of_a_line(log: Log) -> None:
    log.logger.handlers[0].setFormatter(JsonFormatter())
    for _ in range(4):
        log.logger.warning("full")
    log.filter.report(everything=True)
    assert '"event":"more lines like this were suppressed"' in log.lines[-1]
    assert '"count":1' in log.lines[-1]


async def test_counts_are_told_also_when_no_line_comes(log: Log) -> None:
    log.use(LogLimit(interval=0.01, max_lines=1))
    log.logger.warning("full")
    log.logger.warning("full")
    log.now = 1.0
    reporting = asyncio.create_task(log.filter.report_regularly())
    await until(lambda: len(log.lines) == 2)
    log.logger.warning("full")
    log.logger.warning("full")
    reporting.cancel()
    await asyncio.wait({reporting})
    # The end of the process tells what the running interval held back.
    assert "count=1" in log.lines[-1]
    assert len(log.lines) == 4
