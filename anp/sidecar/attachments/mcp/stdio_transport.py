"""The stdio transport to a server that is a child process of ours.

The transport of `mcp` has a task for each pipe, and streams without room between these
tasks and the session, so that a message takes several turns of the event loop each way.
Here a message is written in the turn in which it is sent, and whoever waits for an
answer is woken in the turn in which it comes. Everything else that a server says is for
the session of the library, which also chooses the version of the protocol.

This module loads `mcp`, so it is imported where a server is started.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeGuard, cast

import anyio
from mcp.shared.dispatcher import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    ProgressFnT,
    as_request_id,
    coerce_request_id,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import (
    JSONRPCDispatcher,
    progress_token_from_params,
)
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp.types import (
    CONNECTION_CLOSED,
    JSONRPC_VERSION,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic_core import from_json, to_json

from anp.sidecar.attachments.mcp.watched_transport import with_content
from anp.sidecar.attachments.supervisor import OutputTail, wait_at_most

__all__ = ["PipeDispatcher", "drained_pipe", "stdio_dispatcher"]

logger = logging.getLogger(__name__)

MAX_AT_ONCE = 64
"Messages that are read in one turn of the event loop."

FIRST_ID = 1 << 30
"First of the ids of our requests; those of the library's own begin with 1."

USUAL = frozenset({"headers", "on_progress", "cancel_on_abandon"})
"Options of a request that takes the short way."

STOP_TIMEOUT = 2.0
"Seconds that a server may take to end after its input is closed, or after a signal."

POLL = 0.01
"Seconds between two looks at the processes that a server started."


@asynccontextmanager
async def stdio_dispatcher(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    errlog: IO[str],
    on_end: Callable[[], None],
) -> AsyncIterator[PipeDispatcher]:
    """Start a server, give what talks to it, and end it with all that it started.

    Args:
        errlog: Takes what it prints on stderr; closed here, since it has its own copy.
        on_end: Called when it has said its last, before a request fails for that.

    Raises:
        OSError: It cannot be started.
    """
    transport, server = await asyncio.get_running_loop().subprocess_exec(
        lambda: _Server(on_end),
        *command,
        stderr=errlog,
        env=env,
        cwd=cwd,
        # Ctrl-C on the daemon's terminal is the daemon's; we end the server.
        start_new_session=True,
    )
    errlog.close()
    try:
        yield PipeDispatcher(server)
    finally:
        # Whatever ended its life, the server does not outlive it.
        with anyio.CancelScope(shield=True):
            await server.end()
        transport.close()


@dataclass(slots=True)
class _Asked:
    """A request that waits for its answer."""

    answer: asyncio.Future[dict[str, Any]]
    on_progress: ProgressFnT | None


class _Server(asyncio.SubprocessProtocol):
    """A running server and its two pipes, whose messages are lines of JSON."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self.asked: dict[int | str, _Asked] = {}
        self.is_over = False
        "True when no answer will come any more."

        self._on_end = on_end
        self._begun: list[bytes] = []
        "Pieces of a line that has not ended."

        self._lines: deque[bytes] = deque()
        self._messages: deque[SessionMessage] = deque()
        "Everything but the answers to `asked`."

        self._waiter: asyncio.Future[None] | None = None
        self._telling: set[asyncio.Future[None]] = set()
        self._has_closed = False
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
        if b"\n" not in data:
            self._begun.append(data)
            return
        first, *others, rest = data.split(b"\n")
        self._lines.append(b"".join((*self._begun, first)))
        self._lines += others
        self._begun = [rest] if rest else []
        self._take_lines()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Notice that the server closed one of its pipes."""
        self._can_write.set()
        if fd == 1:
            self._has_closed = True
            if not self._lines:
                self.finish()

    def pause_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        self._can_write.clear()

    def resume_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        self._can_write.set()

    def process_exited(self) -> None:
        """See `asyncio.SubprocessProtocol`."""
        self._exited.set()

    def _take_lines(self) -> None:
        for _ in range(min(len(self._lines), MAX_AT_ONCE)):
            self._take(self._lines.popleft())
        if self._lines:
            # A server that says much must not keep all others waiting.
            self._output.pause_reading()
            asyncio.get_running_loop().call_soon(self._take_lines)
        elif self._has_closed:
            self.finish()
        else:
            self._output.resume_reading()

    def _take(self, line: bytes) -> None:
        try:
            said = from_json(line)
            if isinstance(said, dict) and self._is_answer(said):
                return
            message = jsonrpc_message_adapter.validate_python(said, by_name=False)
        except ValueError as exc:
            # A server may print something else; the messages go on behind it.
            logger.warning("no message of MCP: %r", str(exc)[:200])
            return
        if isinstance(message, JSONRPCNotification) and self._is_progress(message):
            return
        self._messages.append(SessionMessage(message))
        self._wake()

    def _is_answer(self, said: dict[str, Any]) -> bool:
        """Hand an answer to whoever asked; return False for anything else."""
        asked = self._asked(as_request_id(said.get("id")))
        if asked is None or "method" in said:
            return False
        if "error" in said:
            error = JSONRPCError.model_validate(said, by_name=False).error
            outcome: Any = MCPError.from_error_data(error)
        else:
            # The session reads the result; only what makes it an answer is read here.
            outcome = said.get("result")
            if said.get("jsonrpc") != JSONRPC_VERSION or not isinstance(outcome, dict):
                return False
            with_content(outcome)
        if not asked.answer.done():
            if isinstance(outcome, MCPError):
                asked.answer.set_exception(outcome)
            else:
                asked.answer.set_result(outcome)
        return True

    def _asked(self, number: int | str | None) -> _Asked | None:
        return None if number is None else self.asked.get(coerce_request_id(number))

    def _is_progress(self, message: JSONRPCNotification) -> bool:
        """Pass on the progress of a request; return False for anything else."""
        if message.method != "notifications/progress":
            return False
        # The reader of the token looks into `_meta`, where a request has it.
        told = message.params or {}
        asked = self._asked(progress_token_from_params({"_meta": told}))
        done, total = told.get("progress"), told.get("total")
        words = told.get("message")
        if asked is None or asked.on_progress is None or not _is_number(done):
            return False
        telling = asyncio.ensure_future(
            asked.on_progress(
                done,
                total if _is_number(total) else None,
                words if isinstance(words, str) else None,
            )
        )
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)
        return True

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def finish(self) -> None:
        """Expect no answer any more; idempotent."""
        if self.is_over:
            return
        self.is_over = True
        self._on_end()
        self._wake()
        for asked in self.asked.values():
            if not asked.answer.done():
                asked.answer.set_exception(_closed())

    async def read(self) -> SessionMessage | None:
        """Return the next message, or None at the end; for one task at a time."""
        while not self._messages:
            if self.is_over:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._messages.popleft()

    def write(self, data: bytes) -> None:
        """Write a message.

        Raises:
            anyio.BrokenResourceError: The server does not read any more.
        """
        if self._input.is_closing():
            # It may live on, but answers nothing any more.
            self.finish()
            raise anyio.BrokenResourceError
        self._input.write(data + b"\n")

    async def drain(self) -> None:
        """Wait until the server has read most of what was written."""
        await self._can_write.wait()

    async def end(self) -> None:
        """Close its input, and end it and its children if they stay."""
        # One that still writes could not end while nobody reads.
        self._ignores = True
        self._lines.clear()
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


class PipeDispatcher(Dispatcher[TransportContext]):
    """Talks to a server for a session of the library, with a short way for requests.

    A request takes no task, no stream and no turn of the event loop but the one in
    which its answer comes. All else goes the library's way: requests with a time limit,
    those of the server, and notifications.
    """

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._library = JSONRPCDispatcher(_Incoming(server), _Outgoing(server))
        self._numbers = itertools.count(FIRST_ID)

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
    ) -> dict[str, Any]:
        """Send a request and wait for its result.

        Raises:
            MCPError: The server answered with an error, or is gone.
        """
        opts = opts or {}
        if not USUAL.issuperset(opts):
            return await self._library.send_raw_request(method, params, opts)
        if self._server.is_over:
            raise _closed()
        number = next(self._numbers)
        on_progress = opts.get("on_progress")
        if on_progress is not None:
            meta = {**((params or {}).get("_meta") or {}), "progressToken": number}
            params = {**(params or {}), "_meta": meta}
        answer: asyncio.Future[dict[str, Any]]
        answer = asyncio.get_running_loop().create_future()
        self._server.asked[number] = _Asked(answer, on_progress)
        try:
            self._write(method, params, id=number)
            return await answer
        except anyio.BrokenResourceError:
            raise _closed() from None
        except asyncio.CancelledError:
            if opts.get("cancel_on_abandon", True):
                # Nothing waits here, so that whoever gave up goes on at once.
                told = {"requestId": number, "reason": "caller cancelled"}
                with suppress(anyio.BrokenResourceError):
                    self._write("notifications/cancelled", told)
            raise
        finally:
            del self._server.asked[number]
            # Nobody may have come to see it, and asyncio would complain.
            if not answer.cancel() and not answer.cancelled():
                answer.exception()

    def _write(
        self, method: str, params: Mapping[str, Any] | None, **fields: int
    ) -> None:
        message = {"jsonrpc": JSONRPC_VERSION, **fields, "method": method}
        if params:
            message["params"] = params
        self._server.write(to_json(message, inf_nan_mode="null"))

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
    ) -> None:
        """Send a notification; one to a server that is gone is dropped."""
        await self._library.notify(method, params, opts)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until the session or the server ends; then no request is open."""
        try:
            await self._library.run(
                on_request, on_notify, on_notify_intercept, task_status=task_status
            )
        finally:
            self._server.finish()


def _closed() -> MCPError:
    return MCPError(code=CONNECTION_CLOSED, message="Connection closed")


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _Stream:
    """One direction of a server's pipes, as the library's dispatcher wants it."""

    def __init__(self, server: _Server) -> None:
        self._server = server

    async def aclose(self) -> None:
        """Do nothing: the pipes are closed when the server ends."""

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
    """The messages of the server but answers to requests that took the short way."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        message = await self._server.read()
        if message is None:
            raise StopAsyncIteration
        return message

    async def receive(self) -> SessionMessage:
        """Return the next message."""
        message = await self._server.read()
        if message is None:
            raise anyio.EndOfStream
        return message


class _Outgoing(_Stream):
    """The messages for the server."""

    async def send(self, item: SessionMessage) -> None:
        """Write a message."""
        self._server.write(
            jsonrpc_message_adapter.dump_json(
                item.message, by_alias=True, exclude_unset=True
            )
        )
        await self._server.drain()


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
