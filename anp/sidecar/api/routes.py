"""The ways of requests to their operations, without a look at each of the routes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from starlette.requests import Request
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from anp.sidecar.api.table import Operation, endpoint_of


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
