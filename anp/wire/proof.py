"""The signature of a hello (WIRE rows 4, 5 and 8 to 12, 17)."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.messages import DestinationHello, SourceHello, format_timestamp

__all__ = [
    "ED25519_KEY_TYPE",
    "ED25519_PROOF_TYPE",
    "KEY_TYPE",
    "MAX_PROOF_AGE",
    "PROOF_TYPE",
    "Identity",
    "canonical_bytes",
    "key_type_of",
    "sign_hello",
    "verify_hello",
]

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

# What was parsed holds no circles that would have to be looked for.
_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), check_circular=False
).encode
_ED25519_KEY = re.compile(r"[0-9a-f]{64}")
_PUBLIC_KEY = re.compile(r"04[0-9a-fA-F]{128}")
_CREATED = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z", re.ASCII)
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


def canonical_bytes(hello: dict[str, Any]) -> bytes:
    """Return the bytes that are signed: `hello` without `proofValue` (WIRE row 9).

    Every other field counts, unknown ones too; keys are sorted at every level and
    anything outside ASCII is escaped.
    """
    proof = {k: v for k, v in hello["proof"].items() if k != "proofValue"}
    return _CANONICAL({**hello, "proof": proof}).encode("ascii")


def key_type_of(signer: Identity) -> str:
    """Return the type of the signer's key as its hello names it."""
    return ED25519_KEY_TYPE if _is_ed25519(signer) else KEY_TYPE


def sign_hello(
    hello: dict[str, Any], signer: Identity, *, created: datetime
) -> dict[str, Any]:
    """Return `hello` with its proof; send it at once (WIRE row 12).

    Raises:
        LocalError: `created` has no time zone, or the signer gave no 64 bytes.
    """
    proof = {
        "type": ED25519_PROOF_TYPE if _is_ed25519(signer) else PROOF_TYPE,
        "verificationMethod": signer.key_id,
        "created": format_timestamp(created, milliseconds=False),
    }
    signature = signer.sign(canonical_bytes({**hello, "proof": proof}))
    if len(signature) != _SIGNATURE_SIZE:
        raise LocalError(f"a signature of {len(signature)} bytes, expected 64")
    return {**hello, "proof": {**proof, "proofValue": _encode(signature)}}


def verify_hello(hello: SourceHello | DestinationHello, *, wall_now: datetime) -> bytes:
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
    signed = canonical_bytes(hello.raw)
    if len(public_key) == _ED25519_SIZE:
        fits = _verifies_ed25519(public_key, signature, signed)
    else:
        key = _load_key(public_key)
        fits = any(_verifies(key, r, s, signed) for r, s in _splits(signature))
    if not fits:
        raise _refused("the signature does not fit the key in the hello")
    # The age comes last, so that what we tell about the clocks rests on a signed time.
    _check_age(created, wall_now)
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


def _is_ed25519(signer: Identity) -> bool:
    return len(signer.public_key_hex) == 2 * _ED25519_SIZE


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
    return base64.urlsafe_b64encode(signature).rstrip(b"=").decode("ascii")


def _decode(proof_value: str) -> bytes:
    """Read base64url, padded or not, in its one canonical spelling (WIRE row 10)."""
    if len(proof_value) > _MAX_PROOF_VALUE:
        raise _refused(f"proofValue of {len(proof_value)} characters")
    bare = proof_value.rstrip("=")
    padded = bare + "=" * (-len(bare) % 4)
    try:
        signature = base64.b64decode(padded, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        signature = b""
    # One signature, one text: else a copy with other unused bits would look like a
    # new hello to the replay memory.
    if not signature or proof_value not in (bare, padded) or _encode(signature) != bare:
        raise _refused("proofValue is not canonical base64url")
    return signature


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


def _read_created(text: str) -> datetime:
    try:
        found = _CREATED.fullmatch(text)
        if found is None:
            raise ValueError
        year, month, day, hour, minute, second = map(int, found.groups())
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise _refused("proof.created is not YYYY-MM-DDTHH:MM:SSZ") from None


def _check_age(created: datetime, wall_now: datetime) -> None:
    age = (wall_now - created).total_seconds()
    if abs(age) > MAX_PROOF_AGE:
        side = "behind" if age > 0 else "ahead of"
        raise _refused(
            f"proof.created is {abs(age):.0f} s {side} the receiver's clock, at most "
            f"{MAX_PROOF_AGE:.0f} s are accepted: set the clocks"
        )
