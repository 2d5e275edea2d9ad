"""The signature of a hello (WIRE rows 4, 5 and 8 to 12, 17)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from pybase64 import b64encode_as_string

from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.encrypted import decode_base64
from anp.wire.messages import DestinationHello, SourceHello
from anp.wire.moment import Moment

MAX_PROOF_AGE = 30.0
"Seconds between `proof.created` and our clock, either way (WIRE row 12)."

KEY_TYPE = "EcdsaSecp256r1VerificationKey2019"
"Type of the key in a hello (WIRE row 4)."

PROOF_TYPE = "EcdsaSecp256r1Signature2019"
"The type the spec names; the one we send (WIRE row 8)."

SDK_PROOF_TYPE = "EcdsaSecp256k1Signature2019"
"The type that the SDK writes although its key is P-256 (WIRE row 8)."

ED25519_KEY_TYPE = "Ed25519VerificationKey2020"
"Type of an Ed25519 key in a hello. Not in the seed: `did:wba` binds paths to them."

ED25519_PROOF_TYPE = "Ed25519Signature2020"
"Type of the signature of such a key."

_ED25519_KEY = re.compile(r"[0-9a-f]{64}")
_PUBLIC_KEY = re.compile(r"04[0-9a-fA-F]{128}")
# Python 3.13 and later read the hour 24, too.
_CREATED = re.compile(r"\d{4}-\d\d-\d\dT(?!24)\d\d:\d\d:\d\dZ", re.ASCII)
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")
_SIGNATURE_SIZE = 64
_MAX_PROOF_VALUE = 88
_ED25519_SIZE = 32
_ECDSA = ec.ECDSA(hashes.SHA256())


class Identity(Protocol):
    """Our identity in one handshake: a DID with its key."""

    @property
    def did(self) -> str:
        """The DID."""
        ...

    @property
    def key_id(self) -> str:
        """The DID, `#` and the name of the key."""
        ...

    @property
    def public_key_hex(self) -> str:
        """The key in lower-case hex: 130 characters, uncompressed (WIRE row 5).

        An Ed25519 key has 64 characters.
        """
        ...

    def sign(self, data: bytes) -> bytes:
        """Return the signature: 64 bytes.

        ECDSA P-256 SHA-256, r and s of 32 bytes each, or Ed25519.
        """
        ...


def types_of(public_key_hex: str) -> tuple[str, str]:
    """Return the types of a signer's key and of its proofs, as its hellos name them."""
    if len(public_key_hex) == 2 * _ED25519_SIZE:
        return ED25519_KEY_TYPE, ED25519_PROOF_TYPE
    return KEY_TYPE, PROOF_TYPE


def proof_value(signer: Identity, signed: bytes) -> str:
    """Return the signature of a hello, base64url (WIRE row 10).

    Args:
        signed: What it covers.

    Raises:
        LocalError: The signer gave no 64 bytes.
    """
    signature = signer.sign(signed)
    if len(signature) != _SIGNATURE_SIZE:
        raise LocalError(f"a signature of {len(signature)} bytes, expected 64")
    return _encode(signature)


def verify_hello(hello: SourceHello | DestinationHello, *, now: Moment) -> bytes:
    """Check a hello's signature against the key inside it, then its age.

    Whether the DID owns that key is not known yet: ask a resolver.

    Returns:
        The key: P-256 65 bytes, uncompressed; Ed25519 32 bytes.

    Raises:
        PeerError: `NOT_ALLOWED`, with what is wrong; for a stale proof with the
            difference between the clocks.
    """
    public_key = _read_key(hello)
    signature = _decode(hello.proof.proof_value)
    if hello.proof.type not in _proof_types(public_key):
        raise _refused(f"proof.type is {hello.proof.type[:60]!r}")
    created = _read_created(hello.proof.created)
    if len(public_key) == _ED25519_SIZE:
        fits = _verifies_ed25519(public_key, signature, hello.signed)
    else:
        key = _load_key(public_key)
        fits = any(_verifies(key, r, s, hello.signed) for r, s in _splits(signature))
    if not fits:
        raise _refused("the signature does not fit the key in the hello")
    # The age comes last, so that what we tell about the clocks rests on a signed time.
    _check_age(created, now)
    return public_key


def _refused(detail: str) -> PeerError:
    return PeerError(ErrorCode.NOT_ALLOWED, detail)


def _read_key(hello: SourceHello | DestinationHello) -> bytes:
    method = hello.verification_method
    if not method.id.startswith(hello.source_did + "#"):
        raise _refused("verificationMethod.id does not begin with sourceDid and #")
    if method.id != hello.proof.verification_method:
        raise _refused("proof.verificationMethod is not verificationMethod.id")
    if method.type == ED25519_KEY_TYPE:
        if not _ED25519_KEY.fullmatch(method.public_key_hex):
            raise _refused("publicKeyHex of an Ed25519 key is not 64 hex characters")
        return bytes.fromhex(method.public_key_hex)
    if method.type != KEY_TYPE:
        raise _refused(f"verificationMethod.type is {method.type[:60]!r}")
    if not _PUBLIC_KEY.fullmatch(method.public_key_hex):
        raise _refused("publicKeyHex is not 130 hex characters that begin with 04")
    return bytes.fromhex(method.public_key_hex)


def _proof_types(public_key: bytes) -> tuple[str, ...]:
    if len(public_key) == _ED25519_SIZE:
        return (ED25519_PROOF_TYPE,)
    return PROOF_TYPE, SDK_PROOF_TYPE


def _verifies_ed25519(public_key: bytes, signature: bytes, data: bytes) -> bool:
    if len(signature) != _SIGNATURE_SIZE:
        raise _refused(f"a signature of {len(signature)} bytes, expected 64")
    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(public_key)
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True


# A peer has one key for all its hellos.
@lru_cache(maxsize=256)
def _load_key(public_key: bytes) -> ec.EllipticCurvePublicKey:
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public_key)
    except ValueError:
        raise _refused("publicKeyHex is not a point of P-256") from None


def _encode(signature: bytes) -> str:
    return b64encode_as_string(signature, b"-_").rstrip("=")


def _decode(proof_value: str) -> bytes:
    """Read base64url, padded or not, in its one canonical spelling (WIRE row 10)."""
    if len(proof_value) > _MAX_PROOF_VALUE:
        raise _refused(f"proofValue of {len(proof_value)} characters")
    bare = proof_value.rstrip("=")
    padded = bare + "=" * (-len(bare) % 4)
    # One signature, one text: else a copy with other unused bits would look like a
    # new hello to the replay memory.
    if _BASE64URL.fullmatch(bare) and proof_value in (bare, padded):
        with contextlib.suppress(PeerError):
            return decode_base64(padded.replace("-", "+").replace("_", "/"))
    raise _refused("proofValue is not canonical base64url")


def _splits(signature: bytes) -> Iterator[tuple[int, int]]:
    """Give the ways in which the bytes may be r and s (WIRE row 17)."""
    if len(signature) == _SIGNATURE_SIZE:
        sizes = [32]
    elif len(signature) == _SIGNATURE_SIZE - 1:
        # An older peer leaves out leading zeros, so one of both is a byte short.
        sizes = [31, 32]
    else:
        raise _refused(f"a signature of {len(signature)} bytes, expected 64")
    for size in sizes:
        yield (
            int.from_bytes(signature[:size], "big"),
            int.from_bytes(signature[size:], "big"),
        )


def _verifies(key: ec.EllipticCurvePublicKey, r: int, s: int, data: bytes) -> bool:
    try:
        key.verify(encode_dss_signature(r, s), data, _ECDSA)
    except InvalidSignature:
        return False
    return True


def _read_created(text: str) -> float:
    """Return seconds since 1970."""
    try:
        if _CREATED.fullmatch(text) is None:
            raise ValueError
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise _refused("proof.created is not YYYY-MM-DDTHH:MM:SSZ") from None


def _check_age(created: float, now: Moment) -> None:
    age = now.unix_ns / 1e9 - created
    if abs(age) > MAX_PROOF_AGE:
        side = "behind" if age > 0 else "ahead of"
        raise _refused(
            f"proof.created is {abs(age):.0f} s {side} the receiver's clock, at most "
            f"{MAX_PROOF_AGE:.0f} s are accepted: set the clocks"
        )
