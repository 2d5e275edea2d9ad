"""The process of an MCP server on stdio: its two pipes, its answers, and its end.

This module loads `mcp`, so it is imported where a server is started.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

import anyio
from mcp.shared.dispatcher import ProgressFnT, as_request_id, coerce_request_id
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import (
    CONNECTION_CLOSED,
    JSONRPC_VERSION,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic_core import from_json

from anp.sidecar.attachments.mcp.watched_transport import with_content
from anp.sidecar.attachments.supervisor import wait_at_most

logger = logging.getLogger(__name__)

MAX_AT_ONCE = 64
"Messages that are read in one turn of the event loop."

STOP_TIMEOUT = 2.0
"Seconds that a server may take to end after its input is closed, or after a signal."

POLL = 0.01
"Seconds between two looks at the processes that a server started."


@dataclass(slots=True)
class PendingRequest:
    """A request that waits for its answer."""

    answer: asyncio.Future[dict[str, Any]]
    on_progress: ProgressFnT | None


class ServerPipes(asyncio.SubprocessProtocol):
    """A running server and its two pipes, whose messages are lines of JSON."""

    def __init__(self, on_end: Callable[[], None], max_line: int) -> None:
        self.asked: dict[int | str, PendingRequest] = {}
        self.is_over = False
        "True when no answer will come any more."

        self.fault = ""
        "Why nothing is read from it any more; empty if it did nothing wrong."

        self._on_end = on_end
        self._max_line = max_line
        self._begun = bytearray()
        "A line that has not ended. Many small pieces would take more than their bytes."

        self._lines: deque[bytes | bytearray] = deque()
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
        self._output.set_protocol(_Output(self, self._output.get_protocol()))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take a piece of the server's output."""
        if self._ignores:
            return
        end = data.find(b"\n")
        if len(self._begun) + (len(data) if end < 0 else end) > self._max_line:
            self.fault = f"the MCP server wrote a line of over {self._max_line} bytes"
            self._forget()
            self.finish()
            return
        if end < 0:
            self._begun += data
            return
        self._begun += data[:end]
        self._lines.append(self._begun)
        *others, rest = data[end + 1 :].split(b"\n")
        self._lines += others
        self._begun = bytearray(rest)
        self._take_lines()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Notice that the server closed one of its pipes."""
        self._can_write.set()
        if fd == 1:
            self._has_closed = True
        # One that did not read all of a request will not answer it.
        if exc is not None or (self._has_closed and not self._lines):
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

    def _take(self, line: bytes | bytearray) -> None:
        try:
            said = from_json(line)
            if isinstance(said, dict) and self._is_answer(said):
                return
            message = jsonrpc_message_adapter.validate_python(said, by_name=False)
            if isinstance(message, JSONRPCNotification) and self._is_progress(message):
                return
        except (ValueError, OverflowError) as exc:
            # A server may print something else; the messages go on behind it.
            logger.warning("no message of MCP: %r", str(exc)[:200])
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

    def _asked(self, number: int | str | None) -> PendingRequest | None:
        return None if number is None else self.asked.get(coerce_request_id(number))

    def _is_progress(self, message: JSONRPCNotification) -> bool:
        """Pass on the progress of a request; return False for anything else."""
        if message.method != "notifications/progress":
            return False
        told = message.params or {}
        asked = self._asked(as_request_id(told.get("progressToken")))
        done, total = told.get("progress"), told.get("total")
        words = told.get("message")
        if asked is None or asked.on_progress is None or not _is_number(done):
            return False
        telling = asyncio.ensure_future(
            asked.on_progress(
                float(done),
                float(total) if _is_number(total) else None,
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
        self._can_write.set()
        self._on_end()
        self._wake()
        for asked in self.asked.values():
            if not asked.answer.done():
                asked.answer.set_exception(closed_error())

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
        # Others that waited may have written enough for now.
        while not self._can_write.is_set():
            await self._can_write.wait()

    def _forget(self) -> None:
        """Hear nothing more of what the server says."""
        self._ignores = True
        self._lines.clear()
        self._begun.clear()

    async def end(self) -> None:
        """Close its input, and end it and its children if they stay."""
        # One that still writes could not end while nobody reads.
        self._forget()
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


class _Output(asyncio.Protocol):
    """Passes on what a server says at once; asyncio's own protocol does a turn later.

    Args:
        own: That protocol, for all but the data.
    """

    def __init__(self, server: ServerPipes, own: asyncio.BaseProtocol) -> None:
        self._server = server
        self._own = own

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._server.pipe_data_received(1, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.BaseProtocol`."""
        self._own.connection_lost(exc)


def closed_error() -> MCPError:
    """Return the error of a request whose server is gone."""
    return MCPError(code=CONNECTION_CLOSED, message="Connection closed")


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
