"""The local API as a web application: its operations behind a door.

It is loaded when the daemon is ready, or with the first request: it has the classes of
all bodies and answers, a seventh of what there is to load.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from anp.sidecar.api.dashboard import Dashboard
from anp.sidecar.api.guard import Door, Guard
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
from anp.sidecar.api.table import Operation, operations_in, routes_of
from anp.sidecar.daemon import Daemon
from anp.sidecar.telemetry.tracing import TraceContext
from anp.version import daemon_version


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
