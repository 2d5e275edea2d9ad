"""The local API: on a Unix socket, and on loopback if the owner wants it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from anp.sidecar.api.connections import ConnectionLimits
from anp.sidecar.api.dashboard import Dashboard
from anp.sidecar.api.guard import Door, Guard, load_token, new_token
from anp.sidecar.api.openapi import openapi
from anp.sidecar.api.operations.calls import CallOperations
from anp.sidecar.api.operations.capabilities import CapabilityOperations
from anp.sidecar.api.operations.daemon import DaemonOperations
from anp.sidecar.api.operations.distribution import DistributionOperations
from anp.sidecar.api.operations.files import FileOperations
from anp.sidecar.api.operations.groups.operations import GroupOperations
from anp.sidecar.api.operations.inbox import InboxOperations
from anp.sidecar.api.operations.negotiations import NegotiationOperations
from anp.sidecar.api.operations.peers import PeerOperations
from anp.sidecar.api.operations.protocols import ProtocolOperations
from anp.sidecar.api.operations.sessions import SessionOperations
from anp.sidecar.api.operations.subscriptions import SubscriptionOperations
from anp.sidecar.api.operations.tasks import TaskOperations
from anp.sidecar.api.problems import http_problem
from anp.sidecar.api.routes import NounRouter, straight
from anp.sidecar.api.servers import served, tcp_listener, unix_listener
from anp.sidecar.api.table import Operation, operations_in, routes_of
from anp.sidecar.api.updates import make_updates_app
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import OwnerAddress
from anp.sidecar.mcp.http import McpMount
from anp.sidecar.telemetry.tracing import TraceContext
from anp.version import daemon_version

__all__ = ["Doors", "make_app", "operations_of", "serve_api"]

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
"The only address that the API is ever bound to."

SOCKET_LIMITS = ConnectionLimits(max_known=192)
"Limits of a socket: its clients have streams and calls that go on for long."


@dataclass(frozen=True, slots=True)
class Doors:
    """The addresses of the API."""

    socket: Path
    "The Unix socket."

    token_file: Path
    "The file with the token of scope `agent`."

    url: str | None = None
    "On loopback TCP, or None."


def operations_of(
    daemon: Daemon, dashboard: Dashboard | None = None
) -> list[Operation]:
    """Return every operation of the API of `daemon`; fixed paths stand first."""
    nouns = (
        DaemonOperations(daemon, dashboard or Dashboard()),
        CallOperations(daemon),
        CapabilityOperations(daemon),
        DistributionOperations(daemon),
        ProtocolOperations(daemon),
        NegotiationOperations(daemon),
        PeerOperations(daemon),
        TaskOperations(daemon),
        SessionOperations(daemon),
        GroupOperations(daemon),
        FileOperations(daemon),
        InboxOperations(daemon),
        SubscriptionOperations(daemon),
    )
    return [operation for noun in nouns for operation in operations_in(noun)]


def make_app(
    daemon: Daemon,
    *,
    door: Door | None = None,
    dashboard: Dashboard | None = None,
    more: Sequence[BaseRoute] = (),
) -> ASGIApp:
    """Return the API of `daemon` as an ASGI application behind one door.

    Args:
        door: The conditions for requests; None is for the Unix socket.
        dashboard: Makes the links to its pages.
        more: Routes that are no operations: the MCP face, the dashboard, metrics.
    """
    operations = operations_of(daemon, dashboard)

    @cache
    def document() -> dict[str, Any]:
        return openapi(operations, version=daemon_version())

    async def described(request: Request) -> Response:
        # In a thread: it is made of a hundred classes, once.
        return JSONResponse(await asyncio.to_thread(document))

    app = Starlette(
        routes=[
            Route("/v1/openapi.json", described),
            *routes_of(operations),
            *more,
        ],
        exception_handlers={HTTPException: http_problem, Exception: http_problem},
    )
    app.router = NounRouter(app.router.routes)
    return Guard(TraceContext(straight(operations, app)), door or Door())


@contextlib.asynccontextmanager
async def serve_api(daemon: Daemon) -> AsyncIterator[Doors]:
    """Serve the API of `daemon` on its socket, and on loopback if it is so set.

    Raises:
        CallError: `local_resource`, an address cannot be used.
    """
    path = daemon.home.socket_path()
    async with contextlib.AsyncExitStack() as stack:
        mount = McpMount(path)
        stack.push_async_callback(mount.close)
        doors = Doors(path, daemon.home.token_file)
        dashboard = Dashboard()
        token, owner_token = load_token(daemon.home.token_file), new_token()
        app = make_app(
            daemon,
            door=Door(token=token, owner_token=owner_token),
            dashboard=dashboard,
            more=mount.routes(),
        )
        # Connections of the agent's program never take the owner's places.
        owner_path = daemon.home.owner_socket_path()
        for name, each in (("socket", path), ("owner", owner_path)):
            listener = unix_listener(each)
            stack.callback(each.unlink, missing_ok=True)
            await stack.enter_async_context(
                served(listener, app, name=name, limits=SOCKET_LIMITS)
            )
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
                    app = make_app(
                        daemon,
                        door=Door(
                            port=port,
                            token=token,
                            owner_token=owner_token,
                            session=session,
                        ),
                        dashboard=dashboard,
                        more=[*mount.routes(), *dashboard.routes()],
                    )
                    await loopback.enter_async_context(
                        served(tcp, app, name="port", limits=ConnectionLimits())
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
