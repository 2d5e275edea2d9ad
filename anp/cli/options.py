"""Options and arguments that several commands have, and the reading of input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from anp.errors import CallError, ErrorKind
from negotiation.exact_numbers import read_number

__all__ = [
    "Data",
    "Hash",
    "Host",
    "Id",
    "Json",
    "Note",
    "Port",
    "read_data",
    "read_input",
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Data = Annotated[
    str, typer.Option("--data", "-d", help="JSON, @FILE, or - for standard input.")
]
Hash = Annotated[
    str,
    typer.Argument(
        metavar="HASH", help="Hash of the protocol, or its first characters."
    ),
]
Host = Annotated[str | None, typer.Option(help="Address to listen on.")]
Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Id of the negotiation, or its first characters."
    ),
]
Note = Annotated[str, typer.Option(help="Reason; the peer reads it if you reject.")]
Port = Annotated[
    int | None, typer.Option(help="Port to listen on; 0 takes a free one.")
]


def read_input(file: str, *, most: int) -> bytes:
    """Return the bytes of a file, or of standard input for `-`.

    Raises:
        CallError: `usage`, there are more than `most`.
        OSError: It cannot be read.
    """
    if file == "-":
        data = sys.stdin.buffer.read(most + 1)
    else:
        with Path(file).open("rb") as stream:
            data = stream.read(most + 1)
    if len(data) > most:
        raise CallError(ErrorKind.USAGE, f"{file} has more than {most} bytes")
    return data


def read_data(text: str) -> Any:
    """Return the JSON that an option gives: itself, `@file`, or `-` for stdin.

    Raises:
        CallError: `usage`, it is not JSON or cannot be read.
    """
    if text == "-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise CallError(ErrorKind.USAGE, f"-d {text}: {exc}") from exc
    try:
        # Python would take NaN and Infinity, which are no JSON.
        return json.loads(text, parse_constant=_no_constant, parse_float=read_number)
    except RecursionError:
        raise CallError(
            ErrorKind.USAGE, "the data cannot be used: it is nested too deeply"
        ) from None
    except ValueError as exc:
        raise CallError(
            ErrorKind.USAGE, f"the data is not JSON: {exc}; give -d '{{\"key\": 1}}'"
        ) from exc


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")
