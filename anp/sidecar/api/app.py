"""The local API as a web application: its operations behind a door.

It is loaded when the daemon is ready, or with the first request: it has the classes of
all bodies and answers, a seventh of what there is to load.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

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
from anp.sidecar.api.table import Operation, endpoint_of, operations_in, routes_of
from anp.sidecar.daemon import Daemon
from anp.sidecar.telemetry.tracing import TraceContext
from anp.version import daemon_version

# The ways of requests to their operations, without a look at each of the routes.


def straight(operations: Iterable[Operation], app: ASGIApp) -> ASGIApp:
    """Return an application that calls operations with fixed paths at once.

    Args:
        app: Takes every other request; it has a hundred routes to try.
    """
    known = {
        (one.method, one.path): endpoint_of(one)
        for one in operations
        if "{" not in one.path
    }

    async def take(scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = known.get((scope.get("method", ""), scope.get("path", "")))
        if endpoint is None or scope["type"] != "http":
            await app(scope, receive, send)
            return
        response = await endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    return take


class NounRouter(Router):
    """A router that looks only at routes whose beginning a path has.

    Starlette tries one route after the other, and there are dozens of them.
    """

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        # A path with a slash too many is no other path of ours.
        super().__init__(routes, redirect_slashes=False)
        nouns = {noun for one in routes if (noun := _noun_of(one))}
        self._others = self._only(routes, "")
        self._nouns = {noun: self._only(routes, noun) for noun in nouns}

    @staticmethod
    def _only(routes: Sequence[BaseRoute], noun: str) -> Router:
        fit = [one for one in routes if _noun_of(one) in ("", noun)]
        return Router(fit, redirect_slashes=False)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        chosen = self._nouns.get(_beginning(scope["path"]), self._others)
        await chosen.app(scope, receive, send)


def _noun_of(route: BaseRoute) -> str:
    """Return the beginning of all paths of a route; empty if they differ."""
    noun = _beginning(route.path) if isinstance(route, Route) else ""
    return "" if "{" in noun else noun


def _beginning(path: str) -> str:
    return "/".join(path.split("/", 3)[:3])


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
        routes=[Route("/v1/openapi.json", described), *routes_of(operations), *more],
        exception_handlers={HTTPException: http_problem, Exception: http_problem},
    )
    app.router = NounRouter(app.router.routes)
    return Guard(TraceContext(straight(operations, app)), door or Door())
