"""The router of the API finds what Starlette's own finds, in a look at one noun."""

from __future__ import annotations

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from anp.sidecar.api.app import NounRouter


async def named(request: Request) -> Response:
    return PlainTextResponse(request.scope["route"].path)


PATHS = (
    "/",
    "/livez",
    "/v1/groups",
    "/v1/groups/apply",
    "/v1/groups/{id}",
    "/v1/groups/{id}/messages",
    "/v1/tasks/{id}",
    "/dashboard/session",
    "/dashboard/{name:path}",
    "/{page}.txt",
)

ASKED = (
    "/",
    "//",
    "/livez",
    "/livez/",
    "/v1",
    "/v1/groups",
    "/v1/groups/",
    "/v1/groups/apply",
    "/v1/groups/7/messages",
    "/v1/groups/7/other",
    "/v1/tasks/7",
    "/v1/calls",
    "/v1%2Fgroups",
    "/dashboard/session",
    "/dashboard/a/b",
    "/robots.txt",
)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_it_answers_as_a_router_that_tries_all_routes(method: str) -> None:
    routes = [Route(path, named) for path in PATHS]
    plain, ours = Starlette(routes=routes), Starlette(routes=routes)
    plain.router.redirect_slashes = False
    ours.router = NounRouter(routes)
    found = []
    for app in (plain, ours):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://anpd"
        ) as client:
            answers = [await client.request(method, path) for path in ASKED]
        found.append(
            [(one.status_code, one.text, one.headers.get("allow")) for one in answers]
        )
    assert found[0] == found[1]
    assert (200 if method == "GET" else 405) in {one[0] for one in found[0]}
