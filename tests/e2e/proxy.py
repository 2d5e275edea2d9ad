"""A proxy between two daemons that holds one frame, so that a state lasts."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

__all__ = ["CALLER", "PROVIDER", "Hold", "Proxy"]

CALLER = "caller"
PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class Hold:
    """The frame to hold: the `number`-th (from 0) of one side on a connection."""

    side: str
    "Who sends it."

    number: int
    "Its place among the frames of that side."


class Proxy:
    """Forwards WebSocket messages in a thread of its own, and counts them."""

    def __init__(self) -> None:
        self.port = 0
        self.target = ""
        self.held = threading.Event()
        self.counts = {CALLER: 0, PROVIDER: 0}
        self._hold: Hold | None = None
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._open: set[ServerConnection] = set()

    def cut(self) -> None:
        """Close every connection."""
        for connection in list(self._open):
            asyncio.run_coroutine_threadsafe(connection.close(), self._loop)

    def hold(self, hold: Hold | None) -> None:
        """Hold that frame of the next connection, for as long as the connection is."""
        self.held.clear()
        self._hold = hold

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
        async with serve(self._accept, "127.0.0.1", 0, compression=None) as server:
            self.port = next(iter(server.sockets)).getsockname()[1]
            ready.set()
            await self._stop.wait()

    async def _accept(self, near: ServerConnection) -> None:
        try:
            far = await connect(self.target, compression=None, proxy=None)
        except OSError:
            return
        self._open.add(near)
        async with far:
            ways = [
                asyncio.create_task(self._forward(near, far, CALLER)),
                asyncio.create_task(self._forward(far, near, PROVIDER)),
            ]
            # When one leg ends, however it does, the other one ends too.
            ends = [asyncio.create_task(leg.wait_closed()) for leg in (near, far)]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in (*ways, *ends):
                task.cancel()
            await asyncio.gather(*ways, *ends, return_exceptions=True)
            await near.close()
            self._open.discard(near)

    async def _forward(self, source: Connection, target: Connection, side: str) -> None:
        number = 0
        try:
            async for message in source:
                self.counts[side] += 1
                if self._hold == Hold(side, number):
                    self.held.set()
                    await source.wait_closed()
                    return
                number += 1
                await target.send(message)
        except ConnectionClosed:
            return
