"""Strict JSON by RFC 8259 (ANP-18), for foreign bytes."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, NoReturn

from pydantic_core import to_json

from jsonic.exact_numbers import ExactEncoder, read_number
from negotiation.errors import JsonError
from negotiation.long_texts import (
    LONG,
    STAND_IN,
    is_named,
    take_out,
    write_bytes,
    written_size,
)

Json = dict[str, Any] | list[Any] | str | int | float | bool | None
"Any JSON value; the content of a container is `Json` again."

MAX_DEPTH = 64
"Deepest nesting of arrays and objects."

MAX_DIGITS = 400
"Longest number, in characters, since a conversion takes quadratic time."

BLANKS: Final = " \t\n\r"

HUGE: Final = 10**300
"An integer below it has fewer digits than `MAX_DIGITS`."

SMALLEST: Final = 1e-4
LARGEST: Final = 1e16
"Floats from one to the other are written without an exponent."

MAX_PLAIN: Final = 10_000
"Values that `plain_json` looks at; for more of them it is slower than what it spares."

SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
"An escape for a surrogate, alone or as part of a pair."


def parse_json(data: bytes | str, *, max_size: int, max_depth: int = MAX_DEPTH) -> Json:
    """Parse one JSON text in UTF-8 (ANP-18, WIRE row 53).

    It refuses texts that `json.loads` accepts: a byte order mark, NaN and Infinity,
    numbers too large for a float, repeated keys, lone surrogates, long numbers and deep
    nesting.

    Args:
        data: The text. Bytes are read as UTF-8.
        max_size: Largest size in bytes of UTF-8; checked before anything else.
        max_depth: Deepest nesting of containers.

    Raises:
        JsonError: The reason quotes nothing of the text.
    """
    if isinstance(data, bytes) and LONG < len(data) <= max_size:
        found = take_out(data)
        if found is not None:
            with contextlib.suppress(JsonError):
                return _parse_rest(*found, max_depth)
            # What is wrong with it is said of all of it.
    text = _decode(data, max_size)
    # A caller that has let go of the bytes needs no room for them any more.
    del data
    return _parse(text, _DECODER, max_depth)


def _parse_rest(rest: bytes, texts: list[str], max_depth: int) -> Json:
    """Parse JSON whose long texts were taken out; see `take_out`."""
    left = deque(texts)

    def constant(name: str) -> str:
        return left.popleft() if name == STAND_IN.decode() else _refuse_constant(name)

    decoder = _strict_decoder(constant)
    return _parse(_decode(rest, len(rest)), decoder, max_depth)


def _parse(text: str, decoder: json.JSONDecoder, max_depth: int) -> Json:
    try:
        if text.startswith("\ufeff"):
            said = "Unexpected UTF-8 BOM (decode using utf-8-sig)"
            raise json.JSONDecodeError(said, text, 0)
        value = _decoded(text, decoder)
    except RecursionError:
        raise JsonError(f"nested deeper than {max_depth} levels") from None
    except json.JSONDecodeError as exc:
        where = f"line {exc.lineno}, column {exc.colno}"
        raise JsonError(f"not JSON: {exc.msg} at {where}") from None
    # Each container begins with a bracket, so a text with few of them cannot be deep
    # and most messages need no check of each value.
    if _has_brackets(text, more_than=max_depth):
        _check_depth(value, max_depth)
    # The first look is fast, also over a long text without escapes, such as base64.
    if "\\" in text and SURROGATE_ESCAPE.search(text):
        _check_surrogates(value)
    return value


def _decoded(text: str, decoder: json.JSONDecoder) -> Json:
    """Return `decoder.decode(text)`, which looks for blanks with two patterns."""
    value: Json
    if text[:1] in BLANKS:
        value = decoder.decode(text)
        return value
    value, end = decoder.raw_decode(text)
    if end != len(text) and (rest := text[end:].lstrip(BLANKS)):
        raise json.JSONDecodeError("Extra data", text, len(text) - len(rest))
    return value


def canonical_json(value: Json) -> bytes:
    """Return the form of `value` for hashing: sorted keys, no blanks, UTF-8.

    Raises:
        JsonError: `value` is not JSON, or cannot be written as UTF-8.
    """
    try:
        return write_bytes(_CANONICAL, value)
    except RecursionError:
        raise JsonError("nested too deep to be written") from None
    except (TypeError, ValueError) as exc:
        raise JsonError(f"cannot be written as JSON: {exc}") from None


def plain_json(value: Any, *, max_depth: int) -> bytes | None:
    """Return the JSON of a value of ours, if `parse_json` is sure to take it.

    It is without blanks and in UTF-8, and there is nothing unusual in it: neither long
    texts, nor numbers of more digits than a float has. A dataclass is the object of its
    fields.

    Args:
        max_depth: Deepest nesting of containers.

    Returns:
        None: It has to be written and parsed to know.
    """
    numbers: list[Any] = []
    left = MAX_PLAIN
    level: list[Any] = [value]
    for _ in range(max_depth):
        below = _below(level, numbers)
        if below is None or len(below) > left:
            return None
        if not below:
            return write_plain(value, numbers)
        left -= len(below)
        level = below
    return None


def _below(level: list[Any], numbers: list[Any]) -> list[Any] | None:
    """Return the values in some values; None if one of them is not plain."""
    below: list[Any] = []
    for one in level:
        kind: Any = type(one)
        if kind is str:
            if len(one) > LONG:
                return None
        elif one is None or kind is bool:
            continue
        elif kind is dict and is_named(one):
            below += one.values()
        elif kind is int or kind is float:
            numbers.append(one)
        elif kind is list:
            below += one
        elif (values_of := _values_of(kind)) is not None:
            below += values_of(one)
        else:
            return None
    return below


@lru_cache(maxsize=256)
def _values_of(kind: type) -> Callable[[Any], Iterable[Any]] | None:
    """Return what gives the values of a dataclass's fields; None for another class."""
    names = [one.name for one in fields(kind)] if is_dataclass(kind) else []
    # Of one name alone it would give no tuple.
    return attrgetter(*names) if len(names) > 1 else None


def write_plain(value: Any, numbers: Iterable[Any]) -> bytes | None:
    """Return the JSON of a plain value, which has just these numbers in it."""
    is_usual = True
    for one in numbers:
        size = abs(one)
        if not SMALLEST <= size < LARGEST and size != 0:
            is_usual = False
            if type(one) is int and size >= HUGE:
                return None
    try:
        # The writer in Rust has another spelling for some floats.
        return to_json(value) if is_usual else _PLAIN.encode(value).encode()
    except (TypeError, ValueError):
        # A number that is not finite, or half of a surrogate pair.
        return None


def largest_json(value: Json) -> int:
    """Return a bound of the bytes that `json.dumps` makes of a value.

    It is close for ASCII, and looks at a long text without copying it.

    Raises:
        JsonError: A number is not finite.
    """
    size, left = 0, [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            size += 2 + written_size(one)
        elif isinstance(one, dict):
            size += 4 + 2 * len(one)
            left += [*one, *one.values()]
        elif isinstance(one, list | tuple):
            size += 4 + 2 * len(one)
            left += one
        else:
            if isinstance(one, float) and not math.isfinite(one):
                raise JsonError("NaN and Infinity are not JSON")
            size += len(repr(one)) + 4
    return size


def _decode(data: bytes | str, max_size: int) -> str:
    if len(data) > max_size:
        raise JsonError(f"{len(data)} long, at most {max_size} bytes are allowed")
    if isinstance(data, bytes):
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as exc:
            raise JsonError(f"not UTF-8 at byte {exc.start}") from None
    try:
        size = len(data.encode("utf-8"))
    except UnicodeEncodeError:
        raise JsonError("a lone surrogate cannot be written as UTF-8") from None
    if size > max_size:
        raise JsonError(f"{size} bytes long, at most {max_size} are allowed")
    return data


def _has_brackets(text: str, *, more_than: int) -> bool:
    # Faster than counting where a long text has few of them.
    for bracket in "[{":
        place = text.find(bracket)
        while place >= 0:
            more_than -= 1
            if more_than < 0:
                return True
            place = text.find(bracket, place + 1)
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    # Two readers that keep different ones of two equal keys would understand different
    # messages, so a repeated key is not safe.
    if len(result) != len(pairs):
        raise JsonError("a key stands twice in one object")
    return result


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise JsonError(f"an integer of more than {MAX_DIGITS} digits")
    return int(text)


def _float(text: str) -> int | float:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise JsonError(f"a number of more than {MAX_DIGITS} characters")
    try:
        return read_number(text)
    except ValueError as exc:
        raise JsonError(str(exc)) from None


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not JSON")


def _strict_decoder(constant: Callable[[str], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_object,
        parse_int=_integer,
        parse_float=_float,
        parse_constant=constant,
    )


# Made once: `json.loads` and `json.dumps` with options make new ones for each call.
_DECODER: Final = _strict_decoder(_refuse_constant)
_PLAIN: Final = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
)
_CANONICAL: Final = ExactEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def _check_depth(value: Json, max_depth: int) -> None:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(max_depth):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    if level:
        raise JsonError(f"nested deeper than {max_depth} levels")


def _check_surrogates(value: Json) -> None:
    # The parser joined escapes that form a pair; remaining ones cannot be encoded.
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise JsonError("a lone surrogate cannot be written as UTF-8") from None
