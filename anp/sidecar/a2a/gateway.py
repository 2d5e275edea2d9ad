"""The gateway for local agents that speak A2A only: each named peer is an A2A agent.

Below `/peers/NAME/` there are the card and both bindings, as on the face for callers;
the peer does the tasks, over verified and encrypted channels.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

PEERS: Final = "/peers/"
"Path before the names of peers."

Make = Callable[[str], Awaitable[ASGIApp | None]]
"Makes the face of a peer by the owner's name for it; None if no peer has that name."


class A2aGateway:
    """An ASGI application that has a face for each peer."""

    def __init__(self, make: Make, *, port: int) -> None:
        """Begin without faces.

        Args:
            port: Port of 127.0.0.1 at which it is served.
        """
        self._make = make
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._faces: dict[str, ASGIApp] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        refused = self._foreign(Headers(scope=scope))
        if refused:
            await _refusal(403, refused)(scope, receive, send)
            return
        name, _, path = scope["path"].removeprefix(PEERS).partition("/")
        face = await self._face(name) if scope["path"].startswith(PEERS) else None
        if face is None:
            await _refusal(404, f"there is no peer at this path; {PEERS}NAME/ is one")(
                scope, receive, send
            )
            return
        await face({**scope, "path": f"/{path}", "root_path": ""}, receive, send)

    def _foreign(self, headers: Mapping[str, str]) -> str:
        """Return why a request may come from a web page; empty if it does not."""
        if headers.get("host", "").lower() not in self._hosts:
            return "this Host is not ours; use http://127.0.0.1 and the port"
        if "origin" in headers:
            return "web pages may not use the gateway"
        return ""

    async def _face(self, name: str) -> ASGIApp | None:
        if name not in self._faces:
            made = await self._make(name)
            if made is None:
                return None
            self._faces.setdefault(name, made)
        return self._faces[name]


def _refusal(status: int, text: str) -> ASGIApp:
    return JSONResponse({"error": text}, status)
