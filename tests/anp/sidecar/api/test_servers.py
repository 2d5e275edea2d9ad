"""Servers whose application is loaded late, and that end at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from anp.sidecar.api import servers
from anp.sidecar.api.connections import ConnectionLimits
from anp.sidecar.api.servers import LateApp, served, unix_listener


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
