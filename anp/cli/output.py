"""Prints for people and programs, and turns errors into one line and an exit code."""

from __future__ import annotations

import json
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from anp.errors import EXIT_CODES, AnpError, CallError, ConfigError, ErrorKind
from jsonic.exact_numbers import write_json

LONG_DID = 24
"Characters of a DID that is not shortened."

MIN_COLUMN = 8
"Characters that the widest column of a table keeps, however narrow the terminal."

_is_wide = False
"`--wide` was given."

Column = str | Callable[[Any], object]
Line = str | tuple[str, object]


@dataclass(slots=True)
class Settings:
    """The global options as they were given."""

    home: str | None = None
    config: str | None = None
    debug: bool = False
    json: bool = False
    words: tuple[str, ...] = ()
    "The whole command line."


def guarded(settings: Settings, work: Callable[[], int]) -> int:
    """Run a command; whatever fails becomes one line and an exit code."""
    try:
        return work()
    except BrokenPipeError:
        # Nobody reads on, so there is nobody to tell; see `anp/__main__.py`.
        raise
    except KeyboardInterrupt:
        return fail(settings, ErrorKind.INTERRUPTED, "interrupted")
    except Exception as exc:
        if settings.debug:
            raise
        more: dict[str, Any] = {}
        if isinstance(exc, CallError):
            if exc.may_have_run:
                more["may_have_run"] = True
            if exc.retry_after is not None:
                more["retry_after"] = exc.retry_after
        return fail(settings, *describe(exc), **more)


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
    return ErrorKind.UNEXPECTED, "unexpected error; the same with --debug shows where"


def fail(settings: Settings, kind: ErrorKind, detail: str, /, **more: Any) -> int:
    """Say what failed, in one line, and return the exit code of its kind.

    Args:
        more: Further members of the problem document that `--json` prints.
    """
    # A reason may be a peer's words.
    line = visible(" ".join(detail.split()))
    ran = " (it may have run)" if more.get("may_have_run") else ""
    progress(f"anpd: {line}{ran}")
    if settings.json:
        problem = {
            "type": f"urn:anpd:error:{kind.value}",
            "title": kind.value.replace("_", " "),
            "detail": line,
            "kind": kind.value,
        }
        print(_escaped(json.dumps(more | problem, ensure_ascii=False)))
    return EXIT_CODES[kind]


def print_json(value: Any) -> None:
    """Print one JSON document, with what a terminal would act on as escapes."""
    print(_escaped(write_json(value, ensure_ascii=False, indent=2)))


def json_line(value: Any) -> str:
    """Return JSON as one line, with what a terminal would act on as escapes."""
    return _escaped(write_json(value, ensure_ascii=False))


def print_bytes(data: bytes) -> None:
    """Print a document byte for byte."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def print_list(
    answer: Any,
    rows: Iterable[Any],
    columns: Mapping[str, Column],
    *,
    as_json: bool,
    notes: Iterable[Line] = (),
    names: Callable[[], Mapping[str, str]] = dict,
) -> None:
    """Print rows in columns and notes below them, or with `--json` the whole answer.

    Args:
        answer: JSON of which the rows are a part.
        columns: Their heads, each with the key of a row or a function of it.
        names: Finds the names of DIDs, which a terminal shows in their place.
    """
    if as_json:
        print_json(answer)
        return
    width = terminal_width()
    known = {} if width is None else names()
    for line in table(rows, columns, width=width, names=known):
        print(line)
    print_one(None, notes, as_json=False)


def print_one(answer: Any, told: Iterable[Line], *, as_json: bool) -> None:
    """Print one thing in lines for people, or with `--json` the whole answer.

    Args:
        told: Lines of text, and pairs of a name and a value, which are lined up.
            Whatever a terminal would act on is made visible.
    """
    if as_json:
        print_json(answer)
        return
    lines = list(told)
    width = max(
        (cells_of(one[0]) for one in lines if isinstance(one, tuple)), default=0
    )
    for one in lines:
        if isinstance(one, tuple):
            one = f"{_padded(one[0], width)}  {_text(one[1])}".rstrip()
        print(visible(one))


def progress(line: str) -> None:
    """Say something beside the result, on standard error."""
    print(visible(line), file=sys.stderr, flush=True)


def transient(line: str) -> None:
    """Show a line on a terminal in place of the last one; an empty line clears it.

    It is cut to the width of the terminal, as only one line can be replaced.
    """
    width = shutil.get_terminal_size().columns - 1
    sys.stderr.write(f"\r{_beginning(visible(line), width)}\x1b[K")
    sys.stderr.flush()


NO_NAMES: Final[Mapping[str, str]] = {}


def table(
    rows: Iterable[Any],
    columns: Mapping[str, Column],
    *,
    width: int | None = None,
    names: Mapping[str, str] = NO_NAMES,
) -> list[str]:
    """Return rows in columns as lines, plain enough for a pipe.

    Args:
        width: Characters that a line may have: DIDs are shortened in their middle, and
            then the longest columns at their ends. None gives DIDs whole.
        names: Names by DID, which stand in the place of DIDs.
    """
    lines = [list(columns)]
    for row in rows:
        found = (row[c] if isinstance(c, str) else c(row) for c in columns.values())
        cells = map(_cell, found)
        lines.append([names.get(cell, cell) for cell in cells])
    widths = _widths(lines)
    if width is not None and _total(widths) > width:
        lines = [[short_did(cell) for cell in cells] for cells in lines]
        widths = _fitting(_widths(lines), width)
        lines = [list(map(_cut, cells, widths)) for cells in lines]
    return ["  ".join(map(_padded, cells, widths)).rstrip() for cells in lines]


def _widths(lines: list[list[str]]) -> list[int]:
    return [max(map(cells_of, cells)) for cells in zip(*lines, strict=True)]


def cells_of(text: str) -> int:
    """Return the columns of a terminal that a text takes.

    Chinese characters take two, and marks that stand on another character none.
    """
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(one: str) -> int:
    if unicodedata.combining(one) or unicodedata.category(one) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells_of(text))


def _beginning(text: str, width: int) -> str:
    """Return as many characters of a text as fit into a width."""
    end = 0
    for one in text:
        width -= _cells(one)
        if width < 0:
            break
        end += 1
    return text[:end]


def _total(widths: list[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _fitting(widths: list[int], width: int) -> list[int]:
    """Take from the widest columns until they fit, or are as narrow as is of use."""
    widths = list(widths)
    while _total(widths) > width and max(widths) > MIN_COLUMN:
        widths[widths.index(max(widths))] -= 1
    return widths


def _cut(cell: str, width: int) -> str:
    if cells_of(cell) <= width:
        return cell
    # The end of a DID tells it from others.
    tail = cell[-4:] if cell.startswith("did:") else ""
    return f"{_beginning(cell, width - 1 - len(tail))}…{tail}"


def show_wide() -> None:
    """Let tables and DIDs of this process have their whole width."""
    global _is_wide
    _is_wide = True


def terminal_width() -> int | None:
    """Return the characters of a line of the terminal; None to have them all."""
    if _is_wide or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def shown_did(text: str) -> str:
    """Return a DID for people: short in a terminal, whole in a pipe."""
    return text if terminal_width() is None else short_did(text)


def short_did(text: str) -> str:
    """Return a DID without its middle; `…` stands for it."""
    if not text.startswith("did:") or len(text) <= LONG_DID:
        return text
    return f"{text[:12]}…{text[-6:]}"


def when(seconds: float | None) -> str:
    """Return a time for people."""
    if seconds is None:
        return "-"
    from datetime import datetime

    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def visible(text: str) -> str:
    """Return a peer's text with what a terminal would act on made visible."""
    return "".join(c if c.isprintable() else f"<{ord(c):x}>" for c in text)


def call_line(one: dict[str, Any]) -> str:
    """Return a call on one line, for people."""
    # Imported late: most commands print no calls.
    from anp.interaction.elements import party_name

    arrow = "->" if one["direction"] == "made" else "<-"
    words = [
        when(one["at"]),
        f"{one['direction']:<6}",
        f"{outcome_of(one):<17}",
        f"{one['ms']:7.0f} ms",
        one["capability"] or one["need"] or "-",
        arrow,
        party_name(one["peer"] or one["asked"] or "-"),
        f"{one['source']} {protocol_of(one)}",
    ]
    if one["reason"]:
        words.append(one["reason"])
    return visible("  ".join(words))


def outcome_of(one: dict[str, Any]) -> str:
    """Return the outcome of a call, with the number of calls it stands for."""
    times = f" x{one['count']}" if one["count"] > 1 else ""
    return f"{one['outcome']}{times}"


def protocol_of(one: dict[str, Any]) -> str:
    """Return the URI of a call's protocol, or the beginning of its hash."""
    return str(one["uri"] or (one["protocol"] or "-")[:12])


def event_line(event: dict[str, Any]) -> str:
    """Return any event on one line, for people."""
    data = {name: value for name, value in event["data"].items() if value != ""}
    about = " ".join(f"{name}={_short(value)}" for name, value in data.items())
    return f"{when(event['at'])}  {event['type']:<20} {about}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return visible(text if len(text) <= 80 else f"{text[:77]}...")


def _escaped(text: str) -> str:
    """Return JSON with what a terminal would act on as escapes of JSON."""
    return "".join(
        c
        if c.isprintable() or c == "\n"
        else "\\u007f"
        if c == "\x7f"
        else json.dumps(c)[1:-1]
        for c in text
    )


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value)) or None
    return "-" if value is None else str(value)


def _cell(value: object) -> str:
    clean = "".join(c if c.isprintable() else " " for c in _text(value))
    if cells_of(clean) <= 72 or clean.startswith("did:"):
        return clean
    return f"{_beginning(clean, 69)}..."
