"""The order and the pace of what strangers give us to do. Pure.

Everything that a stranger sends costs time of the one event loop that also carries the
calls of listed peers. So strangers have a part of that time, and within it the address
that had least of late has the next turn (DESIGN.md, Trust). Places that it holds count
as if it had had time for them: who keeps many connections waits for who comes with one.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

# Amounts by key that are forgotten in the course of time. Pure.


MAX_KEYS = 4096
"Keys that are remembered; the amounts of the others are the oldest."


class Memory:
    """Remembers what each key has had, of which half is forgotten after some time.

    Args:
        half_life: Seconds after which an amount counts for half as much.
    """

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        self._had: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def add(self, key: str, amount: float, *, now: float) -> None:
        """Count an amount for a key."""
        self._had[key] = self.of(key, now=now) + amount, now
        self._had.move_to_end(key)
        while len(self._had) > MAX_KEYS:
            self._had.popitem(last=False)

    def of(self, key: str, *, now: float) -> float:
        """Return what is remembered of a key; 0.0 if nothing is."""
        had, at = self._had.get(key, (0.0, now))
        return float(had * 0.5 ** ((now - at) / self._half_life))


T = TypeVar("T")

SHARE = 1 / 3
"Part of the time that strangers may have together, from 0 to 1."

BURST = 0.02
"Seconds of work at once, after a while without any."

HALF_LIFE = 2.0
"Seconds after which what an address has had counts for half as much."

MOST_WAIT = 0.5
"Seconds that a turn waits at most, also after much work at once."


PLACE = 0.01
"Seconds of work that a place held by an address counts for in the order."

MOST_PLACES = 8
"Places that count at most, so that many users of one address have turns, too."


class Turns(Generic[T]):
    """Keeps what waits, by address, and says what is next and when.

    Add what is to be done, and ask `wait` and `take` until nothing is left; after each
    piece of work tell `spent`.

    Args:
        places: Returns how many places an address holds.
    """

    def __init__(self, places: Callable[[str], int] = lambda _: 0) -> None:
        self._places = places
        self._waiting: dict[str, deque[T]] = {}
        self._had = Memory(HALF_LIFE)
        self._free_at = float("-inf")

    def add(self, key: str, work: T) -> None:
        """Take in what an address wants done."""
        self._waiting.setdefault(key, deque()).append(work)

    def wait(self, *, now: float) -> float | None:
        """Return the seconds until the next turn, or None if nothing waits."""
        return max(0.0, self._free_at - now) if self._waiting else None

    def free(self, *, now: float) -> bool:
        """Return True if somebody could have a turn at once."""
        return not self._waiting and now >= self._free_at

    def take(self, *, now: float) -> tuple[str, T]:
        """Return what is next, and the address; look at `wait` before."""

        def has(key: str) -> float:
            places = min(self._places(key), MOST_PLACES)
            return self._had.of(key, now=now) + places * PLACE

        key = min(self._waiting, key=has)
        queue = self._waiting[key]
        work = queue.popleft()
        if not queue:
            del self._waiting[key]
        return key, work

    def spent(self, key: str, seconds: float, *, now: float) -> None:
        """Count the time that an address has had."""
        since = max(self._free_at, now - BURST / SHARE)
        self._free_at = min(since + seconds / SHARE, now + MOST_WAIT)
        self.had(key, seconds, now=now)

    def had(self, key: str, seconds: float, *, now: float) -> None:
        """Count time for the order alone; nobody waits for it."""
        self._had.add(key, seconds, now=now)
