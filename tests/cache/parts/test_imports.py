"""Halves from elsewhere: stored whole, and put to use for whom they are meant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cache.errors import RecordError
from cache.parts.agreements import ImportPart
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    HalfRecord,
)
from cache.store import Store
from tests.cache.samples import (
    AGREEMENT,
    DOCUMENT,
    HALF,
    OTHER,
    PEER,
    PROVIDER_AGREEMENT,
    PROVIDER_HALF,
)
from tests.cache.states import set_agreement_state, set_state

NOW = 5000.0
IMPORTED = replace(
    PROVIDER_HALF, source="# from elsewhere\n", origin="imported", created=NOW
)
IMPORTED_REQUESTER = replace(
    HALF, source="# from elsewhere\n", origin="imported", created=NOW
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as store:
        yield store


def part(
    half: HalfRecord,
    peer_did: str | None = None,
    agreement: AgreementRecord | None = None,
) -> ImportPart:
    tests = {"acceptance": "passed"}
    return ImportPart(half, "partial", tests, peer_did, agreement)


def of_peer(peer_did: str, half: HalfRecord = PROVIDER_HALF) -> AgreementRecord:
    """Return what is to be made for a peer, if it has nothing yet."""
    made = AGREEMENT if half.role is AgreementRole.REQUESTER else PROVIDER_AGREEMENT
    return replace(made, peer_did=peer_did, negotiation_id=None, created=NOW)


def served(store: Store, peer_did: str) -> int | None:
    half = store.provider_half(DOCUMENT.hash, peer_did)
    return None if half is None else half.revision


def test_a_half_that_nobody_agreed_on_serves_any_peer(store: Store) -> None:
    [taken] = store.save_import(DOCUMENT, [part(IMPORTED)])
    assert (taken.half.revision, taken.agreements, taken.replaced) == (1, (), ())
    assert served(store, PEER) == served(store, OTHER) == 1
    assert store.page().unbound == (taken.half,)
    assert store.document(DOCUMENT.hash) == DOCUMENT


def test_all_agreements_move_and_keep_what_they_are(store: Store) -> None:
    first = store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    other = replace(PROVIDER_AGREEMENT, peer_did=OTHER)
    store.save_agreement(DOCUMENT, replace(PROVIDER_HALF, source="# two\n"), other)
    store.add_usage([], [(first, 1, 3000.0)])
    [taken] = store.save_import(DOCUMENT, [part(IMPORTED)])
    assert taken.half.revision == 3
    assert taken.replaced == (1, 2)
    assert {one.peer_did for one in taken.agreements} == {PEER, OTHER}
    [mine] = [a for a in store.agreements_of(DOCUMENT.hash) if a.peer_did == PEER]
    assert (mine.revision, mine.created, mine.uses) == (3, NOW, 1)
    assert (mine.negotiation_id, mine.samples) == ("n1", "partial")
    # A stranger gets what the owner chose, not the first that ever was.
    assert served(store, "did:key:zStranger") == 3
    assert store.page().unbound == ()


def test_an_import_for_one_peer_moves_only_that_peer(store: Store) -> None:
    store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    [taken] = store.save_import(DOCUMENT, [part(IMPORTED, OTHER, of_peer(OTHER))])
    assert [one.peer_did for one in taken.agreements] == [OTHER]
    assert taken.replaced == ()
    assert (served(store, OTHER), served(store, PEER)) == (2, 1)
    assert served(store, "did:key:zStranger") == 1


def test_what_went_stale_comes_back_only_by_name(store: Store) -> None:
    store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    set_state(store, DOCUMENT.hash, AgreementState.STALE)
    [taken] = store.save_import(DOCUMENT, [part(IMPORTED)])
    assert taken.agreements == ()
    assert (served(store, PEER), served(store, OTHER)) == (None, 2)
    [again] = store.save_import(DOCUMENT, [part(IMPORTED, PEER, of_peer(PEER))])
    assert again.half.revision == 2
    assert [one.negotiation_id for one in again.agreements] == ["n1"]
    assert served(store, PEER) == 2


def test_the_same_code_twice_is_one_revision(store: Store) -> None:
    [first] = store.save_import(DOCUMENT, [part(IMPORTED)])
    [again] = store.save_import(DOCUMENT, [part(replace(IMPORTED, created=NOW + 1))])
    assert again.half.revision == first.half.revision
    assert len(store.halves(DOCUMENT.hash)) == 1


def test_a_requester_half_goes_to_the_task_it_is_for(store: Store) -> None:
    made = of_peer(OTHER, HALF)
    [taken] = store.save_import(DOCUMENT, [part(IMPORTED_REQUESTER, OTHER, made)])
    assert [one.need_key for one in taken.agreements] == [made.need_key]
    assert made.need_key is not None
    [found] = store.agreements(
        made.own_did, OTHER, AgreementRole.REQUESTER, made.need_key
    )
    assert (found.revision, found.state) == (1, AgreementState.ACTIVE)


def test_a_requester_half_also_takes_over_the_other_tasks_of_the_peer(
    store: Store,
) -> None:
    store.save_agreement(DOCUMENT, HALF, AGREEMENT)
    made = replace(of_peer(PEER, HALF), need_key="2" * 64)
    [taken] = store.save_import(DOCUMENT, [part(IMPORTED_REQUESTER, PEER, made)])
    assert {one.need_key for one in taken.agreements} == {"1" * 64, "2" * 64}
    assert {one.revision for one in taken.agreements} == {2}
    # The old revision stays: nobody is served with it, so nobody has to be kept off.
    assert [half.state for half in store.halves(DOCUMENT.hash)] == [
        AgreementState.ACTIVE
    ] * 2


def test_a_requester_half_for_nobody_is_refused_with_all_that_came(
    store: Store,
) -> None:
    with pytest.raises(RecordError, match="no agreement"):
        store.save_import(DOCUMENT, [part(IMPORTED), part(IMPORTED_REQUESTER)])
    assert store.halves(DOCUMENT.hash) == []
    assert store.document(DOCUMENT.hash) is None


def test_what_the_owner_revoked_stays_so(store: Store) -> None:
    agreement = store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    set_agreement_state(store, agreement, AgreementState.REVOKED)
    with pytest.raises(RecordError, match="revoked the agreement"):
        store.save_import(DOCUMENT, [part(IMPORTED, PEER, of_peer(PEER))])
    [taken] = store.save_import(DOCUMENT, [part(IMPORTED)])
    assert taken.agreements == ()
    assert served(store, PEER) is None
    set_state(store, DOCUMENT.hash, AgreementState.REVOKED)
    with pytest.raises(RecordError, match="was revoked by the owner"):
        store.save_import(DOCUMENT, [part(IMPORTED)])


def test_parts_that_do_not_belong_together_are_refused(store: Store) -> None:
    for wrong in (
        part(replace(IMPORTED, hash="0" * 64)),
        part(IMPORTED, OTHER, of_peer(PEER)),
        part(IMPORTED, PEER, of_peer(PEER, HALF)),
        part(IMPORTED, None, of_peer(PEER)),
    ):
        with pytest.raises(RecordError):
            store.save_import(DOCUMENT, [wrong])
    assert store.halves(DOCUMENT.hash) == []
