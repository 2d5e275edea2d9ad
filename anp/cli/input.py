"""Reads the input that an option names: a file, standard input, or JSON itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from anp.errors import CallError, ErrorKind
from jsonic.exact_numbers import read_number


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
