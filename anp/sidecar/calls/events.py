"""Events of the daemon, and the hub that gives each one to every watcher."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

MAX_WAITING: Final = 1_000
"Events that wait for one watcher; a slower one misses some, and is told so."

MAX_WATCHERS: Final = 64
"Watchers at a time."

MORE_FOR_OWNER: Final = 16
"Watchers that the owner may have besides, whatever agents do."


# Not frozen: that would take four times as long to make, and each call makes several.
@dataclass(slots=True, kw_only=True)
class Event:
    """One thing that happened."""

    number: int
    "From 1, without gaps since the daemon started; 0 for a call of an earlier run."

    type: str
    "Its subject: `call.started`, `negotiation.turn`, …"

    at: float
    "Seconds since 1970."

    data: dict[str, Any]
    "The content, as JSON, in which an error stands as the exception itself."


class EventWatcher:
    """One watcher's events, oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[Event] = deque()
        self._woken = asyncio.Event()
        self._closed = False
        self.missed = 0

    def put(self, event: Event) -> None:
        """Keep an event for the watcher; the oldest goes when there are too many."""
        self._waiting.append(event)
        if len(self._waiting) > MAX_WAITING:
            self._waiting.popleft()
            self.missed += 1
        self._woken.set()

    def close(self) -> None:
        """End the stream after what waits."""
        self._closed = True
        self._woken.set()

    async def next(self) -> Event | None:
        """Return the next event, or None at the end."""
        while not self._waiting:
            if self._closed:
                return None
            self._woken.clear()
            await self._woken.wait()
        return self._waiting.popleft()


class EventHub:
    """Gives every event to every watcher; never waits for one."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._number = 0
        self._watchers: set[EventWatcher] = set()
        self._closed = False

    def has_room(self, *, by_owner: bool) -> bool:
        """Tell whether another watcher is let in, for the owner or for an agent."""
        most = MAX_WATCHERS + (MORE_FOR_OWNER if by_owner else 0)
        return len(self._watchers) < most

    @property
    def watched(self) -> bool:
        """True if somebody watches."""
        return bool(self._watchers)

    def publish(self, event_type: str, data: dict[str, Any]) -> Event:
        """Tell the watchers, and return what they were told."""
        self._number += 1
        event = Event(number=self._number, type=event_type, at=self._clock(), data=data)
        for watcher in self._watchers:
            watcher.put(event)
        return event

    @contextlib.contextmanager
    def subscribe(self) -> Iterator[EventWatcher]:
        """Watch for a block."""
        watcher = EventWatcher()
        if self._closed:
            watcher.close()
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    def close(self) -> None:
        """End all streams; the daemon stops."""
        self._closed = True
        for watcher in self._watchers:
            watcher.close()
