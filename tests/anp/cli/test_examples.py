"""The example that a command's help shows is a request that the local API takes."""

from __future__ import annotations

import asyncio
import io
import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from anp.cli.app import run
from anp.cli.client import LocalHttp
from anp.cli.examples import EXAMPLES, example_of
from anp.sidecar.api.app import operations_of
from anp.sidecar.api.table import LocalScope, give_scope, routes_of
from anp.sidecar.home.home import ApiAddress, Home, OwnerAddress

AT_HOME = {
    *("up", "logs", "mcp", "run", "identity create", "identity verify"),
    *("attach a2a", "attach callback", "attach http", "attach mcp", "attach python"),
    *("attach inbox", "attachments remove"),
    *("a2a tokens add", "a2a tokens revoke"),
}
"Commands that first work on this machine or ask another; some never ask the daemon."

LISTS = {
    *("approvals list", "attachments list", "calls list", "capabilities list"),
    *("negotiations list", "peers list", "protocols list", "tasks list", "spend"),
}
REACHED = 418
"The status of an answer that only a request gets that passed every check."


class _Nothing:
    """A daemon of which nothing is asked: requests end before they reach it."""

    def __getattr__(self, name: str) -> Any:
        return _Nothing()


class _Answer(io.BytesIO):
    status = 0


async def _reached(request: Request, *body: object) -> Response:
    problem = {"kind": "policy", "detail": "reached"}
    return Response(json.dumps(problem), status_code=REACHED)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[httpx.Response]:
    """Check what commands send as the daemon does, and remember what it answers."""
    table = [
        replace(one, handler=_reached) for one in operations_of(cast(Any, _Nothing()))
    ]
    api = Starlette(routes=routes_of(table))
    answered: list[httpx.Response] = []

    async def as_owner(scope: Any, receive: Any, send: Any) -> None:
        give_scope(scope, LocalScope.OWNER)
        await api(scope, receive, send)

    async def send(method: str, path: str, **request: Any) -> httpx.Response:
        transport = httpx.ASGITransport(as_owner)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://anpd"
        ) as client:
            return await client.request(method, path, **request)

    @contextmanager
    def ask(sender: LocalHttp, method: str, path: str, **sent: Any) -> Iterator[Any]:
        content = sent.get("body")
        if content is not None and not isinstance(content, bytes):
            content = content.read()
        answer = asyncio.run(
            send(
                method,
                path,
                params=sent.get("params"),
                content=content,
                headers=sent.get("headers"),
            )
        )
        answered.append(answer)
        body = _Answer(answer.content)
        body.status = answer.status_code
        yield body

    monkeypatch.setattr(LocalHttp, "ask", ask)
    return answered


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """Give a home that looks as if a daemon ran in it, and the files of examples."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "product.json").write_text("{}")
    home = Home(tmp_path / "home")
    home.create()
    with home.lock():
        home.write_api(ApiAddress("unused", 1, "ws://127.0.0.1:1/", "did:key:z"))
        home.write_owner(OwnerAddress("unused", "token"))
        yield home


@pytest.mark.parametrize("command", sorted((EXAMPLES.keys() | LISTS) - AT_HOME))
def test_an_example_is_a_request_that_the_daemon_takes(
    command: str, home: Home, answers: list[httpx.Response]
) -> None:
    words = shlex.split(example_of(command))[1:]
    code = run(["--home", str(home.path), *words])
    refused = [one for one in answers if one.status_code != REACHED]
    assert [(one.status_code, one.text) for one in refused] == []
    assert answers, f"{command} ended with {code} and asked nothing"
