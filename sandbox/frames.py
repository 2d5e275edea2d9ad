"""Frames between the daemon and its workers: plain values, never pickled.

A frame is a length, then the length of a JSON header, the header, and the bytes values
one after the other. The header holds the value, with null in the place of each bytes
value, and next to it a table of their places. So no value from a module can be mistaken
for a bytes value.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

from jsonic.exact_numbers import ExactEncoder, number_text, read_number
from sandbox.errors import FrameError

MAX_FRAME = 16 * 1024 * 1024
"Largest frame, in bytes."

MAX_DEPTH = 100
"Deepest nesting of a value."

MAX_DIGITS_BITS = 2048
"Longest integer, in bits."

MAX_DIGITS = 617
"Most digits in a row in any number, as many as the longest integer has."

MAX_SLOW = 100_000
"""Most numbers of one frame that take long to read: with an exponent, or, each counted
`EXACT_WEIGHT` times, with more digits than a float has. So a frame of nothing else
takes a quarter of a second."""

EXACT_WEIGHT = 5
"An exact number takes as long as so many numbers with an exponent."

SMALL = 64 * 1024
"Largest header, in bytes, whose numbers are too few to be counted."

MAX_NODES = 1_000_000
"Most values in one frame: each costs some hundred times its bytes in memory."

_LENGTH = struct.Struct(">I")

_DIGIT = bytes(ord("0" if byte in b"0123456789" else " ") for byte in range(256))
"Makes each digit of a text a 0, and everything else a blank."

_LONG = b"0" * (MAX_DIGITS + 1)


_LEAVES = frozenset({type(None), bool, int, float, str})

_Path = tuple[Any, Any] | None
"Path to a value: the path of its container, and the last step; None at the top."


def _refuse(constant: str) -> Any:
    raise FrameError(f"{constant} may not cross")


# Made once: `json.loads` with any option would make a new decoder for each call.
_encode = ExactEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder(parse_constant=_refuse, parse_float=read_number).decode


class _SlowNumbers:
    """Counts the numbers of one frame that take long to read or to write."""

    def __init__(self) -> None:
        self._left = MAX_SLOW

    def count(self, value: float) -> None:
        self._left -= 1 if type(value) is float else EXACT_WEIGHT
        if self._left < 0:
            raise FrameError("too many numbers with an exponent, or with many digits")

    def read(self, text: str) -> int | float:
        plain = float(text)
        if repr(plain) == text:
            return plain
        value = read_number(text)
        if type(value) is not float or "e" in text or "E" in text:
            self.count(value)
        return value


def _decoder(text: bytes) -> Any:
    """Return what decodes a header; small ones share one, since making it takes time.

    Raises:
        FrameError: A number has too many digits.
    """
    if len(text) <= MAX_DIGITS:
        return _decode
    # Strings may have as many digits as they like.
    if _has_long_run(text) and _has_long_run(_without_strings(text)):
        raise FrameError(f"a number has more than {MAX_DIGITS} digits in a row")
    if len(text) <= SMALL:
        return _decode
    read = _SlowNumbers().read
    return json.JSONDecoder(parse_constant=_refuse, parse_float=read).decode


def pack(value: Any, *, max_frame: int = MAX_FRAME) -> bytes:
    """Return the frame of `value` with its length; FrameError if it cannot be sent."""
    table: list[list[Any]] = []
    sections: list[bytes] = []
    tree = _strip(value, None, 0, table, sections, _SlowNumbers())
    header = _encode({"value": tree, "bytes": table}).encode("ascii")
    length = _LENGTH.size + len(header) + sum(map(len, sections))
    if length > max_frame:
        raise FrameError(f"{length} bytes, at most {max_frame}")
    return b"".join(
        [_LENGTH.pack(length), _LENGTH.pack(len(header)), header, *sections]
    )


def frame_length(prefix: bytes, *, max_frame: int = MAX_FRAME) -> int:
    """Return the body length in the 4 bytes of `prefix`; FrameError if too large."""
    length = int(_LENGTH.unpack(prefix)[0])
    if not _LENGTH.size <= length <= max_frame:
        raise FrameError(f"a frame of {length} bytes")
    return length


def unpack(body: bytes) -> Any:
    """Return the value in a frame's body; FrameError for anything else."""
    try:
        (header_length,) = _LENGTH.unpack_from(body)
        start = _LENGTH.size + header_length
        text = body[_LENGTH.size : start]
        _count(text)
        header = _decoder(text)(text.decode("utf-8"))
        value, table = header["value"], header["bytes"]
        for path, length in table:
            if type(length) is not int or length < 0 or start + length > len(body):
                raise FrameError("a bytes section does not fit")
            value = _place(value, path, body[start : start + length])
            start += length
        if start != len(body):
            raise FrameError("bytes are left over")
        _check(value, 0)
    except FrameError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, struct.error) as exc:
        raise FrameError(f"no frame: {type(exc).__name__}") from None
    except RecursionError:
        raise FrameError("nested too deeply") from None
    return value


def _count(text: bytes) -> None:
    """Refuse a text with too many values before it is parsed."""
    if text.count(b",") + text.count(b"[") + text.count(b"{") <= MAX_NODES:
        return
    # Most of these characters may stand inside JSON strings, which are removed first.
    bare = _without_strings(text)
    if bare.count(b",") + bare.count(b"[") + bare.count(b"{") > MAX_NODES:
        raise FrameError(f"more than {MAX_NODES} values")


def _has_long_run(text: bytes) -> bool:
    return _LONG in text.translate(_DIGIT)


def _without_strings(text: bytes) -> bytes:
    """Return a JSON text with a quote in the place of each string.

    Raises:
        FrameError: It has more strings than values may be in a frame, with their keys.
    """
    if text.count(b'"') > 4 * MAX_NODES:
        raise FrameError(f"more than {MAX_NODES} values")
    # What is escaped ends no string; behind this, each second part is outside of one.
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b'"'.join(plain.split(b'"')[::2])


def _strip(
    value: Any,
    path: _Path,
    depth: int,
    table: list[list[Any]],
    sections: list[bytes],
    numbers: _SlowNumbers,
) -> Any:
    """Return `value` with null in the place of each bytes value, and note those."""
    if depth > MAX_DEPTH:
        raise FrameError("nested too deeply")
    kind = type(value)
    if kind in _LEAVES:
        _check_leaf(kind, value)
        return value
    if kind is bytes:
        table.append([_steps(path), len(value)])
        sections.append(value)
        return None
    if kind is dict:
        result = {}
        for key, item in value.items():
            _check_key(key)
            result[key] = _strip(item, (path, key), depth + 1, table, sections, numbers)
        return result
    if kind is list or kind is tuple:
        return [
            _strip(item, (path, index), depth + 1, table, sections, numbers)
            for index, item in enumerate(value)
        ]
    if isinstance(value, float):
        text = number_text(value)
        if text is not None:
            if _has_long_run(text.encode("ascii")):
                raise FrameError(f"a number has more than {MAX_DIGITS} digits in a row")
            numbers.count(value)
            return value
    raise FrameError(f"a value of type {kind.__name__[:50]} may not cross")


def _steps(path: _Path) -> list[Any]:
    steps = []
    while path is not None:
        path, step = path
        steps.append(step)
    return steps[::-1]


def _check(value: Any, depth: int) -> None:
    """Refuse values that a JSON parser accepts and a frame may not hold."""
    if depth > MAX_DEPTH:
        raise FrameError("nested too deeply")
    kind = type(value)
    if kind in _LEAVES:
        _check_leaf(kind, value)
        return
    if kind is dict:
        for key, item in value.items():
            _check_key(key)
            _check(item, depth + 1)
    elif kind is list:
        for item in value:
            _check(item, depth + 1)


def _check_key(key: Any) -> None:
    if type(key) is not str:
        raise FrameError(f"a key of type {type(key).__name__[:50]} may not cross")
    if not key.isascii():
        _check_leaf(str, key)


def _check_leaf(kind: type, value: Any) -> None:
    if kind is str:
        if not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                raise FrameError("a text has a lone surrogate") from None
    elif kind is int:
        if value.bit_length() > MAX_DIGITS_BITS:
            raise FrameError("an integer is too long")
    elif kind is float and not math.isfinite(value):
        raise FrameError("a number that is not finite may not cross")


def _place(value: Any, path: Any, data: bytes) -> Any:
    if not path:
        return data
    node = value
    for step in path[:-1]:
        node = node[step]
    if node[path[-1]] is not None:
        raise FrameError("a bytes section has no place")
    node[path[-1]] = data
    return value
