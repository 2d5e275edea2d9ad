"""An MCP server over streamable HTTP; run as: python mcp_http_server.py PORT [MODE].

MODE is `sse` (default), `json`, or `stateless`. With TOKEN in its environment it wants
that as bearer token.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send

server = MCPServer("test")
cancelled = asyncio.Event()


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def caller(ctx: Context[Any]) -> dict[str, str]:
    """Say who calls."""
    meta = ctx.request_context.meta or {}
    return {name: str(value) for name, value in dict(meta).items()}


@server.tool()
def huge(size: int) -> str:
    """Say much."""
    return "x" * size


@server.tool()
def fail() -> str:
    """Fail."""
    raise RuntimeError("no oven")


@server.tool()
async def hang() -> str:
    """Never end."""
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        cancelled.set()
        raise
    return ""


@server.tool()
async def was_cancelled() -> bool:
    """Wait until `hang` was cancelled."""
    await cancelled.wait()
    return True


@server.tool()
async def more(ctx: Context[Any]) -> str:
    """Get another tool."""

    def late() -> str:
        return "late"

    server.add_tool(late, name="late", description="Came later.")
    await ctx.session.send_tool_list_changed()
    return "ok"


class Guard:
    """Wants the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self.wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", []))
        if scope["type"] == "http" and headers.get(b"authorization") != self.wanted:
            start = {"type": "http.response.start", "status": 401, "headers": []}
            await send(start)
            await send({"type": "http.response.body", "body": b""})
            return
        await self.app(scope, receive, send)


def main() -> None:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    mode = sys.argv[2] if len(sys.argv) > 2 else "sse"
    app: ASGIApp = server.streamable_http_app(
        json_response=mode == "json", stateless_http=mode == "stateless"
    )
    if token := os.environ.get("TOKEN"):
        app = Guard(app, token)
    print(url, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main()
