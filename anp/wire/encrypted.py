"""The encrypted part of a message: its base64, and the envelope around it.

Every call is at least two envelopes, so what is made for each of them is a named tuple:
that takes half the time of a frozen dataclass.
"""

from __future__ import annotations

import binascii
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from pybase64 import b64decode_as_bytearray, b64encode_as_string
from pydantic import ConfigDict, StrictStr

from anp.errors import ErrorCode, PeerError

IV_SIZE: Final = 12
"Bytes of an iv (WIRE row 26)."

TAG_SIZE: Final = 16
"Bytes of an authentication tag (WIRE row 26)."

_BEFORE_PADDING: Final = bytes(range(256)), b"AEIMQUYcgkosw048", b"AQgw"
"Characters that may stand before no, one and two `=`: their unused bits are 0."


def encode_base64(data: bytes | bytearray | memoryview) -> str:
    """Return standard base64 with padding (WIRE row 26)."""
    return b64encode_as_string(data)


def decode_base64(text: str | bytes | memoryview) -> bytes:
    """Read standard base64 with padding, in its one canonical spelling.

    Raises:
        PeerError: `DECRYPTION_FAILED`: it is anything else.
    """
    return bytes(_decode(text))


def decode_sealed(ciphertext: str | bytes | memoryview, tag: bytes) -> bytearray:
    """Return a ciphertext with its tag behind it; raises as `decode_base64` does."""
    content = _decode(ciphertext)
    # It may be long, and is copied no further.
    content += tag
    return content


def _decode(spelled: str | bytes | memoryview) -> bytearray:
    try:
        if isinstance(spelled, str):
            spelled = spelled.encode("ascii")
        data = b64decode_as_bytearray(spelled, None, True)
    except (binascii.Error, ValueError):
        raise _not_canonical() from None
    padding = -len(data) % 3
    if len(spelled) * 3 != (len(data) + padding) * 4:
        raise _not_canonical()
    # Unused bits before the padding could be anything; one value, one spelling.
    if padding and spelled[-1 - padding] not in _BEFORE_PADDING[padding]:
        raise _not_canonical()
    return data


def _not_canonical() -> PeerError:
    return PeerError(ErrorCode.DECRYPTION_FAILED, "not canonical padded base64")


class OpenData(NamedTuple):
    """`encryptedData` that is decoded."""

    nonce: bytes
    "The iv, 12 bytes."

    content: bytes | bytearray | memoryview
    "The ciphertext with the tag behind it."

    covered: bytes | None = None
    """The data that the tag covers beside the ciphertext: all before the iv of a
    binary envelope."""

    @property
    def iv(self) -> str:
        """The iv in base64."""
        return encode_base64(self.nonce)

    @property
    def tag(self) -> str:
        """The tag in base64."""
        return encode_base64(self.content[-TAG_SIZE:])

    @property
    def ciphertext(self) -> str:
        """The ciphertext in base64."""
        return encode_base64(self.content[:-TAG_SIZE])

    def decode(self) -> tuple[bytes, bytes, bytes]:
        """Return iv, tag and ciphertext."""
        content = self.content
        return self.nonce, bytes(content[-TAG_SIZE:]), bytes(content[:-TAG_SIZE])

    def sealed(self) -> OpenData:
        """Return itself; see `EncryptedData.sealed`."""
        return self


open_data_of: Final = partial(tuple.__new__, OpenData)
"Returns the data of all fields as a tuple, in half the time of `OpenData` itself."


@dataclass(frozen=True, slots=True)
class EncryptedData:
    """`encryptedData` and `verifyData`, base64 as received (WIRE row 26)."""

    __pydantic_config__ = ConfigDict(extra="ignore")

    iv: StrictStr
    "12 bytes."

    tag: StrictStr
    "16 bytes."

    ciphertext: StrictStr
    "As long as the plaintext."

    def decode(self) -> tuple[bytes, bytes, bytes]:
        """Return iv, tag and ciphertext.

        Raises:
            PeerError: `DECRYPTION_FAILED`: bad base64 or a wrong length.
        """
        iv, tag = self._iv_and_tag()
        return iv, tag, decode_base64(self.ciphertext)

    def sealed(self) -> OpenData:
        """Return what a cipher needs; raises as `decode` does."""
        iv, tag = self._iv_and_tag()
        return OpenData(iv, decode_sealed(self.ciphertext, tag))

    def _iv_and_tag(self) -> tuple[bytes, bytes]:
        iv, tag = decode_base64(self.iv), decode_base64(self.tag)
        if len(iv) != IV_SIZE or len(tag) != TAG_SIZE:
            raise PeerError(
                ErrorCode.DECRYPTION_FAILED,
                f"iv of {len(iv)} and tag of {len(tag)} bytes, "
                f"expected {IV_SIZE} and {TAG_SIZE}",
            )
        return iv, tag


class EnvelopeHead(NamedTuple):
    """The part that all envelopes of one channel and direction share.

    Nothing in it is authenticated: it is compared with what belongs to the key.
    """

    version: str | None
    "Version of the message; None is that of its channel."

    secret_key_id: str
    "Names the key."

    source_did: str
    "The sender."

    destination_did: str
    "The receiver."


class Envelope(NamedTuple):
    """One encrypted `message` (WIRE row 26)."""

    head: EnvelopeHead
    "Whose it is."

    message_id: str
    "Names this message; not authenticated."

    encrypted_data: EncryptedData | OpenData
    "The frame, encrypted."

    @property
    def version(self) -> str | None:
        """See `EnvelopeHead`."""
        return self.head.version

    @property
    def secret_key_id(self) -> str:
        """See `EnvelopeHead`."""
        return self.head.secret_key_id

    @property
    def source_did(self) -> str:
        """See `EnvelopeHead`."""
        return self.head.source_did

    @property
    def destination_did(self) -> str:
        """See `EnvelopeHead`."""
        return self.head.destination_did

    @property
    def kind(self) -> str:
        """Its `type` on the wire, as of other messages."""
        return "message"

    @property
    def iv(self) -> bytes:
        """The iv, 12 bytes. Raises PeerError (`DECRYPTION_FAILED`) if it is not."""
        return self.encrypted_data.sealed().nonce


envelope_of: Final = partial(tuple.__new__, Envelope)
"Returns the envelope of all fields as a tuple, in half the time of `Envelope` itself."
