"""The command `call` itself, and a short way to it for the usual command lines.

A warm call takes less time than the library of the command line takes to load. So the
usual forms of `anpd call` are read here, and everything else (help, schemas in files,
wrong words) is left to the whole command line, which reads the same forms in the same
way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anp.cli.client import Client, home_of
from anp.cli.input import read_data
from anp.cli.output import Settings, guarded, print_json, progress
from anp.errors import CallError, ErrorKind

GLOBAL: Final = {"--home": "home"}
OPTIONS: Final = {
    "--data": "data",
    "-d": "data",
    "--find": "find",
    "--capability": "capability",
    "--timeout": "timeout",
    "--mode": "mode",
    "--protocol": "protocol",
    "--idempotency-key": "idempotency_key",
}
FLAGS: Final = {"--json": "as_json", "--trust-first-use": "trust_first_use"}
"Options that the short way knows, with their fields."


@dataclass(slots=True)
class CallLine:
    """The words of one `anpd call`."""

    peer: str = ""
    need: str = ""
    data: str = "{}"
    find: str | None = None
    capability: str | None = None
    timeout: float | None = None
    input_schema: Path | None = None
    output_schema: Path | None = None
    trust_first_use: bool = False
    mode: str = "auto"
    protocol: str | None = None
    idempotency_key: str | None = None
    as_json: bool = False


def make_call(
    settings: Settings,
    line: CallLine,
    ask: Callable[[Client, dict[str, Any]], Any] = Client.call,
) -> None:
    """Call a peer over the daemon that the settings mean, and print the result.

    Args:
        ask: Sends the request and returns the answer.

    Raises:
        CallError: There is no result.
    """
    body = _body_of(line)
    answer = ask(Client(home_of(settings)[0]), body)
    if line.as_json:
        print_json(answer)
        return
    print_json(answer["output"])
    for note in answer["notes"]:
        progress(f"note: {note}")
    progress(
        f"{answer['source']} {answer['capability'] or '-'} "
        f"{(answer['protocol'] or '-')[:12]} "
        f"negotiation_messages={answer['negotiation_messages']} ms={answer['ms']}"
    )


def _body_of(line: CallLine) -> dict[str, Any]:
    """Return the request to the local API."""
    wanted: str | dict[str, Any] = line.need
    if line.input_schema or line.output_schema:
        wanted = {
            "requirement": line.need,
            "input_schema": _json_file(line.input_schema),
            "output_schema": _json_file(line.output_schema),
        }
    if bool(line.find) == bool(line.need):
        raise CallError(ErrorKind.USAGE, "give PEER and NEED, or --find CAPABILITY")
    whom = {"find": line.find} if line.find else {"peer": line.peer, "need": wanted}
    body: dict[str, Any] = {
        **whom,
        "input": read_data(line.data),
        "mode": line.mode,
        "trust_first_use": line.trust_first_use,
    }
    further = {
        "timeout": line.timeout,
        "protocol": line.protocol,
        "capability": line.capability,
        "idempotency_key": line.idempotency_key,
    }
    return body | {name: one for name, one in further.items() if one is not None}


def _json_file(path: Path | None) -> Any:
    return None if path is None else read_data(f"@{path}")


def shows_phases(line: CallLine) -> bool:
    """Return whether somebody watches, who is shown what a call is doing."""
    return sys.stderr.isatty() and not line.as_json


def quick_call(arguments: Sequence[str]) -> int | None:
    """Run a usual form of `anpd call` and return its exit code; None for all else."""
    read = _read_line(list(arguments))
    if read is None:
        return None
    settings, line = read
    if shows_phases(line):
        return None

    def work() -> int:
        make_call(settings, line)
        return 0

    return guarded(settings, work)


def _read_line(words: list[str]) -> tuple[Settings, CallLine] | None:
    """Return what the words mean, or None if they are none of the usual ones."""
    settings, line = Settings(json="--json" in words), CallLine()
    while words and words[0] in GLOBAL and len(words) > 1:
        setattr(settings, GLOBAL[words[0]], words[1])
        del words[:2]
    if not words or words.pop(0) != "call":
        return None
    places = ["peer", "need"]
    while words:
        word = words.pop(0)
        if word in FLAGS:
            setattr(line, FLAGS[word], True)
        elif word in OPTIONS:
            if not words or not _set_option(line, OPTIONS[word], words.pop(0)):
                return None
        elif word.startswith("-") or not places:
            return None
        else:
            setattr(line, places.pop(0), word)
    return settings, line


def _set_option(line: CallLine, field: str, value: str) -> bool:
    """Set one option; False if the value is none that it can have."""
    if field != "timeout":
        setattr(line, field, value)
        return True
    try:
        line.timeout = float(value)
    except ValueError:
        return False
    return True
