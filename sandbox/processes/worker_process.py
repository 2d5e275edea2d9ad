"""One worker as the daemon sees it: its channel, its calls and its end.

The channel is a protocol class and not a stream, so that text which a worker sends
unasked, or after its answer, is detected at once and never buffered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from sandbox.errors import FrameError, SandboxError
from sandbox.frames import frame_length, pack, unpack

CPU_SECONDS = 3600
"CPU seconds of a worker's lifetime; deadlines end a call much earlier."


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a worker, as the kernel reported it to the fork server."""

    status: int
    "Exit status, or minus the number of the signal that ended the worker."

    cpu: float
    "CPU seconds used in its lifetime."

    text: str
    "The beginning of its output on standard error; hostile."

    def error(self, cpu_seconds: int) -> SandboxError:
        """Return the error for the call that the worker was running.

        Args:
            cpu_seconds: The worker's limit of CPU time.
        """
        if self.status >= 0:
            return SandboxError("crashed", f"it ended itself with status {self.status}")
        number = -self.status
        if number == signal.SIGSYS:
            return SandboxError(
                "forbidden_syscall",
                "it asked the kernel for something that a module may not",
            )
        if number == signal.SIGXCPU or (
            number == signal.SIGKILL and self.cpu >= cpu_seconds
        ):
            return SandboxError(
                "timeout",
                f"it used its {cpu_seconds} CPU seconds",
                limit=cpu_seconds,
                used=round(self.cpu, 3),
            )
        if number == signal.SIGKILL:
            return SandboxError(
                "crashed", "SIGKILL from outside, perhaps for lack of memory"
            )
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return SandboxError("crashed", f"it was ended by {name}")


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


logger = logging.getLogger(__name__)

SPAWN_TIMEOUT = 5.0
"Seconds for one fork and its locking."

ENDING_TIMEOUT = 1.0
"Seconds from a channel's end to the report of the cause; usually milliseconds."


class WorkerProcess:
    """One worker: answers one request at a time, until it is killed.

    Args:
        pid: Process id.
        conversation: The daemon's end of its channel.
        max_frame: Largest frame in both directions, in bytes.
        pidfd: Refers to the process; closed with the worker. Opened here by default.
        ending: Receives the fork server's report of the worker's end.
        cpu_seconds: Limit of its CPU time, for the report.
    """

    def __init__(
        self,
        pid: int,
        conversation: Conversation,
        *,
        max_frame: int,
        pidfd: int | None = None,
        ending: asyncio.Future[Ending] | None = None,
        cpu_seconds: int = CPU_SECONDS,
    ) -> None:
        self.pid = pid
        self._conversation = conversation
        conversation.on_fault = self._spoke
        self._max_frame = max_frame
        self._ending = ending
        self._cpu_seconds = cpu_seconds
        if pidfd is None and hasattr(os, "pidfd_open"):
            pidfd = os.pidfd_open(pid)
        self._pidfd = pidfd
        self._turn = asyncio.Lock()
        self._next = 0
        self.calls = 0
        self.why: str | None = None

    @property
    def alive(self) -> bool:
        """True while it accepts requests."""
        return self.why is None

    async def ask(self, request: dict[str, Any], *, deadline: float) -> dict[str, Any]:
        """Send one request and return the reply, as `ask_timed` does."""
        return (await self.ask_timed(request, deadline=deadline))[0]

    async def ask_timed(
        self, request: dict[str, Any], *, deadline: float
    ) -> tuple[dict[str, Any], float]:
        """Send one request; return the reply and the seconds without waiting.

        Args:
            deadline: Seconds for the request, without the wait for its turn.

        Raises:
            SandboxError: `timeout`, `crashed`, `forbidden_syscall` or `bad_frame`; the
                worker has ended then. With `collateral` it ended while this request
                waited. `error` when the request cannot be sent.
        """
        async with self._turn:
            if self.why is not None:
                raise SandboxError("crashed", self.why, collateral=True)
            self._next += 1
            self.calls += 1
            number = self._next
            try:
                frame = pack({**request, "id": number}, max_frame=self._max_frame)
            except FrameError as exc:
                raise SandboxError("error", f"the arguments: {exc}") from exc
            started = time.monotonic()
            try:
                reply = await self._conversation.ask(frame, deadline=deadline)
            except TimeoutError:
                self.kill("its deadline passed")
                raise SandboxError(
                    "timeout", f"no result within {deadline:g} s", limit=deadline
                ) from None
            except FrameError as exc:
                self.kill("it sent no valid frame")
                raise SandboxError("bad_frame", str(exc)) from exc
            except (OSError, EOFError) as exc:
                raise await self._ended() from exc
            except asyncio.CancelledError:
                # Otherwise the next request would receive this one's answer.
                self.kill("its request was cancelled")
                raise
            if reply.get("id") != number:
                self.kill("it answered another request")
                raise SandboxError("bad_frame", "an answer to another request")
            return reply, time.monotonic() - started

    def kill(self, why: str) -> None:
        """End it now; does nothing when it has ended."""
        if self.why is not None:
            return
        self.why = why
        with contextlib.suppress(ProcessLookupError):
            if self._pidfd is None:
                os.kill(self.pid, signal.SIGKILL)
            else:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        if self._pidfd is not None:
            os.close(self._pidfd)
        self._conversation.close()

    def _spoke(self, why: str) -> None:
        if self.alive:
            logger.warning("worker killed pid=%s reason=%r", self.pid, why)
        self.kill(why)

    async def _ended(self) -> SandboxError:
        """Return the reason why the channel ended; afterwards the worker has ended."""
        ending = None
        try:
            # Wait before killing, or the reported end would be that of our signal.
            if self._ending is not None:
                async with asyncio.timeout(ENDING_TIMEOUT):
                    ending = await asyncio.shield(self._ending)
        except TimeoutError:
            # The worker closed its channel but is still running.
            logger.debug("worker without a channel pid=%s", self.pid)
        finally:
            self.kill("it ended")
        if ending is None:
            return SandboxError("crashed", "the worker closed its channel")
        if ending.text:
            logger.warning(
                "worker ended pid=%s status=%s text=%r",
                self.pid,
                ending.status,
                ending.text[:200],
            )
        return ending.error(self._cpu_seconds)

    async def locked(self) -> None:
        """Wait until the worker reports that it is locked.

        Raises:
            SandboxError: `crashed`: locking failed, and the worker has ended.
        """
        try:
            message = await self._conversation.hear(deadline=SPAWN_TIMEOUT)
        except (OSError, EOFError, FrameError) as exc:
            error = await self._ended()
            raise SandboxError(
                "crashed", f"a worker could not be locked: {error.reason}"
            ) from exc
        except BaseException:
            self.kill("nobody waits for it any more")
            raise
        if "locked" not in message:
            self.kill("it did not say that it is locked")
            raise SandboxError("crashed", "a worker did not say that it is locked")
