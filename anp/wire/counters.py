"""Counters as ivs: what the extension `counter` puts in place of random ones. Pure.

An iv is four random bytes and an eight-byte counter (WIRE). The counters of a key come
in blocks: whoever keeps a key on disk reserves a block before it sends with it, and
claims a block before it acts on what it received in it, so that neither a crash nor a
second taker of the key can use or accept a counter twice.
"""

from __future__ import annotations

from anp.errors import ErrorCode, LocalError, PeerError

__all__ = [
    "BLOCK",
    "EXTENSION_COUNTER",
    "MAX_COUNTER",
    "SALT_SIZE",
    "ReplayWindow",
    "SendCounter",
    "block_end",
    "counter_of",
    "first_iv",
]

EXTENSION_COUNTER = "counter"
"Name of the extension."

BLOCK = 1024
"Counters in a block, and in the window of a receiver (WIRE)."

MAX_COUNTER = 2**20 + 2**16
"""Counter from which a key is used up, skipped ones counted; a requester renews at
2^20, and what is between is for calls in flight."""

SALT_SIZE = 4
"Random bytes in front of the counter."

_COUNTER_SIZE = 8
_MASK = (1 << BLOCK) - 1


def counter_of(iv: bytes) -> int:
    """Return the counter in an iv of 12 bytes."""
    return int.from_bytes(iv[SALT_SIZE:], "big")


def first_iv(salt: bytes) -> bytes:
    """Return the iv of `finished`, the first message of each side: counter 0."""
    return salt + bytes(_COUNTER_SIZE)


def block_end(counter: int) -> int:
    """Return the last counter of the block that `counter` is in."""
    return counter | (BLOCK - 1)


class SendCounter:
    """Gives the ivs of one key and direction, each once.

    Args:
        salt: Four random bytes, new whenever a key is taken up again: should a store
            be set back to an older state, its counters meet other ivs.
        first: The first counter to use.
        end: The first counter that may not be used before `reserve`, or None when the
            key is in no store and every counter is free.
    """

    def __init__(self, salt: bytes, *, first: int, end: int | None = None) -> None:
        if len(salt) != SALT_SIZE:
            raise LocalError(f"a salt of {len(salt)} bytes, expected {SALT_SIZE}")
        self._salt = salt
        self._next = first
        self._end = end

    @property
    def next(self) -> int:
        """The counter that comes next."""
        return self._next

    @property
    def needs_block(self) -> bool:
        """Whether a block has to be reserved before the next iv."""
        return self._end is not None and self._next >= self._end

    def hold_to_block(self) -> int:
        """Stop at the end of the present block, from now on; return what follows it."""
        self._end = block_end(self._next) + 1
        return self._end

    def free(self) -> None:
        """Use every counter from now on: the key is in no store."""
        self._end = None

    def reserve(self, first: int, end: int) -> None:
        """Use the counters from `first` to before `end`, which are reserved for us."""
        if first < self._next:
            raise LocalError(f"counter {first} was used before, next is {self._next}")
        self._next, self._end = first, end

    def take(self) -> bytes:
        """Return the next iv.

        Raises:
            LocalError: A block has to be reserved first, or the key is used up.
        """
        if self.needs_block or self._next >= MAX_COUNTER:
            raise LocalError(f"counter {self._next} is not reserved, or the last one")
        iv = self._salt + self._next.to_bytes(_COUNTER_SIZE, "big")
        self._next += 1
        return iv


class ReplayWindow:
    """Remembers which counters of one key and direction were received.

    Args:
        highest: This counter and every one below it count as received.
    """

    def __init__(self, *, highest: int) -> None:
        self._highest = highest
        # Bit i is the counter `highest - i`.
        self._seen = _MASK

    @property
    def highest(self) -> int:
        """The highest counter received."""
        return self._highest

    def check(self, counter: int) -> None:
        """Say whether a counter is new, without remembering it.

        Raises:
            PeerError: `NOT_ALLOWED`: it came before, or is older than the window.
                `ENCRYPTION_KEY_EXPIRED`: the key is used up.
        """
        if counter >= MAX_COUNTER:
            raise PeerError(
                ErrorCode.ENCRYPTION_KEY_EXPIRED,
                f"counter {counter}, the key ends at {MAX_COUNTER}",
            )
        behind = self._highest - counter
        if behind >= BLOCK or (behind >= 0 and self._seen >> behind & 1):
            raise PeerError(
                ErrorCode.NOT_ALLOWED,
                f"counter {counter} came before or is too old: a replay",
            )

    def add(self, counter: int) -> None:
        """Remember a counter that is new. Add only those of messages that decrypt.

        Raises:
            PeerError: See `check`.
        """
        self.check(counter)
        ahead = counter - self._highest
        if ahead > 0:
            self._seen = (self._seen << ahead | 1) & _MASK if ahead < BLOCK else 1
            self._highest = counter
        else:
            self._seen |= 1 << -ahead
