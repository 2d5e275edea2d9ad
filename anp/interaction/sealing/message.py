"""The bytes of a sealed message: header, ciphertext and signature."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from anp.interaction.sealing.encoding import SIGNATURE_SIZE, invalid
from anp.interaction.sealing.packages import SeenMessages
from anp.interaction.sealing.ratchet import TAG_SIZE

VERSION: Final = 1
MESSAGE_LABEL: Final = b"anpd sealing message 1\0"
"Stands before what is signed of a message."

_HEADER: Final = struct.Struct(">B32sHQQQ32s")

OVERHEAD: Final = _HEADER.size + TAG_SIZE + SIGNATURE_SIZE
"Bytes by which a sealed message is longer than its content."


@dataclass(frozen=True, slots=True)
class MessageHeader:
    """The part of a message that the hub may read; it is authenticated, too."""

    entry: bytes
    "Hash of the entry that began the epoch; names group, epoch and members."

    sender: int
    "Place of the sender among the members of the epoch, sorted by DID, from 0."

    counter: int
    "Counts the sender's messages of the epoch from 1; never used twice."

    previous: int
    """Counter of its message before this one, 0 if there was none. Counters between
    the two belong to messages that the hub refused."""

    seen: SeenMessages
    "The messages of the epoch that the sender had seen, its own included."

    def encode(self) -> bytes:
        """Return the header as 91 bytes."""
        return _HEADER.pack(
            VERSION,
            self.entry,
            self.sender,
            self.counter,
            self.previous,
            self.seen.count,
            self.seen.hash,
        )


class SealedBytes:
    """A sealed message, taken apart and not yet checked."""

    __slots__ = ("_data", "content", "header", "header_bytes", "signature")

    def __init__(self, data: bytes) -> None:
        """Take a message apart; SealingError INVALID if it is none."""
        if len(data) < OVERHEAD or data[0] != VERSION:
            raise invalid("it is no sealed message of this version")
        self._data = data
        self.header_bytes = data[: _HEADER.size]
        _, entry, sender, counter, previous, count, seen = _HEADER.unpack(
            self.header_bytes
        )
        if not previous < counter:
            raise invalid("the counter of a sealed message does not grow")
        self.header = MessageHeader(
            entry, sender, counter, previous, SeenMessages(count, seen)
        )
        self.content = data[_HEADER.size : -SIGNATURE_SIZE]
        self.signature = data[-SIGNATURE_SIZE:]

    @property
    def body(self) -> bytes:
        """Everything but the signature, of which ECDSA has several forms."""
        return self._data[:-SIGNATURE_SIZE]
