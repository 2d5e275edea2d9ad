"""The MCP face over streamable HTTP, at `/mcp` of the local API; built at first use."""

from __future__ import annotations

import asyncio
import contextlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from anp.extras import missing

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

MAX_SESSIONS = 64
"MCP sessions at a time."

IDLE_TIMEOUT = 1_800.0
"Seconds after which a session that nobody uses is ended."

MAX_BODY = 2 * 1024 * 1024
"Largest body of a request, in bytes, as everywhere in the API."


class McpMount:
    """Starts the MCP face when the first client comes, and ends it with the API.

    Host, Origin and token were checked before: it stands behind the same doors.
    """

    def __init__(self, socket: Path) -> None:
        """Make it.

        Args:
            socket: The API's own socket: the face is a client of it, as on stdio.
        """
        self._socket = socket
        self._lock = asyncio.Lock()
        self._stop = asyncio.Event()
        self._manager: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None

    def routes(self) -> list[BaseRoute]:
        """Return the route, to be mounted behind any number of doors."""
        return [Route("/mcp", endpoint=self)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if reason := missing("mcp"):
            await PlainTextResponse(f"MCP: {reason}\n", 501)(scope, receive, send)
            return
        async with self._lock:
            if self._manager is None:
                self._manager = await self._start()
            manager = self._manager
        await manager.handle_request(scope, receive, send)

    async def close(self) -> None:
        """End all sessions."""
        self._stop.set()
        if self._running is not None:
            await asyncio.wait({self._running})

    async def _start(self) -> StreamableHTTPSessionManager:
        ready: asyncio.Future[StreamableHTTPSessionManager] = (
            asyncio.get_running_loop().create_future()
        )
        # Opened and closed in one task, as its task group wants it.
        self._running = asyncio.create_task(self._run(ready))
        return await asyncio.shield(ready)

    async def _run(self, ready: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        try:
            # Half a second that no call of a peer should have to wait for.
            await asyncio.to_thread(_import)
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

            from anp.sidecar.mcp.local_api import LocalApi
            from anp.sidecar.mcp.server import make_server

            async with contextlib.AsyncExitStack() as stack:
                api = await stack.enter_async_context(LocalApi(self._socket))
                manager = StreamableHTTPSessionManager(
                    make_server(api),
                    session_idle_timeout=IDLE_TIMEOUT,
                    max_sessions=MAX_SESSIONS,
                    max_request_body_size=MAX_BODY,
                )
                await stack.enter_async_context(manager.run())
                ready.set_result(manager)
                await self._stop.wait()
        except BaseException as exc:
            if not ready.done():
                ready.set_exception(exc)
            raise


def _import() -> None:
    import_module("mcp.server.streamable_http_manager")
    import_module("anp.sidecar.mcp.server")
