# kind: length-prefixed binary sections
"""A message is a sequence of sections: u32 length, then the bytes; the first is JSON."""

import json
import struct
from collections.abc import Iterable, Iterator
from io import BytesIO

MAX_SECTION = 1 << 20
_LENGTH = struct.Struct("!I")


class TruncatedError(EOFError):
    pass


def _read_exactly(stream: BytesIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise TruncatedError(f"wanted {count} bytes, got {len(data)}")
    return data


def _sections(data: bytes) -> Iterator[bytes]:
    stream = BytesIO(data)
    while prefix := stream.read(_LENGTH.size):
        if len(prefix) < _LENGTH.size:
            raise TruncatedError("truncated length")
        (length,) = _LENGTH.unpack(prefix)
        if length > MAX_SECTION:
            raise ValueError(f"section of {length:,} bytes exceeds {MAX_SECTION:,}")
        yield _read_exactly(stream, length)


def _join(sections: Iterable[bytes]) -> bytes:
    return b"".join(_LENGTH.pack(len(section)) + section for section in sections)


def encode_message(name: str, metadata: dict, attachments: list[bytes]) -> bytes:
    header = {"name": name, "attachments": len(attachments), **metadata}
    return _join([json.dumps(header).encode(), *attachments])


def decode_message(data: bytes) -> dict:
    head, *attachments = _sections(data)
    header = json.loads(head)
    declared = header.pop("attachments", 0)
    if declared != len(attachments):
        raise ValueError(f"{declared} attachments declared, {len(attachments)} found")
    return {"header": header, "attachments": attachments, "size": len(data)}
