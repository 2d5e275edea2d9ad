# kind: struct, fixed binary layout with checksum
"""Sensor frames: 16-byte header, N samples of int16, crc32 trailer, big endian."""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum

MAGIC = b"SNSR"
_HEADER = struct.Struct(">4sBBHII")
_CRC = struct.Struct(">I")


class Kind(IntEnum):
    TEMPERATURE = 1
    HUMIDITY = 2
    PRESSURE = 3


class FrameError(Exception):
    """The bytes are no valid frame."""

    code = "bad_frame"


def encode_frame(kind: str, device: int, timestamp: int, samples: list[float]) -> bytes:
    """Encode samples in hundredths."""
    raw = [round(sample * 100) for sample in samples]
    header = _HEADER.pack(MAGIC, 1, Kind[kind.upper()], len(raw), device, timestamp)
    body = header + struct.pack(f">{len(raw)}h", *raw)
    return body + _CRC.pack(zlib.crc32(body))


def decode_frame(data: bytes) -> dict:
    if len(data) < _HEADER.size + _CRC.size:
        raise FrameError(f"frame of {len(data)} bytes is too short")
    body, trailer = data[: -_CRC.size], data[-_CRC.size :]
    (expected,) = _CRC.unpack(trailer)
    if zlib.crc32(body) & 0xFFFFFFFF != expected:
        raise FrameError(f"checksum mismatch: {expected:#010x}")
    magic, version, kind, count, device, timestamp = _HEADER.unpack_from(body)
    if magic != MAGIC or version != 1:
        raise FrameError(f"not a sensor frame: {magic!r} v{version}")
    samples = [value / 100 for (value,) in struct.iter_unpack(">h", body[_HEADER.size :])]
    if len(samples) != count:
        raise FrameError("sample count does not match")
    return {
        "kind": Kind(kind).name.lower(),
        "device": f"{device:08X}",
        "timestamp": timestamp,
        "samples": samples,
    }
