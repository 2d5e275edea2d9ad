"""The stdio transport to a server that is a child process of ours.

The transport of `mcp` has a task for each pipe, and streams without room between these
tasks and the session, so that a message takes several turns of the event loop each way.
Here a message is written in the turn in which it is sent, and the session is woken in
the turn in which one arrives.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, cast

from anp.sidecar.attachments.supervisor import OutputTail, wait_at_most

# `mcp` is imported where a server is started.
if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

__all__ = ["drained_pipe", "stdio_transport"]

logger = logging.getLogger(__name__)

MAX_UNREAD = 256
"Messages that wait for the session before no more are read from the server."

STOP_TIMEOUT = 2.0
"Seconds that a server may take to end after its input is closed, or after a signal."

POLL = 0.01
"Seconds between two looks at the processes that a server started."


@asynccontextmanager
async def stdio_transport(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    errlog: IO[str],
) -> AsyncIterator[tuple[_Incoming, _Outgoing]]:
    """Start a server, give its streams, and end it with all that it started.

    Raises:
        OSError: It cannot be started.
    """
    import anyio

    loop = asyncio.get_running_loop()
    transport, server = await loop.subprocess_exec(
        _Server,
        *command,
        stderr=errlog,
        env=env,
        cwd=cwd,
        # Ctrl-C on the daemon's terminal is the daemon's; we end the server.
        start_new_session=True,
    )
    try:
        yield _Incoming(server), _Outgoing(server)
    finally:
        # Whatever ended its life, the server does not outlive it.
        with anyio.CancelScope(shield=True):
            await server.end()
        transport.close()


class _Server(asyncio.SubprocessProtocol):
    """A running server and its two pipes, whose messages are lines of JSON."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        "Pieces of a line that has not ended."

        self._lines: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._has_ended = False
        self._ignores = False
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._exited = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.BaseProtocol`."""
        process = cast(asyncio.SubprocessTransport, transport)
        self._pid = process.get_pid()
        self._input = cast(asyncio.WriteTransport, process.get_pipe_transport(0))
        self._output = cast(asyncio.ReadTransport, process.get_pipe_transport(1))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take a piece of the server's output."""
        if self._ignores:
            return
        first, *others = data.split(b"\n")
        self._begun.append(first)
        if not others:
            return
        self._lines.append(b"".join(self._begun))
        *others, rest = others
        self._lines += others
        self._begun = [rest] if rest else []
        if len(self._lines) > MAX_UNREAD:
            self._output.pause_reading()
        self._wake()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Notice that the server closed one of its pipes."""
        self._can_write.set()
        if fd == 1:
            self._has_ended = True
            self._wake()

    def pause_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        self._can_write.clear()

    def resume_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        self._can_write.set()

    def process_exited(self) -> None:
        """See `asyncio.SubprocessProtocol`."""
        self._exited.set()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def read(self) -> bytes | None:
        """Return the next line, or None at the end; for one task at a time."""
        while not self._lines:
            if self._has_ended:
                return None
            self._output.resume_reading()
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._lines.popleft()

    async def write(self, data: bytes) -> bool:
        """Write a line; return False if the server does not read any more."""
        if self._input.is_closing():
            # It may live on, but answers nothing any more.
            self._has_ended = True
            self._wake()
            return False
        self._input.write(data)
        await self._can_write.wait()
        return True

    async def end(self) -> None:
        """Close its input, and end it and its children if they stay."""
        # One that still writes could not end while nobody reads.
        self._ignores = True
        self._output.resume_reading()
        self._input.close()
        await wait_at_most(self._exited, STOP_TIMEOUT)
        if self._exited.is_set():
            return
        self._signal(signal.SIGTERM)
        for _ in range(round(STOP_TIMEOUT / POLL)):
            if not self._signal(0):
                break
            await asyncio.sleep(POLL)
        else:
            self._signal(signal.SIGKILL)
        await wait_at_most(self._exited, STOP_TIMEOUT)

    def _signal(self, number: int) -> bool:
        """Signal the server and its children; return False if there are none left."""
        try:
            # It leads a session of its own, so its id is that of the group.
            os.killpg(self._pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            logger.debug("some processes of a server may not be signalled")
        return True


class _Stream:
    """One direction of a server's pipes, as the session of `mcp` wants it."""

    def __init__(self, server: _Server) -> None:
        self._server = server

    async def aclose(self) -> None:
        """Do nothing: the pipes are closed with the transport."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Incoming(_Stream):
    """The messages of the server."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        from mcp.shared.message import SessionMessage
        from mcp.types import jsonrpc_message_adapter

        while (line := await self._server.read()) is not None:
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError as exc:
                # A server may print something else; the messages go on behind it.
                logger.warning("no message of MCP: %r", str(exc)[:200])
                continue
            return SessionMessage(message)
        raise StopAsyncIteration

    async def receive(self) -> SessionMessage:
        """Return the next message."""
        import anyio

        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None


class _Outgoing(_Stream):
    """The messages for the server."""

    async def send(self, item: SessionMessage) -> None:
        """Write a message."""
        import anyio
        from mcp.types import jsonrpc_message_adapter

        text = jsonrpc_message_adapter.dump_json(
            item.message, by_alias=True, exclude_unset=True
        )
        if not await self._server.write(text + b"\n"):
            raise anyio.BrokenResourceError


@asynccontextmanager
async def drained_pipe(output: OutputTail) -> AsyncIterator[Any]:
    """Give the writing end of a pipe whose content goes to `output`."""
    read_fd, write_fd = os.pipe()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_fd, "rb", 0)
    )
    drain = asyncio.create_task(output.drain(reader))
    try:
        with os.fdopen(write_fd, "w") as writer:
            yield writer
        # What a dying server printed last is the best reason we have.
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await asyncio.shield(drain)
    finally:
        transport.close()
        drain.cancel()
        await asyncio.wait({drain})
