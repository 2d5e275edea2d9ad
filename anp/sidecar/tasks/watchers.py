"""Everybody who follows the events of sessions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from typing import Protocol

from anp.interaction.elements import SessionEvent
from anp.sidecar.tasks.sealed_logs import SealedLogs

__all__ = ["Watchers"]

SHARED_CHECK = 1.0
"Seconds after which a watcher looks for what other daemons stored."


WATCHED = 16
"Events that are in memory for one watcher, who may read slowly or not at all."


class Events(Protocol):
    """Reads a page of the events of a session; see `Sessions.events`."""

    async def __call__(
        self, log: str, *, after: int, limit: int
    ) -> list[SessionEvent]: ...


class Watchers:
    """Wakes those who wait for events; nothing is queued for anybody."""

    def __init__(self, store: SealedLogs, events: Events) -> None:
        self._store = store
        self._events = events
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._ended = False

    async def watch(self, log: str, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        """Yield the events of a session from a number on, and wait for new ones.

        A watcher that reads slowly holds one page of events and nothing more. It ends
        when the session is deleted or the daemon stops.
        """
        changed = asyncio.Event()
        self._waiting.setdefault(log, set()).add(changed)
        try:
            while not self._ended:
                changed.clear()
                events = await self._events(log, after=after, limit=WATCHED)
                for event in events:
                    after = event.number
                    yield event
                if not events:
                    if await asyncio.to_thread(self._store.log, log) is None:
                        return
                    # Of the steps of another daemon that shares the store nobody tells.
                    patience = SHARED_CHECK if self._store.is_shared else None
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(patience):
                            await changed.wait()
        finally:
            self._leave(log, changed)

    async def changes(self, logs: Collection[str]) -> AsyncIterator[None]:
        """Yield now, and whenever something was stored in one of some sessions.

        It ends when the daemon stops.
        """
        changed = asyncio.Event()
        for log in logs:
            self._waiting.setdefault(log, set()).add(changed)
        try:
            while not self._ended:
                changed.clear()
                yield
                patience = SHARED_CHECK if self._store.is_shared else None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(patience):
                        await changed.wait()
        finally:
            for log in logs:
                self._leave(log, changed)

    def _leave(self, log: str, changed: asyncio.Event) -> None:
        waiting = self._waiting[log]
        waiting.discard(changed)
        if not waiting:
            del self._waiting[log]

    def tell(self, log: str) -> None:
        """Wake the watchers of a session."""
        for one in self._waiting.get(log, ()):
            one.set()

    def end(self) -> None:
        """End all watching, since the daemon stops."""
        self._ended = True
        for log in self._waiting:
            self.tell(log)
