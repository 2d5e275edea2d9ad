"""The announcer: it renews, tells of changes, tries again, and withdraws."""

from __future__ import annotations

import asyncio
from typing import Any

from anp.errors import CallError, ErrorKind
from anp.sidecar.calls.call import CallRequest, CallResult
from anp.sidecar.discovery import announcer
from anp.sidecar.discovery.announcer import Announcer
from tests.clauses import clause
from tests.waiting import until


class Hub:
    """Takes announcements, or refuses them."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.capabilities: dict[str, str] = {}
        self.refuses = 0

    async def call(self, request: CallRequest) -> CallResult:
        self.told.append(request.need.requirement)
        if self.refuses:
            self.refuses -= 1
            raise CallError(ErrorKind.PEER_UNREACHABLE, "away")
        return CallResult(
            output={},
            protocol=None,
            source="published",
            peer_did="did:x:y",
            negotiation_id=None,
        )

    def make(self) -> dict[str, Any]:
        return {"capabilities": dict(self.capabilities)}


@clause("ENV-25")
async def test_it_tries_again_tells_of_changes_and_withdraws(monkeypatch: Any) -> None:
    monkeypatch.setattr(announcer, "SETTLE", 0.0)
    hub = Hub()
    hub.refuses = 1
    one = Announcer(["hub"], make=hub.make, call=hub.call, lifetime=3_600, again=0.01)
    running = asyncio.create_task(one.run())
    await until(lambda: hub.told == ["registry.announce"] * 2)
    one.changed()
    await asyncio.sleep(0.05)
    assert len(hub.told) == 2
    hub.capabilities = {"weather.now": "0"}
    one.changed()
    await until(lambda: len(hub.told) == 3)
    await one.close()
    await one.close()
    assert hub.told[3:] == ["registry.withdraw"]
    one.changed()
    await asyncio.sleep(0.05)
    assert len(hub.told) == 4
    running.cancel()


@clause("ENV-25")
async def test_it_renews_before_the_end(monkeypatch: Any) -> None:
    hub = Hub()
    one = Announcer(["hub"], make=hub.make, call=hub.call, lifetime=1)
    monkeypatch.setattr(one, "_lifetime", 0.03)
    running = asyncio.create_task(one.run())
    await until(lambda: len(hub.told) >= 3)
    running.cancel()
