"""Calls that take long: their deadline, signs of work, lost links, and cancelling.

`ANPD_LONG_CALL=600` makes the work of the first test ten minutes (`make long-call`).
"""

from __future__ import annotations

import asyncio
import os
import pty
import random
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from anp.errors import CallError, ErrorKind
from anp.protocols.envelope import ENVELOPE_URI
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.bound.signs import CallSign
from anp.sidecar.calls.call import CallRequest, CallResult
from anp.sidecar.home.home import Home
from cache.records.peers import PeerState
from negotiation.need import Need
from tests.e2e.daemons import Anpd
from tests.e2e.house import House, house_in
from tests.e2e.proxy import Proxy
from tests.waiting import until

pytestmark = pytest.mark.slow

SERVER = Path(__file__).parent / "agents" / "patient_mcp_server.py"
WORK = float(os.environ.get("ANPD_LONG_CALL", "12"))
"Seconds that the tool works."

CUTS = 3


@dataclass
class Yard:
    """Two daemons with a proxy between them, and a tool that notes what it does."""

    house: House
    proxy: Proxy
    notes: Path
    signs: list[CallSign] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    async def work(self, seconds: float, **more: Any) -> CallResult:
        """Have the provider's tool work."""
        request = CallRequest(
            peer=f"ws://127.0.0.1:{self.proxy.port}/#{self.house.provider.did}",
            need=Need("patient.work"),
            arguments={"seconds": seconds},
            on_sign=self.signs.append,
            on_progress=lambda what, ms: self.steps.append(what),
            **more,
        )
        return await self.house.caller.caller.call(request)

    def noted(self, words: str) -> list[float]:
        """Return the times of what the tool noted."""
        if not self.notes.exists():
            return []
        lines = [line.split(" ", 1) for line in self.notes.read_text().splitlines()]
        return [float(when) for when, what in lines if what == words]


@asynccontextmanager
async def yard_in(folder: Path, **flags: Any) -> AsyncIterator[Yard]:
    """Run two daemons whose links go through a proxy."""
    notes = folder / "notes"
    spec = AttachmentSpec(
        kind="mcp",
        name="patient",
        command=(sys.executable, str(SERVER), str(notes)),
        expose=("*",),
        max_timeout=flags.pop("max_timeout", {}),
    )
    flags.setdefault("policy__peers", "any")
    with Proxy().running() as proxy:
        async with house_in(folder, seconds=WORK + 120, **flags) as house:
            save_attachment(Home(folder / "provider").attachments, spec)
            await house.provider.reload()
            proxy.target = house.provider.url
            yield Yard(house, proxy, notes)


@pytest.mark.parametrize("protocol", [None, ENVELOPE_URI])
async def test_a_long_call_over_a_link_that_is_cut_three_times_gets_its_answer(
    tmp_path: Path, protocol: str | None
) -> None:
    flags = {
        "call__max_timeout_unlisted": 3_600.0,
        "consensus__use": protocol is not None,
    }
    async with yard_in(tmp_path, **flags) as yard:
        began = time.monotonic()
        task = asyncio.create_task(
            yard.work(WORK, timeout=WORK + 60, protocol=protocol)
        )
        await until(lambda: bool(yard.noted("begun")))
        for _ in range(CUTS):
            await asyncio.sleep(WORK / (CUTS + 1))
            yard.proxy.cut()
        result = await task
        took = time.monotonic() - began
    assert result.output == {"text": f"worked for {WORK:g} s"}
    assert result.uri == protocol
    # Once: what was fetched was not run again.
    assert len(yard.noted("begun")) == len(yard.noted("done")) == 1
    assert yard.steps.count("connected again") == CUTS
    seen = [sign.progress for sign in yard.signs if sign.progress is not None]
    assert seen == sorted(seen)
    assert seen[-1] > WORK * 0.8
    assert all(sign.total == WORK for sign in yard.signs if sign.progress is not None)
    print(
        f"work={WORK:g} s took={took:.1f} s cuts={CUTS} "
        f"connections={yard.proxy.connections} progress={len(seen)} "
        f"last={yard.signs[-1].what!r} steps={yard.steps}"
    )


@pytest.mark.parametrize("protocol", [None, ENVELOPE_URI])
async def test_a_call_that_is_cancelled_ends_the_tool_within_a_second(
    tmp_path: Path, protocol: str | None
) -> None:
    async with yard_in(tmp_path, consensus__use=protocol is not None) as yard:
        # The first call binds a channel, so that the rest are at the tool at once.
        await yard.work(0.01, protocol=protocol)
        late = []
        for count in range(1, 6):
            task = asyncio.create_task(yard.work(30, protocol=protocol))
            await until(lambda: len(yard.noted("begun")) > count)  # noqa: B023 - now
            await asyncio.sleep(random.uniform(0, 1.5))
            task.cancel()
            at = time.time()
            await until(lambda: len(yard.noted("cancelled")) >= count)  # noqa: B023
            late.append(yard.noted("cancelled")[-1] - at)
    assert max(late) < 1, late
    print(f"ended after {', '.join(f'{one * 1000:.0f}' for one in late)} ms")


async def test_a_call_takes_the_time_it_is_given(tmp_path: Path) -> None:
    async with yard_in(tmp_path, call__timeout=1.0) as yard:
        result = await yard.work(2, timeout=20)
        assert result.output == {"text": "worked for 2 s"}


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"call__max_timeout_unlisted": 1.0}, "call.max_timeout_unlisted"),
        ({"max_timeout": {"work": 1.0}}, "max_timeout of work"),
    ],
)
async def test_what_cuts_a_call_at_the_provider_is_named(
    tmp_path: Path, flags: dict[str, Any], named: str
) -> None:
    async with yard_in(tmp_path, **flags) as yard:
        with pytest.raises(CallError) as caught:
            await yard.work(20, timeout=20)
        assert f"no answer within 1 s ({named})" in caught.value.detail
        await until(lambda: bool(yard.noted("cancelled")))


async def test_a_timeout_over_our_own_limit_is_an_error(tmp_path: Path) -> None:
    async with yard_in(tmp_path) as yard:
        with pytest.raises(CallError) as caught:
            await yard.work(1, timeout=3_601)
        assert caught.value.kind is ErrorKind.USAGE
        limit = "3601 s is over the limit of 3600 s (call.max_timeout)"
        assert limit in caught.value.detail
        assert not yard.noted("begun")


@pytest.mark.parametrize("protocol", [None, ENVELOPE_URI])
async def test_a_call_that_is_cancelled_while_the_link_is_down_ends_the_tool(
    tmp_path: Path, protocol: str | None
) -> None:
    async with yard_in(tmp_path, consensus__use=protocol is not None) as yard:
        task = asyncio.create_task(yard.work(50, protocol=protocol))
        await until(lambda: bool(yard.noted("begun")))
        reached, yard.proxy.target = yard.proxy.target, "ws://127.0.0.1:9/"
        yard.proxy.cut()
        await until(lambda: any("is fetched" in step for step in yard.steps))
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.wait([task])
        assert not yard.noted("cancelled")
        yard.proxy.target = reached
        at = time.time()
        await until(lambda: bool(yard.noted("cancelled")))
        # As soon as the next try comes through.
        assert yard.noted("cancelled")[0] - at < 6


async def test_a_call_without_a_link_ends_when_its_peer_is_blocked(
    tmp_path: Path,
) -> None:
    async with yard_in(tmp_path) as yard:
        task = asyncio.create_task(yard.work(50))
        await until(lambda: bool(yard.noted("begun")))
        yard.proxy.target = "ws://127.0.0.1:9/"
        yard.proxy.cut()
        provider = yard.house.provider
        await until(lambda: provider.links.open_links == 0)
        assert not yard.noted("cancelled")
        await provider.policy.rule(yard.house.caller.did, PeerState.BLOCKED)
        await provider.enforcer.recheck()
        await until(lambda: bool(yard.noted("cancelled")))
        task.cancel()
        await asyncio.wait([task])


@contextmanager
def processes(folder: Path) -> Iterator[tuple[Anpd, Anpd, Path]]:
    """Run two daemons as processes; give the caller, the provider and the notes."""
    notes = folder / "notes"
    provider, caller = Anpd(folder / "provider"), Anpd(folder / "caller")
    server = (sys.executable, str(SERVER), str(notes))
    words = ("attach", "mcp", "--name", "patient", "--expose", "*", "--", *server)
    provider.ok(*words)
    with provider.up(), caller.up():
        yield caller, provider, notes


async def noted(notes: Path, words: str) -> None:
    """Wait until the tool notes something."""
    await until(lambda: notes.exists() and words in notes.read_text())


async def typed(caller: Anpd, provider: Anpd, *words: str) -> tuple[Process, int]:
    """Call the tool at a terminal; return the command and the terminal's end."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "anp", "--home", str(caller.home), "call"]
    data = provider.address, "patient.work", "-d", '{"seconds": 50}'
    call = await asyncio.create_subprocess_exec(
        *command, *data, *words, stdout=asyncio.subprocess.DEVNULL, stderr=theirs
    )
    os.close(theirs)
    return call, ours


async def shown(terminal: int, words: bytes) -> None:
    """Read a terminal until it shows some words."""
    seen = b""
    async with asyncio.timeout(60):
        while words not in seen:
            seen += await asyncio.to_thread(os.read, terminal, 4_096)


async def test_a_person_sees_that_the_peer_is_gone_and_tried_again(
    tmp_path: Path,
) -> None:
    with processes(tmp_path) as (caller, provider, notes):
        call, terminal = await typed(caller, provider, "--timeout", "600")
        await noted(notes, "begun")
        provider.kill()
        await shown(terminal, b"the connection was lost; it is tried again in")
        call.send_signal(signal.SIGINT)
        await shown(terminal, b"the call was cancelled (it may have run)")
        assert await call.wait() == 130
        os.close(terminal)


async def test_a_person_sees_progress_and_ends_the_tool_with_ctrl_c(
    tmp_path: Path,
) -> None:
    with processes(tmp_path) as (caller, provider, notes):
        call, ours = await typed(caller, provider)
        await shown(ours, b"1 of 50: 1 s done")
        call.send_signal(signal.SIGINT)
        at = time.monotonic()
        await noted(notes, "cancelled")
        assert time.monotonic() - at < 1
        assert await call.wait() != 0
        os.close(ours)


async def test_a_closed_connection_to_the_api_ends_the_tool(tmp_path: Path) -> None:
    with processes(tmp_path) as (caller, provider, notes):
        transport = httpx.AsyncHTTPTransport(uds=Home(caller.home).read_api().socket)
        body = {
            "peer": provider.address,
            "need": "patient.work",
            "input": {"seconds": 50},
        }
        async with httpx.AsyncClient(transport=transport, timeout=60) as client:
            asked = asyncio.create_task(client.post("http://anpd/v1/calls", json=body))
            await noted(notes, "begun")
            asked.cancel()
            await asyncio.wait([asked])
            at = time.monotonic()
            await noted(notes, "cancelled")
            assert time.monotonic() - at < 1
