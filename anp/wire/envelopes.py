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
from binascii import a2b_base64, b2a_base64
from functools import lru_cache
from io import BytesIO
from struct import Struct
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES128
from cryptography.hazmat.primitives.ciphers.modes import GCM
from pybase64 import b64encode

from anp.errors import LocalError, PeerError
from anp.wire.encrypted import (
    IV_SIZE,
    TAG_SIZE,
    Envelope,
    EnvelopeHead,
    decode_sealed,
    envelope_of,
    open_data_of,
)
from anp.wire.keys import SessionKeys
from anp.wire.messages import UnreadableMessage
from anp.wire.moment import second_text

EXTENSION_BINARY: Final = "binary"
"Name of our extension for envelopes without base64 and JSON."

LONG: Final = 64 * 1024
"Bytes of a frame from which `EnvelopeWriter.write_long` takes less time."

_MARK_BYTE: Final = 1
"First byte of a binary envelope; no JSON text begins with it."

_MARK: Final = bytes((_MARK_BYTE,))

_LONG: Final = 16 * 1024
"Bytes from which a view is made sooner than a copy."

_CACHED_HEAD: Final = 2048
"Most bytes of a head that is remembered; a usual one has 200."


def _usual(pattern: bytes) -> re.Pattern[bytes]:
    # Printable ASCII without quotation mark and backslash: the text stands for itself.
    return re.compile(pattern.replace(b"PLAIN", rb"[ !#-\[\]-~]"))


_START_FORM: Final = (
    rb'\{"version": ?"(PLAIN*+)", ?"type": ?"message", ?"timestamp": ?"PLAIN*+", ?'
    rb'"messageId": ?"(PLAIN++)"([^{]*+)\{"iv": ?"([A-Za-z0-9+/]{16})", ?'
    rb'"tag": ?"([A-Za-z0-9+/]{21}[AQgw]==)", ?"ciphertext": ?"'
)
"""An envelope as we and the official SDK write it, up to its ciphertext.

The part between message id and iv is the same for a whole channel: see `_NAMES`.
"""

_match_start: Final = _usual(_START_FORM.replace(b" ?", b"")).match
"Matches one without any blank, as we write it, in three quarters of the time."

_match_spaced_start: Final = _usual(_START_FORM).match

_NAMES: Final = _usual(
    rb', ?"sourceDid": ?"(did:PLAIN*)", ?"destinationDid": ?"(did:PLAIN*)", ?'
    rb'"secretKeyId": ?"(PLAIN+)", ?"encryptedData": ?'
)

_BEFORE_CIPHERTEXT: Final = b'","ciphertext":"'
_END: Final = b'"}}'

_TAG_TEXT: Final = 4 * -(-TAG_SIZE // 3)
"Characters of a tag in base64."

_PIECE: Final = 96 * 1024
"Bytes of a long message that are encrypted and encoded at once: a multiple of 3."

_BLOCK: Final = 16
"Bytes by which a cipher wants its output to be longer than its input."


def is_binary(message: bytes) -> bool:
    """Say if a message goes as a binary one over the WebSocket, and not as a text."""
    # Less than a slice that would have to be made.
    return len(message) > 0 and message[0] == _MARK_BYTE


def read_envelope(data: str | bytes) -> Envelope | None:
    """Read an envelope in its usual spelling, or in the binary form.

    Returns:
        None: it is something else; ask `parse_message`.

    Raises:
        UnreadableMessage: It is in the binary form, and wrong.
    """
    if isinstance(data, str):
        return _read_usual(data.encode()) if data.isascii() else None
    if data and data[0] == _MARK_BYTE:
        return _read_binary(data)
    return _read_usual(data)


def _read_usual(text: bytes) -> Envelope | None:
    found = _match_start(text) or _match_spaced_start(text)
    if found is None or text[-3:] != _END:
        return None
    version, message_id, names, iv, tag = found.groups()
    head = (_read_names if len(names) <= _CACHED_HEAD else _named)(version, names)
    if head is None:
        return None
    try:
        # No character of a strict base64 has a meaning in JSON, so that a ciphertext
        # which can be decoded is one string and stands for itself.
        ciphertext = _part(text, found.end(), -3)
        content = decode_sealed(ciphertext, a2b_base64(tag))
    except PeerError:
        return None
    data = open_data_of((a2b_base64(iv), content, None))
    return envelope_of((head, message_id.decode(), data))


def _named(version: bytes, names: bytes) -> EnvelopeHead | None:
    found = _NAMES.fullmatch(names)
    if found is None:
        return None
    source, destination, key_id = found.groups()
    return EnvelopeHead(
        version.decode(), key_id.decode(), source.decode(), destination.decode()
    )


# One channel has one head in each direction, so that it is read once.
_read_names = lru_cache(maxsize=256)(_named)


# The binary form

_LENGTH: Final = 2
_TIME: Final = 8
_LEAST: Final = 1 + _LENGTH + _TIME + _LENGTH + IV_SIZE + TAG_SIZE
_read_length: Final = Struct(">H").unpack_from
_write_time_and_length: Final = Struct(">QH").pack


def _counted(data: bytes) -> bytes:
    return len(data).to_bytes(_LENGTH, "big") + data


def _read_binary(data: bytes) -> Envelope:
    if len(data) < _LEAST:
        raise _unreadable("cut off")
    body = _LENGTH + 1 + _read_length(data, 1)[0]
    named = body + _TIME + _LENGTH
    if len(data) < named:
        raise _unreadable("cut off")
    start = named + _read_length(data, named - _LENGTH)[0]
    sealed = start + IV_SIZE
    if len(data) < sealed + TAG_SIZE:
        raise _unreadable("cut off")
    fields = data[3:body]
    head = (_read_head if len(fields) <= _CACHED_HEAD else _head_of)(fields)
    message_id = _text(data[named:start])
    if not message_id:
        raise _unreadable("no messageId")
    content = data[sealed:] if len(data) < _LONG else memoryview(data)[sealed:]
    opened = open_data_of((data[start:sealed], content, data[:start]))
    return envelope_of((head, message_id, opened))


def binary_key_id(data: bytes) -> str | None:
    """Return the key id that the beginning of a binary envelope names, or None."""
    try:
        head = _head_of(data[3 : 3 + int.from_bytes(data[1:3], "big")])
    except UnreadableMessage:
        return None
    return head.secret_key_id


def _head_of(head: bytes) -> EnvelopeHead:
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
    return EnvelopeHead(version, key_id, source, destination)


_read_head = lru_cache(maxsize=256)(_head_of)


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
        self._key = keys.send_key
        self._binary = binary
        self._second, self._until_second = -1, b""
        if binary:
            # Up to the time.
            fields = version, key_id, source_did, destination_did
            names = b"".join([_counted(one.encode()) for one in fields])
            self._head = _MARK + _counted(names)
            return
        # Up to the text of the time, and from behind the message id to the iv.
        before = f'{{"version":{_quoted(version)},"type":"message","timestamp":"'
        between = (
            f',"sourceDid":{_quoted(source_did)},'
            f'"destinationDid":{_quoted(destination_did)},'
            f'"secretKeyId":{_quoted(key_id)},"encryptedData":{{"iv":"'
        )
        self._before, self._between = before.encode(), between.encode()

    def write(
        self, plaintext: bytes, *, message_id: str, iv: bytes, unix_ns: int
    ) -> bytes:
        """Return a message that carries `plaintext`; see `is_binary`.

        Args:
            iv: 12 bytes that this key never had before.
            unix_ns: The time in nanoseconds since 1970.

        Raises:
            LocalError: The iv does not have 12 bytes.
        """
        if len(iv) != IV_SIZE:
            raise LocalError(f"an iv of {len(iv)} bytes, expected {IV_SIZE}")
        if self._binary:
            start = self._binary_start(message_id, unix_ns)
            return b"".join((start, iv, self._cipher.encrypt(iv, plaintext, start)))
        sealed = self._cipher.encrypt(iv, plaintext, None)
        return b"".join(
            (
                *self._before_tag(message_id, iv, unix_ns),
                b2a_base64(sealed[-TAG_SIZE:], newline=False),
                _BEFORE_CIPHERTEXT,
                b64encode(_part(sealed, 0, -TAG_SIZE)),
                _END,
            )
        )

    def _before_tag(
        self, message_id: str, iv: bytes, unix_ns: int
    ) -> tuple[bytes, ...]:
        """Return the parts of a JSON message that stand before its tag."""
        second, milliseconds = divmod(unix_ns // 1_000_000, 1000)
        if second != self._second:
            # A busy link writes many messages in one second.
            self._second = second
            self._until_second = self._before + second_text(second).encode()
        return (
            b'%b.%03dZ","messageId":' % (self._until_second, milliseconds),
            _quoted(message_id).encode(),
            self._between,
            b2a_base64(iv, newline=False),
            b'","tag":"',
        )

    def write_long(
        self, header: bytes, data: bytes, *, message_id: str, iv: bytes, unix_ns: int
    ) -> bytes:
        """Return what `write` returns for `header + data`.

        A long message is encrypted in its own memory: otherwise the data would be there
        three more times, with its header, encrypted, and behind all that goes before.
        """
        if len(iv) != IV_SIZE:
            raise LocalError(f"an iv of {len(iv)} bytes, expected {IV_SIZE}")
        if not self._binary:
            return self._long_json(header, data, message_id, iv, unix_ns)
        start = self._binary_start(message_id, unix_ns)
        made = BytesIO(b"".join((start, iv, header, data, bytes(TAG_SIZE))))
        with made.getbuffer() as view, view[len(start) + IV_SIZE :] as sealed:
            # GCM may write over its input: each block is read before.
            self._cipher.encrypt_into(iv, sealed[:-TAG_SIZE], start, sealed)
        return made.getvalue()

    def _long_json(
        self, header: bytes, data: bytes, message_id: str, iv: bytes, unix_ns: int
    ) -> bytes:
        """Encrypt and encode piece by piece, while a piece is in the processor."""
        start = b"".join(self._before_tag(message_id, iv, unix_ns))
        before = len(start) + _TAG_TEXT + len(_BEFORE_CIPHERTEXT)
        size = before + 4 * -(-(len(header) + len(data)) // 3) + len(_END)
        made, piece = BytesIO(bytes(size)), memoryview(bytearray(_PIECE + _BLOCK))
        encryptor = Cipher(AES128(self._key), GCM(iv)).encryptor()
        made.seek(before)
        view, first = memoryview(data), _PIECE - len(header)
        sealed = encryptor.update_into(header + view[:first], piece)
        made.write(b64encode(piece[:sealed]))
        for at in range(first, len(data), _PIECE):
            sealed = encryptor.update_into(view[at : at + _PIECE], piece)
            made.write(b64encode(piece[:sealed]))
        encryptor.finalize()
        made.write(_END)
        made.seek(0)
        tag = b2a_base64(encryptor.tag, newline=False)
        made.write(b"".join((start, tag, _BEFORE_CIPHERTEXT)))
        return made.getvalue()

    def _binary_start(self, message_id: str, unix_ns: int) -> bytes:
        """Return all of a binary message that stands before its iv."""
        name = message_id.encode()
        return b"".join(
            (self._head, _write_time_and_length(unix_ns // 1_000_000, len(name)), name)
        )


def _part(data: bytes, begin: int, end: int) -> bytes | memoryview:
    """Return a part of `data`; a long one is not copied."""
    return data[begin:end] if len(data) < _LONG else memoryview(data)[begin:end]


_quoted: Final = json.encoder.encode_basestring_ascii
"Returns a text as JSON."
