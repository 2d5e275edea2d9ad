# kind: CBOR subset, binary floats and recursion
"""A subset of CBOR: integers, bytes, text, arrays, maps, simple values, doubles."""

from __future__ import annotations

import struct
from typing import Any

_SIMPLE = {20: False, 21: True, 22: None}
_SIZES = {24: ">B", 25: ">H", 26: ">I", 27: ">Q"}


class CborError(ValueError):
    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"{reason} at {position}")
        self.position = position


def _head(major: int, value: int) -> bytes:
    if value < 24:
        return bytes([major << 5 | value])
    for info, form in _SIZES.items():
        if value < 1 << 8 * struct.calcsize(form):
            return bytes([major << 5 | info]) + struct.pack(form, value)
    raise OverflowError(f"{value} does not fit into 64 bits")


def dumps(value: Any) -> bytes:
    if value is None or isinstance(value, bool):
        code = next(k for k, v in _SIMPLE.items() if v is value)
        return bytes([0xE0 | code])
    if isinstance(value, int):
        return _head(0, value) if value >= 0 else _head(1, ~value)
    if isinstance(value, float):
        return b"\xfb" + struct.pack(">d", value)
    if isinstance(value, bytes):
        return _head(2, len(value)) + value
    if isinstance(value, str):
        raw = value.encode("utf-8")
        return _head(3, len(raw)) + raw
    if isinstance(value, list):
        return _head(4, len(value)) + b"".join(dumps(item) for item in value)
    if isinstance(value, dict):
        body = b"".join(dumps(key) + dumps(item) for key, item in value.items())
        return _head(5, len(value)) + body
    raise TypeError(f"unsupported {type(value).__name__}")


class _Reader:
    def __init__(self, data: bytes):
        self.data = memoryview(data)
        self.position = 0

    def take(self, count: int) -> bytes:
        start, self.position = self.position, self.position + count
        if self.position > len(self.data):
            raise CborError(start, f"{count} bytes wanted")
        return bytes(self.data[start : self.position])

    def value(self, depth: int = 0) -> Any:
        if depth > 16:
            raise CborError(self.position, "nested too deeply")
        start = self.position
        (initial,) = self.take(1)
        major, info = divmod(initial, 32)
        if major == 7:
            if info == 27:
                return struct.unpack(">d", self.take(8))[0]
            if info in _SIMPLE:
                return _SIMPLE[info]
            raise CborError(start, f"simple value {info}")
        if info in _SIZES:
            form = _SIZES[info]
            info = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        elif info > 27:
            raise CborError(start, "indefinite length")
        match major:
            case 0:
                return info
            case 1:
                return -1 - info
            case 2:
                return self.take(info)
            case 3:
                return self.take(info).decode("utf-8")
            case 4:
                return [self.value(depth + 1) for _ in range(info)]
            case 5:
                return {self.value(depth + 1): self.value(depth + 1) for _ in range(info)}
        raise CborError(start, f"major type {major}")


def loads(data: bytes) -> Any:
    reader = _Reader(data)
    value = reader.value()
    if reader.position != len(data):
        raise CborError(reader.position, "trailing bytes")
    return value
