"""Everybody who follows the events of sessions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from typing import Protocol

from anp.interaction.elements import SessionEvent
from anp.sidecar.tasks.sealed_logs import SealedLogs

SHARED_CHECK = 1.0
"Seconds after which a watcher looks for what other daemons stored."


WATCHED = 16
"Events that are in memory for one watcher, who may read slowly or not at all."


class Events(Protocol):
    """Reads a page of the events of a session; see `Sessions.events`."""

    async def __call__(
        self, log: str, *, after: int, limit: int
    ) -> list[SessionEvent]: ...


@dataclass(slots=True, eq=False)
class _Watcher:
    """Somebody who follows a session."""

    changed: asyncio.Event = field(default_factory=asyncio.Event)

    newest: int = 0
    "Number of the newest event that it was told of."


class Watchers:
    """Wakes those who wait for events; nothing is queued for anybody."""

    def __init__(self, store: SealedLogs, events: Events) -> None:
        self._store = store
        self._events = events
        self._waiting: dict[str, set[_Watcher]] = {}
        self._ended = False

    async def watch(self, log: str, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        """Yield the events of a session from a number on, and wait for new ones.

        A watcher that reads slowly holds one page of events and nothing more. It ends
        when the session is deleted or the daemon stops.
        """
        watcher = _Watcher()
        self._waiting.setdefault(log, set()).add(watcher)
        try:
            while not self._ended:
                watcher.changed.clear()
                events = await self._events(log, after=after, limit=WATCHED)
                for event in events:
                    after = event.number
                    yield event
                # As far as we were told of any, there are no more: no need to look.
                if events and not 0 < watcher.newest <= after:
                    continue
                if not events and await asyncio.to_thread(self._store.log, log) is None:
                    return
                # Of the steps of another daemon that shares the store nobody tells.
                patience = SHARED_CHECK if self._store.is_shared else None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(patience):
                        await watcher.changed.wait()
        finally:
            self._leave(log, watcher)

    async def changes(self, logs: Collection[str]) -> AsyncIterator[None]:
        """Yield now, and whenever something was stored in one of some sessions.

        It ends when the daemon stops.
        """
        watcher = _Watcher()
        for log in logs:
            self._waiting.setdefault(log, set()).add(watcher)
        try:
            while not self._ended:
                watcher.changed.clear()
                yield
                patience = SHARED_CHECK if self._store.is_shared else None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(patience):
                        await watcher.changed.wait()
        finally:
            for log in logs:
                self._leave(log, watcher)

    def _leave(self, log: str, watcher: _Watcher) -> None:
        waiting = self._waiting[log]
        waiting.discard(watcher)
        if not waiting:
            del self._waiting[log]

    def tell(self, log: str, newest: int = 0) -> None:
        """Wake the watchers of a session.

        Args:
            newest: Number of its newest event; 0 when that is not known.
        """
        for one in self._waiting.get(log, ()):
            one.newest = newest or one.newest
            one.changed.set()

    def end(self) -> None:
        """End all watching, since the daemon stops."""
        self._ended = True
        for log in self._waiting:
            self.tell(log)
