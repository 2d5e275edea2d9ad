"""The doors of the local API: a Unix socket, and loopback if the owner wants it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from starlette.types import ASGIApp

from anp.sidecar.api.connections import ConnectionLimits
from anp.sidecar.api.dashboard import Dashboard
from anp.sidecar.api.guard import Door, load_token, new_token
from anp.sidecar.api.servers import LateApp, served, tcp_listener, unix_listener
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import OwnerAddress
from anp.sidecar.mcp.http import McpMount

LOOPBACK = "127.0.0.1"
"The only address that the API is ever bound to."


@dataclass(frozen=True, slots=True)
class Doors:
    """The addresses of the API."""

    socket: Path
    "The Unix socket."

    token_file: Path
    "The file with the token of scope `agent`."

    load: Callable[[], Awaitable[object]]
    "Loads what answers requests; otherwise the first one does."

    url: str | None = None
    "On loopback TCP, or None."


@contextlib.asynccontextmanager
async def serve_api(daemon: Daemon) -> AsyncIterator[Doors]:
    """Serve the API of `daemon` on its socket, and on loopback if it is so set.

    Raises:
        CallError: `local_resource`, an address cannot be used.
    """
    path = daemon.home.socket_path()
    limits = ConnectionLimits.of(daemon.config.limits.api_connections)
    async with contextlib.AsyncExitStack() as stack:
        mount = McpMount(path)
        stack.push_async_callback(mount.close)

        dashboard = Dashboard()
        token, owner_token = load_token(daemon.home.token_file), new_token()

        async def of_sockets() -> ASGIApp:
            return (await asyncio.to_thread(_load))(
                daemon,
                door=Door(token=token, owner_token=owner_token),
                dashboard=dashboard,
                more=mount.routes(),
            )

        app = LateApp(of_sockets)
        doors = Doors(path, daemon.home.token_file, app.load)
        # Connections of the agent's program never take the owner's places.
        owner_path = daemon.home.owner_socket_path()
        leave = []
        for name, each in (("socket", path), ("owner", owner_path)):
            listener = unix_listener(each)
            stack.callback(each.unlink, missing_ok=True)
            server = served(listener, app, name=name, limits=limits)
            leave.append(await stack.enter_async_context(server))
        # Both end side by side, as each waits a tenth of a second for its clients.
        stack.callback(lambda: [each() for each in leave])
        daemon.home.write_owner(OwnerAddress(str(owner_path), owner_token))
        stack.callback(daemon.home.remove_owner)
        opening = asyncio.Lock()
        opened: list[str] = []

        async def open_loopback() -> str:
            """Open the loopback port unless it is open; return its address."""
            async with opening:
                if not opened:
                    tcp = tcp_listener(
                        LOOPBACK, daemon.config.listen.api_port or 0, "listen.api_port"
                    )
                    port = tcp.getsockname()[1]
                    session = partial(dashboard.admits, port=port)
                    door = Door(
                        port=port, token=token, owner_token=owner_token, session=session
                    )

                    async def of_port() -> ASGIApp:
                        return (await asyncio.to_thread(_load))(
                            daemon,
                            door=door,
                            dashboard=dashboard,
                            more=[*mount.routes(), *dashboard.routes()],
                        )

                    await loopback.enter_async_context(
                        served(tcp, LateApp(of_port), name="port", limits=limits)
                    )
                    opened.append(f"http://{LOOPBACK}:{port}")
            return opened[0]

        # A stack of its own: what a link opens later ends after the streams, as well.
        loopback = await stack.enter_async_context(contextlib.AsyncExitStack())
        dashboard.opener = open_loopback
        if daemon.config.listen.api_port is not None:
            doors = replace(doors, url=await open_loopback())
        updates = daemon.attaching.updates
        listening: list[str] = []

        async def open_updates() -> str:
            """Open the listener for updates unless it is open; return its root."""
            async with opening:
                if not listening:
                    wanted = daemon.config.updates
                    tcp = tcp_listener(wanted.host, wanted.port, "updates.port")
                    port = tcp.getsockname()[1]
                    from anp.sidecar.api.updates import make_updates_app

                    app = make_updates_app(updates)
                    await loopback.enter_async_context(
                        served(tcp, app, name="updates", limits=ConnectionLimits())
                    )
                    listening.append(wanted.url or f"http://{wanted.host}:{port}")
            return listening[0].rstrip("/")

        updates.opener = open_updates
        # Calls and streams end before their servers wait for them.
        stack.push_async_callback(daemon.calls.close)
        stack.callback(daemon.events.close)
        stack.callback(daemon.calls.end_watching)
        stack.callback(daemon.tasks.sessions.watching.end)
        stack.callback(daemon.attaching.inbox.close)
        yield doors


def _load() -> Callable[..., ASGIApp]:
    """Return what makes the application, from the module that has all operations."""
    from anp.sidecar.api.app import make_app

    return make_app
