"""Servers whose application is loaded late, and that end at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from anp.sidecar.a2a.face import A2aFace, make_face
from anp.sidecar.api import servers
from anp.sidecar.api.connections import ConnectionLimits
from anp.sidecar.api.servers import LateApp, served, unix_listener
from anp.sidecar.api.table import LocalScope, Operation, endpoint_of


async def test_an_application_is_made_once_with_the_first_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ASGIApp] = []

    async def make() -> ASGIApp:
        await asyncio.sleep(0)
        made.append(PlainTextResponse("well"))
        return made[-1]

    app = LateApp(make)
    path = tmp_path / "socket"
    limits = ConnectionLimits()
    async with served(unix_listener(path), app, name="socket", limits=limits):
        assert made == []
        transport = httpx.AsyncHTTPTransport(uds=str(path))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as api:
            both = await asyncio.gather(api.get("/"), api.get("/"))
            assert [one.text for one in both] == ["well", "well"]
            with monkeypatch.context() as patched:
                patched.setattr(LateApp, "__call__", None)
                assert (await api.get("/")).text == "well", "the same connection"
        # And one that comes later.
        anew = httpx.AsyncHTTPTransport(uds=str(path))
        async with httpx.AsyncClient(transport=anew, base_url="http://x") as api:
            assert (await api.get("/")).text == "well"
        assert await app.load() is made[0]
    assert len(made) == 1


async def test_a_server_does_not_wait_for_its_next_look_at_the_clock_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "DATE_INTERVAL", 3600.0)
    app = PlainTextResponse("well")
    listener = unix_listener(tmp_path / "socket")
    async with (
        asyncio.timeout(10),
        served(listener, app, name="socket", limits=ConnectionLimits()),
    ):
        pass


async def test_an_application_that_could_not_be_made_is_tried_again() -> None:
    tries: list[int] = []

    async def make() -> ASGIApp:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("no descriptors are left")
        return PlainTextResponse("well")

    app = LateApp(make)
    with pytest.raises(OSError, match="descriptors"):
        await app.load()
    assert await app.load() is await app.load()
    assert len(tries) == 2


class _Everybody:
    """Lets all callers in at the A2A face."""

    async def admit(self, headers: object) -> Any:
        await asyncio.sleep(0)
        return "caller"


async def _one_more(request: Request) -> bool:
    await asyncio.sleep(0)
    return True


async def _read(request: Request) -> PlainTextResponse:
    return PlainTextResponse(await request.body())


def _with_a_body(kind: str) -> ASGIApp:
    """Return an application whose path / reads a body, as one of ours does it."""
    if kind == "face":
        nothing: Any = None
        everybody: Any = _Everybody()
        return make_face(
            A2aFace(
                nothing, door=everybody, place=_one_more, card=nothing, max_body=1000
            )
        )
    read: Any = _read
    if kind == "operation":
        asked = Operation(
            method="POST",
            path="/",
            scope=LocalScope.NONE,
            name="read",
            summary="Read.",
            handler=read,
            answer=dict,
            raw_body=1000,
        )
        read = endpoint_of(asked)
    return Starlette(routes=[Route("/", read, methods=["POST"])])


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("plain", b"/"),
        ("late", b"/"),
        ("operation", b"/"),
        ("face", b"/"),
        ("face", b"/message:send"),
    ],
)
@pytest.mark.parametrize(
    "framing", [b"Content-Length: 100", b"Transfer-Encoding: chunked"]
)
async def test_a_client_that_leaves_in_its_request_makes_no_traceback(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    framing: bytes,
    kind: str,
    path: bytes,
) -> None:
    inside = _with_a_body(kind)
    read, left = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        read.set()
        try:
            await inside(scope, receive, send)
        finally:
            left.set()

    async def make() -> ASGIApp:
        await asyncio.sleep(0)
        return app

    door = tmp_path / "socket"
    taken = LateApp(make) if kind == "late" else app
    head = b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nA2A-Version: 1.0\r\n" + framing
    head += b"\r\nContent-Type: application/json\r\n\r\n"
    async with (
        asyncio.timeout(10),
        served(unix_listener(door), taken, name="socket", limits=ConnectionLimits()),
    ):
        for _ in range(2):
            _, writer = await asyncio.open_unix_connection(door)
            writer.write(head)
            await read.wait()
            writer.close()
            await left.wait()
            read.clear()
            left.clear()
    assert not [one for one in caplog.records if one.exc_info is not None]
