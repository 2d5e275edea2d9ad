"""Encrypted messages: seal and open with TLS_AES_128_GCM_SHA256 (WIRE row 26)."""

from __future__ import annotations

from datetime import datetime

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.encoding import encode_base64, format_timestamp, render
from anp.wire.frames import FORMAT_1_0
from anp.wire.keys import SessionKeys
from anp.wire.messages import IV_SIZE, TAG_SIZE, EncryptedData, Envelope

__all__ = [
    "check_envelope_dids",
    "check_envelope_version",
    "decrypt",
    "encrypt",
    "open_envelope",
    "seal",
]


def encrypt(key: bytes, plaintext: bytes, *, iv: bytes) -> dict[str, str]:
    """Return `encryptedData`. The iv must be new for this key: never use one twice.

    Raises:
        LocalError: The iv does not have 12 bytes.
    """
    if len(iv) != IV_SIZE:
        raise LocalError(f"an iv of {len(iv)} bytes, expected {IV_SIZE}")
    sealed = AESGCM(key).encrypt(iv, plaintext, None)
    return {
        "iv": encode_base64(iv),
        "tag": encode_base64(sealed[-TAG_SIZE:]),
        "ciphertext": encode_base64(sealed[:-TAG_SIZE]),
    }


def decrypt(key: bytes, data: EncryptedData) -> bytes:
    """Return the plaintext.

    Raises:
        PeerError: `DECRYPTION_FAILED`.
    """
    iv, tag, ciphertext = data.decode()
    try:
        return AESGCM(key).decrypt(iv, ciphertext + tag, None)
    except InvalidTag:
        raise PeerError(
            ErrorCode.DECRYPTION_FAILED, "the tag does not fit the ciphertext"
        ) from None


def seal(
    keys: SessionKeys,
    plaintext: bytes,
    *,
    source_did: str,
    destination_did: str,
    message_id: str,
    iv: bytes,
    timestamp: datetime,
    version: str = FORMAT_1_0.version,
) -> str:
    """Return a `message` that carries `plaintext` (ANP-11).

    Args:
        plaintext: A frame: header byte and protocol data.
        source_did: Our DID on the channel; the sender is always the source.
        iv: 12 bytes that this key never had before.
        version: That of the format `plaintext` was encoded with (ANP-15).

    Raises:
        LocalError: The iv does not have 12 bytes.
    """
    return render(
        {
            "version": version,
            "type": "message",
            "timestamp": format_timestamp(timestamp),
            "messageId": message_id,
            "sourceDid": source_did,
            "destinationDid": destination_did,
            "secretKeyId": keys.secret_key_id,
            "encryptedData": encrypt(keys.send_key, plaintext, iv=iv),
        }
    )


def check_envelope_dids(
    envelope: Envelope, *, source_did: str, destination_did: str
) -> None:
    """Compare an envelope's DIDs with those of its key (WIRE row 26).

    They are not authenticated, and whoever read them would believe them.

    Raises:
        PeerError: `NOT_ALLOWED`.
    """
    if (envelope.source_did, envelope.destination_did) != (source_did, destination_did):
        raise PeerError(
            ErrorCode.NOT_ALLOWED, "the DIDs of the message are not those of its key"
        )


def check_envelope_version(envelope: Envelope, version: str) -> None:
    """Refuse a frame of another version than that of its channel (ANP-15).

    Its header might be longer; read as one of this version it would be another message.

    Raises:
        PeerError: `NOT_ALLOWED`.
    """
    if envelope.version not in (None, version):
        raise PeerError(
            ErrorCode.NOT_ALLOWED,
            f"a message of version {str(envelope.version)[:40]!r} on a channel of "
            f"version {version!r}",
        )


def open_envelope(keys: SessionKeys, envelope: Envelope) -> bytes:
    """Return the plaintext of a `message`: a frame (ANP-11).

    Raises:
        PeerError: `INVALID_DECRYPTION_KEY` for another key's message, and
            `DECRYPTION_FAILED`.
    """
    if envelope.secret_key_id != keys.secret_key_id:
        raise PeerError(ErrorCode.INVALID_DECRYPTION_KEY, "secretKeyId is not ours")
    return decrypt(keys.receive_key, envelope.encrypted_data)
