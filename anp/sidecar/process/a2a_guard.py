"""The guard of the A2A face: pages of others, the pace of callers without a token."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anp.sidecar.api.guard import Door, check_page, single_headers
from anp.sidecar.api.problems import ApiError
from anp.sidecar.api.tokenless import TokenlessPace

CARDS = "/.well-known/"
"Part of the paths of cards, which everybody may read."


class A2aGuard:
    """Stands before the face; who calls is found out behind it."""

    def __init__(self, app: ASGIApp, open_port: int | None) -> None:
        """Make the guard.

        Args:
            open_port: The port of a face that asks for no token; None for one that
                does. Pages in a browser can send requests to an open one, also under
                a name of theirs that leads to this machine.
        """
        self._app = app
        self._door = None if open_port is None else Door(port=open_port)
        self._tokenless = TokenlessPace()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        try:
            headers = single_headers(scope)
            if self._door is not None:
                check_page(self._door, headers)
        except ApiError as exc:
            told = JSONResponse({"error": exc.detail}, exc.status)
            if await self._tokenless.wait(scope, receive):
                await told(scope, receive, send)
            return
        if self._door is None and CARDS in scope["path"]:
            if await self._tokenless.wait(scope, receive):
                await self._app(scope, receive, send)
            return
        await self._app(scope, receive, self._in_turn(scope, receive, send))

    def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> Send:
        """Return `send`, with a wait before the answer to an unknown caller."""
        is_dropped = False

        async def sent(message: Message) -> None:
            nonlocal is_dropped
            if message["type"] == "http.response.start" and message["status"] == 401:
                is_dropped = not await self._tokenless.wait(scope, receive)
            if not is_dropped:
                await send(message)

        return sent
