"""Calls in every way between two daemons, to see whether the owner's word ends them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from anp.errors import CallError, ErrorKind
from anp.protocols.envelope import ENVELOPE_URI
from anp.sidecar.attachments.python.child import PythonAttachment
from anp.sidecar.calls.call import CallRequest, Mode
from anp.sidecar.daemon import Daemon
from negotiation.need import Need
from tests.e2e.house import house_in
from tests.e2e.owner import owner_api
from tests.waiting import until

LONG = 777_777
"The number for which `twice` takes half a minute."

WAYS = ("agreement", "envelope", "words")

SOON = 1.0
"Seconds within which the owner's word holds."


async def post(daemon: Daemon, path: str, body: dict[str, Any]) -> httpx.Response:
    """Ask a daemon's local API for something."""
    async with owner_api(daemon) as api:
        return await api.post(path, json=body)


@dataclass
class Traffic:
    """Calls of `twice` in one way, one after the other, and one that takes long."""

    caller: Daemon
    provider: Daemon
    way: str
    begun: list[float] = field(default_factory=list)
    "Times at which `twice` began to run."

    ended: list[CallError] = field(default_factory=list)
    "Errors of the loop."

    async def call(self, number: int) -> Any:
        request = CallRequest(
            peer=f"{self.provider.url}#{self.provider.did}",
            need=Need("twice"),
            arguments={"number": number},
            mode=Mode.NATURAL_LANGUAGE if self.way == "words" else Mode.AUTO,
            protocol=ENVELOPE_URI if self.way == "envelope" else None,
        )
        return (await self.caller.caller.call(request)).output

    async def loop(self) -> None:
        number = 0
        while True:
            number += 1
            try:
                await self.call(number)
            except CallError as exc:
                self.ended.append(exc)
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.005)

    async def stops_by(self, act: Callable[[], Awaitable[object]]) -> CallError | Any:
        """Check that nothing runs any more after `act`; return the long call's end."""
        # Words go one at a time on a channel, so that call is alone there.
        loop = None if self.way == "words" else asyncio.create_task(self.loop())
        long = asyncio.create_task(self.call(LONG))
        want = 2 if self.way == "words" else 6
        await until(lambda: len(self.begun) >= want)
        began = time.monotonic()
        acting = asyncio.ensure_future(act())
        try:
            await asyncio.wait({long}, timeout=SOON)
            goes_on = not long.done()
            loop = loop or asyncio.create_task(self.loop())
            await asyncio.sleep(1.5)
            await acting
        finally:
            for task in (loop, long):
                if task is not None:
                    task.cancel()
            await asyncio.gather(*filter(None, (loop, long)), return_exceptions=True)
        late = [at - began for at in self.begun if at > began + SOON]
        assert (len(late), goes_on) == (0, False), (
            f"{len(late)} began later than {SOON} s; the long one goes on: {goes_on}"
        )
        assert self.ended or self.way == "words", "calls still succeed"
        error = long.exception() or long.result()
        print(f"{self.way}: last run {max(self.begun) - began:.3f} s after, {error!r}")
        return error


@contextmanager
def watched(
    caller: Daemon, provider: Daemon, way: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Traffic]:
    """Give calls between two daemons that run, and note when functions begin."""
    real = PythonAttachment.call
    traffic = Traffic(caller, provider, way)

    async def seen(
        self: PythonAttachment, name: str, arguments: dict[str, Any], **more: Any
    ) -> dict[str, Any]:
        traffic.begun.append(time.monotonic())
        if arguments.get("number") == LONG:
            await asyncio.sleep(30)
        return await real(self, name, arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(PythonAttachment, "call", seen)
        yield traffic


@asynccontextmanager
async def traffic_in(
    folder: Path, way: str, monkeypatch: pytest.MonkeyPatch, **flags: Any
) -> AsyncIterator[Traffic]:
    """Run two daemons, with a first call done; flags as for `house_in`."""
    flags = {"consensus__use": way == "envelope", **flags}
    async with house_in(folder, **flags) as house:
        with watched(house.caller, house.provider, way, monkeypatch) as traffic:
            assert await traffic.call(2)
            yield traffic


def lost(error: object, kind: ErrorKind = ErrorKind.PEER_UNREACHABLE) -> bool:
    """Say if a call ended with a truthful error: it may have run."""
    return isinstance(error, CallError) and error.kind is kind and error.may_have_run
