"""Events of the daemon as server-sent events over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from anp.sidecar.api.answers import fields_of
from anp.sidecar.api.problems import problem_of
from anp.sidecar.api.table import Media
from anp.sidecar.calls.events import Event
from jsonic.exact_numbers import write_json

EVENT_STREAM: Final = Media(
    text="Server-sent events; the data of each is a JSON object with `number`, "
    "`type`, `at` and `data`.",
    media_type="text/event-stream",
)
"A stream of events in the table of operations."

HEARTBEAT: Final = 15.0
"Seconds of silence after which a comment shows that the stream is alive."


def frame_of(event: Event) -> bytes:
    """Return the bytes of an event in a stream."""
    text = write_json(
        event, ensure_ascii=True, separators=(",", ":"), default=_jsonable
    )
    return f"id: {event.number}\nevent: {event.type}\ndata: {text}\n\n".encode()


def _jsonable(value: Any) -> dict[str, Any]:
    return fields_of(problem_of(value) if isinstance(value, Exception) else value)


def event_stream(
    events: AsyncGenerator[Event | Sequence[Event], None],
    *,
    heartbeat: float = HEARTBEAT,
) -> Response:
    """Return a response that sends events as they come.

    Args:
        events: One by one, or several that go out at once.
        heartbeat: Seconds of silence between two comments.
    """
    return StreamingResponse(
        _frames(events, heartbeat),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _frames(
    events: AsyncGenerator[Event | Sequence[Event], None], heartbeat: float
) -> AsyncIterator[bytes]:
    # At once, so that the watcher knows that it watches.
    yield b": anpd\n\n"
    waiting: asyncio.Future[Event | Sequence[Event]] | None = None
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
            if isinstance(event, Event):
                yield frame_of(event)
            else:
                yield b"".join(map(frame_of, event))
    finally:
        if waiting is not None:
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await waiting
        await events.aclose()
