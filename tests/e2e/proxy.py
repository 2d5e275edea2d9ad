"""A proxy between two daemons: it counts and keeps what passes, in order.

It can hold one frame, so that a state lasts, and say something in a side's name.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import httpx
from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from anp.wire.encrypted import Envelope
from anp.wire.envelopes import read_envelope

CLOSE_TIMEOUT = 0.5
"""Seconds for the end of a connection; its side may be held up in the thread that waits
for the proxy."""

MAX_SIZE = 32 * 1024 * 1024
"Largest frame that passes, in bytes."

CALLER = "caller"
PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class Hold:
    """The frame to hold: the `number`-th (from 0) of one side on a connection."""

    side: str
    "Who sends it."

    number: int
    "Its place among the frames of that side."


@dataclass(frozen=True, slots=True)
class Seen:
    """A frame that passed."""

    connection: int
    "The number of its connection, from 0."

    side: str
    "Who sent it."

    frame: str | bytes
    "What it was."

    @property
    def envelope(self) -> Envelope | None:
        """What it is if it carries data, as JSON or in the binary form."""
        return read_envelope(self.frame)

    @property
    def type(self) -> str:
        """Its `type`."""
        if self.envelope is not None:
            return "message"
        return str(json.loads(self.frame).get("type"))


def round_trips(seen: Sequence[Seen]) -> int:
    """Return how often the caller had to wait for an answer; dialling is not counted.

    That is how often a frame of the provider follows one of the caller: what one side
    says without waiting is one flight.
    """
    sides = [
        CALLER,
        *(
            frame.side
            for frame in seen
            # It comes with the hello before it, and the caller may already have spoken.
            if (frame.side, frame.type) != (PROVIDER, "finished")
        ),
    ]
    return sum(
        (one, other) == (CALLER, PROVIDER) for one, other in itertools.pairwise(sides)
    )


class Proxy:
    """Forwards WebSocket messages in a thread of its own, and counts them."""

    def __init__(self) -> None:
        self.port = 0
        self.target = ""
        self.held = threading.Event()
        self.counts = {CALLER: 0, PROVIDER: 0}
        self.seen: list[Seen] = []
        self._connections = 0
        self._last: dict[str, Connection] = {}
        self._hold: Hold | None = None
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._open: set[ServerConnection] = set()

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        return self._connections

    def cut(self) -> None:
        """Close every connection."""
        for connection in list(self._open):
            asyncio.run_coroutine_threadsafe(connection.close(), self._loop)

    def hold(self, hold: Hold | None) -> None:
        """Hold that frame of the next connection, for as long as the connection is."""
        self.held.clear()
        self._hold = hold

    def inject(self, side: str, text: str | bytes) -> None:
        """Say something in the name of a side, on the newest connection."""
        to = self._last[PROVIDER if side == CALLER else CALLER]
        asyncio.run_coroutine_threadsafe(to.send(text), self._loop).result(10)

    @contextlib.contextmanager
    def running(self) -> Iterator[Proxy]:
        """Run the proxy for a block."""
        ready = threading.Event()
        thread = threading.Thread(
            target=lambda: self._loop.run_until_complete(self._serve(ready))
        )
        thread.start()
        assert ready.wait(10)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._stop.set)
            thread.join(10)

    async def _serve(self, ready: threading.Event) -> None:
        async with serve(
            self._accept,
            "127.0.0.1",
            0,
            compression=None,
            max_size=MAX_SIZE,
            close_timeout=CLOSE_TIMEOUT,
            process_request=self._get,
        ) as server:
            self.port = next(iter(server.sockets)).getsockname()[1]
            ready.set()
            await self._stop.wait()

    async def _get(
        self, connection: ServerConnection, request: Request
    ) -> Response | None:
        """Pass on a plain GET, which both daemons answer on the same port."""
        if "Upgrade" in request.headers:
            return None
        text = json.dumps({"type": f"GET {request.path}"})
        self.seen.append(Seen(-1, CALLER, text))
        base = self.target.replace("ws", "http", 1).rstrip("/")
        async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
            page = await client.get(base + request.path)
        self.seen.append(Seen(-1, PROVIDER, json.dumps({"type": "page"})))
        return Response(
            page.status_code,
            page.reason_phrase,
            Headers(
                {
                    "Content-Type": page.headers.get("content-type", "text/plain"),
                    "Content-Length": str(len(page.content)),
                    "Connection": "close",
                }
            ),
            page.content,
        )

    async def _accept(self, near: ServerConnection) -> None:
        try:
            far = await connect(
                self.target,
                compression=None,
                proxy=None,
                max_size=MAX_SIZE,
                close_timeout=CLOSE_TIMEOUT,
            )
        except OSError:
            return
        self._open.add(near)
        number = self._connections
        self._connections += 1
        self._last = {CALLER: near, PROVIDER: far}
        async with far:
            ways = [
                asyncio.create_task(self._forward(near, far, CALLER, number)),
                asyncio.create_task(self._forward(far, near, PROVIDER, number)),
            ]
            # When one leg ends, however it does, the other one ends too.
            ends = [asyncio.create_task(leg.wait_closed()) for leg in (near, far)]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in (*ways, *ends):
                task.cancel()
            await asyncio.gather(*ways, *ends, return_exceptions=True)
            await near.close()
            self._open.discard(near)

    async def _forward(
        self, source: Connection, target: Connection, side: str, connection: int
    ) -> None:
        number = 0
        try:
            async for message in source:
                self.counts[side] += 1
                self.seen.append(Seen(connection, side, message))
                if self._hold == Hold(side, number):
                    self.held.set()
                    await source.wait_closed()
                    return
                number += 1
                await target.send(message)
        except ConnectionClosed:
            return
