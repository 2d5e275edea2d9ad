"""Sealing and opening a message of 1 KiB, against AES-GCM and a signature alone.

    python -m bench.sealing

Prints microseconds for each message, the best of five rounds, and their ratio to the
same message encrypted once with AES-256-GCM, signed and verified with Ed25519.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from anp.interaction.sealing.encoding import DidSigner, SealingMeans
from anp.interaction.sealing.errors import SealingError
from anp.interaction.sealing.member import SealedMember
from anp.interaction.sealing.membership import ChangeKind, MemberChange

MESSAGES: Final = 1000
ROUNDS: Final = 5
CONTENT: Final = os.urandom(1024)


class _Agent:
    """A member with an Ed25519 key, whose DID is the name of the key."""

    keys: Final[dict[str, ed25519.Ed25519PublicKey]] = {}

    def __init__(self, owner: str = "") -> None:
        key = ed25519.Ed25519PrivateKey.generate()
        public = key.public_key().public_bytes_raw()
        self.did = f"did:bench:{hashlib.sha256(public).hexdigest()[:16]}"
        self.keys[self.did] = key.public_key()
        self.member = SealedMember(
            "bench",
            owner or self.did,
            SealingMeans(
                DidSigner(self.did, "key", key.sign), self._verifies, os.urandom
            ),
        )

    @classmethod
    def _verifies(cls, did: str, key: str, signature: bytes, data: bytes) -> bool:
        cls.keys[did].verify(signature, data)
        return True


def main() -> None:
    """Print the figures."""
    one = _Agent()
    two = _Agent(one.did)
    add = MemberChange(ChangeKind.ADD, two.did)
    log = [one.member.propose([add], at=datetime.now(UTC))]
    for item in log:
        for agent in (one, two):
            try:
                log += agent.member.take(item).send
            except SealingError:
                # Its own package.
                continue
    _, grants = one.member.seal(b"first")
    for item in grants:
        two.member.take(item)
    sealed: list[bytes] = []
    rows: list[int] = []

    def seal() -> None:
        message, _ = one.member.seal(CONTENT)
        sealed.append(message.data)
        one.member.place(message.epoch, message.counter)
        rows.append(len(one.member.changed_rows()))

    def open_one() -> None:
        two.member.open(sealed.pop(0))
        rows.append(len(two.member.changed_rows()))

    sealing, opening = [], []
    for _ in range(ROUNDS):
        sealing.append(_micros(seal))
        opening.append(_micros(open_one))
    raw_seal, raw_open = _raw()
    print(f"seal {min(sealing):6.1f} µs, {min(sealing) / raw_seal:.2f} of raw")
    print(f"open {min(opening):6.1f} µs, {min(opening) / raw_open:.2f} of raw")
    print(f"raw  {raw_seal:6.1f} and {raw_open:.1f} µs: AES-256-GCM and Ed25519 alone")


def _raw() -> tuple[float, float]:
    key, nonce = AESGCM(os.urandom(32)), bytes(12)
    signer = ed25519.Ed25519PrivateKey.generate()
    public = signer.public_key()
    data = key.encrypt(nonce, CONTENT, b"")
    signature = signer.sign(data)

    def seal() -> None:
        signer.sign(key.encrypt(nonce, CONTENT, b""))

    def open_one() -> None:
        public.verify(signature, data)
        key.decrypt(nonce, data, b"")

    seals, opens = [], []
    for _ in range(ROUNDS):
        seals.append(_micros(seal))
        opens.append(_micros(open_one))
    return min(seals), min(opens)


def _micros(step: Callable[[], None]) -> float:
    start = time.process_time()
    for _ in range(MESSAGES):
        step()
    return (time.process_time() - start) / MESSAGES * 1e6


if __name__ == "__main__":
    main()
