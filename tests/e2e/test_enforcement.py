"""The owner's word ends what is open, within a second and in calls under way too."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError, ErrorKind
from anp.identity.dids import did_all, did_key
from anp.identity.keys import PrivateKey
from anp.identity.public_keys import KeyKind
from anp.sidecar.attachments import load_attachments, save_attachment
from anp.sidecar.calls.acceptor import Acceptor
from anp.sidecar.config.entries import PeerEntry
from anp.sidecar.daemon import Daemon
from anp.sidecar.operation import reload_daemon
from anp.sidecar.peers.finder import PeerFinder
from cache.records.peers import PeerState
from negotiation.rules.rules import RulesMind
from tests.e2e.house import house_in
from tests.e2e.traffic import WAYS, lost, post, traffic_in
from tests.waiting import until


@pytest.mark.parametrize("way", WAYS)
async def test_a_blocked_peer_is_served_no_longer(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with traffic_in(tmp_path, way, monkeypatch) as traffic:
        provider, did = traffic.provider, traffic.caller.did
        error = await traffic.stops_by(
            lambda: post(provider, "/v1/peers/block", {"peer": did})
        )
        assert lost(error)
        assert traffic.ended[-1].kind is ErrorKind.IDENTITY_REFUSED
        assert provider.links.open_channels == 0
        await post(provider, "/v1/peers/allow", {"peer": did})
        assert await traffic.call(2)


@pytest.mark.parametrize("way", WAYS)
async def test_a_peer_that_its_caller_blocks_is_called_no_longer(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with traffic_in(tmp_path, way, monkeypatch) as traffic:
        caller, did = traffic.caller, traffic.provider.did
        error = await traffic.stops_by(
            lambda: post(caller, "/v1/peers/block", {"peer": did})
        )
        assert lost(error, ErrorKind.POLICY), repr(error)
        assert {one.kind for one in traffic.ended} == {ErrorKind.POLICY}
        assert "anpd peers allow" in traffic.ended[-1].detail
        assert caller.links.open_links == 0
        await post(caller, "/v1/peers/allow", {"peer": did})
        assert await traffic.call(2)


async def reload_with(daemon: Daemon, **changed: Any) -> None:
    config = replace(daemon.config, **changed)
    daemon.load = lambda: config
    await reload_daemon(daemon)


@pytest.mark.parametrize("way", WAYS)
async def test_a_reloaded_policy_counts_at_once(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with traffic_in(tmp_path, way, monkeypatch) as traffic:
        provider = traffic.provider
        listed = replace(provider.config.policy, peers="listed")
        error = await traffic.stops_by(lambda: reload_with(provider, policy=listed))
        assert lost(error) or "failed" in str(error)
        entry = PeerEntry(name="friend", did=traffic.caller.did)
        await reload_with(provider, peer=(entry,))
        assert await traffic.call(2)


async def test_a_peer_that_a_reload_blocks_is_served_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with traffic_in(tmp_path, "agreement", monkeypatch) as traffic:
        provider = traffic.provider
        entry = PeerEntry(name="foe", did=traffic.caller.did, policy="block")
        assert lost(
            await traffic.stops_by(lambda: reload_with(provider, peer=(entry,)))
        )


@pytest.mark.parametrize("way", WAYS)
async def test_a_hidden_capability_runs_no_longer(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with traffic_in(tmp_path, way, monkeypatch) as traffic:
        provider = traffic.provider
        folder = provider.home.attachments
        spec = next(one for one in load_attachments(folder) if one.name == "twice")
        save_attachment(folder, replace(spec, expose=()))
        error = await traffic.stops_by(lambda: reload_daemon(provider))
        if way != "agreement":
            assert lost(error, ErrorKind.APPLICATION_ERROR)
            assert "taken back while it ran" in error.detail
        else:
            assert lost(error)


@pytest.mark.parametrize("side", ["caller", "provider"])
async def test_a_negotiation_under_way_ends(
    side: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house_in(tmp_path) as house:
        daemon: Daemon = getattr(house, side)
        other = house.provider if side == "caller" else house.caller
        thinks = asyncio.Event()

        async def judge(*args: object, **options: object) -> None:
            thinks.set()
            await asyncio.sleep(30)

        monkeypatch.setattr(RulesMind, "judge", judge)
        call = asyncio.create_task(house.call("twice", number=1))
        await thinks.wait()
        began = time.monotonic()
        await post(daemon, "/v1/peers/block", {"peer": other.did})
        with pytest.raises(CallError) as caught:
            await call
        assert time.monotonic() - began < 1.0
        kind = ErrorKind.POLICY if side == "caller" else ErrorKind.PEER_UNREACHABLE
        assert caught.value.kind is kind
        assert not caught.value.may_have_run
        for each in (house.caller, house.provider):
            assert each.store.all_agreements() == []
            await until(lambda each=each: each.links.open_links == 0)  # type: ignore[misc]


async def test_a_peer_that_is_blocked_in_its_handshake_is_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house_in(tmp_path) as house:
        provider, did = house.provider, house.caller.did
        assert await house.call("count", step=1) == {"calls": 1, "step": 1}
        answer = Acceptor.answer_hello

        async def blocked_behind(self: Acceptor, hello: Any) -> Any:
            answered = await answer(self, hello)
            if provider.provider is self:
                await provider.policy.rule(did, PeerState.BLOCKED)
            return answered

        monkeypatch.setattr(Acceptor, "answer_hello", blocked_behind)
        for channel in house.caller.links.channels:
            await channel.close("a new one is wanted")
        with pytest.raises(CallError):
            await house.call("count", step=2)
        await until(lambda: provider.links.open_links == 0)
        await post(provider, "/v1/peers/allow", {"peer": did})
        monkeypatch.undo()
        assert await house.call("count", step=3) == {"calls": 2, "step": 3}


async def test_a_peer_that_is_blocked_while_it_is_dialled_is_not_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house_in(tmp_path) as house:
        caller, did = house.caller, house.provider.did
        find = PeerFinder.find

        async def blocked_behind(*args: Any, **options: Any) -> Any:
            found = await find(*args, **options)
            await caller.policy.rule(did, PeerState.BLOCKED)
            return found

        monkeypatch.setattr(PeerFinder, "find", blocked_behind)
        with pytest.raises(CallError) as caught:
            await house.call("count", step=1)
        assert caught.value.kind is ErrorKind.POLICY
        assert caller.links.open_links == 0
        assert house.provider.store.all_agreements() == []


async def test_what_is_over_a_lowered_limit_closes_the_least_used_first(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house, house.peer(), house.peer():
        for name, arguments in (
            ("huge", {"size": 1}),
            ("count", {"step": 1}),
            ("twice", {"number": 1}),
        ):
            await house.call(name, **arguments)
        links = house.provider.links
        assert (links.open_links, links.open_channels) == (3, 3)
        await links.limit(256, 1)
        assert links.open_channels == 1
        # The last used one is left, and a new one finds no place.
        await until(lambda: len(house.caller.links.channels) == 1)
        (left,) = house.caller.links.channels
        assert await house.call("twice", number=2) == {"twice": 4}
        assert house.caller.links.channels == [left]
        limits = replace(house.provider.config.limits, max_connections=1)
        await reload_with(house.provider, limits=limits)
        await until(lambda: links.open_links == 1)
        # The reload changed no attachment, so the function goes on counting.
        assert await house.call("count", step=2) == {"calls": 2, "step": 2}


async def test_a_policy_of_listed_ends_who_is_forgotten(tmp_path: Path) -> None:
    async with house_in(tmp_path, policy__peers="listed") as house:
        body = {"peer": house.caller.did}
        assert (await post(house.provider, "/v1/peers/allow", body)).status_code == 200
        assert await house.call("twice", number=1) == {"twice": 2}
        assert (await post(house.provider, "/v1/peers/forget", body)).status_code == 200
        assert house.provider.links.open_channels == 0
        with pytest.raises(CallError) as caught:
            await house.call("twice", number=1)
        assert caught.value.kind is ErrorKind.IDENTITY_REFUSED


@pytest.mark.parametrize("form", ["all", "all at a host", "key"])
@pytest.mark.parametrize("shown", ["did:key", "did:all"])
async def test_a_did_that_was_blocked_before_it_was_met_is_not_let_in(
    form: str, shown: str, tmp_path: Path
) -> None:
    async with house_in(tmp_path, identity__method=shown) as house:
        key = house.caller.identities.primary.private_key.public_bytes
        did = {
            "all": did_all(key),
            "all at a host": did_all(key, "host.example:99"),
            "key": did_key(key),
        }[form]
        said = await post(house.provider, "/v1/peers/block", {"peer": did})
        assert said.status_code == 200
        with pytest.raises(CallError) as caught:
            await house.call("twice", number=1)
        assert caught.value.kind is ErrorKind.IDENTITY_REFUSED
        # And it is not called either.
        await post(house.provider, "/v1/peers/allow", {"peer": house.caller.did})
        assert await house.call("twice", number=1) == {"twice": 2}


async def test_a_mistyped_did_is_refused(tmp_path: Path) -> None:
    dids = [
        "did:key:abc",
        "did:key:zOther",
        "did:all:1BoatSLRHtKNngkdXEeobR76b53LETtpyU",
        "did:foo:bar",
        "did:wba:",
        "did:web:no_host_",
    ]
    async with house_in(tmp_path) as house:
        for verb, did in product(["block", "allow", "forget"], dids):
            said = await post(house.provider, f"/v1/peers/{verb}", {"peer": did})
            assert said.status_code == 400, said.text
            assert did in said.json()["detail"]
            assert house.provider.store.peers() == []


async def test_well_formed_dids_are_taken(tmp_path: Path) -> None:
    p256 = PrivateKey.generate().public_bytes
    ed25519 = PrivateKey.generate(KeyKind.ED25519)
    dids = [did_key(p256), did_all(p256, "h.example:1"), "did:web:a.example:b"]
    dids += ["did:wba:a.example:user:bob", f"did:key:{_multibase(ed25519)}"]
    async with house_in(tmp_path) as house:
        for did in dids:
            said = await post(house.provider, "/v1/peers/block", {"peer": did})
            assert said.status_code == 200, said.text
            assert house.provider.policy.is_blocked(said.json()["did"])


def _multibase(key: PrivateKey) -> str:
    from anp.identity import base58

    return "z" + base58.encode(b"\xed\x01" + key.public_bytes)
