"""The daemon's end of a worker's channel: one request, one answer.

It is a protocol class and not a stream, so that text which a worker sends unasked, or
after its answer, is detected at once and never buffered.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, cast

from sandbox.errors import FrameError
from sandbox.frames import frame_length, unpack

__all__ = ["Conversation"]

_PREFIX = 4

_SPACE = 32 * 1024
"Bytes of one read."


class Conversation(asyncio.BufferedProtocol):
    """Frames from one worker, which first reports that it is locked.

    Args:
        max_frame: Largest frame from the worker, in bytes.
    """

    def __init__(self, max_frame: int) -> None:
        self._max_frame = max_frame
        self.on_fault: Callable[[str], None] = lambda _: self.close()
        "Called with the reason when the worker sends something unasked."
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        # Our own buffer: a stream would allocate a quarter of a megabyte each time.
        self._space = memoryview(bytearray(_SPACE))
        self._buffer = bytearray()
        self._expected: int | None = None
        self._ended: Exception | None = None
        self._answer: asyncio.Future[bytes] | None = self._loop.create_future()

    @classmethod
    async def over(cls, sock: socket.socket, *, max_frame: int) -> Conversation:
        """Return a conversation over a connected socket, which it closes in the end."""
        _, protocol = await asyncio.get_running_loop().create_connection(
            lambda: cls(max_frame), sock=sock
        )
        return protocol

    async def hear(self, *, deadline: float) -> dict[str, Any]:
        """Return the first message of the worker.

        Raises:
            TimeoutError: Nothing came within `deadline` seconds.
            FrameError: The message is not a frame with an object.
            EOFError, OSError: The channel ended.
        """
        assert self._answer is not None
        timer = self._loop.call_later(deadline, self._late, self._answer)
        try:
            body = await self._answer
        finally:
            timer.cancel()
            self._answer = None
        value = unpack(body)
        if type(value) is not dict:
            raise FrameError("no object")
        return value

    async def ask(self, frame: bytes, *, deadline: float) -> dict[str, Any]:
        """Send a frame and return the answer; raises as `hear` does."""
        if self._ended is not None:
            raise self._ended
        assert self._transport is not None
        self._answer = self._loop.create_future()
        self._transport.write(frame)
        return await self.hear(deadline=deadline)

    def close(self) -> None:
        """Close the channel, and discard data that is not sent yet."""
        if self._transport is not None:
            self._transport.abort()

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.BufferedProtocol`."""
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """See `asyncio.BufferedProtocol`."""
        return self._space

    def buffer_updated(self, nbytes: int) -> None:
        """See `asyncio.BufferedProtocol`."""
        if self._answer is None or self._answer.done():
            self.on_fault("it spoke unasked")
            return
        self._buffer += self._space[:nbytes]
        try:
            body = self._take()
        except FrameError as exc:
            self._fail(self._answer, exc)
        else:
            if body is not None:
                self._answer.set_result(body)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.BufferedProtocol`."""
        self._ended = exc or EOFError("the channel ended")
        if self._answer is not None:
            self._fail(self._answer, self._ended)

    def _take(self) -> bytes | None:
        """Return the frame's body when it is complete, or None."""
        if self._expected is None:
            if len(self._buffer) < _PREFIX:
                return None
            prefix = bytes(self._buffer[:_PREFIX])
            self._expected = _PREFIX + frame_length(prefix, max_frame=self._max_frame)
        if len(self._buffer) < self._expected:
            return None
        if len(self._buffer) > self._expected:
            raise FrameError("more than one answer")
        body = bytes(self._buffer[_PREFIX:])
        self._buffer.clear()
        self._expected = None
        return body

    def _late(self, answer: asyncio.Future[bytes]) -> None:
        self._fail(answer, TimeoutError())

    @staticmethod
    def _fail(answer: asyncio.Future[bytes], error: Exception) -> None:
        if not answer.done():
            answer.set_exception(error)
            # Marks the error as seen: without a waiter it would be logged.
            answer.exception()
