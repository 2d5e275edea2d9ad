"""The header of every decrypted message (ANP-12 to ANP-15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from anp.errors import ErrorCode, PeerError

__all__ = [
    "FORMATS",
    "FORMAT_1_0",
    "Frame",
    "FrameFormat",
    "ProtocolType",
    "decode_frame",
    "encode_frame",
    "find_format",
]

_TYPE_BITS = 2


class ProtocolType(IntEnum):
    """The two bits PT of the header: what the protocol data is (ANP-13)."""

    META = 0
    APPLICATION = 1
    NATURAL_LANGUAGE = 2
    VERIFICATION = 3


@dataclass(frozen=True, slots=True)
class Frame:
    """The plaintext of one encrypted message (ANP-11)."""

    protocol_type: ProtocolType
    "What `data` is."

    data: bytes
    "Protocol data, any bytes, possibly none."


@dataclass(frozen=True, slots=True)
class FrameFormat:
    """How frames look under one version of the message format (ANP-15)."""

    version: str
    "The version, as the hellos and the envelopes name it."

    header_size: int
    """Length of the header in bytes, at least 1. Its two most significant bits are PT,
    the rest is reserved (ANP-12)."""


FORMAT_1_0 = FrameFormat("1.0", header_size=1)
"The header of today: one byte."

FORMATS = (FORMAT_1_0,)
"Every format we speak; a later one with a longer header is one more row."


def find_format(version: str, formats: Sequence[FrameFormat] = FORMATS) -> FrameFormat:
    """Return the format of a version, never that of another one (ANP-15).

    Raises:
        PeerError: `INVALID_ENCRYPTION_KEY`: we do not speak it.
    """
    for known in formats:
        if known.version == version:
            return known
    ours = ", ".join(known.version for known in formats)
    raise PeerError(
        ErrorCode.INVALID_ENCRYPTION_KEY,
        f"version is {version[:40]!r}, we speak {ours}",
    )


def encode_frame(frame: Frame, frame_format: FrameFormat = FORMAT_1_0) -> bytes:
    """Return header and protocol data; the reserved bits are 0 (ANP-14).

    Args:
        frame_format: That of the channel, which its handshake has settled.
    """
    size = frame_format.header_size
    header = frame.protocol_type << _reserved_bits(frame_format)
    return header.to_bytes(size, "big") + frame.data


def decode_frame(data: bytes, frame_format: FrameFormat = FORMAT_1_0) -> Frame:
    """Read a decrypted message.

    The reserved bits are ignored (WIRE row 36).

    Args:
        frame_format: That of the channel, which its handshake has settled.

    Raises:
        PeerError: It is shorter than the header.
    """
    size = frame_format.header_size
    if len(data) < size:
        raise PeerError(
            ErrorCode.NOT_ALLOWED,
            f"a frame of {len(data)} bytes, without a header of {size}",
        )
    header = int.from_bytes(data[:size], "big")
    return Frame(ProtocolType(header >> _reserved_bits(frame_format)), data[size:])


def _reserved_bits(frame_format: FrameFormat) -> int:
    return 8 * frame_format.header_size - _TYPE_BITS
