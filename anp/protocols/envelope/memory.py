"""Memory of a peer's messages and of the answers to its requests (ENV-Q11)."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum, auto

MAX_IDS = 4096
"Messages of one sender that are remembered."

MAX_ANSWER_BYTES = 1024 * 1024
"Most bytes of answers kept for one sender; the oldest leave first."

SHORT = 40
"Characters of an id that is kept as it is; ours have 36."


class Seen(Enum):
    """The fate of a message."""

    TAKEN = auto()
    "It wanted no answer."

    OPEN = auto()
    "A request that is worked on."

    ANSWERED = auto()
    "A request with its last answer."

    CUT_OFF = auto()
    "A request whose channel ended while it was worked on."


@dataclass(slots=True)
class Matter:
    """One message of the peer."""

    seen: Seen
    "Its fate."

    answer: bytes | None = None
    "The newest answer that was sent, unless it had to make room."

    holder: object = None
    "The side of a channel that works on it."


class MessageMemory:
    """Remembers the newest messages of one sender, over all its channels.

    What is worked on is never forgotten; its count is bounded by whoever works on it.
    """

    def __init__(
        self, *, max_ids: int = MAX_IDS, max_bytes: int = MAX_ANSWER_BYTES
    ) -> None:
        self._max_ids = max_ids
        self._max_bytes = max_bytes
        self._matters: OrderedDict[str | bytes, Matter] = OrderedDict()
        self._kept: OrderedDict[str | bytes, Matter] = OrderedDict()
        "Those with an answer that takes room, so that no others are looked at for it."
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._matters)

    def find(self, message_id: str) -> Matter | None:
        """Return what is known of a message, or None if it is new."""
        return self._matters.get(_key(message_id))

    def take(self, message_id: str) -> None:
        """Remember a message that wants no answer."""
        self._add(message_id, Matter(Seen.TAKEN))

    def open(self, message_id: str, holder: object) -> None:
        """Remember a request that `holder` works on."""
        self._add(message_id, Matter(Seen.OPEN, holder=holder))

    def answered(self, message_id: str, answer: bytes, *, last: bool) -> None:
        """Keep an answer to an open request, to be repeated."""
        key = _key(message_id)
        matter = self._matters.get(key)
        if matter is None or matter.seen is not Seen.OPEN:
            return
        self._bytes += len(answer) - len(matter.answer or b"")
        matter.answer = answer
        if answer:
            self._kept[key] = matter
        if last:
            matter.seen, matter.holder = Seen.ANSWERED, None
            self._matters.move_to_end(key)
            if answer:
                self._kept.move_to_end(key)
        self._trim()

    def end(self, holder: object) -> None:
        """Note that `holder` will finish nothing any more."""
        for matter in self._matters.values():
            if matter.seen is Seen.OPEN and matter.holder is holder:
                matter.seen, matter.holder = Seen.CUT_OFF, None

    def _add(self, message_id: str, matter: Matter) -> None:
        self._matters[_key(message_id)] = matter
        self._trim()

    def _trim(self) -> None:
        """Forget the oldest; an answer goes long before its id."""
        while self._bytes > self._max_bytes:
            self._drop_answer(next(iter(self._kept)))
        if len(self._matters) > self._max_ids:
            for key, one in self._matters.items():
                if one.seen is not Seen.OPEN:
                    if key in self._kept:
                        self._drop_answer(key)
                    del self._matters[key]
                    break

    def _drop_answer(self, key: str | bytes) -> None:
        matter = self._kept.pop(key)
        self._bytes -= len(matter.answer or b"")
        matter.answer = None


def _key(message_id: str) -> str | bytes:
    if len(message_id) <= SHORT and message_id.isascii():
        return message_id
    # Ids are up to 512 bytes of UTF-8, so that short names for them are kept.
    return hashlib.blake2b(message_id.encode("utf-8"), digest_size=16).digest()
