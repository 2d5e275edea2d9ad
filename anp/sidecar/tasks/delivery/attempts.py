"""Attempts to bring news to an address that may be away: how often, and how long.

The news themselves are in the logs of their sessions. An attempt that fails is made
again after 1 s to 5 min, for a day; then they are a dead letter, which the owner sees.
A peer that has no room is given nothing new for a while: see `Pauses`.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

FIRST_WAIT = 1.0
"Seconds before an address that could not be reached is tried again; then it doubles."

MOST_WAIT = 300.0
"The longest such wait, in seconds."

MOST_PAUSE = 60.0
"The longest pause to which the ones before have doubled, in seconds."

MOST_TOLD = 3_600.0
"The longest pause that a peer's own words bring about, in seconds."

MAX_PAUSES = 1_000
"Peers whose pauses are remembered."

LIFETIME = 86_400.0
"Seconds for which news are brought; then they are a dead letter."


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """The news of one session that wait for its requester."""

    session: str
    "Our own id of the session."

    peer: str
    "The requester's DID, or the id of a caller of the A2A face."

    address: str
    "Where it wants them."

    waiting: int
    "Events that it has not acknowledged."

    since: float
    "When the oldest of them came, in seconds since 1970."

    attempts: int
    "Attempts to reach it since the daemon started, or since it was last reached."

    problem: str
    "The reason why the last attempt failed; empty before the first."

    dead: bool
    "True when nobody tries any more."


class Letters(Protocol):
    """Somebody who brings news, as the owner sees it."""

    async def letters(self) -> Sequence[Letter]:
        """Return what waits."""

    def retry(self) -> None:
        """Have dead letters tried for another day."""


@dataclass(slots=True)
class Attempts:
    """The attempts to reach one address."""

    count: int = 0
    problem: str = ""

    since: float = 0.0
    "When the owner wanted them again, in seconds since 1970."

    _failed: int = 0

    def begin(self) -> None:
        """Wait as little as after a first failure."""
        self._failed = 0

    def again(self) -> None:
        """Give what waits another day."""
        self.since = time.time()
        self.begin()

    def failed(self, problem: str) -> float:
        """Take note of a failure; return the seconds to wait."""
        self.count += 1
        self.problem = problem[:300]
        # Bounded, since a power of two outgrows every float.
        wait = FIRST_WAIT * float(1 << min(self._failed, 30))
        self._failed += 1
        return min(wait, MOST_WAIT) * random.uniform(0.8, 1.2)

    def reached(self) -> None:
        """Take note that the address was reached."""
        self.count, self.problem = 0, ""
        self.begin()

    def is_dead(self, oldest: float) -> bool:
        """Return whether news that came at a time are to be tried no more."""
        return max(oldest, self.since) < time.time() - LIFETIME


class Pauses:
    """The times for which peers that refused too much are given nothing new.

    The first is as long as the peer says, at least `FIRST_WAIT`; the next one, if it
    refuses again soon, is twice as long, up to `MOST_PAUSE`, and never shorter than
    the peer says. Pure; the clock comes in.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._of: dict[str, tuple[float, float]] = {}

    def refused(self, agent: str, seconds: float) -> None:
        """Take note that a peer has no room.

        Args:
            seconds: Time after which it may have some, in its own words.
        """
        now = self._clock()
        until, wait = self._of.pop(agent, (-math.inf, 0.0))
        if until <= now:
            wait = 2 * wait if now - until < MOST_PAUSE else 0.0
        told = min(seconds, MOST_TOLD) if math.isfinite(seconds) else 0.0
        wait = max(min(max(wait, FIRST_WAIT), MOST_PAUSE), told)
        self._of[agent] = max(until, now + wait), wait
        while len(self._of) > MAX_PAUSES:
            del self._of[next(iter(self._of))]

    def left(self, agent: str) -> float:
        """Return the seconds for which a peer is still given nothing new."""
        until, _ = self._of.get(agent, (-math.inf, 0.0))
        return max(0.0, until - self._clock())
