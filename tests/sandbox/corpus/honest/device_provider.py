# kind: generator half: binary commands dispatched to capabilities
"""Provider half of a binary device protocol: opcode, length, payload, crc16."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, Callable


class Opcode(IntEnum):
    READ = 0x01
    WRITE = 0x02
    IDENTIFY = 0x7F


class Status(IntEnum):
    OK = 0
    BAD_FRAME = 1
    UNKNOWN = 2
    FAILED = 3


def crc16(data: bytes, crc: int = 0xFFFF) -> int:
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def frame(opcode: int, payload: bytes) -> bytes:
    body = struct.pack(">BH", opcode, len(payload)) + payload
    return body + struct.pack(">H", crc16(body))


def _unframe(data: bytes) -> tuple[Opcode, bytes]:
    if len(data) < 5 or crc16(data[:-2]) != int.from_bytes(data[-2:], "big"):
        raise ValueError("crc")
    opcode, length = struct.unpack_from(">BH", data)
    payload = data[3:-2]
    if length != len(payload):
        raise ValueError("length")
    return Opcode(opcode), payload


def _read(payload: bytes):
    (register,) = struct.unpack(">H", payload)
    value = yield call("read_register", {"register": register})
    return struct.pack(">i", value)


def _write(payload: bytes):
    register, value = struct.unpack(">Hi", payload)
    old = yield call("read_register", {"register": register})
    if old != value:
        yield call("write_register", {"register": register, "value": value})
    return struct.pack(">?i", old != value, old)


def _identify(payload: bytes):
    info = yield call("identify", None)
    name = info["name"].encode("ascii", errors="replace")[:16]
    return struct.pack("16sH", name, info["version"])


_HANDLERS: dict[Opcode, Callable[[bytes], Any]] = {
    Opcode.READ: _read,
    Opcode.WRITE: _write,
    Opcode.IDENTIFY: _identify,
}


def handle_request(data: bytes):
    try:
        opcode, payload = _unframe(data)
    except ValueError as exc:
        status = Status.BAD_FRAME if exc.args[0] in {"crc", "length"} else Status.UNKNOWN
        return frame(0, bytes([status]))
    try:
        result = yield from _HANDLERS[opcode](payload)
    except CapabilityError as exc:
        return frame(opcode, bytes([Status.FAILED]) + exc.message.encode())
    except struct.error:
        return frame(opcode, bytes([Status.BAD_FRAME]))
    return frame(opcode | 0x80, bytes([Status.OK]) + result)
