"""Protection against messages that are used twice: counters, and memories. Pure.

Hellos are remembered for a minute, and random ivs for the life of a key. The extension
`counter` replaces random ivs: an iv is then four random bytes and an eight-byte counter
(WIRE). The counters of a key come in blocks: whoever keeps a key on disk reserves a
block before it sends with it, and claims a block before it acts on what it received in
it, so that neither a crash nor a second taker of the key can use a counter twice.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from struct import Struct
from typing import Final

from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.messages import SourceHello
from anp.wire.proof import MAX_PROOF_AGE

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
_COUNTER_AT: Final = Struct(">Q").unpack_from
_IV_OF: Final = Struct(f">{SALT_SIZE}sQ").pack
_MASK = (1 << BLOCK) - 1


def counter_of(iv: bytes) -> int:
    """Return the counter in an iv of 12 bytes."""
    counter: int = _COUNTER_AT(iv, SALT_SIZE)[0]
    return counter


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
        self.next = first
        "The counter that comes next."
        self._end = end

    @property
    def needs_block(self) -> bool:
        """True if a block has to be reserved before the next iv."""
        return self._end is not None and self.next >= self._end

    def hold_to_block(self) -> int:
        """Stop at the end of the present block, from now on; return what follows it."""
        self._end = block_end(self.next) + 1
        return self._end

    def free(self) -> None:
        """Use every counter from now on: the key is in no store."""
        self._end = None

    def reserve(self, first: int, end: int) -> None:
        """Use the counters from `first` to before `end`, which are reserved for us."""
        if first < self.next:
            raise LocalError(f"counter {first} was used before, next is {self.next}")
        self.next, self._end = first, end

    def take(self) -> bytes:
        """Return the next iv.

        Raises:
            LocalError: A block has to be reserved first, or the key is used up.
        """
        count = self.next
        if count >= MAX_COUNTER or (self._end is not None and count >= self._end):
            raise LocalError(f"counter {count} is not reserved, or the last one")
        self.next = count + 1
        return _IV_OF(self._salt, count)


class ReplayWindow:
    """Remembers which counters of one key and direction were received.

    Args:
        highest: This counter and every one below it count as received.
    """

    def __init__(self, *, highest: int) -> None:
        self.highest = highest
        "The highest counter received."
        # Bit i is the counter `highest - i`.
        self._seen = _MASK

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
        behind = self.highest - counter
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
        ahead = counter - self.highest
        if ahead <= 0 or counter >= MAX_COUNTER:
            self.check(counter)
        if ahead > 0:
            self._seen = (self._seen << ahead | 1) & _MASK if ahead < BLOCK else 1
            self.highest = counter
        else:
            self._seen |= 1 << -ahead


MAX_HELLOS = 16_384
"Hellos remembered at once, about 6 MB."

MAX_IVS = 2**16
"Ivs remembered for one key, about 7 MB; then the key is used up."

# A proof from the future is accepted until twice its age from now; a second more for
# a wall clock that is being slewed against the one we count by.
_KEEP = 2 * MAX_PROOF_AGE + 1.0


class HelloMemory:
    """Remembers hellos for as long as their proofs could be accepted again.

    One memory serves all links of a daemon. Ask it only about hellos whose signature
    was verified, or anybody could push others out. When it is full the oldest hello is
    forgotten: refusing new ones would let a flood lock everybody out, while a replayed
    hello gives its sender nothing, as only the holder of its ephemeral key can answer
    with `finished`.
    """

    def __init__(self, *, max_hellos: int = MAX_HELLOS) -> None:
        self._max_hellos = max_hellos
        # The digests of each hello, oldest hello first.
        self._hellos: OrderedDict[bytes, tuple[float, tuple[bytes, ...]]] = (
            OrderedDict()
        )
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        """Return how many hellos are remembered."""
        return len(self._hellos)

    def check(self, hello: SourceHello, *, now: float) -> None:
        """Remember a hello that is new.

        Args:
            now: Seconds on one monotonic clock.

        Raises:
            PeerError: `NOT_ALLOWED`: its session id, random or signature came before.
        """
        self._forget(before=now - _KEEP)
        digests = (
            _digest("session", hello.source_did, hello.session_id),
            _digest("random", hello.source_did, hello.random),
            _digest("proof", hello.proof.proof_value.rstrip("=")),
        )
        if not self._seen.isdisjoint(digests):
            raise PeerError(ErrorCode.NOT_ALLOWED, "this hello came before")
        if len(self._hellos) >= self._max_hellos:
            self._forget_oldest()
        self._hellos[digests[0]] = (now, digests)
        self._seen.update(digests)

    def _forget(self, *, before: float) -> None:
        while self._hellos and next(iter(self._hellos.values()))[0] < before:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        _, (_, digests) = self._hellos.popitem(last=False)
        self._seen.difference_update(digests)


class IvMemory:
    """Remembers the ivs one key has received (WIRE row 26).

    Args:
        seen: Ivs used before the first envelope: that of the peer's `finished`.
    """

    def __init__(self, seen: Iterable[bytes] = (), *, max_ivs: int = MAX_IVS) -> None:
        self._max_ivs = max_ivs
        self._seen = set(seen)

    def __len__(self) -> int:
        """Return how many ivs are remembered."""
        return len(self._seen)

    def check(self, iv: bytes) -> None:
        """Remember an iv that is new. Ask only about messages that decrypt.

        Raises:
            PeerError: `NOT_ALLOWED`: it came before. `ENCRYPTION_KEY_EXPIRED`: the
                memory is full, and the key may not be used any more.
        """
        if iv in self._seen:
            raise PeerError(ErrorCode.NOT_ALLOWED, "this iv came before: a replay")
        if len(self._seen) >= self._max_ivs:
            raise PeerError(
                ErrorCode.ENCRYPTION_KEY_EXPIRED,
                f"the key has received {self._max_ivs} messages, its limit",
            )
        self._seen.add(iv)


def _digest(*parts: str) -> bytes:
    # Fixed size whatever the peer sends, and each part's length counts, so that two
    # different pairs never look the same.
    counted = "".join([f"{len(part)}:{part}" for part in parts])
    return hashlib.sha256(counted.encode()).digest()[:16]
