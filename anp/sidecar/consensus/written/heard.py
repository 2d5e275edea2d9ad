"""Keeps unasked messages of peers: events, notices, announcements.

The newest are kept in memory for the owner and for programs that ask the local API;
each leaves a line in the log.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from cache.records.records import Count
from negotiation.consensus.written import (
    PeerAnnouncement,
    PeerEvent,
    PeerMessage,
    PeerNotice,
    PeerSaid,
    PeerWithdrawal,
)
from negotiation.errors import JsonError
from negotiation.strict_json import canonical_json

logger = logging.getLogger(__name__)

MAX_KEPT = 256
"Entries that are kept; the oldest leave."

MAX_KEPT_BYTES = 1024 * 1024
"Most bytes of data kept for all of them."

MAX_ENTRY = 64 * 1024
"Data of one entry that is kept whole, in bytes of JSON; more is left out."


HeardKind = Literal["event", "notice", "message", "announcement", "withdrawal"]
"The form in which a peer said something."


@dataclass(frozen=True, slots=True)
class HeardEntry:
    """One thing that a peer said."""

    number: Count
    "Counted from 1 since the daemon started, for asking what is new."

    at: float
    "Time when it came, in seconds since the epoch."

    peer_did: str
    "The peer that said it, in the canonical form."

    uri: str
    "URI of the protocol."

    kind: HeardKind

    name: str
    "The event's name, the notice's code or the message's type; else empty."

    data: Any
    "The content; None when it was too large to be kept."

    size: Count
    "Bytes of the content as JSON."


class Heard:
    """Keeps the newest entries; `said` fits `WrittenParts.said`."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._entries: deque[HeardEntry] = deque()
        self._bytes = 0
        self._count = 0
        self.watch: Callable[[HeardEntry], object] = lambda entry: None
        "Is told of each new entry."

    def said(self, peer_did: str, uri: str, said: PeerSaid) -> None:
        """Keep one message."""
        kind, name, data = _parts(said)
        try:
            size = len(canonical_json(data))
        except JsonError:
            size = MAX_ENTRY + 1
        kept = data if size <= MAX_ENTRY else None
        self._count += 1
        entry = HeardEntry(
            self._count, self._clock(), peer_did, uri, kind, name, kept, size
        )
        self._entries.append(entry)
        self.watch(entry)
        self._bytes += _kept_bytes(entry)
        while len(self._entries) > MAX_KEPT or self._bytes > MAX_KEPT_BYTES:
            self._bytes -= _kept_bytes(self._entries.popleft())
        logger.info(
            "peer said peer=%s kind=%s name=%r bytes=%d",
            peer_did,
            kind,
            name[:200],
            size,
        )

    def entries(self, *, after: int = 0) -> list[HeardEntry]:
        """Return the entries with a number above `after`, oldest first."""
        return [entry for entry in self._entries if entry.number > after]


def _parts(said: PeerSaid) -> tuple[HeardKind, str, Any]:
    match said:
        case PeerEvent(name, data):
            return "event", name, data
        case PeerNotice(code, message, details):
            return "notice", code, {"message": message, "details": details}
        case PeerMessage(message_type, payload):
            return "message", message_type, payload
        case PeerAnnouncement(capabilities):
            return "announcement", "", {"capabilities": [*capabilities]}
        case PeerWithdrawal():
            return "withdrawal", "", {}


def _kept_bytes(entry: HeardEntry) -> int:
    # Names are short, but many of them are not nothing.
    return len(entry.name) + (entry.size if entry.data is not None else 0)
