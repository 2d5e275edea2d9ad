"""Frames between the daemon and its workers: plain values, never pickled.

A frame is a length, then the length of a JSON header, the header, and the bytes values
one after the other. The header holds the value, with null in the place of each bytes
value, and next to it a table of their places. So no value from a module can be mistaken
for a bytes value.
"""

from __future__ import annotations

import json
import math
import re
import struct
from typing import Any

from sandbox.errors import FrameError
from sandbox.exact_numbers import ExactEncoder, number_text, read_number

MAX_FRAME = 16 * 1024 * 1024
"Largest frame, in bytes."

MAX_DEPTH = 100
"Deepest nesting of a value."

MAX_DIGITS_BITS = 2048
"Longest integer, in bits."

MAX_NODES = 1_000_000
"Most values in one frame: each costs some hundred times its bytes in memory."

_LENGTH = struct.Struct(">I")

_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')


_LEAVES = frozenset({type(None), bool, int, float, str})

_Path = tuple[Any, Any] | None
"Path to a value: the path of its container, and the last step; None at the top."


def _refuse(constant: str) -> Any:
    raise FrameError(f"{constant} may not cross")


# Made once: `json.loads` with any option would make a new decoder for each call.
_encode = ExactEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder(parse_constant=_refuse, parse_float=read_number).decode


def pack(value: Any, *, max_frame: int = MAX_FRAME) -> bytes:
    """Return the frame of `value` with its length; FrameError if it cannot be sent."""
    table: list[list[Any]] = []
    sections: list[bytes] = []
    tree = _strip(value, None, 0, table, sections)
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
        header = _decode(text.decode("utf-8"))
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
    bare = _TEXT.sub(b"", text)
    if bare.count(b",") + bare.count(b"[") + bare.count(b"{") > MAX_NODES:
        raise FrameError(f"more than {MAX_NODES} values")


def _strip(
    value: Any,
    path: _Path,
    depth: int,
    table: list[list[Any]],
    sections: list[bytes],
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
            result[key] = _strip(item, (path, key), depth + 1, table, sections)
        return result
    if kind is list or kind is tuple:
        return [
            _strip(item, (path, index), depth + 1, table, sections)
            for index, item in enumerate(value)
        ]
    if isinstance(value, float) and number_text(value) is not None:
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
