"""The transport to a server that is a child process: its lines, its end, its speed."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCNotification, JSONRPCRequest

from anp.sidecar.attachments.mcp import stdio_transport as module
from anp.sidecar.attachments.mcp.stdio_transport import stdio_transport
from tests.waiting import until

LINE = '{"jsonrpc": "2.0", "method": "%s"}\n'


@asynccontextmanager
async def started(*command: str) -> AsyncIterator[tuple[Any, Any]]:
    """Start a program, and give its streams."""
    async with asyncio.timeout(30), _transport(*command) as streams:
        yield streams


def _transport(*command: str) -> Any:
    return stdio_transport(
        command, env=dict(os.environ), cwd=None, errlog=sys.__stderr__ or sys.stderr
    )


def said(method: str) -> SessionMessage:
    """Return a notification."""
    return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method=method))


async def talk_for_ever(outgoing: Any) -> None:
    """Send one message after the other."""
    while True:
        await outgoing.send(said("anybody"))
        await asyncio.sleep(0)


def runs(pid: str) -> bool:
    """Return True for a process that runs; one that nobody has reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def test_messages_come_back_whole_and_in_order() -> None:
    async with started("cat") as (incoming, outgoing):
        texts = ["x" * 3_000_000, "ü\n€", "last"]
        for number, text in enumerate(texts):
            message = JSONRPCRequest(
                jsonrpc="2.0", id=number, method="echo", params={"text": text}
            )
            sending = asyncio.create_task(outgoing.send(SessionMessage(message)))
            assert (await incoming.receive()).message == message
            await sending


async def test_many_messages_in_one_piece_are_all_read() -> None:
    count = 3 * module.MAX_UNREAD
    script = f"print({LINE % 'said'!r} * {count}, end='')"
    async with started(sys.executable, "-c", script) as (incoming, _):
        methods = [item.message.method async for item in incoming]
    assert methods == ["said"] * count


async def test_what_is_no_message_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = f"printf 'no JSON\\n\\377\\n\\n{LINE.strip() % 'said'}\\nrest'"
    with caplog.at_level(logging.WARNING):
        async with started("sh", "-c", script) as (incoming, _):
            assert [item.message.method async for item in incoming] == ["said"]
            with pytest.raises(anyio.EndOfStream):
                await incoming.receive()
    assert len(caplog.records) == 3
    assert "Traceback" not in caplog.text


async def test_a_message_is_handed_over_in_the_turn_in_which_it_comes() -> None:
    async with started("cat") as (incoming, outgoing):
        await outgoing.send(said("first"))
        await incoming.receive()
        # The pipe takes it at once, and what has been read needs no turn either.
        for coroutine in (outgoing.send(said("second")), outgoing.send(said("third"))):
            with pytest.raises(StopIteration):
                coroutine.send(None)
        assert (await incoming.receive()).message.method == "second"
        assert (await incoming.receive()).message.method == "third"


async def test_a_server_that_reads_no_more_ends_the_session() -> None:
    async with started("sh", "-c", "exec <&-; sleep 60") as (incoming, outgoing):
        with pytest.raises(anyio.BrokenResourceError):
            await talk_for_ever(outgoing)
        with pytest.raises(anyio.EndOfStream):
            await incoming.receive()


@pytest.mark.parametrize("stays", ["", "trap '' TERM; "])
async def test_a_server_that_stays_is_ended_with_its_children(
    stays: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STOP_TIMEOUT", 0.2)
    script = f"{stays}sleep 60 & echo $! > {tmp_path}/pid; echo; wait; sleep 60"
    async with started("sh", "-c", script):
        await until((tmp_path / "pid").exists)
    assert not runs((tmp_path / "pid").read_text().strip())


async def test_a_server_that_still_writes_is_let_end() -> None:
    script = f"import sys; sys.stdin.read(); print({LINE % 'said'!r} * 100_000)"
    began = asyncio.get_running_loop().time()
    async with started(sys.executable, "-c", script):
        pass
    assert asyncio.get_running_loop().time() - began < module.STOP_TIMEOUT
