"""MCP servers over streamable HTTP: a real one, and some that are none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from anp.sidecar.attachments import (
    AttachmentError,
    AttachmentSpec,
    ToolError,
    open_attachment,
)
from tests.anp.sidecar.attachments.web import (
    LIMITS,
    Asked,
    answer,
    attached,
    call,
    serving,
)
from tests.e2e.agents.running import Agent, running


@pytest.fixture(params=["sse", "json", "stateless"])
def server(request: pytest.FixtureRequest) -> Iterator[Agent]:
    with running("mcp_http_server.py", request.param) as agent:
        yield agent


async def test_tools_are_listed_and_called(server: Agent) -> None:
    async with attached("mcp", f"{server.url}/mcp") as my:
        assert await call(my, "add", a=2, b=3) == {"result": 5}
        found = await call(my, "caller")
        assert found["anpd/caller"] == "did:key:zCaller"
        assert found["anpd/deadline"].endswith("Z")
        with pytest.raises(ToolError, match="executing tool"):
            await call(my, "fail")
        answers = await asyncio.gather(*(call(my, "add", a=n, b=1) for n in range(20)))
        assert answers == [{"result": n + 1} for n in range(20)]


async def test_a_result_over_the_limit_ends_its_own_call_only(server: Agent) -> None:
    limits = replace(LIMITS, max_result=10_000)
    async with attached("mcp", f"{server.url}/mcp", limits) as my:
        for size in (12_000, 400_000):
            with pytest.raises((ToolError, AttachmentError)):
                await call(my, "huge", size=size)
            assert await call(my, "add", a=1, b=1) == {"result": 2}


async def test_a_call_that_is_given_up_is_cancelled_at_the_server() -> None:
    with running("mcp_http_server.py") as server:
        async with attached("mcp", f"{server.url}/mcp") as my:
            with pytest.raises(ToolError) as caught:
                await call(my, "hang", 0.2)
            assert caught.value.code == 504
            assert await call(my, "was_cancelled") == {"result": True}


async def test_a_bearer_token_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MCP_TOKEN", "open-sesame")
    with running("mcp_http_server.py", TOKEN="open-sesame") as server:
        url = f"{server.url}/mcp"
        async with attached("mcp", url, bearer="env:MCP_TOKEN") as my:
            assert await call(my, "add", a=1, b=1) == {"result": 2}
        with pytest.raises(AttachmentError) as caught:
            async with attached("mcp", url):
                pass
        assert "sesame" not in str(caught.value)


async def test_a_server_that_dies_is_down_and_is_used_again_when_it_is_back() -> None:
    health: asyncio.Queue[bool] = asyncio.Queue()
    async with asyncio.timeout(60):
        with running("mcp_http_server.py") as server:
            spec = AttachmentSpec(kind="mcp", name="my", url=f"{server.url}/mcp")
            my = open_attachment(
                spec, limits=LIMITS, on_change=lambda: health.put_nowait(my.healthy)
            )
            await my.start()
            assert await health.get() is True
            server.kill()
            with pytest.raises(AttachmentError):
                await call(my, "add", a=1, b=1)
            while await health.get():
                pass
        with running("mcp_http_server.py", port=server.port):
            while not await health.get():
                pass
            assert await call(my, "add", a=1, b=1) == {"result": 2}
        await my.close()


async def test_a_server_that_is_gone_is_noticed_without_a_call() -> None:
    health: asyncio.Queue[bool] = asyncio.Queue()
    limits = replace(LIMITS, refresh=0.05)
    async with asyncio.timeout(60):
        with running("mcp_http_server.py", "stateless") as server:
            spec = AttachmentSpec(kind="mcp", name="my", url=f"{server.url}/mcp")
            my = open_attachment(
                spec, limits=limits, on_change=lambda: health.put_nowait(my.healthy)
            )
            await my.start()
            server.kill()
            while await health.get():
                pass
            assert "cannot connect" in str(my.problem) or "answer" in str(my.problem)
        await my.close()


async def test_a_changed_list_is_read_again() -> None:
    changed = asyncio.Event()
    async with asyncio.timeout(60):
        with running("mcp_http_server.py") as server:
            spec = AttachmentSpec(kind="mcp", name="my", url=f"{server.url}/mcp")
            my = open_attachment(
                spec, limits=replace(LIMITS, refresh=0.2), on_change=changed.set
            )
            await my.start()
            changed.clear()
            await call(my, "more")
            await changed.wait()
            assert "my.late" in {each.name for each in my.capabilities()}
            await my.close()


@pytest.mark.parametrize(
    "raw",
    [
        answer({}),
        answer([]),
        answer(b"junk"),
        answer({}, 500),
        answer({}, 404),
        answer(b"", 307, location="http://127.0.0.1:1/mcp"),
        answer(b"data: junk\n\n", content_type="text/event-stream"),
        answer(b"x" * 100_000, content_type="text/html"),
        answer({"jsonrpc": "2.0", "id": 1, "result": {}}),
        b"junk\r\n\r\n",
        b"",
    ],
)
async def test_what_is_no_mcp_server_is_said_in_one_line(raw: bytes) -> None:
    limits = replace(LIMITS, supervisor=replace(LIMITS.supervisor, start_timeout=3.0))
    async with serving(lambda _: raw) as web:
        with pytest.raises(AttachmentError) as caught:
            async with attached("mcp", f"{web.url}/mcp", limits):
                pass
    assert "\n" not in str(caught.value)


async def test_a_server_that_floods_ends_at_the_limit() -> None:
    def flood(asked: Asked) -> bytes:
        said = json.loads(asked.body or b"{}")
        noise = json.dumps(
            {"jsonrpc": "2.0", "method": "x", "params": {"a": "b" * 500}}
        )
        events = f"data: {noise}\n\n" * 1000
        if said.get("method") == "initialize":
            events = ""
        return answer(events.encode(), content_type="text/event-stream")

    limits = replace(
        LIMITS,
        max_result=10_000,
        supervisor=replace(LIMITS.supervisor, start_timeout=3.0),
    )
    async with serving(flood) as web:
        with pytest.raises(AttachmentError):
            async with attached("mcp", f"{web.url}/mcp", limits):
                pass


async def test_nobody_there_is_said() -> None:
    with pytest.raises(AttachmentError, match="cannot connect"):
        async with attached("mcp", "http://127.0.0.1:9/mcp"):
            pass
