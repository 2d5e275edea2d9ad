"""Bounds on rows that peers cause: a flood of one pushes out its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from cache.parts.bounds import STRANGERS, Sized, surplus
from cache.parts.shelf import StoreLimits
from cache.records.peers import PeerState
from cache.records.records import AgreementRecord, AgreementRole, DocumentRecord
from cache.store import Store
from tests.cache.samples import (
    NEGOTIATION,
    PROVIDER_AGREEMENT,
    PROVIDER_HALF,
    trio,
)

FRIEND = "did:key:zFriend"


def stranger(number: int) -> str:
    return f"did:key:zStranger{number}"


def call_for(
    store: Store,
    number: int,
    peer: str,
    *,
    origin: Literal["rules", "hand-written"] = "rules",
    spare: str = "",
) -> AgreementRecord:
    """Store an agreement that a peer called for, on a text of its own."""
    document = DocumentRecord.of(f"document {number} of {peer}")
    half = replace(PROVIDER_HALF, hash=document.hash, origin=origin)
    agreement = replace(
        PROVIDER_AGREEMENT,
        hash=document.hash,
        peer_did=peer,
        created=1000.0 + number,
        last_used=None,
    )
    return store.save_agreement(document, half, agreement, spare={spare})


ROWS = st.lists(
    st.tuples(st.sampled_from(["owner", "a", STRANGERS]), st.integers(0, 50)),
    max_size=60,
).map(
    lambda found: [Sized(f"k{n}", s, whose) for n, (whose, s) in enumerate(found)],
)


@given(ROWS, st.integers(0, 40), st.integers(0, 800))
def test_what_goes_is_the_oldest_of_whoever_has_most(
    rows: list[Sized], count: int, size: int
) -> None:
    gone = set(surplus(rows, count=count, size=size))
    kept = [row for row in rows if row.key not in gone]
    assert len(kept) <= count
    assert sum(row.size for row in kept) <= size
    for whose in ("owner", "a", STRANGERS):
        own = [row.key in gone for row in rows if row.whose == whose]
        assert own == sorted(own, reverse=True)
    if len(rows) <= count and sum(row.size for row in rows) <= size:
        assert not gone


def test_negotiations_of_strangers_push_out_neither_ours_nor_a_listed_peers(
    tmp_path: Path,
) -> None:
    with Store(tmp_path, StoreLimits(max_failed_negotiations=20)) as store:
        store.see_peer(FRIEND, shown_did=FRIEND, now=1.0, state=PeerState.ALLOWED)
        failed = replace(NEGOTIATION, outcome="rejected", started=1.0)
        provided = replace(failed, role=AgreementRole.PROVIDER)
        store.save_negotiation(replace(failed, id="ours"))
        store.save_negotiation(replace(provided, id="friend", peer_did=FRIEND))
        for number in range(100):
            store.save_negotiation(
                replace(
                    provided,
                    id=f"s{number}",
                    peer_did=stranger(number),
                    started=2.0 + number,
                )
            )
        kept = [one.id for one in store.negotiations()]
        assert len(kept) == 20
        assert kept[-2:] == ["ours", "friend"]
        assert kept[0] == "s99"


def test_negotiations_with_an_agreement_are_bounded_too(tmp_path: Path) -> None:
    with Store(tmp_path, StoreLimits(max_agreed_negotiations=5)) as store:
        for number in range(9):
            store.save_negotiation(
                replace(NEGOTIATION, id=f"n{number}", started=float(number))
            )
        assert [one.id for one in store.negotiations()] == [
            "n8",
            "n7",
            "n6",
            "n5",
            "n4",
        ]


def test_agreements_of_strangers_are_bounded_together_and_others_stay(
    tmp_path: Path,
) -> None:
    with Store(tmp_path, StoreLimits(max_provided=10)) as store:
        store.see_peer(FRIEND, shown_did=FRIEND, now=1.0, state=PeerState.ALLOWED)
        friend = call_for(store, 0, FRIEND)
        document, half, ours = trio(1)
        store.save_agreement(document, half, ours)
        for number in range(1, 40):
            call_for(store, number, stranger(number))
        found = store.all_agreements()
        assert len(found) == 12
        assert friend in found
        assert max(found, key=lambda one: one.created).peer_did == stranger(39)
        # Texts and code went with them.
        assert store.document(friend.hash) is not None
        gone = DocumentRecord.of(f"document 1 of {stranger(1)}").hash
        assert store.document(gone) is None
        assert store.halves(gone) == []


def test_one_listed_peer_has_its_own_bound(tmp_path: Path) -> None:
    with Store(tmp_path, StoreLimits(max_provided=10)) as store:
        store.see_peer(FRIEND, shown_did=FRIEND, now=1.0, state=PeerState.ALLOWED)
        visitor = call_for(store, 0, stranger(0))
        for number in range(1, 40):
            call_for(store, number, FRIEND)
        found = store.all_agreements()
        assert len(found) == 11
        assert visitor in found


def test_what_is_published_hand_written_or_shared_stays(tmp_path: Path) -> None:
    with Store(tmp_path, StoreLimits(max_provided=3)) as store:
        peers = [stranger(number) for number in range(9)]
        published = call_for(store, 0, peers[0])
        written = call_for(store, 1, peers[1], origin="hand-written")
        shared = DocumentRecord.of("shared")
        for number in (2, 3):
            agreement = replace(
                PROVIDER_AGREEMENT,
                hash=shared.hash,
                peer_did=peers[number],
                created=1000.0 + (number - 2) * 100,
            )
            half = replace(PROVIDER_HALF, hash=shared.hash)
            store.save_agreement(shared, half, agreement, spare={published.hash})
        for number in range(4, 6):
            call_for(store, number, peers[number], spare=published.hash)
        assert store.provider_agreement(published.hash, peers[0]) is None
        for digest in (published.hash, written.hash, shared.hash):
            assert store.document(digest) is not None
            assert store.halves(digest) != []
