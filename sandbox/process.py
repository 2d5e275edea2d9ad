"""The daemon's side of the fork server and its workers; everything read is hostile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from sandbox.errors import FrameError, SandboxError
from sandbox.forkserver import CONTROL_FD
from sandbox.frames import frame_length, pack, unpack

__all__ = ["ForkServer", "WorkerProcess"]

logger = logging.getLogger(__name__)

PACKAGES = str(Path(__file__).resolve().parent.parent)
"Where the fork server finds this package; under -I it has to be told."

START_TIMEOUT = 20.0
"Seconds for the fork server to load what it needs."

SPAWN_TIMEOUT = 5.0
"Seconds for one fork."


class WorkerProcess:
    """One worker: answers one request at a time, until it is killed."""

    def __init__(
        self,
        pid: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        max_frame: int,
    ) -> None:
        self.pid = pid
        self._reader = reader
        self._writer = writer
        self._max_frame = max_frame
        self._pidfd = os.pidfd_open(pid)
        self._turn = asyncio.Lock()
        self._next = 0
        self.calls = 0
        self.why: str | None = None

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return self.why is None

    async def ask(self, request: dict[str, Any], *, deadline: float) -> dict[str, Any]:
        """Send one request and return the reply, as `ask_timed` does."""
        return (await self.ask_timed(request, deadline=deadline))[0]

    async def ask_timed(
        self, request: dict[str, Any], *, deadline: float
    ) -> tuple[dict[str, Any], float]:
        """Send one request; return the reply and the seconds without the wait before.

        Args:
            deadline: Seconds it may take, without the wait for its turn.

        Raises:
            SandboxError: `timeout`, `crashed` or `bad_frame`; the worker is gone then.
                With `collateral` it ended while this request waited.
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
            loop = asyncio.get_running_loop()
            started = loop.time()
            try:
                async with asyncio.timeout(deadline):
                    self._writer.write(frame)
                    await self._writer.drain()
                    reply = await self._read()
            except TimeoutError:
                self.kill("its deadline passed")
                raise SandboxError(
                    "timeout", f"no result within {deadline:g} s", limit=deadline
                ) from None
            except FrameError as exc:
                self.kill("it sent no valid frame")
                raise SandboxError("bad_frame", str(exc)) from exc
            except (OSError, EOFError) as exc:
                self.kill("it ended")
                raise SandboxError("crashed", "the worker ended") from exc
            except asyncio.CancelledError:
                # Its answer would meet the next request.
                self.kill("its request was cancelled")
                raise
            if reply.get("id") != number:
                self.kill("it answered another request")
                raise SandboxError("bad_frame", "an answer to nothing")
            return reply, loop.time() - started

    def kill(self, why: str) -> None:
        """End it now; harmless when it has ended."""
        if self.why is not None:
            return
        self.why = why
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        os.close(self._pidfd)
        self._writer.close()

    async def _read(self) -> dict[str, Any]:
        prefix = await self._reader.readexactly(4)
        length = frame_length(prefix, max_frame=self._max_frame)
        reply = unpack(await self._reader.readexactly(length))
        if type(reply) is not dict:
            raise FrameError("no object")
        return reply


class ForkServer:
    """A process that forks workers; started again when it died."""

    def __init__(self, kind: str, *, memory: int, max_frame: int) -> None:
        self._kind = kind
        self._memory = memory
        self._max_frame = max_frame
        self._process: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._spawning: dict[int, asyncio.Future[int]] = {}
        self._starting = asyncio.Lock()
        self._next = 0
        self._closed = False

    async def start(self) -> None:
        """Start the process and wait until it is ready; SandboxError if it is not."""
        self._closed = False
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        # -I keeps the environment and the current folder out of its path.
        code = (
            f"import sys; sys.path.insert(0, {PACKAGES!r}); import os; "
            f"fd = {theirs.fileno()}; os.dup2(fd, {CONTROL_FD}); "
            f"fd == {CONTROL_FD} or os.close(fd); "
            "from sandbox.forkserver import main; "
            f"main({self._kind!r})"
        )
        self._ready = loop.create_future()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-c",
            code,
            pass_fds=(theirs.fileno(),),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            env={"LANG": "C.UTF-8"},
            start_new_session=True,
        )
        theirs.close()
        self._control = ours
        self._reading = asyncio.create_task(self._read(ours))
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await self._ready
        except OSError as exc:
            raise SandboxError("crashed", "the fork server did not start") from exc

    async def close(self) -> None:
        """End the process; its workers end with it, and no call starts it again."""
        self._closed = True
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                async with asyncio.timeout(5):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
            self._process = None

    async def spawn(self) -> WorkerProcess:
        """Fork a worker; SandboxError if that fails."""
        async with self._starting:
            if self._closed:
                raise SandboxError("crashed", "the sandbox is closed")
            if self._reading is None or self._reading.done():
                logger.error("fork server gone kind=%s, starting it again", self._kind)
                await self.close()
                await self.start()
        assert self._control is not None
        self._next += 1
        number = self._next
        spawned: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._spawning[number] = spawned
        ours, theirs = socket.socketpair()
        try:
            request = json.dumps(
                {"id": number, "memory": self._memory, "max_frame": self._max_frame}
            ).encode()
            socket.send_fds(self._control, [request], [theirs.fileno()])
            async with asyncio.timeout(SPAWN_TIMEOUT):
                pid = await spawned
        except (OSError, TimeoutError) as exc:
            ours.close()
            raise SandboxError("crashed", f"no worker could be forked: {exc}") from exc
        finally:
            theirs.close()
            self._spawning.pop(number, None)
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            return WorkerProcess(pid, reader, writer, max_frame=self._max_frame)
        except ProcessLookupError:
            writer.close()
            raise SandboxError("crashed", "the worker ended at once") from None

    async def _read(self, control: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await self._read_messages(loop, control)
        finally:
            for waiting in self._spawning.values():
                if not waiting.done():
                    waiting.set_exception(OSError("the fork server ended"))
            if self._ready is not None and not self._ready.done():
                self._ready.set_exception(OSError("the fork server ended"))

    async def _read_messages(
        self, loop: asyncio.AbstractEventLoop, control: socket.socket
    ) -> None:
        while data := await loop.sock_recv(control, 4096):
            message = json.loads(data)
            if "ready" in message and self._ready is not None:
                self._ready.set_result(None)
            elif "spawned" in message:
                waiting = self._spawning.get(message["spawned"])
                if waiting is not None and not waiting.done():
                    waiting.set_result(message["pid"])
            elif "refused" in message:
                waiting = self._spawning.get(message["refused"])
                if waiting is not None and not waiting.done():
                    waiting.set_exception(OSError(message["reason"]))
            elif "ended" in message:
                logger.debug(
                    "worker ended pid=%s status=%s",
                    message["ended"],
                    message["status"],
                )
