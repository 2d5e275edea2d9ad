"""An MCP server, as a child process or at a URL; its tools become capabilities."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from dataclasses import replace
from enum import Enum, auto
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from anp.interaction.states import TaskState
from anp.sidecar.attachments.attachment import (
    AttachmentError,
    AttachmentLimits,
    HandedBack,
    ToolError,
    report_progress,
)
from anp.sidecar.attachments.http.endpoint import deadline_text
from anp.sidecar.attachments.listing import read_tools
from anp.sidecar.attachments.mcp.exchange import (
    CallTalk,
    ShortWay,
    agree_on_version,
    short_way,
)
from anp.sidecar.attachments.mcp.http_transport import NOT_SENT, http_transport
from anp.sidecar.attachments.mcp.offers import read_offers
from anp.sidecar.attachments.mcp.operations import McpOperation, McpOutcome
from anp.sidecar.attachments.mcp.questions import Questions
from anp.sidecar.attachments.mcp.watched_transport import watched_dispatcher
from anp.sidecar.attachments.requester import as_last, current_requester
from anp.sidecar.attachments.spec import AttachmentSpec, read_environment
from anp.sidecar.attachments.supervisor import (
    OutputTail,
    SupervisedAttachment,
    child_environment,
    wait_at_most,
)
from anp.sidecar.attachments.tool_errors import status_in

# `mcp` takes half a second to import, so it is imported where a server is started.
if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.shared.dispatcher import Dispatcher
    from mcp.shared.transport_context import TransportContext
from negotiation.errors import JsonError
from negotiation.strict_json import largest_json

logger = logging.getLogger(__name__)

CONNECTION_CLOSED = -32000
"JSON-RPC error code that the client gives calls whose server is gone."

INVALID_REQUEST = -32600
"JSON-RPC error code that the client gives calls of a session that is gone."

INVALID_PARAMS = -32602
"JSON-RPC error code of arguments that a server cannot take."

SESSION_GONE = "Session terminated"
"The client's text when a server at a URL no longer knows our session."

RESULTS_PER_LINE = 8
"""Times that a line may be as long as the largest result. What a peer has echoed must
not be enough to end the server for all others: the result stands in the line as a value
and again as text, and where a server escapes `<` for HTML, one byte becomes 13."""

END_GRACE = 1.0
"Seconds in which calls may come to their end when the server is gone."

CALLER_META = "anpd/caller"
"Key in `_meta` of a call with the DID of the peer it is made for."

DEADLINE_META = "anpd/deadline"
"Key in `_meta` of a call with the time after which nobody waits for it."


NO_RESULT = (-32603, "Handler returned an invalid result")
"""Error of the MCP library's servers for a tool whose answer the older protocol does
not have, such as one that asks."""


class _AsksInAnswer(Exception):
    """The answer of a tool does not exist in the protocol that is spoken."""


class _Wake(Enum):
    """Reasons to wake the task that owns the client."""

    END = auto()
    "The server is gone, or we are to stop."

    RELIST = auto()
    "The server says that its tools have changed."


class McpAttachment(SupervisedAttachment):
    """One MCP server, over stdio or HTTP (SIDECAR.md, "Attaching an agent").

    The client is opened and closed by one task. Calls use it from their own tasks.
    """

    def __init__(
        self,
        spec: AttachmentSpec,
        *,
        limits: AttachmentLimits,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(spec, limits=limits, on_change=on_change)
        # Replaced with every life.
        self._queue: asyncio.Queue[_Wake] = asyncio.Queue()
        self._session: ClientSession | None = None
        self._short: ShortWay | None = None
        self._running: set[asyncio.Timeout] = set()
        "Time limits of the calls that wait for the server."

        self._none_runs = asyncio.Event()
        self._questions = Questions()
        self._newest = False
        "True when a tool has asked in its answer, which the older protocol cannot."

        self._operations: dict[str, McpOperation] = {}

    async def close(self) -> None:
        """End the server; idempotent."""
        self._stopping.set()
        self._queue.put_nowait(_Wake.END)
        await super().close()

    async def call(
        self, capability: str, arguments: dict[str, Any], *, caller: str, timeout: float
    ) -> dict[str, Any]:
        """Call a tool; many calls may be in flight."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        leave = await self._places.take(self._limits.max_calls, timeout=timeout)
        try:
            await self._wait_ready(capability, timeout)
            operation = self._operations.get(self._tool_of(capability))
            if operation is None:
                raise AttachmentError(f"the MCP server has no {capability} any more")
            try:
                outcome = await self._answered(
                    operation, arguments, caller, deadline, timeout
                )
            except _AsksInAnswer:
                await self._speak_newest(capability, deadline - loop.time())
                operation = self._operations.get(self._tool_of(capability), operation)
                outcome = await self._answered(
                    operation, arguments, caller, deadline, timeout
                )
        finally:
            leave(None)
        _check_output(outcome.output, self._limits.max_result)
        requester = current_requester.get()
        if requester is not None:
            for number, part in enumerate(outcome.parts, 1):
                is_last = number == len(outcome.parts)
                await requester.update([as_last(part) if is_last else part])
        return outcome.output

    async def _speak_newest(self, capability: str, left: float) -> None:
        """Begin anew with a server whose tool asks in its answer (MCP 2026-07-28).

        A tool that does is made to be called again with what it asked for.

        Raises:
            ToolError: 503, other calls are under way, which this would end.
            AttachmentError: The server does not start again in time.
        """
        if self._running:
            raise ToolError(503, "the tool asks in another protocol; call again soon")
        self._newest = True
        self._lost()
        self._queue.put_nowait(_Wake.END)
        wait = min(left, self._limits.supervisor.start_timeout)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._ready.wait()
        await self._wait_ready(capability, left)

    async def _answered(
        self,
        operation: McpOperation,
        arguments: dict[str, Any],
        caller: str,
        deadline: float,
        timeout: float,
    ) -> McpOutcome:
        """Make a call, and wait until its deadline for the outcome."""
        loop = asyncio.get_running_loop()
        session = self._session
        if session is None:
            raise AttachmentError("the MCP server ended before the call")
        meta = {
            CALLER_META: caller,
            DEADLINE_META: deadline_text(time.time() + deadline - loop.time()),
        }
        try:
            async with asyncio.timeout_at(deadline) as limit:
                self._running.add(limit)
                return await self._outcome(session, operation, arguments, meta)
        except TimeoutError:
            if limit.when() != deadline:
                # The life of the server ended before.
                raise AttachmentError(
                    "the attachment was closed", may_have_run=True
                ) from None
            raise ToolError(504, f"no answer within {timeout:g} s") from None
        finally:
            self._running.discard(limit)
            if not self._running:
                self._none_runs.set()

    async def _outcome(
        self,
        session: ClientSession,
        operation: McpOperation,
        arguments: dict[str, Any],
        meta: dict[str, str],
    ) -> McpOutcome:
        """Make a call; whatever the client raises becomes an error of a tool."""
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        requester = current_requester.get()
        try:
            with self._questions.during(requester) as asking:
                exchange = CallTalk(
                    session, self._short, meta, report_progress.get(), asking
                )
                return await operation.run(exchange, arguments)
        except MCPError as exc:
            if (exc.code, exc.message) == NO_RESULT and not self._newest:
                raise _AsksInAnswer from None
            error = _tool_error(exc.code, exc.message, exc.error.data)
            if isinstance(error, AttachmentError):
                self._gone(session)
            raise error from None
        except ToolError:
            raise
        except ValidationError:
            raise ToolError(502, "the tool's answer is no tool result") from None
        except Exception as exc:
            # One call must not take the others of this server down.
            logger.exception("mcp call failed name=%s", self.name)
            raise AttachmentError(f"the call failed: {exc}", may_have_run=True) from exc

    def _gone(self, session: ClientSession) -> None:
        """Notice by a call that a server at a URL is gone; a child tells by its end."""
        if self._spec.url and session is self._session:
            # Before the call fails, so that who sees it finds us down, and waits.
            self._lost()
            self._queue.put_nowait(_Wake.END)

    async def _live(self) -> None:
        """Run one life of the server, from its start to its death."""
        queue: asyncio.Queue[_Wake] = asyncio.Queue()
        self._queue = queue
        if self._stopping.is_set():
            return
        output = OutputTail(self.name)
        try:

            def wake(why: _Wake) -> None:
                # At once, so that who sees its call fail finds us down, and waits.
                if why is _Wake.END:
                    self._lost()
                queue.put_nowait(why)

            async with self._connected(output, wake) as (session, started):
                await self._list(session)
                started()
                self._session = session
                self._opened()
                async with self._refreshing(wake):
                    await self._serve(session, queue)
        except AttachmentError:
            raise
        except Exception as exc:
            # Whatever ends a client ends this life only; the supervisor logs it.
            logger.debug("mcp client ended name=%s", self.name, exc_info=True)
            raise AttachmentError(self._why(exc, output)) from exc
        finally:
            self._lost()
            self._session = None
        if not self._stopping.is_set():
            if self._spec.url:
                raise AttachmentError("the MCP server does not answer any more")
            raise AttachmentError(
                f"the MCP server ended: {output.last_line or 'it printed nothing'}"
            )

    @asynccontextmanager
    async def _refreshing(self, wake: Callable[[_Wake], None]) -> AsyncIterator[None]:
        """List the tools of a server at a URL from time to time.

        Only so do we learn that it is gone; a child tells by its death.
        """

        async def ask() -> None:
            while True:
                await asyncio.sleep(self._limits.refresh)
                wake(_Wake.RELIST)

        task = asyncio.create_task(ask()) if self._spec.url else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()

    @asynccontextmanager
    async def _connected(
        self, output: OutputTail, wake: Callable[[_Wake], None]
    ) -> AsyncIterator[tuple[ClientSession, Callable[[], None]]]:
        """Open the session; the second value lifts the deadline of the start."""
        import anyio
        from mcp import ClientSession
        from mcp.types import (
            Implementation,
            PromptListChangedNotification,
            ResourceListChangedNotification,
            ToolListChangedNotification,
        )

        changes = (
            ToolListChangedNotification,
            PromptListChangedNotification,
            ResourceListChangedNotification,
        )

        us = Implementation(name="anpd", version=version("anpd"))
        limit = self._limits.supervisor.start_timeout
        async with AsyncExitStack() as stack:
            opening = await self._dispatcher(output, wake, stack)
            with anyio.CancelScope(deadline=anyio.current_time() + limit) as scope:

                def started() -> None:
                    scope.deadline = math.inf

                async def heard(message: object) -> None:
                    if isinstance(message, changes):
                        wake(_Wake.RELIST)

                async with (
                    opening as dispatcher,
                    ClientSession(
                        dispatcher=dispatcher,
                        client_info=us,
                        message_handler=heard,
                        elicitation_callback=self._questions.answer,
                    ) as session,
                ):
                    await agree_on_version(session, newest=self._newest)
                    self._short = await short_way(session, dispatcher)
                    yield session, started
            if scope.cancelled_caught:
                raise AttachmentError(
                    f"the MCP server did not start within {limit:g} s"
                )

    async def _dispatcher(
        self, output: OutputTail, wake: Callable[[_Wake], None], stack: AsyncExitStack
    ) -> AbstractAsyncContextManager[Dispatcher[TransportContext]]:
        """Return what talks to the server; to be opened."""

        def on_end() -> None:
            wake(_Wake.END)

        if self._spec.url:
            transport = await stack.enter_async_context(
                http_transport(self._spec, self._limits, on_silence=on_end)
            )
            return watched_dispatcher(transport, on_end=on_end)
        from anp.sidecar.attachments.mcp.stdio_transport import (
            drained_pipe,
            stdio_dispatcher,
        )

        command = self._spec.command
        return stdio_dispatcher(
            command,
            env=await asyncio.to_thread(self._environment, command[0]),
            cwd=self._spec.cwd,
            errlog=await stack.enter_async_context(drained_pipe(output)),
            max_line=RESULTS_PER_LINE * self._limits.max_result,
            on_end=on_end,
        )

    def _environment(self, program: str) -> dict[str, str]:
        """Return the environment of the child.

        The folder of its program comes first in PATH: `npx` needs the `node` beside it.
        """
        env = child_environment(read_environment(self._spec))
        if os.path.isabs(program) and "PATH" not in self._spec.env:
            folders = [os.path.dirname(program), env.get("PATH", os.defpath)]
            env["PATH"] = os.pathsep.join(folders)
        return env

    async def _list(self, session: ClientSession) -> None:
        """Read what the server can do."""
        offers, cannot = await read_offers(session, max_tools=self._limits.max_tools)
        self._operations = {}
        for tool, operation in offers:
            # As in the listing, the first of a name counts.
            self._operations.setdefault(tool.name, operation)
        info = session.server_info
        title = info.name if self._spec.url and info is not None else ""
        tools = [tool for tool, _ in offers]
        listing = read_tools(self._spec, tools, self._limits)
        skipped = (*listing.skipped, *cannot)
        before, self._listing = (
            self._listing,
            replace(listing, title=title, skipped=skipped),
        )
        for reason in self._listing.skipped if self._listing != before else ():
            logger.warning("tool left out attachment=%s tool=%s", self.name, reason)

    async def _serve(self, session: ClientSession, queue: asyncio.Queue[_Wake]) -> None:
        """List the tools when they change, until the server is gone or we stop."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            while await queue.get() is not _Wake.END:
                task = asyncio.create_task(self._relist(session))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        finally:
            # A server that is gone has answered; one that we stop will not.
            for task in tasks if self._stopping.is_set() else ():
                task.cancel()
            await self._end_calls()
            if tasks:
                await asyncio.wait(set(tasks), timeout=END_GRACE)
            for task in tasks:
                task.cancel()

    async def _end_calls(self) -> None:
        """Give up the calls that still wait for the server."""
        grace = 0.0 if self._stopping.is_set() else END_GRACE
        latest = asyncio.get_running_loop().time() + grace
        for limit in self._running:
            when = limit.when()
            if not limit.expired() and (when is None or when > latest):
                limit.reschedule(latest)
        if self._running:
            self._none_runs.clear()
            await wait_at_most(self._none_runs, END_GRACE)

    async def _relist(self, session: ClientSession) -> None:
        before = self._listing
        try:
            async with asyncio.timeout(self._limits.supervisor.start_timeout):
                await self._list(session)
        except Exception as exc:
            if self._spec.url:
                # Nothing else would tell that a server at a URL has gone.
                logger.warning("mcp server silent name=%s error=%r", self.name, exc)
                self._lost()
                self._queue.put_nowait(_Wake.END)
                return
            # The old list stays, and so do the calls under way.
            logger.exception("cannot list the tools again name=%s", self.name)
        else:
            if self._listing != before:
                self._changed()

    def _why(self, exc: Exception, output: OutputTail) -> str:
        """Return in one line why the server could not be started or ended."""
        leaf: BaseException = exc
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        if isinstance(leaf, AttachmentError):
            return str(leaf)
        if isinstance(leaf, FileNotFoundError | PermissionError | NotADirectoryError):
            program = self._spec.command[0]
            return f"cannot start {program}: {leaf.strerror}; check the command and cwd"
        said = str(leaf).partition("\n")[0].removeprefix(NOT_SENT)
        text = said[:200] or type(leaf).__name__
        hint = f"; it printed: {output.last_line}" if output.last_line else ""
        return f"the MCP server failed: {text}{hint}"


def _tool_error(code: int, message: str, data: Any = None) -> Exception:
    """Return the error of a call that a server or the client answered with one.

    Args:
        data: What the error says besides; the word `rejected`, alone or as a value of
            an object, hands the task back.
    """
    if message.startswith(NOT_SENT):
        return AttachmentError(message.removeprefix(NOT_SENT))
    if code == CONNECTION_CLOSED:
        return AttachmentError("the MCP server ended", may_have_run=True)
    if (code, message) == (INVALID_REQUEST, SESSION_GONE):
        return AttachmentError("the MCP server has forgotten us")
    if TaskState.REJECTED in ([*data.values()] if isinstance(data, dict) else [data]):
        return HandedBack(message)
    if code == INVALID_PARAMS:
        return ToolError(400, message)
    # A status of HTTP is one that the server chose; the codes of JSON-RPC are negative.
    if (status := status_in(code)) is not None:
        return ToolError(status, message)
    return ToolError(500, message, private=True)


def _check_output(output: dict[str, Any], max_size: int) -> None:
    try:
        if largest_json(output) <= max_size:
            return
    except JsonError as exc:
        raise ToolError(502, f"the tool's result: {exc}") from None
    if len(json.dumps(output, ensure_ascii=False).encode(errors="replace")) > max_size:
        raise ToolError(502, f"the tool's result is over {max_size} bytes")
