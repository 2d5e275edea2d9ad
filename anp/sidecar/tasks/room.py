"""The room that the logs of sessions have in the store."""

from __future__ import annotations

import asyncio

from anp.interaction.errors import InteractionError, InteractionFault
from anp.sidecar.tasks.sealed_logs import SealedLogs

KEPT_PARTS = 8
"Tenths of the limit that stay when sessions go for their size."

PAGE = 100
"Heads of logs that are read at a time."


class LogRoom:
    """Knows how much is stored, and drops what is old or too much."""

    def __init__(self, store: SealedLogs, max_size: int) -> None:
        """Begin; `measure` looks how much there is.

        Args:
            max_size: Bytes of events after which `check` lets nothing in.
        """
        self._store = store
        self._max_size = max_size
        self._size = 0

    def added(self, size: int) -> None:
        """Count bytes that were stored."""
        self._size += size

    def check(self) -> None:
        """Check that there is room for more.

        Raises:
            InteractionError: There is none.
        """
        if self._size >= self._max_size:
            raise InteractionError(
                InteractionFault.TOO_MANY, "there is no room for more here"
            )

    @property
    def is_nearly_full(self) -> bool:
        """True when the oldest sessions have to go."""
        return self._size >= self._max_size * 9 // 10

    async def measure(self) -> None:
        """Look how much there is in the store."""
        self._size = await asyncio.to_thread(self._measure)

    async def prune(self, *, older_than: float, content_before: float) -> int:
        """Drop what is over an age or the limit; return the number of sessions.

        Args:
            older_than: Seconds since 1970; sessions without open tasks go that were
                changed last before.
            content_before: The same for what was said in them.
        """
        gone = await asyncio.to_thread(
            self._store.prune_logs,
            older_than=older_than,
            max_bytes=self._max_size * KEPT_PARTS // 10,
        )
        await asyncio.to_thread(self._trim, content_before)
        await self.measure()
        return gone

    def _measure(self) -> int:
        size, before = 0, ""
        while page := self._store.logs(before=before, limit=PAGE):
            size += sum(log.size for log in page)
            before = page[-1].id
        return size

    def _trim(self, content_before: float) -> None:
        before = ""
        while page := self._store.logs(before=before, limit=PAGE):
            before = page[-1].id
            for log in page:
                if not log.busy and log.updated < content_before and log.size:
                    self._store.trim_log(log.id, before=log.last + 1)
