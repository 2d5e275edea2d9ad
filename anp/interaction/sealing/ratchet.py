"""Chain keys and the message keys made of them: nothing leads back."""

from __future__ import annotations

import hmac
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from anp.interaction.sealing.errors import SealingError, SealingFault

KEY_SIZE: Final = 32
TAG_SIZE: Final = 16

MAX_SKIPPED: Final = 256
"Most messages of one sender that may be missing before a later one is opened."

MAX_STEP: Final = 65_536
"Most keys that are stepped over for one message, at about 3 µs each."

# A key encrypts one message, so its nonce may be the same each time.
_NONCE: Final = bytes(12)


class Ratchet:
    """A chain key at the place of the next message."""

    __slots__ = ("counter", "key")

    def __init__(self, key: bytes, counter: int = 1) -> None:
        """Begin at a chain key of 32 bytes, whose next message has this counter."""
        self.key = key
        self.counter = counter

    def step(self) -> bytes:
        """Return the key of the next message, and forget what leads to it."""
        found = hmac.digest(self.key, b"\x01", "sha256")
        self.key = hmac.digest(self.key, b"\x02", "sha256")
        self.counter += 1
        return found


def seal(key: bytes, data: bytes, header: bytes) -> bytes:
    """Encrypt the one message of a key; the header is authenticated with it."""
    return AESGCM(key).encrypt(_NONCE, data, header)


def open_sealed(key: bytes, data: bytes, header: bytes) -> bytes:
    """Decrypt what `seal` made; SealingError FORGED if it is anything else."""
    try:
        return AESGCM(key).decrypt(_NONCE, data, header)
    except InvalidTag:
        raise SealingError(
            SealingFault.FORGED, "it was not encrypted under the key of its place"
        ) from None
