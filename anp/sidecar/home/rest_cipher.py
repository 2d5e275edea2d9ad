"""Encryption of contents in the store, each for its place."""

from __future__ import annotations

import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from cache.errors import RecordError

NONCE_SIZE: Final = 12
"Bytes in front of each content, drawn at random."


class RestCipher:
    """Seals contents at rest, so that none can be put into the place of another."""

    def __init__(self, secret: bytes, subject: str) -> None:
        """Use a secret.

        Args:
            secret: 32 bytes that only this identity can derive; see
                `PrivateKey.derive`.
            subject: Names the contents in errors, such as `a part of a session`.
        """
        self._cipher = AESGCM(secret)
        self._subject = subject

    def seal(self, data: bytes, place: str) -> bytes:
        """Return a content that opens only at this place."""
        nonce = os.urandom(NONCE_SIZE)
        return nonce + self._cipher.encrypt(nonce, data, place.encode("utf-8"))

    def open(self, sealed: bytes, place: str) -> bytes:
        """Return a content in clear.

        Raises:
            RecordError: It is damaged, of another place, or of another secret.
        """
        nonce, rest = sealed[:NONCE_SIZE], sealed[NONCE_SIZE:]
        try:
            return self._cipher.decrypt(nonce, rest, place.encode("utf-8"))
        except (InvalidTag, ValueError) as exc:
            raise RecordError(f"{self._subject} cannot be opened") from exc
