"""Fields of JSON, keys and signatures as they travel in sealed groups."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from anp.interaction.sealing.errors import SealingError, SealingFault
from negotiation.errors import JsonError
from negotiation.strict_json import canonical_json

HASH_SIZE: Final = 32
SIGNATURE_SIZE: Final = 64
MAX_TEXT: Final = 1024
MAX_WHOLE: Final = 2**53 - 1

_CURVE: Final = ec.SECP256R1()
# Without a random number there is none that could be bad, and vectors can be fixed.
_ALGORITHM: Final = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)


@dataclass(frozen=True, slots=True)
class DidSigner:
    """The key of our DID."""

    did: str
    key: str
    "The key as the shell of another member can check it against the DID; any text."

    sign: Callable[[bytes], bytes]
    "Returns a signature of 64 bytes."


class DidVerifier(Protocol):
    """Knows which keys belong to DIDs; the shell resolves them beforehand."""

    def __call__(self, did: str, key: str, signature: bytes, data: bytes) -> bool:
        """Say whether `key` is one of `did` and `signature` is by it over `data`."""
        ...


RandomBytes = Callable[[int], bytes]
"Returns so many bytes that nobody can guess."


@dataclass(frozen=True, slots=True)
class SealingMeans:
    """Everything that a member seals with, besides what is stored of the group."""

    signer: DidSigner
    "The key of our DID."

    verifies: DidVerifier
    "Verifies signatures of other DIDs."

    random_bytes: RandomBytes
    "The source of all keys."


def invalid(text: str) -> SealingError:
    """Return the error that says that something is not well formed."""
    return SealingError(SealingFault.INVALID, text)


def signed_bytes(label: str, value: Mapping[str, Any]) -> bytes:
    """Return the bytes that are signed and hashed for an object.

    The label keeps a signature over one kind of object from counting for another.
    """
    try:
        return label.encode() + b"\0" + canonical_json(dict(value))
    except JsonError as exc:
        raise invalid(f"{label}: {exc}") from None


def base64_text(data: bytes) -> str:
    """Return bytes as base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def text_field(value: Mapping[str, Any], name: str) -> str:
    """Return a text of at most 1,024 characters."""
    found = value.get(name)
    if not isinstance(found, str) or not 0 < len(found) <= MAX_TEXT:
        raise invalid(f"{name} is no text of 1 to {MAX_TEXT} characters")
    return found


def whole_field(value: Mapping[str, Any], name: str, *, least: int = 0) -> int:
    """Return a whole number below 2^53."""
    found = value.get(name)
    if type(found) is not int or not least <= found <= MAX_WHOLE:
        raise invalid(f"{name} is no whole number from {least}")
    return found


def bytes_field(value: Mapping[str, Any], name: str, size: int) -> bytes:
    """Return exactly `size` bytes that stand in base64url."""
    found = value.get(name)
    if not isinstance(found, str) or len(found) > 2 * size + 4:
        raise invalid(f"{name} is no base64url text")
    try:
        data = base64.b64decode(
            found + "=" * (-len(found) % 4), altchars=b"-_", validate=True
        )
    except (binascii.Error, ValueError):
        raise invalid(f"{name} is no base64url text") from None
    if len(data) != size or base64_text(data) != found:
        raise invalid(f"{name} has not {size} bytes")
    return data


def ec_public_bytes(key: ec.EllipticCurvePublicKey) -> bytes:
    """Return a P-256 key as 33 bytes."""
    return key.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint
    )


def ec_public_key(data: bytes) -> ec.EllipticCurvePublicKey:
    """Return the P-256 key of 33 bytes."""
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, data)
    except ValueError:
        raise invalid("the signing key is no P-256 key") from None


def sign_ec(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    """Return an ECDSA signature: r and s, 32 bytes each."""
    r, s = decode_dss_signature(key.sign(data, _ALGORITHM))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def verify_ec(key: ec.EllipticCurvePublicKey, signature: bytes, data: bytes) -> bool:
    """Say whether a signature of 64 bytes is by this key."""
    encoded = encode_dss_signature(
        int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    )
    try:
        key.verify(encoded, data, _ALGORITHM)
    except InvalidSignature:
        return False
    return True
