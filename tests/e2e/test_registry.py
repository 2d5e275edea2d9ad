"""A registry: daemons announce themselves, others find them, and the owner admits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError
from anp.sidecar.calls.call import CallRequest
from anp.sidecar.daemon import Daemon
from anp.sidecar.discovery.registry import ANNOUNCE, FIND, Registry
from cache.records.peers import PeerState
from negotiation.need import Need
from tests.clauses import clause
from tests.e2e.neighbours import address, neighbours_in
from tests.waiting import until


def registry_of(hub: Daemon) -> Registry:
    _, found = hub.exposure.attachments["registry"]
    assert isinstance(found, Registry)
    return found


@asynccontextmanager
async def market(folder: Path) -> AsyncIterator[tuple[Daemon, Daemon, Daemon]]:
    """Run a registry, a caller that asks it, and a daemon that is announced in it."""
    (folder / "hub").mkdir()
    serve = {"hub": {"registry.serve": True}}
    async with neighbours_in(folder / "hub", caller="hub", settings=serve) as hubs:
        hub = hubs["hub"]
        loopback = {"fetch.allow": ["127.0.0.0/8"], "fetch.allow_http_loopback": True}
        settings: dict[str, dict[str, Any]] = {
            "caller": {"registry.ask": [address(hub)], **loopback},
            "one": {"registry.announce": [address(hub)], "registry.name": "the one"},
        }
        async with neighbours_in(folder, "one", settings=settings) as both:
            await until(lambda: len(registry_of(hub).entries) == 1)
            yield hub, both["caller"], both["one"]
        # It withdrew when it stopped.
        assert len(registry_of(hub).entries) == 0


@clause("A2A-20", "A2A-26", "ENV-25")
async def test_a_registry_proposes_and_the_owner_admits(tmp_path: Path) -> None:
    async with market(tmp_path) as (_, caller, one):
        wanted = CallRequest(
            peer="", need=Need("weather.now"), arguments={"city": "Oslo"}
        )
        with pytest.raises(CallError, match="registries tell of 1"):
            await caller.dispatcher.call(wanted)
        (found,) = await caller.dispatcher.candidates.unlisted("now")
        assert (found.did, found.name) == (one.did, "the one")
        assert "weather.now" in found.capabilities
        await caller.policy.rule(one.did, PeerState.ALLOWED)
        assert (await caller.dispatcher.call(wanted)).output["by"] == "one"
        assert await caller.dispatcher.candidates.unlisted("now") == []
        await caller.policy.rule(one.did, PeerState.BLOCKED)
        with pytest.raises(CallError, match="no allowed peer publishes"):
            await caller.dispatcher.call(wanted)


@clause("ENV-25")
async def test_nobody_announces_another_and_a_forgery_is_refused(
    tmp_path: Path,
) -> None:
    async with market(tmp_path) as (hub, caller, one):

        async def ask(name: str, **arguments: object) -> dict[str, object]:
            request = CallRequest(
                peer=address(hub), need=Need(name), arguments=arguments
            )
            answer = (await caller.caller.call(request)).output
            assert isinstance(answer, dict)
            return answer

        found = (await ask(FIND, capability="weather.now"))["announcements"]
        assert isinstance(found, list)
        with pytest.raises(CallError, match="of another agent"):
            await ask(ANNOUNCE, announcement=found[0])
        mine = {**found[0], "did": caller.did, "key_id": f"{caller.did}#keys-1"}
        with pytest.raises(CallError, match="does not own"):
            await ask(ANNOUNCE, announcement=mine)
        # A registry that lies is found out by whoever reads it.
        entries = registry_of(hub).entries
        (key,) = entries._entries
        altered = {**found[0], "url": "wss://evil.example/"}
        object.__setattr__(entries._entries[key].announcement, "signed", altered)
        assert await caller.dispatcher.candidates.unlisted("weather.now") == []
        assert caller.finder.announced(one.did) is None
