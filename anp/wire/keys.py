"""From two hellos to the keys of one channel (WIRE §3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from anp.errors import ErrorCode, LocalError, PeerError

MAX_RANDOMS = 255
"Bytes both randoms may have together: their length has to fit a byte (WIRE row 3)."

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_CURVE = ec.SECP256R1()
_ECDH = ec.ECDH()
_HASH_SIZE = 32
_KEY_SIZE = 16
_SHA256 = hashes.SHA256()
_HEX_POINT = re.compile(r"(04[0-9a-fA-F]{128}|0[23][0-9a-fA-F]{64})")


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """The keys of one channel, as its one side sees them."""

    secret_key_id: str
    "16 hex characters that name the keys on the wire (WIRE row 20)."

    send_key: bytes = field(repr=False)
    "AES-128 key for what we send."

    receive_key: bytes = field(repr=False)
    "AES-128 key for what the peer sends."

    send_cipher: AESGCM = field(init=False, repr=False, compare=False)
    "That of `send_key`; making one takes longer than it takes for a short message."

    receive_cipher: AESGCM = field(init=False, repr=False, compare=False)
    "That of `receive_key`."

    def __post_init__(self) -> None:
        """Make the ciphers."""
        object.__setattr__(self, "send_cipher", AESGCM(self.send_key))
        object.__setattr__(self, "receive_cipher", AESGCM(self.receive_key))


class EphemeralKey:
    """A P-256 key for one handshake; nothing of it outlives that."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key

    @classmethod
    def of_value(cls, private_value: int) -> EphemeralKey:
        """Return the key of a private value, 1 to the order of the group less 1."""
        if not 0 < private_value < _ORDER:
            raise LocalError("the private value is outside the group")
        return cls(ec.derive_private_key(private_value, _CURVE))

    @classmethod
    def of_system(cls) -> EphemeralKey:
        """Make a new key of the system's own randomness: for shells.

        It takes a quarter of the time that `generate` does.
        """
        return cls(ec.generate_private_key(_CURVE))

    @classmethod
    def generate(cls, random_bytes: Callable[[int], bytes]) -> EphemeralKey:
        """Make a new key from 48 random bytes.

        128 bits more than the order has, so the remainder is as good as uniform.
        """
        return cls.of_value(int.from_bytes(random_bytes(48), "big") % (_ORDER - 1) + 1)

    @property
    def public_hex(self) -> str:
        """The public key: lower-case hex, uncompressed (WIRE row 15)."""
        point = self._key.public_key().public_bytes(
            Encoding.X962, PublicFormat.UncompressedPoint
        )
        return point.hex()

    def exchange(self, key_exchange: str) -> bytes:
        """Return the shared secret: the x coordinate, 32 bytes.

        Args:
            key_exchange: The peer's public key in hex, uncompressed or compressed.

        Raises:
            PeerError: `INVALID_ENCRYPTION_KEY`: that is not a point of P-256.
        """
        try:
            if not _HEX_POINT.fullmatch(key_exchange):
                raise ValueError
            peer = ec.EllipticCurvePublicKey.from_encoded_point(
                _CURVE, bytes.fromhex(key_exchange)
            )
        except ValueError:
            raise PeerError(
                ErrorCode.INVALID_ENCRYPTION_KEY, "keyExchange is not a point of P-256"
            ) from None
        return self._key.exchange(_ECDH, peer)


def derive_keys(
    shared_secret: bytes,
    *,
    source_random: str,
    destination_random: str,
    is_initiator: bool,
) -> SessionKeys:
    """Return the keys that follow from a shared secret and both randoms.

    Raises:
        PeerError: The randoms are too long together (WIRE row 3).
    """
    context = _context(source_random, destination_random)
    # Extract and expand, although TLS 1.3 only extracts here (WIRE §3).
    secret = _hkdf(shared_secret, b"")
    source_key = _traffic_key(secret, _SOURCE, context)
    destination_key = _traffic_key(secret, _DESTINATION, context)
    return SessionKeys(
        _hkdf(context, b"")[:8].hex(),
        send_key=source_key if is_initiator else destination_key,
        receive_key=destination_key if is_initiator else source_key,
    )


def _context(source_random: str, destination_random: str) -> bytes:
    # The text itself is the input; its hex is not decoded (WIRE row 3).
    context = (source_random + destination_random).encode("utf-8")
    if len(context) > MAX_RANDOMS:
        raise PeerError(
            ErrorCode.NOT_ALLOWED,
            f"both randoms have {len(context)} bytes, at most {MAX_RANDOMS} fit",
        )
    return context


def _label(name: bytes) -> bytes:
    """Return a label up to the length of its context."""
    # The length says 32 also where 16 bytes come out (WIRE §3).
    name = b"als10 " + name
    return _HASH_SIZE.to_bytes(2, "big") + bytes([len(name)]) + name


_SOURCE: Final = _label(b"s ap traffic")
_DESTINATION: Final = _label(b"d ap traffic")
_KEY: Final = _label(b"key") + bytes([_HASH_SIZE])


def _traffic_key(secret: bytes, label: bytes, context: bytes) -> bytes:
    traffic = _expand(secret, label + bytes((len(context),)) + context)
    return _hkdf(traffic, _KEY + traffic)[:_KEY_SIZE]


def _hkdf(material: bytes, info: bytes) -> bytes:
    return HKDF(_SHA256, _HASH_SIZE, salt=None, info=info).derive(material)


def _expand(key: bytes, info: bytes) -> bytes:
    return HKDFExpand(_SHA256, _HASH_SIZE, info=info).derive(key)
