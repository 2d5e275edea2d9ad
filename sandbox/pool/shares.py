"""Fair shares of workers: whose work it is, and in which order it gets its turn. Pure.

The owner's own work comes first, then that of peers whom the owner listed, then that of
all others. Within a rank the share goes first that used the least of late, so that who
asks for much waits behind who asks for little. Every share has a bound on what may wait
for it, and one on the time of long work.
"""

from __future__ import annotations

import math
from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")

NICE: Final = 19
"Priority of workers that all peers may use, the lowest; that of others is 10."

MAX_REMEMBERED: Final = 1_000
"Shares whose use is remembered; those that used the least are dropped first."


class Rank(IntEnum):
    """The order of shares."""

    OWNER = 0
    "The owner's own calls and commands."

    LISTED = 1
    "A peer that the owner allowed."

    COMMON = 2
    "All other peers; they have one common part, divided by address."


class Share(NamedTuple):
    """One user of the workers."""

    rank: Rank

    name: str
    "The DID of a listed peer, or the address of another one."


OWNER: Final = Share(Rank.OWNER, "")

current_share: ContextVar[Share] = ContextVar("current_share", default=OWNER)
"""Whose work is being done. A task that serves a peer sets it; the tasks that it starts
inherit it."""


class TooManyWait(Exception):
    """Too much work of a share waits already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseLimits:
    """Limits of shares; the owner's own share has none."""

    max_waiting: int = 64
    "Pieces of work that wait for one share."

    max_waiting_common: int = 256
    "Pieces of work that wait for all shares of the common rank together."

    listed_turns: int = 3
    "Turns of listed peers in a row, while work of the common rank waits."

    max_used: float = 5.0
    "Seconds of work after which a share gets no more long work for a while."

    refill: float = 0.1
    "Seconds of work that are forgiven in each second."


@dataclass(slots=True)
class _Used:
    """The use of one share, less what was forgiven until `at`."""

    seconds: float = 0.0
    at: float = 0.0


class FairQueue(Generic[T]):
    """Work that waits for a worker. `now` is seconds on one monotonic clock."""

    def __init__(self, limits: UseLimits | None = None) -> None:
        self._limits = limits or UseLimits()
        self._waiting: dict[Share, deque[T]] = {}
        self._listed_turns = 0
        self._used: dict[Share, _Used] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def put(self, share: Share, work: T) -> None:
        """Let `work` wait for its turn.

        Raises:
            TooManyWait: The share, or its rank, has reached its bound.
        """
        waiting = self._waiting.get(share, ())
        common = 0
        if share.rank is Rank.COMMON:
            lines = self._waiting.items()
            common = sum(len(line) for one, line in lines if one.rank is Rank.COMMON)
        if share.rank is not Rank.OWNER and (
            len(waiting) >= self._limits.max_waiting
            or common >= self._limits.max_waiting_common
        ):
            raise TooManyWait
        self._waiting.setdefault(share, deque()).append(work)

    def take(self, *, now: float, common: bool = True) -> T | None:
        """Return the work whose turn it is, or None if none may go.

        Args:
            common: False to leave out the common rank.
        """
        able = [s for s in self._waiting if common or s.rank is not Rank.COMMON]
        if not able:
            return None
        rank = min(share.rank for share in able)
        if rank is Rank.LISTED and any(share.rank is Rank.COMMON for share in able):
            self._listed_turns += 1
            if self._listed_turns > self._limits.listed_turns:
                rank = Rank.COMMON
        if rank is Rank.COMMON:
            self._listed_turns = 0
        # Of those that used equally much the first, which had its turn longest ago.
        share = min(
            (share for share in able if share.rank is rank),
            key=lambda share: self.used(share, now=now),
        )
        line = self._waiting.pop(share)
        work = line.popleft()
        if line:
            self._waiting[share] = line
        return work

    def drop(self, share: Share, work: T) -> None:
        """Forget work that waits no more; does nothing if it had its turn."""
        line = self._waiting.get(share, deque())
        kept = deque(one for one in line if one is not work)
        if kept:
            self._waiting[share] = kept
        else:
            self._waiting.pop(share, None)

    def use(self, share: Share, seconds: float, *, now: float) -> None:
        """Count work of a share that took `seconds`."""
        self._used[share] = _Used(self.used(share, now=now) + seconds, now)
        if len(self._used) > MAX_REMEMBERED:
            least = sorted(self._used, key=lambda one: self.used(one, now=now))
            for one in least[: MAX_REMEMBERED // 10]:
                del self._used[one]

    def used(self, share: Share, *, now: float) -> float:
        """Return the seconds that a share used, less what is forgiven by now."""
        known = self._used.get(share)
        if known is None:
            return 0.0
        return max(0.0, known.seconds - (now - known.at) * self._limits.refill)

    def pause(self, share: Share, *, now: float) -> int:
        """Return the seconds until a share may have long work again; 0 for now."""
        surplus = self.used(share, now=now) - self._limits.max_used
        if share.rank is Rank.OWNER or surplus <= 0:
            return 0
        return math.ceil(surplus / self._limits.refill)
