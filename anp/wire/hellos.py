"""The handshake messages we send, as JSON objects (WIRE, "Whole messages")."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from anp.wire.messages import MetaProtocol, format_timestamp
from anp.wire.proof import Identity, key_type_of, sign_hello

__all__ = [
    "CIPHER_SUITE",
    "GROUP",
    "VERSION",
    "make_destination_hello",
    "make_finished",
    "make_source_hello",
]

VERSION = "1.0"
"Version of the messages of the handshake itself, which every peer can read (ANP-78)."

CIPHER_SUITE = "TLS_AES_128_GCM_SHA256"
"The only suite we offer and choose (WIRE row 14)."

GROUP = "secp256r1"
"The only group we offer and choose (WIRE row 15)."


def make_source_hello(
    identity: Identity,
    *,
    peer_did: str,
    session_id: str,
    message_id: str,
    random: str,
    key_exchange: str,
    expires: int,
    versions: Sequence[str],
    meta: MetaProtocol,
    timestamp: datetime,
) -> dict[str, Any]:
    """Return a signed `sourceHello`.

    Args:
        random: Key input: 64 hex characters of fresh random bytes.
        key_exchange: Our ephemeral public key in hex.
        expires: Seconds we offer the keys for.
        versions: The versions of the message format we offer (ANP-15).
    """
    hello = {
        **_head(
            "sourceHello",
            identity,
            peer_did=peer_did,
            session_id=session_id,
            message_id=message_id,
            timestamp=timestamp,
        ),
        "verificationMethod": _method(identity),
        "random": random,
        "supportedVersions": list(versions),
        "cipherSuites": [CIPHER_SUITE],
        "supportedGroups": [GROUP],
        "keyShares": [_key_share(key_exchange, expires)],
        "metaProtocol": meta.to_json(),
    }
    return sign_hello(hello, identity, created=timestamp)


def make_destination_hello(
    identity: Identity,
    *,
    peer_did: str,
    session_id: str,
    message_id: str,
    random: str,
    key_exchange: str,
    expires: int,
    version: str,
    meta: MetaProtocol,
    timestamp: datetime,
) -> dict[str, Any]:
    """Return a signed `destinationHello`; arguments as in `make_source_hello`.

    Args:
        version: The version of the message format that is used (ANP-15).
    """
    hello = {
        **_head(
            "destinationHello",
            identity,
            peer_did=peer_did,
            session_id=session_id,
            message_id=message_id,
            timestamp=timestamp,
        ),
        "version": version,
        "verificationMethod": _method(identity),
        "random": random,
        "selectedVersion": version,
        "cipherSuite": CIPHER_SUITE,
        "keyShare": _key_share(key_exchange, expires),
        "metaProtocol": meta.to_json(),
    }
    return sign_hello(hello, identity, created=timestamp)


def make_finished(
    identity: Identity,
    *,
    peer_did: str,
    session_id: str,
    message_id: str,
    verify_data: dict[str, str],
    timestamp: datetime,
) -> dict[str, Any]:
    """Return a `finished` with the encrypted key id (WIRE row 21)."""
    head = _head(
        "finished",
        identity,
        peer_did=peer_did,
        session_id=session_id,
        message_id=message_id,
        timestamp=timestamp,
    )
    return {**head, "verifyData": verify_data}


def _head(
    kind: str,
    identity: Identity,
    *,
    peer_did: str,
    session_id: str,
    message_id: str,
    timestamp: datetime,
) -> dict[str, Any]:
    # The sender is the source of each message, whoever began (WIRE row 18).
    return {
        "version": VERSION,
        "type": kind,
        "timestamp": format_timestamp(timestamp),
        "messageId": message_id,
        "sessionId": session_id,
        "sourceDid": identity.did,
        "destinationDid": peer_did,
    }


def _method(identity: Identity) -> dict[str, Any]:
    return {
        "id": identity.key_id,
        "type": key_type_of(identity),
        "publicKeyHex": identity.public_key_hex,
    }


def _key_share(key_exchange: str, expires: int) -> dict[str, Any]:
    return {"group": GROUP, "expires": expires, "keyExchange": key_exchange}
