"""The daemon's side of the fork server and its workers; all data read is hostile."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sandbox.errors import SandboxError
from sandbox.lock.lockdown import UNTESTED, Isolation
from sandbox.processes.launch import Control, Message, launched
from sandbox.processes.worker_process import (
    CPU_SECONDS,
    SPAWN_TIMEOUT,
    Conversation,
    Ending,
    WorkerProcess,
)

logger = logging.getLogger(__name__)

START_TIMEOUT = 20.0
"Seconds for the start of the fork server."


@dataclass(frozen=True, slots=True)
class _Spawned:
    """The fork server's answer about a new worker."""

    pid: int

    pidfd: int | None
    "Refers to the process, where the system supports that."

    ending: asyncio.Future[Ending]
    "Receives the report of its end."


def _give_up(waiting: asyncio.Future[_Spawned]) -> None:
    """Close the descriptors of an answer that nobody waits for any more."""
    # The answer may come at the moment in which the spawn is cancelled.
    if not waiting.cancel() and not waiting.cancelled() and not waiting.exception():
        pidfd = waiting.result().pidfd
        if pidfd is not None:
            os.close(pidfd)


class ForkServer:
    """A process that forks workers; restarted after it ended unexpectedly.

    Args:
        kind: See `sandbox.processes.forkserver.main`.
        memory: Address space of a worker in bytes, above its size at the start.
        max_frame: Largest frame to or from a worker, in bytes.
        cpu_seconds: CPU seconds of a worker's lifetime, in case deadlines fail.
        without: Layers of the lock to leave out, for tests.
    """

    def __init__(
        self,
        kind: str,
        *,
        memory: int,
        max_frame: int,
        cpu_seconds: int = CPU_SECONDS,
        without: Collection[str] = (),
    ) -> None:
        self._kind = kind
        self._memory = memory
        self._max_frame = max_frame
        self._cpu_seconds = cpu_seconds
        self._without = tuple(without)
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Control | None = None
        self._ready: asyncio.Future[None] | None = None
        self._spawning: dict[int, asyncio.Future[_Spawned]] = {}
        self._endings: dict[int, asyncio.Future[Ending]] = {}
        self._starting = asyncio.Lock()
        self._next = 0
        self._closed = False
        self._isolation = UNTESTED

    @property
    def pid(self) -> int:
        """Process id; SandboxError when there is no process."""
        if self._process is None:
            raise SandboxError("crashed", "the fork server does not run")
        return self._process.pid

    @property
    def isolation(self) -> Isolation:
        """The result of the fork server's self-test; `UNTESTED` before `start`."""
        return self._isolation

    async def start(self) -> None:
        """Start the process and wait until it is ready; SandboxError if that fails."""
        self._closed = False
        self._ready = asyncio.get_running_loop().create_future()
        found = launched(self._kind, self._without)
        self._process, self._control = found.process, found.control
        asyncio.get_running_loop().add_reader(self._control.fileno(), self._read)
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await self._ready
        except OSError as exc:
            raise SandboxError("crashed", "the fork server did not start") from exc

    async def close(self) -> None:
        """End the process and its workers; no later call restarts it."""
        self._closed = True
        self._leave()
        if self._process is not None:
            try:
                async with asyncio.timeout(5):
                    await asyncio.to_thread(self._process.wait)
            except TimeoutError:
                self._process.kill()
                await asyncio.to_thread(self._process.wait)
            self._process = None

    async def spawn(self) -> WorkerProcess:
        """Fork a worker and wait until it is locked.

        Raises:
            SandboxError: `crashed`: forking or locking failed.
        """
        async with self._starting:
            if self._closed:
                raise SandboxError("crashed", "the sandbox is closed")
            if self._control is None:
                logger.error("fork server gone kind=%s, starting it again", self._kind)
                await self.close()
                await self.start()
        try:
            worker = await self._fork()
        except (OSError, TimeoutError) as exc:
            raise SandboxError("crashed", f"no worker could be forked: {exc}") from exc
        await worker.locked()
        return worker

    async def _fork(self) -> WorkerProcess:
        """Have a worker forked, which may not be locked yet."""
        assert self._control is not None
        self._next += 1
        number = self._next
        waiting: asyncio.Future[_Spawned]
        waiting = asyncio.get_running_loop().create_future()
        request = {
            "id": number,
            "memory": self._memory,
            "max_frame": self._max_frame,
            "cpu_seconds": self._cpu_seconds,
        }
        with contextlib.ExitStack() as undo:
            ours, theirs = socket.socketpair()
            # A worker whose channel is closed ends by itself.
            undo.callback(ours.close)
            undo.callback(_give_up, waiting)
            self._spawning[number] = waiting
            try:
                with theirs:
                    self._control.send(request, theirs.fileno())
                # In the meantime it is being forked and locks itself.
                conversation = await Conversation.over(ours, max_frame=self._max_frame)
                undo.callback(conversation.close)
                async with asyncio.timeout(SPAWN_TIMEOUT):
                    spawned = await waiting
            finally:
                self._spawning.pop(number, None)
            worker = WorkerProcess(
                spawned.pid,
                conversation,
                max_frame=self._max_frame,
                pidfd=spawned.pidfd,
                ending=spawned.ending,
                cpu_seconds=self._cpu_seconds,
            )
            undo.pop_all()
        return worker

    def _read(self) -> None:
        assert self._control is not None
        try:
            messages = self._control.receive()
        except BlockingIOError:
            return
        except (OSError, EOFError):
            self._leave()
            return
        for message in messages:
            self._hear(message)

    def _hear(self, said: Message) -> None:
        message, descriptor = said
        if "spawned" in message:
            pid = message["pid"]
            ending = asyncio.get_running_loop().create_future()
            self._endings[pid] = ending
            waiting = self._spawning.get(message["spawned"])
            if waiting is not None and not waiting.done():
                waiting.set_result(_Spawned(pid, descriptor, ending))
            elif descriptor is not None:
                # Nobody waits any more; the worker ends because its channel is closed.
                os.close(descriptor)
        elif "refused" in message:
            waiting = self._spawning.get(message["refused"])
            if waiting is not None and not waiting.done():
                waiting.set_exception(OSError(message["reason"]))
        elif "ended" in message:
            pid, status = message["ended"], message["status"]
            logger.debug("worker ended pid=%s status=%s", pid, status)
            known = self._endings.pop(pid, None)
            if known is not None and not known.done():
                known.set_result(Ending(status, message["cpu"], message["text"]))
        elif "ready" in message and self._ready is not None:
            self._isolation = _isolation(message)
            if not self._ready.done():
                self._ready.set_result(None)

    def _leave(self) -> None:
        """Close the control socket, and fail all calls that wait for its answers."""
        if self._control is None:
            return
        asyncio.get_running_loop().remove_reader(self._control.fileno())
        self._control.close()
        self._control = None
        for waiting in self._spawning.values():
            if not waiting.done():
                waiting.set_exception(OSError("the fork server ended"))
        for ending in self._endings.values():
            # Its workers end with it, by SIGKILL.
            if not ending.done():
                ending.set_result(Ending(-signal.SIGKILL, 0.0, ""))
        self._endings.clear()
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(OSError("the fork server ended"))


async def measure_isolation(*, without: Collection[str] = ()) -> Isolation:
    """Start a fork server only for its self-test, for `anpd doctor`.

    Args:
        without: Layers to leave out, as for `ForkServer`.

    Raises:
        SandboxError: The fork server did not start.
    """
    server = ForkServer("module", memory=1 << 28, max_frame=4096, without=without)
    try:
        await server.start()
        return server.isolation
    finally:
        await server.close()


def _isolation(message: dict[str, Any]) -> Isolation:
    layers = [(name, active, words) for name, active, words in message["layers"]]
    return Isolation(message["level"], tuple(layers))
