"""Frames with their header (ANP-12 to ANP-15), and their encryption (WIRE row 26).

A frame travels in the `encryptedData` of a `message`, under TLS_AES_128_GCM_SHA256.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache, partial
from io import BytesIO
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES128
from cryptography.hazmat.primitives.ciphers.modes import GCM

from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.encrypted import IV_SIZE, TAG_SIZE, Envelope, OpenData, encode_base64
from anp.wire.keys import SessionKeys

_TYPE_SHIFT = 6
"The protocol type is in the two most significant bits of the header's first byte."


class ProtocolType(IntEnum):
    """The two bits PT of the header: what the protocol data is (ANP-13)."""

    META = 0
    APPLICATION = 1
    NATURAL_LANGUAGE = 2
    VERIFICATION = 3


_TYPES = tuple(ProtocolType)


class Frame(NamedTuple):
    """The plaintext of one encrypted message (ANP-11)."""

    protocol_type: ProtocolType
    "Meaning of `data`."

    data: bytes
    "Protocol data, any bytes, possibly none."


frame_of: Final = partial(tuple.__new__, Frame)
"Returns the frame of both fields as a tuple, in half the time of `Frame` itself."


@dataclass(frozen=True, slots=True)
class FrameFormat:
    """The form of frames under one version of the message format (ANP-15)."""

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
    return _headers(frame_format.header_size)[frame.protocol_type] + frame.data


def frame_header(frame: Frame, frame_format: FrameFormat) -> bytes:
    """Return what `encode_frame` puts before the protocol data."""
    return _headers(frame_format.header_size)[frame.protocol_type]


@lru_cache(maxsize=16)
def _headers(size: int) -> tuple[bytes, ...]:
    return tuple(bytes((one << _TYPE_SHIFT,)).ljust(size, b"\0") for one in _TYPES)


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
    return frame_of((_TYPES[data[0] >> _TYPE_SHIFT], data[size:]))


def open_long(
    keys: SessionKeys, data: OpenData, frame_format: FrameFormat
) -> tuple[Frame, int]:
    """Return the frame in a long message, and the bytes of its plaintext.

    It is what `decode_frame` makes of what `open_sealed` returns, without a plaintext
    that has the header before the data: that would be there once more.

    Raises:
        PeerError: `DECRYPTION_FAILED`.
    """
    content = memoryview(data.content)
    sealed, size = content[:-TAG_SIZE], frame_format.header_size
    mode = GCM(data.nonce, bytes(content[-TAG_SIZE:]))
    opening = Cipher(AES128(keys.receive_key), mode).decryptor()
    opening.authenticate_additional_data(data.covered or b"")
    header = opening.update(sealed[:size])
    made = BytesIO(bytes(len(sealed) - size))
    with made.getbuffer() as buffer:
        opening.update_into(sealed[size:], buffer)
    try:
        # Nothing of it is looked at before.
        opening.finalize()
    except InvalidTag:
        raise _not_fitting() from None
    kind = _TYPES[header[0] >> _TYPE_SHIFT]
    return Frame(kind, made.getvalue()), len(sealed)


def _not_fitting() -> PeerError:
    return PeerError(ErrorCode.DECRYPTION_FAILED, "the tag does not fit the ciphertext")


def encrypt(cipher: AESGCM, plaintext: bytes, *, iv: bytes) -> dict[str, str]:
    """Return `encryptedData`. The iv must be new for this key: never use one twice.

    Raises:
        LocalError: The iv does not have 12 bytes.
    """
    if len(iv) != IV_SIZE:
        raise LocalError(f"an iv of {len(iv)} bytes, expected {IV_SIZE}")
    sealed = cipher.encrypt(iv, plaintext, None)
    return {
        "iv": encode_base64(iv),
        "tag": encode_base64(sealed[-TAG_SIZE:]),
        "ciphertext": encode_base64(sealed[:-TAG_SIZE]),
    }


def open_sealed(cipher: AESGCM, data: OpenData) -> bytes:
    """Return the plaintext.

    Raises:
        PeerError: `DECRYPTION_FAILED`.
    """
    nonce, content, covered = data
    try:
        return cipher.decrypt(nonce, content, covered)
    except InvalidTag:
        raise _not_fitting() from None


def check_envelope_dids(
    envelope: Envelope, *, source_did: str, destination_did: str
) -> None:
    """Compare an envelope's DIDs with those of its key (WIRE row 26).

    They are not authenticated, and whoever read them would believe them.

    Raises:
        PeerError: `NOT_ALLOWED`.
    """
    if (envelope.source_did, envelope.destination_did) != (source_did, destination_did):
        raise PeerError(
            ErrorCode.NOT_ALLOWED, "the DIDs of the message are not those of its key"
        )


def check_envelope_version(envelope: Envelope, version: str) -> None:
    """Refuse a frame of another version than that of its channel (ANP-15).

    Its header might be longer; read as one of this version it would be another message.

    Raises:
        PeerError: `NOT_ALLOWED`.
    """
    if envelope.version not in (None, version):
        raise PeerError(
            ErrorCode.NOT_ALLOWED,
            f"a message of version {str(envelope.version)[:40]!r} on a channel of "
            f"version {version!r}",
        )
