"""Amounts by key that are forgotten in the course of time. Pure."""

from __future__ import annotations

from collections import OrderedDict

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
