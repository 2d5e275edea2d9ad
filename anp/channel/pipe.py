"""The WebSocket of one link: what is to be sent waits here, and its end is orderly."""

from __future__ import annotations

import asyncio
import contextlib

from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

__all__ = ["DROP_TIME", "FAREWELL", "Pipe"]

DROP_TIME = 0.5
"Seconds that the other end of a dropped link has to read why."

FAREWELL = "shutting down"
"Said when a link is closed because its daemon stops; others are dialled again."


class Pipe:
    """Sends texts in order, at once or, while the other end is slow, by `write`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._outbox: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self._finished = False
        self._is_due = False

    @property
    def address(self) -> str:
        """The IP address of the other end; empty where there is none."""
        other = self.connection.remote_address
        return str(other[0]) if isinstance(other, tuple) else ""

    @property
    def farewell(self) -> str | None:
        """The reason, in words, of an end by which a daemon stops; None before others.

        What was under way on such a link is not taken up again on another one.
        """
        protocol = self.connection.protocol
        told = protocol.close_rcvd, protocol.close_sent
        if not any(one is not None and one.reason == FAREWELL for one in told):
            return None
        by_peer = protocol.close_rcvd_then_sent
        return "the peer's daemon stopped" if by_peer else "our daemon stops"

    def put(self, text: str | bytes) -> None:
        """Have a text sent; bytes go as a binary message."""
        connection = self.connection
        if (
            connection.paused
            or self._finished
            or connection.protocol.state is not State.OPEN
            or not self._outbox.empty()
        ):
            self._outbox.put_nowait(text)
            return
        # As `Connection.send` does, less the task that would have to wake up for it:
        # nothing waits, so it need not wait either.
        if isinstance(text, bytes):
            connection.protocol.send_binary(text)
        else:
            connection.protocol.send_text(text.encode())
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._send_put)

    def _send_put(self) -> None:
        """Send all that was put in this round of the loop with one write."""
        self._is_due = False
        connection = self.connection
        if connection.protocol.state is State.OPEN:
            connection.transport.write(b"".join(connection.protocol.data_to_send()))
        else:
            connection.send_data()

    def finish(self) -> None:
        """Have `write` return when everything before is sent."""
        self._finished = True
        self._outbox.put_nowait(None)

    async def write(self) -> None:
        """Send what is put, until `finish` or the end of the connection."""
        try:
            while (text := await self._outbox.get()) is not None:
                await self.connection.send(text)
                self._outbox.task_done()
        except ConnectionClosed:
            # The reader sees the same end and tells everybody.
            return

    async def close(self, code: int, reason: str) -> None:
        """Close the connection; `code` is WebSocket's."""
        # The library aborts the transport of a connection that has ended, and on
        # Python 3.11 that raises when its last bytes were written late.
        if self.connection.state is not State.CLOSED:
            await self.connection.close(code, reason)

    async def drop(self, code: int, reason: str) -> None:
        """Close the connection soon, however slowly its other end reads."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DROP_TIME):
                await self._outbox.join()
                await self.close(code, reason)
        if self.connection.state is not State.CLOSED:
            self.connection.transport.abort()

    def allow(self, size: int) -> None:
        """Take messages of up to `size` bytes; the library ends the link above that."""
        self.connection.protocol.max_message_size = size
