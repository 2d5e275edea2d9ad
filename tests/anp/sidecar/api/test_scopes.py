"""Scopes of local callers: the whole table with each credential.

`AGENT` and `OPEN` below are the only operations that go without the owner. An operation
that is new, and is not here, needs the owner's token; to let an agent use it, it has to
be written down here too.
"""

from __future__ import annotations

from typing import Any, Final, cast

import httpx
import pytest
from starlette.applications import Starlette

from anp.errors import ErrorKind
from anp.sidecar.api.app import operations_of
from anp.sidecar.api.guard import OPEN_PATHS, Door, Guard
from anp.sidecar.api.openapi import SECURITY, openapi
from anp.sidecar.api.table import LocalScope, Operation, get, routes_of

PORT: Final = 8484
AGENT_TOKEN: Final = "a" * 43
OWNER_TOKEN: Final = "o" * 43

OPEN: Final = {"GET /livez", "GET /readyz"}
"Operations that need no token: they say nothing but whether the daemon is well."

AGENT: Final = {
    *("GET /metrics", "GET /v1/info", "GET /v1/events"),
    *("GET /v1/calls", "POST /v1/calls", "GET /v1/calls/{id}"),
    *("GET /v1/calls/{id}/events", "POST /v1/calls/{id}/cancel"),
    *("GET /v1/capabilities", "GET /v1/capabilities/{name}"),
    *("GET /v1/peers", "GET /v1/peers/show", "GET /v1/peers/offers"),
    *("GET /v1/peers/describe", "GET /v1/peers/find", "POST /v1/calls/follow"),
    *("POST /v1/peers/ask", "POST /v1/peers/tell", "GET /v1/heard"),
    *("GET /v1/protocols", "GET /v1/consensus"),
    *("GET /v1/tasks", "POST /v1/files", "POST /v1/tasks", "GET /v1/tasks/{id}"),
    *("GET /v1/tasks/{id}/events", "GET /v1/tasks/{id}/artifacts/{n}"),
    *("POST /v1/tasks/{id}/messages", "POST /v1/tasks/{id}/cancel"),
    "POST /v1/tasks/wait",
    *("GET /v1/sessions", "GET /v1/sessions/{id}", "GET /v1/sessions/{id}/events"),
    "POST /v1/sessions/{id}/close",
    *("GET /v1/groups", "POST /v1/groups", "POST /v1/groups/apply"),
    *("GET /v1/groups/{id}", "GET /v1/groups/{id}/events"),
    *(
        f"POST /v1/groups/{{id}}/{what}"
        for what in (
            *("messages", "invite", "accept", "decline", "approve", "deny"),
            *("leave", "remove", "close"),
        )
    ),
    *("GET /v1/subscriptions", "POST /v1/subscriptions", "POST /v1/events"),
    *("GET /v1/subscriptions/{id}", "POST /v1/subscriptions/{id}/cancel"),
    "GET /v1/subscriptions/{id}/runs",
    *("GET /v1/inbox", "POST /v1/inbox/next", "GET /v1/inbox/tasks"),
    *(
        f"{'POST' if what else 'GET'} /v1/inbox/{{id}}{what}"
        for what in ("", "/ack", "/release", "/progress", "/messages", "/parts")
    ),
    *(
        f"POST /v1/inbox/{{id}}/{what}"
        for what in ("ask", "result", "failure", "reject")
    ),
}
"Operations of scope `agent`: calls, and reading what they need."


class _Nothing:
    """Stands in for a daemon that no request gets to."""

    def __getattr__(self, name: str) -> _Nothing:
        return _Nothing()


OPERATIONS: Final = operations_of(cast(Any, _Nothing()))

NAMES: Final = {f"{one.method} {one.path}": one for one in OPERATIONS}


async def asked(
    operation: Operation, *, port: int | None, token: str = "", cookie: bool = False
) -> tuple[httpx.Response, list[str]]:
    """Send an empty request; return the answer, and the operations that it reached."""
    reached: list[str] = []

    async def handler(request: object, *given: object) -> httpx.Response:
        reached.append(operation.name)
        raise AssertionError("reached")

    door = Door(
        port=port,
        token=AGENT_TOKEN,
        owner_token=OWNER_TOKEN,
        session=lambda _: cookie,
    )
    # The body and the query are left out: the scope is checked before them.
    bare = Operation(
        method=operation.method,
        path=operation.path,
        scope=operation.scope,
        name=operation.name,
        summary=operation.summary,
        handler=handler,
        answer=operation.answer,
    )
    app = Guard(Starlette(routes=routes_of([bare])), door)
    headers = {"host": f"127.0.0.1:{PORT}"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://anpd"
    ) as http:
        path = operation.path.replace("{", "").replace("}", "")
        return await http.request(operation.method, path, headers=headers), reached


def test_only_what_is_written_down_here_goes_without_the_owner() -> None:
    scopes = {name: one.scope for name, one in NAMES.items()}
    assert {n for n, scope in scopes.items() if scope is LocalScope.NONE} == OPEN
    assert {n for n, scope in scopes.items() if scope is LocalScope.AGENT} == AGENT
    assert {name.partition(" ")[2] for name in OPEN} == OPEN_PATHS


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("port", [None, PORT])
async def test_an_agent_reaches_calls_and_nothing_of_the_owners(
    name: str, port: int | None
) -> None:
    answer, reached = await asked(NAMES[name], port=port, token=AGENT_TOKEN)
    if name in OPEN | AGENT:
        assert reached == [NAMES[name].name]
        return
    assert reached == []
    assert answer.status_code == 403
    problem = answer.json()
    assert (problem["kind"], problem["needed_scope"]) == ("policy", "owner")
    assert "owner.json" in problem["detail"]
    assert 'scope="owner"' in answer.headers["www-authenticate"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_request_without_a_token_is_an_agents_on_the_socket_alone(
    name: str,
) -> None:
    _, reached = await asked(NAMES[name], port=None)
    assert bool(reached) == (name in OPEN | AGENT)
    for token in ("", "wrong"):
        answer, reached = await asked(NAMES[name], port=PORT, token=token)
        assert bool(reached) == (name in OPEN)
        assert reached or answer.status_code == 401


@pytest.mark.parametrize("name", NAMES)
async def test_the_owner_reaches_everything(name: str) -> None:
    for port in (None, PORT):
        _, reached = await asked(NAMES[name], port=port, token=OWNER_TOKEN)
        assert reached
    _, reached = await asked(NAMES[name], port=PORT, cookie=True)
    assert reached


async def test_a_wrong_token_is_no_agent_on_the_socket() -> None:
    operation = NAMES["GET /v1/info"]
    answer, reached = await asked(operation, port=None, token="wrong")
    assert (answer.status_code, reached) == (401, [])


async def test_an_empty_token_opens_nothing() -> None:
    app = Guard(Starlette(), Door(port=PORT))
    headers = {"host": f"127.0.0.1:{PORT}", "authorization": "Bearer "}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://anpd") as http:
        assert (await http.get("/v1/info", headers=headers)).status_code == 401


async def test_no_guard_is_no_scope() -> None:
    app = Starlette(routes=routes_of([NAMES["GET /v1/info"]]))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://anpd") as http:
        assert (await http.get("/v1/info")).status_code == 403


def test_an_operation_without_a_scope_does_not_build() -> None:
    with pytest.raises(TypeError, match="scope"):
        get("/v1/samples", ErrorKind)  # type: ignore[call-arg] # that is the point


def test_the_document_shows_the_scope_of_each_operation() -> None:
    document = openapi(OPERATIONS, version="1")
    for name, operation in NAMES.items():
        method, _, path = name.partition(" ")
        shown = document["paths"][path][method.lower()]["security"]
        assert shown == SECURITY[operation.scope]
        assert ({"token": ["owner"]} in shown) == (name not in OPEN | AGENT)
