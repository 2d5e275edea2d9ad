"""What the dashboard needs of the local API beyond its other operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from anp.sidecar.api.answers import NUMBER, TEXT, answer_of, ref, some
from anp.sidecar.api.bodies import EmptyBody
from anp.sidecar.api.dashboard import Dashboard
from anp.sidecar.api.table import Answer, Operation
from anp.sidecar.api.views import call_view

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["dashboard_operations"]


def dashboard_operations(daemon: Daemon, dashboard: Dashboard) -> list[Operation]:
    """Return the operations behind `anpd dashboard` and the page of calls."""
    api = _DashboardApi(daemon, dashboard)
    return [
        Operation(
            method="POST",
            path="/v1/dashboard",
            name="openDashboard",
            summary="Make a link that signs one browser in to the dashboard, once.",
            handler=api.open,
            body=EmptyBody,
            answers=(
                Answer(
                    text="The link, and the seconds for which it can be opened.",
                    schema=answer_of(link=TEXT, expires_in=NUMBER),
                ),
            ),
            problems=(507,),
        ),
        Operation(
            method="GET",
            path="/v1/calls",
            name="listCalls",
            summary="List the calls that are kept, the newest first.",
            handler=api.calls,
            answers=(
                Answer(text="The calls.", schema=answer_of(calls=some(ref("Call")))),
            ),
            tag="calls",
        ),
    ]


class _DashboardApi:
    """The handlers, thin."""

    def __init__(self, daemon: Daemon, dashboard: Dashboard) -> None:
        self._daemon = daemon
        self._dashboard = dashboard

    async def open(self, request: Request) -> Response:
        link, seconds = await self._dashboard.link()
        return JSONResponse({"link": link, "expires_in": seconds})

    async def calls(self, request: Request) -> Response:
        kept = self._daemon.calls.kept()
        return JSONResponse({"calls": [call_view(call) for call in kept]})
