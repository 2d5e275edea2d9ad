"""Messages said while a hub was away, told to it no faster than it takes them."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from anp.interaction.groups.rate import BURST

FIRST: Final = 0.5
"Share of what may come at once that is said at once: some may have been said before."

SHARE: Final = 0.8
"Share of the allowed pace at which the rest follows."


class Backlog:
    """Operations of ours that wait for their turn, by their numbers, in order."""

    def __init__(self, say: Callable[[Sequence[int]], None]) -> None:
        """Begin without any; `say` says some to the hub."""
        self._say = say
        self._refs: list[int] = []
        self._rate = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, refs: Iterable[int], *, rate: int) -> None:
        """Say all of these, and nothing else before them.

        Args:
            rate: Messages that we may say in a minute; 0 for no limit.
        """
        self.end()
        self._refs, self._rate = sorted(refs), rate
        first = max(1, int(rate * BURST * FIRST)) if rate else len(self._refs)
        self._next(first)

    def takes(self, refs: Iterable[int]) -> bool:
        """Put what is said now behind the rest; False if it may be said at once."""
        if self._refs:
            self._refs += refs
        return bool(self._refs)

    def refused(self, ref: int, *, rate: int) -> None:
        """Say again what came too fast."""
        self._rate = rate
        insort(self._refs, ref)
        self._rest()

    def end(self) -> None:
        """Say nothing more."""
        self._refs.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _next(self, count: int) -> None:
        self._timer = None
        now, self._refs = self._refs[:count], self._refs[count:]
        if self._refs:
            self._rest()
        if now:
            self._say(now)

    def _rest(self) -> None:
        if self._timer is None:
            pace = SHARE * (self._rate or 600) / 60
            count = max(1, int(pace))
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(count / pace, self._next, count)
