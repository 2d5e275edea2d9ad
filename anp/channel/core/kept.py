"""A short-term key as it rests on disk: sealed, and opened again. Pure."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from anp.channel.core.events import ChannelOpened, ChannelRole
from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.frames import find_format
from anp.wire.keys import SessionKeys
from anp.wire.meta_protocol import MetaProtocol

__all__ = ["SECRET_SIZE", "KeptKey", "bind_meta", "open_key", "seal_key"]

SECRET_SIZE = 32
"Bytes of the key that seals: AES-256."

NONCE_SIZE = 12

_HASH_SIZE = 64


@dataclass(frozen=True, slots=True)
class KeptKey:
    """A channel's key and terms, as needed to go on with it on another link."""

    opened: ChannelOpened
    "The channel as its handshake left it; its two times mean nothing any more."

    keys: SessionKeys
    "Its keys."

    binding: str
    "Hash or URI of the protocol it is bound to."

    created: float
    "When it was kept, in seconds since 1970."

    expires: float
    "When the key ends, in seconds since 1970."

    def reopened(self, *, now: float, wall: float) -> ChannelOpened:
        """Return the channel as it goes on.

        Args:
            now: Seconds on the clock of links.
            wall: Seconds since 1970, at the same moment.

        Raises:
            PeerError: `DECRYPTION_KEY_EXPIRED`, also when the wall clock was set back
                behind the moment at which the key was kept: how old it is cannot be
                told then.
        """
        if not self.created <= wall < self.expires:
            raise PeerError(ErrorCode.DECRYPTION_KEY_EXPIRED, "the key expired")
        is_requester = self.opened.role is ChannelRole.REQUESTER
        return replace(
            self.opened,
            session_id="",
            own_meta=bind_meta(self.opened.own_meta, self.binding, offer=is_requester),
            peer_meta=bind_meta(
                self.opened.peer_meta, self.binding, offer=not is_requester
            ),
            expires_at=now + self.expires - wall,
            began=now - (wall - self.created),
        )


def bind_meta(meta: MetaProtocol, binding: str, *, offer: bool) -> MetaProtocol:
    """Return `meta` as it would stand in hellos that offer or confirm `binding`.

    A channel that was bound by a negotiation goes on with its binding (ANP-Q20).
    """
    is_hash = len(binding) == _HASH_SIZE and ":" not in binding
    return replace(
        meta,
        used_protocol_hash=binding if is_hash else None,
        candidate_protocols=(binding,) if offer and not is_hash else (),
        selected_protocol=None if offer or is_hash else binding,
        lost_key=None,
    )


def seal_key(kept: KeptKey, secret: bytes, nonce: bytes) -> str:
    """Return a key encrypted, base64.

    Args:
        secret: 32 bytes that only this identity can derive.
        nonce: 12 random bytes.
    """
    if len(secret) != SECRET_SIZE or len(nonce) != NONCE_SIZE:
        raise LocalError("a secret or nonce of the wrong size")
    opened = kept.opened
    value = {
        "send": kept.keys.send_key.hex(),
        "receive": kept.keys.receive_key.hex(),
        "localDid": opened.local_did,
        "publicKey": opened.public_key.hex(),
        "keyId": opened.key_id,
        "ownMeta": opened.own_meta.to_json(),
        "peerMeta": opened.peer_meta.to_json(),
        "version": opened.version,
        "format": opened.frame_format.version,
    }
    sealed = AESGCM(secret).encrypt(nonce, json.dumps(value).encode(), _names(kept))
    return base64.b64encode(nonce + sealed).decode("ascii")


def open_key(
    sealed: str,
    secret: bytes,
    *,
    key_id: str,
    role: ChannelRole,
    peer_did: str,
    binding: str,
    created: float,
    expires: float,
) -> KeptKey:
    """Return the key in `sealed`, which has to be the one the other arguments name.

    Raises:
        PeerError: `INVALID_DECRYPTION_KEY`: it cannot be read. That is no fault of the
            peer's, but it is told that this key is of no use any more.
    """
    names = _join(key_id, role, peer_did, binding, created, expires)
    try:
        data = base64.b64decode(sealed, validate=True)
        content = AESGCM(secret).decrypt(data[:NONCE_SIZE], data[NONCE_SIZE:], names)
        return _read(
            json.loads(content), key_id, role, peer_did, binding, created, expires
        )
    except (InvalidTag, ValueError, KeyError, TypeError, PeerError):
        raise PeerError(
            ErrorCode.INVALID_DECRYPTION_KEY, "a kept key cannot be read"
        ) from None


def _read(
    value: dict[str, Any],
    key_id: str,
    role: ChannelRole,
    peer_did: str,
    binding: str,
    created: float,
    expires: float,
) -> KeptKey:
    opened = ChannelOpened(
        key_id,
        "",
        role,
        value["localDid"],
        peer_did,
        bytes.fromhex(value["publicKey"]),
        MetaProtocol.from_json(value["ownMeta"]),
        MetaProtocol.from_json(value["peerMeta"]),
        value["version"],
        find_format(value["format"]),
        0.0,
        value["keyId"],
    )
    keys = SessionKeys(
        key_id,
        send_key=bytes.fromhex(value["send"]),
        receive_key=bytes.fromhex(value["receive"]),
    )
    return KeptKey(opened, keys, binding, created, expires)


def _names(kept: KeptKey) -> bytes:
    opened = kept.opened
    return _join(
        opened.channel_id,
        opened.role,
        opened.peer_did,
        kept.binding,
        kept.created,
        kept.expires,
    )


def _join(*parts: object) -> bytes:
    return json.dumps(["anpd kept key 1", *map(str, parts)]).encode("ascii")
