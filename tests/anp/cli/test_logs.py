"""Log lines for people and for programs."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from anp.cli.logs import JsonFormatter, TextFormatter, log_to
from anp.sidecar.telemetry.log_limit import MAX_LINES


def record(message: str, *args: Any, **more: Any) -> logging.LogRecord:
    """Return a record as a logger makes it."""
    return logging.LogRecord(
        "anp.made", logging.WARNING, "made.py", 1, message, args, more.get("exc_info")
    )


def as_json(message: str, *args: Any, **more: Any) -> dict[str, Any]:
    """Return a JSON line, read again."""
    line = JsonFormatter().format(record(message, *args, **more))
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """Give the root logger, and put it back as it was."""
    logger = logging.getLogger()
    handlers, level = list(logger.handlers), logger.level
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)


def test_a_line_has_its_phrase_and_its_values() -> None:
    found = as_json("link closed link=%s faults=%d", "ab12", 3)
    assert found["event"] == "link closed"
    assert found["fields"] == {"link": "ab12", "faults": 3}
    assert found["message"] == "link closed link=ab12 faults=3"
    assert (found["level"], found["logger"]) == ("warning", "anp.made")
    assert found["time"].endswith("Z")


def test_values_without_a_name_stay_in_the_message_alone() -> None:
    found = as_json("over %d bytes dropped", 7)
    assert found["message"] == "over 7 bytes dropped"
    assert "fields" not in found


def test_a_percent_sign_is_no_value() -> None:
    found = as_json("at 80 %% of key=%s", "k")
    assert found["fields"] == {"key": "k"}


def test_words_of_others_cannot_make_a_second_line() -> None:
    evil = 'x"\n{"level":"error"}\x1b[2J\u2028'
    assert as_json("odd reason=%r", evil)["fields"]["reason"] == evil
    line = TextFormatter().format(record("odd reason=%s", evil))
    assert "\n" not in line
    assert "\x1b" not in line


def test_a_traceback_is_one_field() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        found = as_json("failed", exc_info=sys.exc_info())
    assert "ValueError: no" in found["exception"]


@pytest.mark.parametrize(
    ("style", "is_json"), [("text", False), ("json", True), ("auto", True)]
)
def test_auto_is_json_where_nobody_looks(
    style: Any, is_json: bool, root: logging.Logger
) -> None:
    stream = io.StringIO()
    log_to(stream, style=style, level="info")
    logging.getLogger("anp.made").info("hello name=%s", "you")
    logging.getLogger("anp.made").debug("not this")
    logging.getLogger("httpx2").info("nor this")
    assert stream.getvalue().startswith("{") is is_json
    assert len(stream.getvalue().splitlines()) == 1


def test_a_second_call_takes_the_place_of_the_first(root: logging.Logger) -> None:
    first, second = io.StringIO(), io.StringIO()
    log_to(first)
    log_to(second, level="debug")
    logging.getLogger("anp.made").debug("here")
    assert first.getvalue() == ""
    assert "here" in second.getvalue()


def test_lines_of_one_cause_are_limited(root: logging.Logger) -> None:
    stream = io.StringIO()
    log_to(stream)
    for _ in range(MAX_LINES + 5):
        logging.getLogger("anp.made_for_logs").warning("peer fault")
    assert stream.getvalue().count("peer fault") == MAX_LINES
