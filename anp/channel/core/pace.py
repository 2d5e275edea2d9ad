"""The pace at which somebody may do something, by address. Pure."""

from __future__ import annotations

from collections import OrderedDict

MAX_KEYS = 4096
"Keys that are remembered; of the others nobody was in a hurry lately."

MAX_WAIT = 10.0
"Longest wait in seconds; who was in a hurry for a day waits no longer afterwards."


class Pace:
    """Lets each key act so often in a second, and somewhat more often for a while.

    Args:
        rate: Times in a second.
        burst: Times at once, after a while without any.
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._spent: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, *, now: float) -> bool:
        """Count one time, if it may be now; say if it may."""
        return self.turn(key, now=now, longest=0.0) is not None

    def turn(self, key: str, *, now: float, longest: float) -> float | None:
        """Count one time, if it may be soon; return the seconds until then.

        Args:
            longest: Seconds that it may have to wait; None is returned for more.
        """
        spent = self._spent_by(key, now) + 1
        wait = max(0.0, (spent - self._burst) / self._rate)
        if wait > longest:
            return None
        self._keep(key, spent, now)
        return wait

    def reserve(self, key: str, *, now: float) -> float:
        """Count one time, and return the seconds until that may be."""
        wait = self.turn(key, now=now, longest=MAX_WAIT)
        return MAX_WAIT if wait is None else wait

    def _spent_by(self, key: str, now: float) -> float:
        spent, at = self._spent.get(key, (0.0, now))
        return max(0.0, spent - (now - at) * self._rate)

    def _keep(self, key: str, spent: float, now: float) -> None:
        self._spent[key] = spent, now
        self._spent.move_to_end(key)
        while len(self._spent) > MAX_KEYS:
            self._spent.popitem(last=False)
