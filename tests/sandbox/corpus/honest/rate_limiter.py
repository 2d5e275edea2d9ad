# kind: token bucket, context manager class, time.monotonic
"""Limits how often a peer may ask, with an injectable clock."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Callable

Clock = Callable[[], float]


class RateLimited(Exception):
    def __init__(self, retry_after: float) -> None:
        super().__init__(f"retry after {retry_after:.2f} s")
        self.retry_after = retry_after


@dataclass
class TokenBucket:
    capacity: int
    per_second: float
    clock: Clock = time.monotonic
    tokens: float = field(init=False)
    _updated: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.tokens = float(self.capacity)
        self._updated = self.clock()

    def take(self, count: int = 1) -> float:
        now = self.clock()
        self.tokens = min(self.capacity, self.tokens + (now - self._updated) * self.per_second)
        self._updated = now
        if self.tokens < count:
            raise RateLimited((count - self.tokens) / self.per_second)
        self.tokens -= count
        return self.tokens


class Stopwatch:
    """Measures a block: `with Stopwatch() as watch: ...; watch.elapsed`."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self.elapsed: float | None = None
        self.failed = False

    def __enter__(self) -> Stopwatch:
        self._start = self._clock()
        return self

    def __exit__(self, exc_type, exc, traceback) -> bool:
        self.elapsed = self._clock() - self._start
        self.failed = exc_type is not None
        return exc_type is RateLimited


def simulate(arrivals: list[float], capacity: int, per_second: float) -> list[str]:
    now = 0.0

    def clock() -> float:
        return now

    bucket = TokenBucket(capacity, per_second, clock)
    log = []
    for arrival in arrivals:
        now = arrival
        try:
            left = bucket.take()
        except RateLimited as exc:
            log.append(f"{arrival:g}: wait {exc.retry_after:g}")
        else:
            log.append(f"{arrival:g}: ok, {left:g} left")
    return log


def measured(wanted: int) -> dict:
    ticks = iter(range(100))
    bucket = TokenBucket(2, 1.0, clock=lambda: float(next(ticks)))
    with Stopwatch(lambda: float(next(ticks))) as watch:
        bucket.take(wanted)
    return {"elapsed": watch.elapsed, "limited": watch.failed, "shown": repr(bucket).split(", clock")[0]}


def real_clock_works() -> bool:
    with Stopwatch() as watch:
        total = sum(range(1000))
    return watch.elapsed is not None and watch.elapsed >= 0 and total == 499500 and time.time() > 1.7e9
