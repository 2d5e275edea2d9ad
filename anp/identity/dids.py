"""DIDs of a P-256 key: `did:key`, `did:all`, and what belongs to one key (WIRE row 6).

Pure. A DID is nearly always a peer's word, so what is wrong with one is a `PeerError`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from anp.errors import ConfigError, ErrorCode, PeerError
from anp.identity import base58
from anp.identity.keys import PrivateKey
from anp.identity.public_keys import KeyFormatError, KeyKind, key_of_multibase
from anp.identity.ripemd import ripemd160

MAX_DID = 1024
"Longest DID accepted, in characters."

# What follows from a DID or a key alone is always the same: checking a point and
# spelling it takes as long as an exchange of keys, and each handshake and each channel
# asks several times. Only the newest are kept, since peers choose their DIDs.
_remembered = lru_cache(maxsize=1024)

WEB_METHODS = ("wba", "web")
"The methods whose documents lie on web servers."

_DID = re.compile(
    r"did:(?P<method>[a-z0-9]{1,32}):(?P<id>(?:[A-Za-z0-9._:@-]|%[0-9A-Fa-f]{2})+)"
)
# A host in brackets is an IPv6 address, which a DID of another method cannot hold.
_DID_ALL = re.compile(
    r"did:all:(?P<address>[1-9A-HJ-NP-Za-km-z]{26,35})"
    r"(?:@(?P<hostport>(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])"
    r"(?::[0-9]{1,5})?))?"
)
_DID_KEY = re.compile(r"did:key:z(?P<encoded>[1-9A-HJ-NP-Za-km-z]{40,56})")

# Multicodec 0x1200, "p256-pub", as unsigned varint.
_P256_PUB = b"\x80\x24"
_KEY_METHODS = frozenset({"key", "all"})


def check_did(did: str) -> str:
    """Return `did` if it is written like a DID; else PeerError DID_NOT_FOUND."""
    did_method(did)
    return did


def check_owned_did(did: str) -> str:
    """Return the `did:key` or `did:all` `did` if some key can own it.

    A decision of the owner's about any other text would never meet anybody.

    Raises:
        PeerError: DID_NOT_FOUND; it is mistyped, or of a method that needs a document.
    """
    match did_method(did):
        case "key":
            try:
                key = key_of_multibase(did.removeprefix("did:key:"))
            except KeyFormatError:
                raise _not_found(did, "holds no public key") from None
            if key.kind not in {KeyKind.P256, KeyKind.ED25519}:
                raise _not_found(did, "holds neither a P-256 nor an Ed25519 key")
        case "all":
            try:
                base58.decode_checked(split_did_all(did)[0])
            except ValueError:
                raise _not_found(did, "is mistyped: its check digits differ") from None
        case method:
            known = ", ".join(f"did:{one}" for one in ("key", "all", *WEB_METHODS))
            raise _not_found(did, f"did:{method} is unknown here, only {known} are")
    return did


def did_method(did: str) -> str:
    """Return the method name of `did`, such as `key`; PeerError if it is no DID."""
    if len(did) > MAX_DID:
        raise _not_found(did, f"a DID may have {MAX_DID} characters, not {len(did)}")
    return _method_of(did)


@_remembered
def _method_of(did: str) -> str:
    if _DID_ALL.fullmatch(did):
        return "all"
    match = _DID.fullmatch(did)
    if match is None:
        raise _not_found(did, "is not written like a DID")
    method = match["method"]
    if "@" in match["id"] or method == "all":
        raise _not_found(did, "is not written like a DID of its method")
    return method


def is_web_did(did: str) -> bool:
    """Say whether `did` is of a method whose documents lie on web servers."""
    return did.startswith(tuple(f"did:{method}:" for method in WEB_METHODS))


@_remembered
def did_key(public: bytes) -> str:
    """Return the `did:key` of the uncompressed P-256 point `public`, 65 bytes."""
    point = _load_point(public).public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint
    )
    return f"did:key:z{base58.encode(_P256_PUB + point)}"


def key_of_did_key(did: str) -> bytes:
    """Return the P-256 key inside the `did:key` `did` as 65 bytes.

    Raises:
        PeerError: DID_NOT_FOUND for a key of another kind or one that is no point.
    """
    # The length is bounded before decoding, which takes quadratic time.
    match = _DID_KEY.fullmatch(did)
    if match is None:
        raise _not_found(did, "is not a did:key of a P-256 key")
    return _key_of_did_key(did)


@_remembered
def _key_of_did_key(did: str) -> bytes:
    data = base58.decode(did.removeprefix("did:key:z"))
    if not data.startswith(_P256_PUB) or len(data) != len(_P256_PUB) + 33:
        raise _not_found(did, "is not a did:key of a P-256 key")
    try:
        key = ec.EllipticCurvePublicKey.from_encoded_point(
            ec.SECP256R1(), data[len(_P256_PUB) :]
        )
    except ValueError:
        raise _not_found(did, "holds no point of the curve") from None
    return _uncompressed(key)


def did_all(public: bytes, hostport: str | None = None) -> str:
    """Return the `did:all` of the 65-byte point `public`, with `@hostport` if given.

    Raises:
        ConfigError: `hostport` is not `host`, `host:port` or `[ipv6]:port`.
    """
    did = f"did:all:{_address_of(public)}"
    if hostport is None:
        return did
    did = f"{did}@{hostport}"
    if _DID_ALL.fullmatch(did) is None:
        raise ConfigError(f"identity: {hostport!r} is not HOST:PORT")
    return did


@_remembered
def _address_of(public: bytes) -> str:
    _load_point(public)
    digest = ripemd160(hashlib.sha256(public).digest())
    return base58.encode_checked(b"\x00" + digest)


def split_did_all(did: str) -> tuple[str, str | None]:
    """Return address and `host:port` (or None) of a `did:all`; PeerError if not one."""
    match = _DID_ALL.fullmatch(did)
    if match is None:
        raise _not_found(did, "is not written like a did:all")
    return match["address"], match["hostport"]


def matches_did_all(did: str, public: bytes) -> bool:
    """Say whether `did` is the `did:all` of `public`, whatever its `@host:port`."""
    match = _DID_ALL.fullmatch(did)
    if match is None:
        return False
    return f"did:all:{match['address']}" == did_all(public)


def key_id_of(did: str) -> str:
    """Return the key id of a `did:key` or `did:all`; others name theirs themselves."""
    return f"{did}#keys-1"


def _key_ids(did: str) -> set[str]:
    """Return the key ids that a peer may name for a self-certifying DID.

    The specification of `did:key` repeats the key after the `#`.
    """
    ids = {key_id_of(did)}
    if did_method(did) == "key":
        ids.add(f"{did}#{did.removeprefix('did:key:')}")
    return ids


def check_key(did: str, key_id: str, public: bytes) -> None:
    """Check that the self-certifying `did` owns `public` under `key_id`.

    Raises:
        PeerError: DID_NOT_FOUND for a DID of another method or a broken one,
            NOT_ALLOWED for another key or key id (WIRE rows 4, 6).
    """
    method = did_method(did)
    if method not in _KEY_METHODS:
        raise _not_found(did, "is of a method that needs a document")
    if key_id not in _key_ids(did):
        raise PeerError(
            ErrorCode.NOT_ALLOWED,
            f"key id {key_id[:200]!r} does not belong to {did}, expected #keys-1",
        )
    if method == "key":
        owns = key_of_did_key(did) == public
    else:
        owns = matches_did_all(did, public)
    if not owns:
        raise PeerError(ErrorCode.NOT_ALLOWED, f"{did} does not own the key it used")


def canonical_did(did: str, public_key: bytes) -> str:
    """Return the DID under which records of the verified `did` are kept.

    `did:key` and `did:all` of one key are one agent, kept under the `did:key`; other
    DIDs are kept under themselves.

    Raises:
        PeerError: NOT_ALLOWED if a self-certifying `did` is not of `public_key`.
    """
    if did_method(did) not in _KEY_METHODS:
        return did
    # Once more although it was verified: a mistake here would mix up two agents.
    check_key(did, key_id_of(did), public_key)
    return did_key(public_key)


def agent_of(did: str) -> str:
    """Return the one DID that stands for all that surely are of the key of `did`.

    It comes from the text alone: the `did:all` without a host where the DID tells its
    key or the hash of it, and else the DID itself.

    Raises:
        PeerError: it is no DID, or a `did:key` of another kind of key.
    """
    match did_method(did):
        case "all":
            return f"did:all:{split_did_all(did)[0]}"
        case "key":
            return did_all(key_of_did_key(did))
        case _:
            return did


@lru_cache(maxsize=4096)
def agent_name(did: str) -> str:
    """Return the one DID that stands for all of the key of `did`; see `agent_of`.

    So a rule about one DID holds for the peer under each of them, also for a peer
    that was ruled out before it was ever met.
    """
    try:
        return agent_of(did)
    except PeerError:
        # A `did:key` of another kind of key has no other form.
        return did


def same_agent(one: str, other: str) -> bool:
    """Say whether two DIDs are surely of one key, as far as the texts alone can tell.

    Raises:
        PeerError: one of them is no DID.
    """
    check_did(one)
    check_did(other)
    return one == other or agent_of(one) == agent_of(other)


@dataclass(frozen=True, slots=True)
class LocalIdentity:
    """One DID of ours with its key; what a handshake signs with."""

    did: str
    "Under which we appear."

    private_key: PrivateKey
    "The key that owns it."

    key_name: str = "keys-1"
    "Name of the key in the DID's document; `did:key` and `did:all` have this one."

    @property
    def key_id(self) -> str:
        """Id of the verification method in our hellos (WIRE row 4)."""
        return f"{self.did}#{self.key_name}"

    @property
    def public_key_hex(self) -> str:
        """The public key in lower-case hex: 130 characters (WIRE row 5), Ed25519 64."""
        return self.private_key.public_bytes.hex()

    def sign(self, data: bytes) -> bytes:
        """Return the signature of `data`, 64 bytes (WIRE row 10)."""
        return self.private_key.sign(data)


class Identities:
    """All DIDs of ours: we answer under the one we were addressed by."""

    def __init__(self, private_key: PrivateKey, primary: str | LocalIdentity) -> None:
        """Take `primary` as the one we show ourselves with.

        Args:
            private_key: P-256; its `did:key` and `did:all` are ours in any case.
            primary: A DID of that key, or an identity that has a document on the web.

        Raises:
            ConfigError: `primary` is not a DID of this key.
        """
        self._key = private_key
        self._did_key = did_key(private_key.public_bytes)
        if isinstance(primary, LocalIdentity):
            self._primary = primary
            return
        found = self._of_key(primary)
        if found is None:
            raise ConfigError(
                f"identity: {primary} does not belong to this home's key, whose DIDs "
                f"are {self._did_key} and {did_all(private_key.public_bytes)}"
            )
        self._primary = found

    @classmethod
    def of_method(cls, private_key: PrivateKey, method: str) -> Identities:
        """Take the DID of `method`, `did:key` or `did:all`, as primary."""
        makers: dict[str, Callable[[bytes], str]] = {
            "did:key": did_key,
            "did:all": did_all,
        }
        if method not in makers:
            raise ConfigError(
                f"identity.method must be one of {', '.join(makers)}, got {method!r}"
            )
        return cls(private_key, makers[method](private_key.public_bytes))

    @property
    def primary(self) -> LocalIdentity:
        """The identity we show ourselves with."""
        return self._primary

    @property
    def canonical(self) -> str:
        """The DID under which our own side of records is kept."""
        return self._did_key

    def key_for(self, purpose: bytes) -> PrivateKey:
        """Return a key of ours that signs for one purpose and stands in no DID."""
        return self._key.for_purpose(purpose)

    def for_did(self, did: str) -> LocalIdentity | None:
        """Return the identity to answer with when addressed as `did`, or None."""
        return self._primary if did == self._primary.did else self._of_key(did)

    def speaking_to(self, peer_did: str) -> LocalIdentity:
        """Return the identity to speak to `peer_did` with.

        A `did:all` peer may be the official SDK, which understands nothing else.
        """
        if did_method(peer_did) != "all" or did_method(self._primary.did) == "all":
            return self._primary
        return LocalIdentity(did_all(self._key.public_bytes), self._key)

    def _of_key(self, did: str) -> LocalIdentity | None:
        if did == self._did_key or matches_did_all(did, self._key.public_bytes):
            return LocalIdentity(did, self._key)
        return None


def _load_point(public: bytes) -> ec.EllipticCurvePublicKey:
    if len(public) != 65 or public[0] != 4:
        raise PeerError(
            ErrorCode.NOT_ALLOWED, "a public key has 65 bytes and begins with 04"
        )
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public)
    except ValueError:
        raise PeerError(
            ErrorCode.NOT_ALLOWED, "the public key is no point of P-256"
        ) from None


def _uncompressed(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )


def _not_found(did: str, reason: str) -> PeerError:
    return PeerError(ErrorCode.DID_NOT_FOUND, f"{did[:200]!r}: {reason}")
