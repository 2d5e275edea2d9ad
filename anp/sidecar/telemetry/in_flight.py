"""What runs now and has to end before the daemon does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

__all__ = ["Flights"]


class Flights:
    """Counts the work that a graceful stop waits for."""

    def __init__(self) -> None:
        self._count = 0
        self._landed = asyncio.Event()
        self.closed = False
        "Whether the daemon stops: nothing new is begun."

    @property
    def count(self) -> int:
        """How much runs now."""
        return self._count

    @contextlib.contextmanager
    def flight(self) -> Iterator[None]:
        """Count a piece of work for a block; begun work always goes on."""
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
            self._landed.set()

    async def landed(self) -> None:
        """Wait until another piece of work has ended."""
        self._landed.clear()
        await self._landed.wait()
