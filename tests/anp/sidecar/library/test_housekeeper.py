"""Passing peers are forgotten after a month, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from anp.sidecar.library.housekeeper import KEEP_PASSING, Housekeeper
from cache.records.peers import PeerState
from cache.store import Store
from tests.cache.samples import DID_KEYS, NEGOTIATION, PIN, trio

NOW = 1_800_000_000.0
OLD = NOW - KEEP_PASSING - 1
PASSING, AGREED, ALLOWED, BLOCKED, LISTED, RECENT, WAITING = (
    f"did:key:z{name}"
    for name in ("Pass", "Agreed", "Allow", "Block", "List", "Recent", "Wait")
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as store:
        yield store


def fill(store: Store) -> None:
    """Let peers of every kind have been here."""
    states = {
        ALLOWED: PeerState.ALLOWED,
        BLOCKED: PeerState.BLOCKED,
        WAITING: PeerState.WAITING,
    }
    for did in (PASSING, AGREED, ALLOWED, BLOCKED, LISTED, WAITING):
        store.see_peer(did, shown_did=did, now=OLD, state=states.get(did))
    store.see_peer(RECENT, shown_did=RECENT, now=NOW - 5)
    store.see_peer(PASSING, shown_did="did:web:passing.example", now=OLD)
    document, half, agreement = trio(0)
    store.save_agreement(document, half, replace(agreement, peer_did=AGREED))
    for did in (PASSING, AGREED):
        store.save_pin(replace(PIN, url=f"ws://{did[9:].lower()}/", did=did))
        store.save_negotiation(replace(NEGOTIATION, id=did[9:], peer_did=did))
    for did in ("did:web:passing.example", "did:web:other.example"):
        store.save_did_keys(replace(DID_KEYS, did=did))


async def test_what_a_passing_peer_left_goes_and_all_else_stays(store: Store) -> None:
    fill(store)
    keeper = Housekeeper(store, lambda: {LISTED}, wall=lambda: NOW)
    await keeper.round()
    left = {peer.did for peer in store.peers()}
    assert left == {AGREED, ALLOWED, BLOCKED, LISTED, RECENT}
    assert store.peers_known_as("did:web:passing.example") == []
    assert [pin.did for pin in store.pins()] == [AGREED]
    assert store.did_keys("did:web:passing.example") is None
    assert store.did_keys("did:web:other.example") is not None
    assert [one.peer_did for one in store.negotiations()] == [AGREED]


async def test_a_clock_that_was_set_makes_nobody_forgotten(store: Store) -> None:
    fill(store)
    wall = [OLD + 60]
    keeper = Housekeeper(store, lambda: (), wall=lambda: wall[0], monotonic=lambda: 0.0)
    wall[0] = NOW + 10 * KEEP_PASSING
    await keeper.round()
    assert len(store.peers()) == 7
    # The clock was right: the next day it is done.
    await keeper.round()
    assert {peer.did for peer in store.peers()} == {AGREED, ALLOWED, BLOCKED}


async def test_a_peer_that_comes_back_meanwhile_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    drop = store._drop_passing

    def slow(*args: object) -> object:
        store.see_peer(PASSING, shown_did=PASSING, now=NOW)
        return drop(*args)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(store, "_drop_passing", slow)
    await Housekeeper(store, lambda: {LISTED}, wall=lambda: NOW).round()
    assert PASSING in {peer.did for peer in store.peers()}
    assert WAITING not in {peer.did for peer in store.peers()}
