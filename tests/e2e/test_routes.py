"""The way of an earlier call is taken again only while nothing has changed."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from anp.errors import CallError, ErrorKind
from anp.protocols.envelope import ENVELOPE_URI
from anp.sidecar.peers.policy import PeerRules
from cache.records.peers import PeerState
from negotiation.mind import Demand
from negotiation.need import Need
from tests.e2e.house import House, house_in
from tests.waiting import until


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with house_in(tmp_path) as house:
        await house.others_are_served()
        await house.others_are_served()
        yield house


def look_ups(house: House, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with each look-up of a peer."""
    finder = house.caller.finder
    find, found = finder.find, list[str]()

    async def watched(peer: str, *, trust_first_use: bool) -> object:
        found.append(peer)
        return await find(peer, trust_first_use=trust_first_use)

    monkeypatch.setattr(finder, "find", watched)
    return found


async def test_a_warm_call_looks_nothing_up(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = look_ups(house, monkeypatch)
    result = await house.result("twice", {"number": 4})
    assert (result.output, result.source) == ({"twice": 8}, "agreement")
    assert not found


async def test_counts_of_use_have_nothing_looked_up_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = look_ups(house, monkeypatch)
    store, writes = house.caller.store, house.caller.store.writes
    (agreement,) = store.all_agreements()
    uses = agreement.uses
    await house.caller.uses.flush()
    (agreement,) = store.all_agreements()
    assert agreement.uses > uses
    assert store.writes == writes
    await house.others_are_served()
    assert not found


async def test_a_blocked_peer_is_called_no_more(house: House) -> None:
    did = house.provider.identities.canonical
    house.caller.store.see_peer(
        did, shown_did=did, now=time.time(), state=PeerState.BLOCKED
    )
    with pytest.raises(CallError) as error:
        await house.others_are_served()
    assert error.value.kind is ErrorKind.POLICY


async def test_changed_settings_have_the_peer_looked_up_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = house.caller
    blocked = frozenset({house.provider.did})
    daemon.policy.rules = PeerRules("any", blocked=blocked)
    daemon.caller.forget_routes()
    with pytest.raises(CallError, match="is blocked"):
        await house.others_are_served()


async def test_a_store_that_others_write_to_is_asked_on_every_call(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house.caller.caller, "_store", SimpleNamespace(writes=None))
    found = look_ups(house, monkeypatch)
    for _ in range(2):
        await house.others_are_served()
    assert len(found) == 2


async def test_a_closed_channel_is_not_taken_again(house: House) -> None:
    for route in house.caller.caller._routes.values():
        assert route.bound is not None
        await route.bound.channel.close("over")
    await house.others_are_served()


async def test_a_closed_channel_is_not_kept_for_its_way(house: House) -> None:
    (route,) = house.caller.caller._routes.values()
    bound = route.bound
    assert bound is not None
    await bound.channel.close("over")
    gone = weakref.ref(bound)
    del bound

    def forgotten() -> bool:
        gc.collect()
        return gone() is None

    await until(forgotten)


async def test_data_of_another_shape_goes_its_own_way(house: House) -> None:
    with pytest.raises(CallError):
        await house.call("twice", number="two")
    await house.others_are_served()


@pytest.fixture
async def named(house: House, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the look-ups that follow on a call that named the envelope."""
    for number in range(2):
        await house.result("twice", {"number": number}, protocol=ENVELOPE_URI)
    return look_ups(house, monkeypatch)


async def test_a_call_that_names_its_protocol_looks_nothing_up(
    house: House, named: list[str]
) -> None:
    result = await house.result("twice", {"number": 5}, protocol=ENVELOPE_URI)
    assert (result.output, result.source) == ({"twice": 10}, "consensus")
    assert not named


async def test_a_named_protocol_is_looked_up_for_data_of_another_shape(
    house: House, named: list[str]
) -> None:
    with pytest.raises(CallError):
        await house.result("twice", {"number": "two"}, protocol=ENVELOPE_URI)
    assert len(named) == 1


async def test_a_named_protocol_is_looked_up_when_the_list_is_to_be_read_anew(
    house: House, named: list[str]
) -> None:
    (route,) = (one for key, one in house.caller.caller._routes.items() if key[2])
    house.caller.candidates.declined(route.target)
    await house.result("twice", {"number": 5}, protocol=ENVELOPE_URI)
    assert len(named) == 1


async def test_a_named_protocol_that_does_not_serve_the_need_is_not_taken_again(
    house: House, named: list[str]
) -> None:
    (route,) = (one for key, one in house.caller.caller._routes.items() if key[2])
    demand = Demand(Need("twice"), {"number": 5})
    house.caller.candidates.does_not_serve(route.target, ENVELOPE_URI, demand)
    result = await house.result("twice", {"number": 5}, protocol=ENVELOPE_URI)
    assert result.source == "agreement"
    assert len(named) == 1
