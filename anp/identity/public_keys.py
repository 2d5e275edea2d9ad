"""Public keys as DID documents write them: read, compared, and asked to verify.

Pure. Three kinds: P-256 and Ed25519, which may sign hellos, and secp256k1, to which
`k1_` paths of `did:wba` are bound. What is wrong with a key is a `KeyFormatError`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from anp.errors import AnpError
from anp.identity import base58

MAX_TEXT = 256
"Longest text of a key, in characters; a real one has at most 132."

SIGNATURE_SIZE = 64


class KeyKind(StrEnum):
    """Kinds of keys, by the name of their curve."""

    P256 = "P-256"
    ED25519 = "Ed25519"
    SECP256K1 = "secp256k1"


class KeyFormatError(AnpError):
    """A text is no public key of a kind we know."""


_CURVES: dict[KeyKind, ec.EllipticCurve] = {
    KeyKind.P256: ec.SECP256R1(),
    KeyKind.SECP256K1: ec.SECP256K1(),
}

# Multicodec names p256-pub, ed25519-pub and secp256k1-pub as unsigned varints.
_PREFIXES = {
    KeyKind.P256: b"\x80\x24",
    KeyKind.ED25519: b"\xed\x01",
    KeyKind.SECP256K1: b"\xe7\x01",
}

# What the type of a verification method says about its key; None: the key says it.
_KINDS_OF_TYPES: dict[str, KeyKind | None] = {
    "EcdsaSecp256r1VerificationKey2019": KeyKind.P256,
    "EcdsaSecp256k1VerificationKey2019": KeyKind.SECP256K1,
    "Ed25519VerificationKey2018": KeyKind.ED25519,
    "Ed25519VerificationKey2020": KeyKind.ED25519,
    "JsonWebKey2020": None,
    "JsonWebKey": None,
    "Multikey": None,
}

_FIELDS = ("publicKeyJwk", "publicKeyMultibase", "publicKeyBase58", "publicKeyHex")


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key in its one form, so that equal keys are equal objects."""

    kind: KeyKind
    "Its curve and algorithm."

    data: bytes
    "Ed25519: 32 bytes. The others: the uncompressed point, 65 bytes beginning with 04."

    @property
    def multibase(self) -> str:
        """The key as `Multikey` writes it, which also is the id of its `did:key`."""
        return _multibase_of(self)

    @property
    def jwk(self) -> dict[str, str]:
        """The key as JWK, with the members that RFC 7638 requires and no others."""
        if self.kind is KeyKind.ED25519:
            return {"crv": "Ed25519", "kty": "OKP", "x": _encode(self.data)}
        x, y = self.data[1:33], self.data[33:]
        return {"crv": self.kind.value, "kty": "EC", "x": _encode(x), "y": _encode(y)}

    @property
    def thumbprint(self) -> str:
        """SHA-256 of the JWK by RFC 7638, base64url, 43 characters."""
        text = json.dumps(self.jwk, separators=(",", ":"), sort_keys=True)
        return _encode(hashlib.sha256(text.encode("ascii")).digest())

    def verifies(self, signature: bytes, data: bytes) -> bool:
        """Say whether `signature`, 64 bytes, is this key's for `data`.

        Ed25519 as it is; the others ECDSA with SHA-256, r and s of 32 bytes each.
        """
        if len(signature) != SIGNATURE_SIZE:
            return False
        try:
            if self.kind is KeyKind.ED25519:
                edwards = ed25519.Ed25519PublicKey.from_public_bytes(self.data)
                edwards.verify(signature, data)
            else:
                r, s = signature[:32], signature[32:]
                der = encode_dss_signature(
                    int.from_bytes(r, "big"), int.from_bytes(s, "big")
                )
                self._point().verify(der, data, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True

    def _point(self) -> ec.EllipticCurvePublicKey:
        return _point_of(self.kind, self.data)

    def _compressed(self) -> bytes:
        if self.kind is KeyKind.ED25519:
            return self.data
        return self._point().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint
        )


@lru_cache(maxsize=1024)
def _point_of(kind: KeyKind, data: bytes) -> ec.EllipticCurvePublicKey:
    # Checking that a point is on its curve costs as much as half a signature.
    return ec.EllipticCurvePublicKey.from_encoded_point(_CURVES[kind], data)


@lru_cache(maxsize=1024)
def _multibase_of(key: PublicKey) -> str:
    return f"z{base58.encode(_PREFIXES[key.kind] + key._compressed())}"


def key_of_bytes(kind: KeyKind, data: bytes) -> PublicKey:
    """Return the key of raw bytes; a point may be compressed.

    Raises:
        KeyFormatError: they are no key of this kind.
    """
    try:
        if kind is KeyKind.ED25519:
            ed25519.Ed25519PublicKey.from_public_bytes(data)
            return PublicKey(kind, data)
        point = ec.EllipticCurvePublicKey.from_encoded_point(_CURVES[kind], data)
    except ValueError:
        raise KeyFormatError(f"{len(data)} bytes are no {kind.value} key") from None
    return PublicKey(
        kind,
        point.public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        ),
    )


def key_of_multibase(text: str, expected: KeyKind | None = None) -> PublicKey:
    """Read a multibase key (base58-btc), which names its kind by a multicodec.

    Args:
        expected: What its type says it is. The SDK leaves the multicodec out of some
            keys; then this is what they are.

    Raises:
        KeyFormatError: of no known kind, or of another kind than expected.
    """
    if not text.startswith("z"):
        raise KeyFormatError("publicKeyMultibase is not base58-btc")
    data = _base58(text[1:])
    for kind, prefix in _PREFIXES.items():
        size = 32 if kind is KeyKind.ED25519 else 33
        if data.startswith(prefix) and len(data) == len(prefix) + size:
            if expected not in (None, kind):
                raise KeyFormatError(f"a {kind.value} key where {expected} stands")
            return key_of_bytes(kind, data[len(prefix) :])
    if expected is None:
        raise KeyFormatError("publicKeyMultibase holds a key of no known kind")
    return key_of_bytes(expected, data)


def key_of_jwk(jwk: Any, expected: KeyKind | None = None) -> PublicKey:
    """Read a JWK.

    Raises:
        KeyFormatError: of no known kind, of another than expected, or a private key.
    """
    if not isinstance(jwk, Mapping):
        raise KeyFormatError("publicKeyJwk is no object")
    # Who publishes a private key has given it away; such a key proves nothing.
    if "d" in jwk:
        raise KeyFormatError("publicKeyJwk holds a private key")
    match jwk.get("kty"), jwk.get("crv"):
        case "OKP", "Ed25519":
            kind, data = KeyKind.ED25519, _coordinate(jwk, "x")
        case "EC", "P-256":
            kind, data = KeyKind.P256, _both(jwk)
        case "EC", "secp256k1":
            kind, data = KeyKind.SECP256K1, _both(jwk)
        case _:
            raise KeyFormatError("publicKeyJwk is of no known kind")
    if expected not in (None, kind):
        raise KeyFormatError(f"a {kind.value} key where {expected} stands")
    return key_of_bytes(kind, data)


def key_of_method(method: Mapping[str, Any]) -> PublicKey:
    """Read the key of a verification method of a DID document.

    Raises:
        KeyFormatError: its type or its key is of no known kind, or it has several.
    """
    name = method.get("type")
    if not isinstance(name, str) or name not in _KINDS_OF_TYPES:
        raise KeyFormatError("a verification method of another type")
    expected = _KINDS_OF_TYPES[name]
    given = [field for field in _FIELDS if field in method]
    # Of two keys one reader might take the first and another the second.
    if len(given) != 1:
        raise KeyFormatError("a verification method needs one key and has no more")
    value = method[given[0]]
    if given[0] == "publicKeyJwk":
        return key_of_jwk(value, expected)
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise KeyFormatError(f"{given[0]} is no text, or too long")
    if given[0] == "publicKeyMultibase":
        return key_of_multibase(value, expected)
    if expected is None:
        raise KeyFormatError(f"{given[0]} does not say what kind of key it is")
    if given[0] == "publicKeyBase58":
        return key_of_bytes(expected, _base58(value))
    return key_of_bytes(expected, _hex(value))


def _hex(text: str) -> bytes:
    # The SDK's documents have one byte 04 too many (WIRE row 7).
    if len(text) == 132 and text.startswith("0404"):
        text = text[2:]
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise KeyFormatError("publicKeyHex is not hex") from None


def _base58(text: str) -> bytes:
    # The length is bounded before decoding, which takes quadratic time.
    if len(text) > MAX_TEXT:
        raise KeyFormatError("a key is too long")
    try:
        data: bytes = base58.decode(text)
    except (ValueError, UnicodeError):
        raise KeyFormatError("a key is not base58") from None
    return data


def _both(jwk: Mapping[str, Any]) -> bytes:
    return b"\x04" + _coordinate(jwk, "x") + _coordinate(jwk, "y")


def _coordinate(jwk: Mapping[str, Any], name: str) -> bytes:
    text = jwk.get(name)
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise KeyFormatError(f"publicKeyJwk has no text {name}")
    try:
        data = base64.b64decode(
            text + "=" * (-len(text) % 4), altchars=b"-_", validate=True
        )
    except (binascii.Error, ValueError):
        data = b""
    if len(data) != 32 or _encode(data) != text:
        raise KeyFormatError(f"{name} of publicKeyJwk is not 32 bytes in base64url")
    return data


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
