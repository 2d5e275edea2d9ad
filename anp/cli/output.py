"""Prints for people and programs, and turns errors into one line and an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from anp.errors import EXIT_CODES, AnpError, CallError, ConfigError, ErrorKind

__all__ = [
    "Settings",
    "describe",
    "fail",
    "guarded",
    "print_json",
    "table",
    "visible",
    "when",
]


@dataclass(slots=True)
class Settings:
    """What the global options said."""

    home: str | None = None
    config: str | None = None
    debug: bool = False
    json: bool = False


def guarded(settings: Settings, work: Callable[[], int]) -> int:
    """Run a command; whatever fails becomes one line and an exit code."""
    try:
        return work()
    except KeyboardInterrupt:
        return fail(settings, ErrorKind.INTERRUPTED, "interrupted")
    except Exception as exc:
        if settings.debug:
            raise
        if isinstance(exc, CallError):
            return fail(
                settings,
                *describe(exc),
                may_have_run=exc.may_have_run,
                retry_after=exc.retry_after,
            )
        return fail(settings, *describe(exc))


def describe(exc: Exception) -> tuple[ErrorKind, str]:
    """Return the kind and the line of an error."""
    if isinstance(exc, CallError):
        return exc.kind, exc.detail
    if isinstance(exc, ConfigError):
        return ErrorKind.CONFIGURATION, str(exc)
    if isinstance(exc, AnpError):
        return ErrorKind.UNEXPECTED, str(exc)
    # Imported late: most commands never touch the store.
    from cache.errors import CacheError

    if isinstance(exc, CacheError):
        return ErrorKind.LOCAL_RESOURCE, str(exc)
    if isinstance(exc, OSError):
        place = f"{exc.filename}: " if exc.filename else ""
        return ErrorKind.LOCAL_RESOURCE, f"{place}{exc.strerror or exc}"
    return ErrorKind.UNEXPECTED, f"{type(exc).__name__}: {exc} (--debug shows where)"


def fail(
    settings: Settings,
    kind: ErrorKind,
    detail: str,
    *,
    may_have_run: bool = False,
    retry_after: float | None = None,
) -> int:
    """Say what failed, in one line, and return the exit code of its kind."""
    # A reason may be a peer's words.
    line = visible(" ".join(detail.split()))
    print(f"anpd: {line}", file=sys.stderr)
    if settings.json:
        problem: dict[str, Any] = {
            "type": f"urn:anpd:error:{kind.value}",
            "title": kind.value.replace("_", " "),
            "detail": line,
            "kind": kind.value,
        }
        if may_have_run:
            problem["may_have_run"] = True
        if retry_after is not None:
            problem["retry_after"] = retry_after
        print(json.dumps(problem, ensure_ascii=False))
    return EXIT_CODES[kind]


def print_json(value: Any) -> None:
    """Print one JSON document, with what a terminal would act on as escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    print("".join(c if c.isprintable() or c == "\n" else _escape(c) for c in text))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in columns, plain enough for a pipe."""
    lines = [list(head), *([_cell(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())


def when(seconds: float | None) -> str:
    """Return a time for people."""
    if seconds is None:
        return "-"
    from datetime import datetime

    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def visible(text: str) -> str:
    """Return a peer's text with what a terminal would act on made visible."""
    return "".join(c if c.isprintable() else f"<{ord(c):x}>" for c in text)


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"


def _cell(value: object) -> str:
    text = "-" if value is None else str(value)
    clean = "".join(c if c.isprintable() else " " for c in text)
    return clean if len(clean) <= 72 else f"{clean[:69]}..."
