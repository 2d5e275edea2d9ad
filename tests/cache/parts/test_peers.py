"""Peers under all their DIDs, where they are pinned, and keys of DIDs on the web."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import cache.parts.peers
from cache.errors import RecordError
from cache.parts.shelf import StoreLimits
from cache.records.peers import (
    MAX_DID_KEYS,
    DidKeysRecord,
    NameRecord,
    PeerRecord,
    PeerState,
    PinRecord,
)
from cache.store import Store

RECORD = DidKeysRecord(did="did:wba:a.example", trusted=("zA",), seen=1000.0)


PEER = PeerRecord("did:key:zPeer", PeerState.UNKNOWN, 1.0, 1.0)
ALIAS, OTHER = "did:all:1Peer@a.example", "did:all:1Peer"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    found = Store(tmp_path / "store")
    yield found
    found.close()


def rows_of(store: Store, area: str) -> list[str]:
    return store._database.read(lambda cache: cache.keys(area))


def test_a_peer_is_found_under_each_of_its_dids(store: Store) -> None:
    for shown in (ALIAS, OTHER, PEER.did):
        store.see_peer(PEER.did, shown_did=shown, now=1.0)
    known = store.peer(PEER.did)
    assert known is not None
    for did in (PEER.did, ALIAS, OTHER):
        assert store.peers_known_as(did) == [known]
        assert store.canonical_did(did) == PEER.did
    stranger = "did:key:zOther"
    assert store.peers_known_as(stranger) == []
    assert store.canonical_did(stranger) == stranger


def test_a_did_that_the_owner_named_before_it_was_met_keeps_what_was_said(
    store: Store,
) -> None:
    store.see_peer(ALIAS, shown_did=ALIAS, now=1.0, state=PeerState.BLOCKED)
    store.see_peer(PEER.did, shown_did=ALIAS, now=2.0)
    found = store.peers_known_as(ALIAS)
    assert [(peer.did, peer.state) for peer in found] == [
        (ALIAS, PeerState.BLOCKED),
        (PEER.did, PeerState.UNKNOWN),
    ]


def test_a_lost_alias_row_is_put_right_when_the_peer_is_seen(store: Store) -> None:
    store.see_peer(PEER.did, shown_did=ALIAS, now=1.0, state=PeerState.BLOCKED)
    store._database.write(lambda cache: cache.delete(f"alias/{ALIAS}"))
    assert store.peers_known_as(ALIAS) == []
    store.see_peer(PEER.did, shown_did=PEER.did, now=2.0)
    assert store.peers_known_as(ALIAS) == [store.peer(PEER.did)]


def test_an_alias_that_a_peer_no_longer_has_leads_nowhere(store: Store) -> None:
    store.save_peer(replace(PEER, aliases=(ALIAS, OTHER)))
    store.save_peer(replace(PEER, aliases=(OTHER,)))
    assert store.peers_known_as(ALIAS) == []
    assert rows_of(store, "alias/") == [f"alias/{OTHER}"]


def test_the_ninth_alias_takes_the_place_of_one_and_of_its_row(store: Store) -> None:
    shown = [f"did:all:1Peer@h{number}.example" for number in reversed(range(9))]
    for did in shown:
        store.see_peer(PEER.did, shown_did=did, now=1.0)
    known = store.peer(PEER.did)
    assert known is not None
    assert len(known.aliases) == 8
    assert rows_of(store, "alias/") == [f"alias/{did}" for did in known.aliases]


def test_who_is_forgotten_leaves_no_alias_behind(tmp_path: Path) -> None:
    with Store(tmp_path / "s", StoreLimits(max_strangers=1)) as store:
        store.save_peer(replace(PEER, aliases=(ALIAS,)))
        assert store.forget_peer(PEER.did) == 1
        assert rows_of(store, "alias/") == []
        # So do strangers that make room for others.
        store.see_peer(PEER.did, shown_did=ALIAS, now=1.0)
        store.see_peer("did:key:zOther", shown_did=OTHER, now=2.0)
        assert rows_of(store, "alias/") == [f"alias/{OTHER}"]


def test_an_alias_that_leads_to_another_peer_by_now_stays(store: Store) -> None:
    other = replace(PEER, did="did:key:zOther", aliases=(ALIAS,))
    store.save_peer(replace(PEER, aliases=(ALIAS,)))
    store.save_peer(other)
    store.forget_peer(PEER.did)
    assert store.peers_known_as(ALIAS) == [other]


def test_an_agent_is_found_where_it_was_pinned_last(store: Store) -> None:
    agent = OTHER
    store.save_pin(PinRecord("ws://a/", PEER.did, 1.0, agent))
    store.save_pin(PinRecord("ws://b/", ALIAS, 2.0, agent))
    assert store.pinned_url(agent) == "ws://b/"
    # The URL is somebody else's now.
    store.save_pin(PinRecord("ws://b/", "did:web:b", 3.0, "did:web:b"))
    assert store.pinned_url(agent) == "ws://a/"
    assert store.pinned_url("did:web:b") == "ws://b/"
    store.save_peer(PEER)
    assert store.forget_peer(PEER.did) == 2
    assert store.pinned_url(agent) is None
    assert rows_of(store, "address/") == ["address/did:web:b/ws://b/"]


def test_keys_last_until_they_are_forgotten(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.save_did_keys(RECORD)
    store.close()
    store = Store(tmp_path / "store")
    assert store.did_keys(RECORD.did) == RECORD
    assert store.did_keys("did:wba:b.example") is None
    assert store.forget_did_keys(RECORD.did)
    assert not store.forget_did_keys(RECORD.did)
    assert store.did_keys(RECORD.did) is None
    store.close()


def test_changed_keys_are_listed(store: Store) -> None:
    waiting = replace(RECORD, did="did:wba:b.example", waiting=("zB",), changed=2000.0)
    store.save_did_keys(RECORD)
    store.save_did_keys(waiting)
    assert store.changed_dids() == [waiting]


def test_over_the_limit_the_oldest_strangers_go(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache.parts.peers, "MAX_DIDS", 10)
    dids = [f"did:wba:h{number}.example" for number in range(12)]
    blocked = replace(PEER, did=dids[0], state=PeerState.BLOCKED)
    allowed = replace(PEER, state=PeerState.ALLOWED, aliases=(dids[1],))
    for peer in (blocked, allowed):
        store.save_peer(peer)
    for number, did in enumerate(dids):
        record = replace(RECORD, did=did, seen=float(number))
        store.save_did_keys(record)
    kept = [did for did in dids if store.did_keys(did) is not None]
    assert kept == [*dids[:2], *dids[4:]]


@pytest.mark.parametrize(
    "changes",
    [
        {"did": "did:wba:a/b"},
        {"did": "a.example"},
        {"trusted": ("A",)},
        {"trusted": ("z0",)},
        {"trusted": ("zA",) * (MAX_DID_KEYS + 1)},
        {"waiting": ("z/",)},
        {"seen": -1.0},
    ],
)
def test_what_is_no_record_is_not_stored(
    store: Store, changes: dict[str, object]
) -> None:
    with pytest.raises(RecordError):
        store.save_did_keys(replace(RECORD, **changes))  # type: ignore[arg-type]  # bad on purpose


def test_a_peer_that_waits_takes_no_decision_away(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        # The owner decides between the look-up of a peer and the note that it waits.
        for state in (PeerState.ALLOWED, PeerState.BLOCKED):
            store.see_peer(PEER.did, shown_did=PEER.did, now=1.0, state=state)
            store.see_peer(
                PEER.did, shown_did=PEER.did, now=2.0, state=PeerState.WAITING
            )
            found = store.peer(PEER.did)
            assert found is not None
            assert (found.state, found.last_seen) == (state, 2.0)


def test_names_are_kept_until_they_are_forgotten(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_name(NameRecord("shop", 1.0, did="did:wba:a.example"))
        store.save_name(NameRecord("bank", 1.0, url="wss://bank.example/"))
    with Store(tmp_path) as store:
        assert [one.name for one in store.names()] == ["bank", "shop"]
        found = store.name("shop")
        assert found is not None
        assert found.did == "did:wba:a.example"
        assert store.forget_name("shop")
        assert not store.forget_name("shop")
        assert store.name("shop") is None
