"""Forms of log lines: one line of text for people, one JSON object for programs."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from typing import Any, Literal, TextIO

from anp.sidecar.telemetry.log_limit import LOG_LIMIT

FIELD = re.compile(r"(?:(?P<name>[a-z_]+)=)?(?P<place>%[-#0 +]*\d*(?:\.\d+)?[a-zA-Z%])")
"A place for an argument in a log line's template, and the name in front of it."

MAX_TEXT = 8_192
"Characters of one value in a JSON line; a traceback is longer sometimes."

NOISY = ("httpx2", "httpcore2", "openai", "asyncio")
MORE_NOISY = ("uvicorn.error", "opentelemetry")
"Libraries that are heard from `warning` on."


class TextFormatter(logging.Formatter):
    """One line of text; what a terminal would act on is made visible."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line, without the traceback that may follow it."""
        line = super().formatMessage(record)
        # A value with a line break in it would look like a line of ours.
        return "".join(c if c.isprintable() else f"<{ord(c):x}>" for c in line)


class JsonFormatter(logging.Formatter):
    """One JSON object on one line (RFC 8259, ASCII).

    `event` is the fixed phrase of a line and `fields` what it says of the case, so
    that nobody has to take sentences apart; `message` is both, for people.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry: dict[str, Any] = {
            "time": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:MAX_TEXT],
        }
        event, fields = taken_apart(record)
        if fields:
            entry["event"] = event
            entry["fields"] = fields
        entry.update(_trace_ids())
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)[-MAX_TEXT:]
        return json.dumps(entry, ensure_ascii=True, separators=(",", ":"))


def _trace_ids() -> dict[str, str]:
    """Return the ids of the open span, in hex; none while nobody traces."""
    # Nobody traces as long as nobody has imported the SDK.
    if "opentelemetry.sdk.trace" not in sys.modules:
        return {}
    from opentelemetry.trace import format_span_id, format_trace_id, get_current_span

    context = get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {
        "trace_id": format_trace_id(context.trace_id),
        "span_id": format_span_id(context.span_id),
    }


def taken_apart(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """Return the fixed phrase of a line and its `name=value` parts, as far as known."""
    template, arguments = record.msg, record.args
    if not isinstance(template, str) or not isinstance(arguments, tuple):
        return str(template), {}
    places = [m for m in FIELD.finditer(template) if m["place"] != "%%"]
    if len(places) != len(arguments):
        return template, {}
    fields = {
        place["name"]: _plain(argument, place["place"])
        for place, argument in zip(places, arguments, strict=True)
        if place["name"]
    }
    phrase = template[: places[0].start()] if places else template
    return phrase.strip(" :"), fields


def _plain(value: object, place: str) -> Any:
    if isinstance(value, bool | int | float) or value is None:
        return value
    # `%r` quotes what others wrote; JSON quotes it again anyway.
    return (value if isinstance(value, str) else place % (value,))[:MAX_TEXT]


def log_to(
    stream: TextIO | None = None,
    *,
    style: Literal["auto", "text", "json"] = "text",
    level: str = "info",
) -> None:
    """Send all logs to one stream, in place of where they went before.

    Args:
        stream: Standard error when not given.
        style: `auto` is text on a terminal, else JSON.
        level: The least that is written.
    """
    stream = stream or sys.stderr
    as_json = style == "json" or (style == "auto" and not stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    limit_lines()
    root.setLevel(level.upper())
    for name in (*NOISY, *MORE_NOISY):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def limit_lines() -> None:
    """Limit the lines of each cause, wherever they are written now."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(LOG_LIMIT)
