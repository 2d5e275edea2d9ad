"""Envelopes as they cross the wire: as JSON (WIRE row 26), and in the binary form.

Nearly every message of a link is an envelope, and the ciphertext in it may be long. So
the usual spelling of the JSON is read by its fields alone, without a parser that looks
at each character; anything else goes to the parser, which decides what is accepted and
says what is wrong. The binary form is the extension `binary`: the same fields without
base64 and JSON, towards peers only that listed it (docs/binary-frames.md).
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from pybase64 import b64decode, b64encode_as_string

from anp.errors import LocalError, PeerError
from anp.wire.keys import SessionKeys
from anp.wire.messages import (
    IV_SIZE,
    TAG_SIZE,
    EncryptedData,
    Envelope,
    Message,
    UnreadableMessage,
    decode_base64,
    format_timestamp,
    parse_message,
    render,
)

__all__ = [
    "BINARY_MARK",
    "EXTENSION_BINARY",
    "EnvelopeWriter",
    "OpenData",
    "binary_key_id",
    "read_envelope",
    "read_message",
]

EXTENSION_BINARY: Final = "binary"
"Name of our extension for envelopes without base64 and JSON."

BINARY_MARK: Final = 0x01
"First byte of a binary envelope; no JSON text begins with it."

_CACHED_HEAD: Final = 2048
"Most bytes of a head that is remembered; a usual one has 200."

# Printable ASCII without quotation mark and backslash: the text stands for itself.
_PLAIN: Final = r"[ !#-\[\]-~]"

_USUAL: Final = re.compile(
    r'\{"version": ?"(PLAIN*)", ?"type": ?"message", ?"timestamp": ?"PLAIN*", ?'
    r'"messageId": ?"(PLAIN+)", ?"sourceDid": ?"(did:PLAIN*)", ?'
    r'"destinationDid": ?"(did:PLAIN*)", ?"secretKeyId": ?"(PLAIN+)", ?'
    r'"encryptedData": ?\{"iv": ?"([A-Za-z0-9+/]{16})", ?'
    r'"tag": ?"([A-Za-z0-9+/]{21}[AQgw]==)", ?"ciphertext": ?"'.replace("PLAIN", _PLAIN)
)
"An envelope as we and the official SDK write it, up to its ciphertext."

_USUAL_END: Final = '"}}'


class OpenData(EncryptedData):
    """`encryptedData` that is decoded already."""

    __slots__ = ("_authenticated", "_iv", "_sealed")
    _iv: bytes
    _sealed: bytes | memoryview
    _authenticated: bytes | None

    def __init__(
        self, iv: bytes, sealed: bytes | memoryview, authenticated: bytes | None = None
    ) -> None:
        """Take an iv, and the ciphertext with the tag behind it.

        Args:
            authenticated: What the tag covers beside it: all that stands before the iv
                of a binary envelope.
        """
        keep = object.__setattr__
        keep(self, "_iv", iv)
        keep(self, "_sealed", sealed)
        keep(self, "_authenticated", authenticated)

    @property
    def iv(self) -> str:
        """The iv in base64."""
        return b64encode_as_string(self._iv)

    @property
    def tag(self) -> str:
        """The tag in base64."""
        return b64encode_as_string(self._sealed[-TAG_SIZE:])

    @property
    def ciphertext(self) -> str:
        """The ciphertext in base64."""
        return b64encode_as_string(self._sealed[:-TAG_SIZE])

    def decode(self) -> tuple[bytes, bytes, bytes]:
        """Return iv, tag and ciphertext."""
        sealed = self._sealed
        return self._iv, bytes(sealed[-TAG_SIZE:]), bytes(sealed[:-TAG_SIZE])

    def iv_and_tag(self) -> tuple[bytes, bytes]:
        """Return these two alone."""
        return self._iv, bytes(self._sealed[-TAG_SIZE:])

    def sealed(self) -> tuple[bytes, bytes | memoryview, bytes | None]:
        """Return the iv, ciphertext and tag, and what the tag covers beside them."""
        return self._iv, self._sealed, self._authenticated


def read_message(data: str | bytes, *, max_size: int) -> Message:
    """Read one WebSocket message; see `parse_message`."""
    if len(data) <= max_size and (envelope := read_envelope(data)) is not None:
        return envelope
    return parse_message(data, max_size=max_size)


def read_envelope(data: str | bytes) -> Envelope | None:
    """Read an envelope in its usual spelling, or in the binary form.

    Returns:
        None: it is something else; ask `parse_message`.

    Raises:
        UnreadableMessage: It is in the binary form, and wrong.
    """
    if isinstance(data, str):
        return _read_usual(data)
    return _read_binary(data) if data[:1] == _MARK else None


def _read_usual(text: str) -> Envelope | None:
    found = _USUAL.match(text)
    if found is None or not text.endswith(_USUAL_END):
        return None
    version, message_id, source, destination, key_id, iv, tag = found.groups()
    try:
        # No character of a strict base64 has a meaning in JSON, so that a ciphertext
        # which can be decoded is one string and stands for itself.
        ciphertext = decode_base64(text[found.end() : -len(_USUAL_END)])
    except PeerError:
        return None
    return Envelope(
        raw={},
        message_id=message_id,
        source_did=source,
        destination_did=destination,
        secret_key_id=key_id,
        encrypted_data=OpenData(b64decode(iv), ciphertext + b64decode(tag)),
        version=version,
    )


# The binary form

_MARK: Final = bytes([BINARY_MARK])
_LENGTH: Final = 2
_TIME: Final = 8
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def _counted(data: bytes) -> bytes:
    return len(data).to_bytes(_LENGTH, "big") + data


def _read_binary(data: bytes) -> Envelope:
    body = _LENGTH + 1 + int.from_bytes(data[1:3], "big")
    named = body + _TIME + _LENGTH
    start = named + int.from_bytes(data[named - _LENGTH : named], "big")
    sealed = start + IV_SIZE
    if len(data) < sealed + TAG_SIZE:
        raise _unreadable("cut off")
    head = data[3:body]
    version, key_id, source, destination = (
        _read_head(head) if len(head) <= _CACHED_HEAD else _head_fields(head)
    )
    message_id = _text(data[named:start])
    if not message_id:
        raise _unreadable("no messageId")
    view = memoryview(data)
    return Envelope(
        raw={},
        message_id=message_id,
        source_did=source,
        destination_did=destination,
        secret_key_id=key_id,
        encrypted_data=OpenData(data[start:sealed], view[sealed:], data[:start]),
        version=version,
    )


def binary_key_id(data: bytes) -> str | None:
    """Return the key id that the beginning of a binary envelope names, or None."""
    try:
        return _head_fields(data[3 : 3 + int.from_bytes(data[1:3], "big")])[1]
    except UnreadableMessage:
        return None


def _head_fields(head: bytes) -> tuple[str, str, str, str]:
    """Return version, secretKeyId, sourceDid and destinationDid."""
    fields: list[bytes] = []
    at = 0
    while at < len(head) and len(fields) < 5:
        begin = at + _LENGTH
        at = begin + int.from_bytes(head[at:begin], "big")
        fields.append(head[begin:at])
    if at != len(head) or len(fields) != 4:
        raise _unreadable("its head has not the four fields")
    version, key_id, source, destination = map(_text, fields)
    if not key_id or not (source.startswith("did:") and destination.startswith("did:")):
        raise _unreadable("its head names no key, or no DID")
    return version, key_id, source, destination


# One channel has one head in each direction, so that it is read once.
_read_head = lru_cache(maxsize=256)(_head_fields)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _unreadable("a text that is not UTF-8") from None


def _unreadable(what: str) -> UnreadableMessage:
    return UnreadableMessage(f"binary message: {what}")


class EnvelopeWriter:
    """Writes the envelopes of one key and direction.

    What is the same in each of them is written once.
    """

    def __init__(
        self,
        keys: SessionKeys,
        *,
        source_did: str,
        destination_did: str,
        version: str,
        binary: bool,
    ) -> None:
        """Begin.

        Args:
            keys: Those of the channel.
            source_did: Our DID on the channel; the sender is always the source.
            version: That of the frame format (ANP-15).
            binary: Both sides listed the extension `binary`.
        """
        self.source_did = source_did
        self._cipher, key_id = keys.send_cipher, keys.secret_key_id
        self._binary = binary
        head = render({"version": version, "type": "message", "timestamp": ""})
        ids = {
            "sourceDid": source_did,
            "destinationDid": destination_did,
            "secretKeyId": key_id,
        }
        # Up to the text of the time, and from behind the message id to the iv.
        self._before = head[: -len('"}')]
        self._between = f',{render(ids)[1:-1]},"encryptedData":{{"iv":"'
        fields = version, key_id, source_did, destination_did
        names = b"".join(_counted(one.encode()) for one in fields)
        self._head = _MARK + _counted(names)

    def write(
        self, plaintext: bytes, *, message_id: str, iv: bytes, timestamp: datetime
    ) -> str | bytes:
        """Return a message that carries `plaintext`: JSON as a text, or binary.

        Args:
            iv: 12 bytes that this key never had before.

        Raises:
            LocalError: The iv does not have 12 bytes.
        """
        if len(iv) != IV_SIZE:
            raise LocalError(f"an iv of {len(iv)} bytes, expected {IV_SIZE}")
        if self._binary:
            return self._written_binary(plaintext, message_id, iv, timestamp)
        sealed = self._cipher.encrypt(iv, plaintext, None)
        tag, ciphertext = sealed[-TAG_SIZE:], memoryview(sealed)[:-TAG_SIZE]
        # Base64 may be long, and needs no look at each character.
        return "".join(
            (
                self._before,
                format_timestamp(timestamp),
                '","messageId":',
                _quoted(message_id),
                self._between,
                b64encode_as_string(iv),
                '","tag":"',
                b64encode_as_string(tag),
                '","ciphertext":"',
                b64encode_as_string(ciphertext),
                _USUAL_END,
            )
        )

    def _written_binary(
        self, plaintext: bytes, message_id: str, iv: bytes, timestamp: datetime
    ) -> bytes:
        milliseconds = (timestamp - _EPOCH) // _MILLISECOND
        start = b"".join(
            (
                self._head,
                milliseconds.to_bytes(_TIME, "big"),
                _counted(message_id.encode()),
            )
        )
        return b"".join((start, iv, self._cipher.encrypt(iv, plaintext, start)))


def _quoted(text: str) -> str:
    if text.isascii() and text.isalnum():
        return f'"{text}"'
    return json.dumps(text)
