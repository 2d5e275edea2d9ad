"""Negotiations, peers and pins: kept, listed, bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cache.parts.shelf import StoreLimits
from cache.records.peers import PeerRecord, PeerState, PinRecord
from cache.store import Store
from tests.cache.samples import (
    AGREEMENT,
    DOCUMENT,
    HALF,
    KNOWN_PEER,
    NEGOTIATION,
    OTHER,
    PEER,
    PIN,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as opened:
        yield opened


# Negotiations


def test_negotiations_are_listed_newest_first(store: Store) -> None:
    for number in range(6):
        outcome = "agreed" if number % 2 else "rejected"
        store.save_negotiation(
            replace(NEGOTIATION, id=f"n{number}", started=number, outcome=outcome)
        )
    assert [n.id for n in store.negotiations()] == ["n5", "n4", "n3", "n2", "n1", "n0"]
    assert [n.id for n in store.negotiations(limit=3)] == ["n5", "n4", "n3"]


def test_a_negotiation_is_one_record_whatever_becomes_of_it(store: Store) -> None:
    running = replace(NEGOTIATION, outcome="running", turns=(), ended=None, hash=None)
    for record in (running, NEGOTIATION, running, NEGOTIATION):
        store.save_negotiation(record)
        assert store.negotiations() == [record]


def test_a_negotiation_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    failed = replace(NEGOTIATION, id="abc1", outcome="rejected", started=5.0)
    agreed = replace(NEGOTIATION, id="abc2", started=3.0)
    for record in (failed, agreed):
        store.save_negotiation(record)
    assert store.negotiation("abc2") == agreed
    assert store.negotiation("abc") == failed
    assert store.negotiation("xyz") is None
    assert store.negotiation("") is None


def test_failed_negotiations_are_bounded_and_agreed_ones_stay(tmp_path: Path) -> None:
    with Store(tmp_path, StoreLimits(max_failed_negotiations=3)) as store:
        store.save_negotiation(replace(NEGOTIATION, started=1.0))
        for number in range(1, 6):
            store.save_negotiation(
                replace(
                    NEGOTIATION,
                    id=f"f{number}",
                    outcome="timeout",
                    started=10.0 + number,
                )
            )
            kept = [n.id for n in store.negotiations() if not n.agreed]
            assert len(kept) == min(number, 3)
        assert [n.id for n in store.negotiations()] == ["f5", "f4", "f3", "n1"]


def test_the_bytes_of_failed_negotiations_are_bounded(tmp_path: Path) -> None:
    limits = StoreLimits(max_failed_bytes=10_000)
    with Store(tmp_path, limits) as store:
        for number in range(5):
            store.save_negotiation(
                replace(
                    NEGOTIATION,
                    id=f"f{number}",
                    outcome="rejected",
                    started=float(number),
                    turns=({"text": "x" * 4000},),
                )
            )
        assert [n.id for n in store.negotiations()] == ["f4", "f3"]


# Peers and pins


def test_a_peer_is_kept_and_replaced(store: Store) -> None:
    store.save_peer(KNOWN_PEER)
    allowed = replace(KNOWN_PEER, state=PeerState.ALLOWED, last_seen=2000.0)
    store.save_peer(allowed)
    assert store.peer(PEER) == allowed
    assert store.peer(OTHER) is None
    store.save_peer(replace(KNOWN_PEER, did=OTHER, last_seen=3000.0))
    assert [peer.did for peer in store.peers()] == [OTHER, PEER]


def test_a_peer_that_is_seen_again_keeps_what_the_owner_said(store: Store) -> None:
    store.see_peer(PEER, shown_did=OTHER, now=5.0)
    assert store.peers() == [
        PeerRecord(PEER, PeerState.UNKNOWN, 5.0, 5.0, aliases=(OTHER,))
    ]
    store.see_peer(PEER, shown_did=PEER, now=6.0, state=PeerState.BLOCKED)
    store.see_peer(PEER, shown_did=PEER, now=7.0)
    found = store.peer(PEER)
    assert found is not None
    assert (found.state, found.first_seen, found.last_seen) == (
        PeerState.BLOCKED,
        5.0,
        7.0,
    )


def test_strangers_are_bounded_and_those_the_owner_named_stay(tmp_path: Path) -> None:
    def peer(number: int, **changes: object) -> PeerRecord:
        did = f"did:key:z{number}"
        return replace(KNOWN_PEER, did=did, last_seen=float(number), **changes)  # type: ignore[arg-type]

    with Store(tmp_path, StoreLimits(max_strangers=10)) as store:
        store.save_peer(peer(1, state=PeerState.ALLOWED))
        store.save_peer(peer(2, state=PeerState.BLOCKED))
        store.save_peer(peer(3, names=("shop",)))
        for number in range(10, 20):
            store.save_peer(peer(number, state=PeerState.WAITING))
        assert len(store.peers()) == 13
        store.save_peer(peer(20))
        left = {int(each.did.rpartition("z")[2]) for each in store.peers()}
        assert left == {1, 2, 3, *range(12, 21)}


def test_forgetting_a_peer_drops_its_pins_and_keeps_its_agreements(
    store: Store,
) -> None:
    alias = "did:all:1abc"
    store.save_peer(replace(KNOWN_PEER, aliases=(alias,)))
    store.save_pin(PIN)
    store.save_pin(PinRecord("ws://alias/", alias, 1.0, alias))
    store.save_pin(PinRecord("ws://other/", OTHER, 1.0, OTHER))
    store.save_agreement(DOCUMENT, HALF, AGREEMENT)
    assert store.forget_peer(PEER) == 3
    assert store.peer(PEER) is None
    assert [pin.url for pin in store.pins()] == ["ws://other/"]
    assert len(store.all_agreements()) == 1
    assert store.forget_peer(PEER) == 0


def test_pins_are_kept_by_url_newest_first(store: Store) -> None:
    store.save_pin(PIN)
    store.save_pin(PinRecord("ws://b/", OTHER, 2000.0, OTHER))
    assert store.pin(PIN.url) == PIN
    assert store.pin("ws://c/") is None
    assert [pin.url for pin in store.pins()] == ["ws://b/", PIN.url]
