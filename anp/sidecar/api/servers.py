"""Web servers of the daemon, each on a listener of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from anp.errors import CallError, ErrorKind
from anp.sidecar.api.connections import ConnectionLimits, DoorConfig

logger = logging.getLogger(__name__)

BACKLOG = 1024
"""Connections that wait to be taken; a client whose connection finds no room among
them is refused by the system at once on a Unix socket."""

ACCEPTED_AT_ONCE = 16
"""Connections that are taken in one turn of the loop.

The loop also tries this often when descriptors have run out, with a traceback each.
"""

DATE_INTERVAL = 1.0
"Seconds between two looks at the clock, for the date of answers."


class LateApp:
    """An application that is made with its first request, or before that."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, ASGIApp]]) -> None:
        self._make = make
        self._making: asyncio.Task[ASGIApp] | None = None
        self._waiting: list[Callable[[ASGIApp], None]] = []

    def when_made(self, take: Callable[[ASGIApp], None]) -> None:
        """Have the application given to a function as soon as it is made."""
        self._waiting.append(take)

    async def load(self) -> ASGIApp:
        """Make the application once, and return it; after an error it tries again."""
        making = self._making
        if making is None or (
            making.done() and (making.cancelled() or making.exception() is not None)
        ):
            making = self._making = asyncio.create_task(self._made())
        return await asyncio.shield(making)

    async def _made(self) -> ASGIApp:
        app = await self._make()
        for take in self._waiting:
            take(app)
        return app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await (await self.load())(scope, receive, send)


def _left_alone(app: ASGIApp) -> ASGIApp:
    """Return the application, whose requests end quietly when their client leaves.

    Whoever reads the rest of a body learns so by an exception, which the web server
    would log with a traceback: any client could fill the log with them.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except ClientDisconnect:
            logger.debug("client left before its request was read")

    return answer


@contextlib.asynccontextmanager
async def served(
    listener: socket.socket, app: ASGIApp, *, name: str, limits: ConnectionLimits
) -> AsyncIterator[Callable[[], None]]:
    """Serve an application on a listener until the block ends.

    Yields what has the server end; the end of the block does that, too, and waits.
    """
    config = DoorConfig(
        _left_alone(app),
        name=name,
        limits=limits,
        backlog=ACCEPTED_AT_ONCE,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        # Clients reach us without a proxy: nobody else may say who they are.
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    looking = asyncio.create_task(config.look_after())
    try:
        await server.is_up.wait()
        if isinstance(app, LateApp):
            # Requests go to it without this detour then.
            app.when_made(lambda made: config.replace(_left_alone(made)))
        # More may wait than are taken at once.
        listener.listen(BACKLOG)
        yield server.leave
    finally:
        server.leave()
        await serving
        looking.cancel()
        listener.close()


def unix_listener(path: Path) -> socket.socket:
    """Return a Unix socket that only its owner may use; see `tcp_listener`."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # uvicorn's own `uds=` would leave the socket open to everybody (0666).
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError as exc:
        listener.close()
        raise CallError(
            ErrorKind.LOCAL_RESOURCE, f"cannot listen on {path}: {exc.strerror}"
        ) from exc
    finally:
        os.umask(before)
    return listener


def tcp_listener(host: str, port: int, setting: str) -> socket.socket:
    """Return a listener on a port.

    Args:
        setting: Name of the setting of the port, for the error.

    Raises:
        CallError: `local_resource`, the address cannot be used.
    """
    # With its protocol named, asyncio sets TCP_NODELAY on what it accepts; without it
    # the two writes of an answer wait 40 ms for the client's acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as exc:
        listener.close()
        raise CallError(
            ErrorKind.LOCAL_RESOURCE,
            f"cannot listen on {host}:{port}: {exc.strerror}; set another {setting}",
        ) from exc
    return listener


class _Server(uvicorn.Server):
    """A web server that reports its start, and leaves signals to the daemon."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """Take no new connections, and end after the requests under way."""
        self.should_exit = True
        self._leaving.set()

    async def main_loop(self) -> None:
        # The library's own looks ten times a second if it should end.
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DATE_INTERVAL):
                    await self._leaving.wait()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets=sockets)
        finally:
            self.is_up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield
