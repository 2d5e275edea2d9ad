"""Web servers of the daemon, each on a listener of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Generator
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from anp.errors import CallError, ErrorKind
from anp.sidecar.api.connections import ConnectionLimits, DoorConfig

__all__ = ["served", "tcp_listener", "unix_listener"]

BACKLOG = 128
"Connections that wait to be taken."

ACCEPTED_AT_ONCE = 16
"""Connections that are taken in one turn of the loop.

The loop also tries this often when descriptors have run out, with a traceback each.
"""


@contextlib.asynccontextmanager
async def served(
    listener: socket.socket, app: ASGIApp, *, name: str, limits: ConnectionLimits
) -> AsyncIterator[None]:
    """Serve an application on a listener until the block ends."""
    config = DoorConfig(
        app,
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
        # More may wait than are taken at once.
        listener.listen(BACKLOG)
        yield
    finally:
        server.should_exit = True
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets=sockets)
        finally:
            self.is_up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield
