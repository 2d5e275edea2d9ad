"""Keys of a member for one epoch, and the grants of its chain key to the others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from anp.interaction.sealing.encoding import (
    HASH_SIZE,
    SIGNATURE_SIZE,
    base64_text,
    bytes_field,
    invalid,
    sign_ec,
    signed_bytes,
    text_field,
    whole_field,
)
from anp.interaction.sealing.membership import MAX_MEMBERS
from anp.interaction.sealing.ratchet import KEY_SIZE, TAG_SIZE, open_sealed, seal

PACKAGE_LABEL: Final = "anpd sealing package 1"
GRANT_LABEL: Final = "anpd sealing grant 1"
PAIR_LABEL: Final = b"anpd sealing pair 1"
COMMITMENT_LABEL: Final = b"anpd sealing commitment 1\0"

SIGNING_KEY_SIZE: Final = 33
WRAPPED_SIZE: Final = KEY_SIZE + TAG_SIZE


@dataclass(frozen=True, slots=True)
class SeenMessages:
    """The messages of an epoch that a member has seen."""

    count: int
    hash: bytes
    "Hash over them in their order; see `transcript`."

    @classmethod
    def read(cls, value: Any) -> SeenMessages:
        """Read the JSON of `json`."""
        if not isinstance(value, Mapping):
            raise invalid("the seen messages are no object")
        return cls(whole_field(value, "count"), bytes_field(value, "hash", HASH_SIZE))

    def json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"count": self.count, "hash": base64_text(self.hash)}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPackage:
    """The public keys of a member for one epoch, signed with the key of its DID."""

    epoch: int
    entry: bytes
    "Hash of the entry that began the epoch; it names the group, too."

    did: str
    key: str
    "The key of the DID that signed it; see `DidSigner`."

    agreement: bytes
    "X25519 key on which secrets with the member are agreed, 32 bytes."

    signing: bytes
    "P-256 key that signs its messages of this epoch, 33 bytes."

    seen: SeenMessages | None = None
    "The messages of the epoch before; None for who was no member then."

    signature: bytes = b""

    @classmethod
    def read(cls, value: Any) -> KeyPackage:
        """Read the JSON of `json`; SealingError INVALID if it is none."""
        if not isinstance(value, Mapping):
            raise invalid("a key package is no object")
        seen = value.get("seen")
        found = cls(
            epoch=whole_field(value, "epoch", least=1),
            entry=bytes_field(value, "entry", HASH_SIZE),
            did=text_field(value, "did"),
            key=text_field(value, "key"),
            agreement=bytes_field(value, "agreement", KEY_SIZE),
            signing=bytes_field(value, "signing", SIGNING_KEY_SIZE),
            seen=None if seen is None else SeenMessages.read(seen),
            signature=bytes_field(value, "signature", SIGNATURE_SIZE),
        )
        if found.json() != value:
            raise invalid("a key package has unknown fields")
        return found

    def json(self) -> dict[str, Any]:
        """Return the package as JSON."""
        return {**self._unsigned(), "signature": base64_text(self.signature)}

    def signed(self) -> bytes:
        """Return the bytes that the member signs."""
        return signed_bytes(PACKAGE_LABEL, self._unsigned())

    def _unsigned(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "entry": base64_text(self.entry),
            "did": self.did,
            "key": self.key,
            "agreement": base64_text(self.agreement),
            "signing": base64_text(self.signing),
            "seen": None if self.seen is None else self.seen.json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGrant:
    """A sender's chain key, encrypted to each of some members; the sender signs it."""

    entry: bytes
    by: str
    commitment: bytes
    "Hash of the chain key, so that no two members can be given different ones."

    keys: Mapping[str, bytes]
    "The chain key for each member, encrypted, 48 bytes."

    signature: bytes = b""

    @classmethod
    def read(cls, value: Any) -> KeyGrant:
        """Read the JSON of `json`; SealingError INVALID if it is none."""
        if not isinstance(value, Mapping):
            raise invalid("a grant is no object")
        keys = value.get("keys")
        if not isinstance(keys, Mapping) or not 0 < len(keys) <= MAX_MEMBERS:
            raise invalid(f"a grant has not 1 to {MAX_MEMBERS} keys")
        found = cls(
            entry=bytes_field(value, "entry", HASH_SIZE),
            by=text_field(value, "by"),
            commitment=bytes_field(value, "commitment", HASH_SIZE),
            keys={did: bytes_field(keys, did, WRAPPED_SIZE) for did in keys},
            signature=bytes_field(value, "signature", SIGNATURE_SIZE),
        )
        if found.json() != value:
            raise invalid("a grant has unknown fields")
        return found

    @classmethod
    def make(
        cls,
        chain_key: bytes,
        pairs: Mapping[str, bytes],
        *,
        entry: bytes,
        by: str,
        key: ec.EllipticCurvePrivateKey,
    ) -> KeyGrant:
        """Encrypt a chain key under the secret that is shared with each member."""
        proof = commitment(chain_key)
        found = cls(
            entry=entry,
            by=by,
            commitment=proof,
            keys={did: seal(pair, chain_key, proof) for did, pair in pairs.items()},
        )
        return replace(found, signature=sign_ec(key, found.signed()))

    def open(self, did: str, pair: bytes) -> bytes:
        """Return the chain key; SealingError FORGED if it is not the promised one."""
        key = open_sealed(pair, self.keys[did], self.commitment)
        if commitment(key) != self.commitment:
            raise invalid("a grant has another key than it promises")
        return key

    def json(self) -> dict[str, Any]:
        """Return the grant as JSON."""
        return {**self._unsigned(), "signature": base64_text(self.signature)}

    def signed(self) -> bytes:
        """Return the bytes that the sender signs with its key of the epoch."""
        return signed_bytes(GRANT_LABEL, self._unsigned())

    def _unsigned(self) -> dict[str, Any]:
        return {
            "entry": base64_text(self.entry),
            "by": self.by,
            "commitment": base64_text(self.commitment),
            "keys": {did: base64_text(one) for did, one in self.keys.items()},
        }


def commitment(chain_key: bytes) -> bytes:
    """Return the hash that fixes a chain key without telling it."""
    return hashlib.sha256(COMMITMENT_LABEL + chain_key).digest()


def pair_keys(
    own: x25519.X25519PrivateKey, other: bytes, *, entry: bytes, me: str, did: str
) -> tuple[bytes, bytes]:
    """Return the secrets for chain keys to a member and from it, 32 bytes each.

    Both are made when its package comes, so that our private key can be deleted as
    soon as the packages of all members are here.
    """
    try:
        shared = own.exchange(x25519.X25519PublicKey.from_public_bytes(other))
    except ValueError:
        raise invalid("the agreement key of a package is weak") from None
    return _pair_key(shared, entry, me, did), _pair_key(shared, entry, did, me)


def _pair_key(shared: bytes, entry: bytes, sender: str, receiver: str) -> bytes:
    info = b"\0".join((PAIR_LABEL, sender.encode(), receiver.encode()))
    return HKDF(hashes.SHA256(), KEY_SIZE, salt=entry, info=info).derive(shared)
