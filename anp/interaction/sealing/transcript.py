"""The hash over the messages of an epoch in their order.

Every member that was shown the same messages in the same order has the same hashes, so
one message that tells its sender's hash shows whether the hub told both the same.
"""

from __future__ import annotations

import hashlib
from typing import Final

from anp.interaction.sealing.errors import Suspicion
from anp.interaction.sealing.packages import SeenMessages

MAX_REMEMBERED: Final = 1024
"""Newest messages whose hashes are kept in memory, to compare with senders that have
seen fewer. What an older hash would show, the next message of its sender shows."""

TRANSCRIPT_LABEL: Final = b"anpd sealing transcript 1\0"


class Transcript:
    """The messages of one epoch that one member was shown."""

    __slots__ = ("_hashes", "count", "hash")

    def __init__(self, entry: bytes, seen: SeenMessages | None = None) -> None:
        """Begin an epoch, or go on with what was seen before a restart."""
        self.count = seen.count if seen else 0
        start = hashlib.sha256(TRANSCRIPT_LABEL + entry).digest()
        self.hash = seen.hash if seen else start
        self._hashes = {0: start, self.count: self.hash}

    @property
    def seen(self) -> SeenMessages:
        """The messages so far."""
        return SeenMessages(self.count, self.hash)

    def add(self, digest: bytes) -> None:
        """Add the next message by the hash of its body."""
        self.count += 1
        self.hash = hashlib.sha256(self.hash + digest).digest()
        self._hashes[self.count] = self.hash
        self._hashes.pop(self.count - MAX_REMEMBERED, None)

    def compare(self, seen: SeenMessages) -> Suspicion | None:
        """Compare with the messages that another member has seen before."""
        if seen.count > self.count:
            return Suspicion.UNSEEN
        if self._hashes.get(seen.count, seen.hash) != seen.hash:
            return Suspicion.FORK
        return None
