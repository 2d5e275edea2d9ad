# kind: zlib-compressed JSON payloads with size limits
"""Large results travel as zlib-compressed JSON with a one-byte marker."""

import json
import zlib
from typing import Any

PLAIN, DEFLATED = b"\x00", b"\x01"
THRESHOLD = 64
MAX_SIZE = 10_000


class PayloadError(Exception):
    """Cannot decode the payload."""


def encode(value: Any) -> bytes:
    raw = json.dumps(value, separators=(",", ":"), sort_keys=True).encode("utf-8")
    if len(raw) < THRESHOLD:
        return PLAIN + raw
    packed = zlib.compress(raw, level=9)
    return DEFLATED + packed if len(packed) < len(raw) else PLAIN + raw


def _inflate(data: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        raw = decompressor.decompress(data, MAX_SIZE)
    except zlib.error as exc:
        raise PayloadError("corrupt data") from exc
    if decompressor.unconsumed_tail:
        raise PayloadError(f"more than {MAX_SIZE} bytes")
    if not decompressor.eof:
        raise PayloadError("truncated data")
    return raw


def decode(data: bytes) -> Any:
    marker, body = data[:1], data[1:]
    if marker == DEFLATED:
        body = _inflate(body)
    elif marker != PLAIN:
        raise PayloadError(f"unknown marker {marker!r}")
    return json.loads(body)


def round_trip(value: Any) -> dict:
    encoded = encode(value)
    return {
        "same": decode(encoded) == value,
        "compressed": encoded.startswith(DEFLATED),
        "smaller": len(encoded) < len(json.dumps(value)),
    }


def bomb(size: int) -> Any:
    """What happens to a payload that inflates to `size` bytes."""
    chunks = zlib.compressobj()
    data = chunks.compress(b" " * size) + chunks.flush()
    return decode(DEFLATED + data)
