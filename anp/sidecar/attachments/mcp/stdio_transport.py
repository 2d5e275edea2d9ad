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
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import anyio
from mcp.shared.dispatcher import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp.types import JSONRPC_VERSION, jsonrpc_message_adapter
from pydantic_core import to_json

from anp.sidecar.attachments.attachment import AttachmentError
from anp.sidecar.attachments.mcp.server_pipes import (
    PendingRequest,
    ServerPipes,
    closed_error,
)
from anp.sidecar.attachments.supervisor import OutputTail

FIRST_ID = 1 << 30
"First of the ids of our requests; those of the library's own begin with 1."

USUAL = frozenset({"headers", "on_progress", "cancel_on_abandon"})
"Options of a request that takes the short way."


@asynccontextmanager
async def stdio_dispatcher(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    errlog: IO[str],
    max_line: int,
    on_end: Callable[[], None],
) -> AsyncIterator[PipeDispatcher]:
    """Start a server, give what talks to it, and end it with all that it started.

    Args:
        errlog: Takes what it prints on stderr; closed here, since it has its own copy.
        max_line: Bytes that a message may have; one that is longer ends the server.
        on_end: Called when it has said its last, before a request fails for that.

    Raises:
        OSError: It cannot be started.
        AttachmentError: It was ended for a message that is too long.
    """
    transport, server = await asyncio.get_running_loop().subprocess_exec(
        lambda: ServerPipes(on_end, max_line),
        *command,
        stderr=errlog,
        env=env,
        cwd=cwd,
        # Ctrl-C on the daemon's terminal is the daemon's; we end the server.
        start_new_session=True,
    )
    errlog.close()
    try:
        try:
            yield PipeDispatcher(server)
        finally:
            # Whatever ended its life, the server does not outlive it.
            with anyio.CancelScope(shield=True):
                await server.end()
            with suppress(PermissionError):
                # One that nothing could end is left alone.
                transport.close()
    except Exception:
        if not server.fault:
            raise
    if server.fault:
        raise AttachmentError(server.fault)


class StandIn:
    """An answer that stands in for that of the server to the next request."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self._answer = answer
        self.asked: dict[str, Any] = {}
        "Parameters of that request; it was not sent."

    def __enter__(self) -> Self:
        self._token = _stand_in.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _stand_in.reset(self._token)

    def take(self, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the answer."""
        self.asked = dict(params or {})
        return self._answer


_stand_in: ContextVar[StandIn | None] = ContextVar("_stand_in", default=None)
"Of the present task alone, so that no other request can get its answer."


class PipeDispatcher(Dispatcher[TransportContext]):
    """Talks to a server for a session of the library, with a short way for requests.

    A request takes no task, no stream and no turn of the event loop but the one in
    which its answer comes. All else goes the library's way: requests with a time limit,
    those of the server, and notifications.
    """

    def __init__(self, server: ServerPipes) -> None:
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
        if (stand_in := _stand_in.get()) is not None:
            return stand_in.take(params)
        opts = opts or {}
        if not USUAL.issuperset(opts):
            return await self._library.send_raw_request(method, params, opts)
        # What a server does not read must not pile up here, though nobody waits for it.
        await self._server.drain()
        if self._server.is_over:
            raise closed_error()
        number = next(self._numbers)
        on_progress = opts.get("on_progress")
        if on_progress is not None:
            meta = {**((params or {}).get("_meta") or {}), "progressToken": number}
            params = {**(params or {}), "_meta": meta}
        answer: asyncio.Future[dict[str, Any]]
        answer = asyncio.get_running_loop().create_future()
        self._server.asked[number] = PendingRequest(answer, on_progress)
        try:
            self._write(method, params, id=number)
            return await answer
        except anyio.BrokenResourceError:
            raise closed_error() from None
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


class _Stream:
    """One direction of a server's pipes, as the library's dispatcher wants it."""

    def __init__(self, server: ServerPipes) -> None:
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
