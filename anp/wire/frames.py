"""The one-byte header of every decrypted message (ANP-12 to ANP-14)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from anp.errors import ErrorCode, PeerError

__all__ = ["Frame", "ProtocolType", "decode_frame", "encode_frame"]

_RESERVED_BITS = 6


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


def encode_frame(frame: Frame) -> bytes:
    """Return header byte and protocol data; the reserved bits are 0 (ANP-14)."""
    return bytes([frame.protocol_type << _RESERVED_BITS]) + frame.data


def decode_frame(data: bytes) -> Frame:
    """Read a decrypted message.

    The reserved bits are ignored (WIRE row 36).

    Raises:
        PeerError: There is no header byte.
    """
    if not data:
        raise PeerError(ErrorCode.NOT_ALLOWED, "a frame without a header byte")
    return Frame(ProtocolType(data[0] >> _RESERVED_BITS), data[1:])
