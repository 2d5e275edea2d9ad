"""What happens in the daemon, told to whoever watches: a hub and server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

__all__ = ["Event", "EventHub", "Subscription", "event_stream", "frame_of"]

MAX_WAITING: Final = 1_000
"Events that wait for one watcher; a slower one misses some, and is told so."

MAX_WATCHERS: Final = 64
"Watchers at a time."

HEARTBEAT: Final = 15.0
"Seconds of silence after which a comment shows that the stream is alive."


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened."""

    number: int
    "From 1, without gaps since the daemon started."

    type: str
    "What it is about: `call.started`, `negotiation.turn`, …"

    at: float
    "Seconds since 1970."

    data: dict[str, Any]
    "The rest, as JSON."


class Subscription:
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
        self._watchers: set[Subscription] = set()
        self._closed = False

    @property
    def is_full(self) -> bool:
        """Whether there are as many watchers as there may be."""
        return len(self._watchers) >= MAX_WATCHERS

    def publish(self, event_type: str, data: dict[str, Any]) -> Event:
        """Tell the watchers, and return what they were told."""
        self._number += 1
        event = Event(number=self._number, type=event_type, at=self._clock(), data=data)
        for watcher in self._watchers:
            watcher.put(event)
        return event

    @contextlib.contextmanager
    def subscribe(self) -> Iterator[Subscription]:
        """Watch for a block."""
        watcher = Subscription()
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


def frame_of(event: Event) -> bytes:
    """Return an event as it goes over the wire."""
    text = json.dumps(asdict(event), ensure_ascii=True, separators=(",", ":"))
    return f"id: {event.number}\nevent: {event.type}\ndata: {text}\n\n".encode()


def event_stream(
    events: AsyncIterator[Event], *, heartbeat: float = HEARTBEAT
) -> Response:
    """Return a response that sends events as they come.

    Args:
        heartbeat: Seconds of silence between two comments.
    """
    return StreamingResponse(
        _frames(events, heartbeat),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _frames(
    events: AsyncIterator[Event], heartbeat: float
) -> AsyncIterator[bytes]:
    # At once, so that the watcher knows that it watches.
    yield b": anpd\n\n"
    waiting: asyncio.Future[Event] | None = None
    try:
        while True:
            if waiting is None:
                waiting = asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait({waiting}, timeout=heartbeat)
            if not done:
                yield b": still here\n\n"
                continue
            finished, waiting = waiting, None
            try:
                event = finished.result()
            except StopAsyncIteration:
                return
            yield frame_of(event)
    finally:
        if waiting is not None:
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await waiting
