"""Pages, revocations, counts and pruning in the store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cache.errors import RecordError
from cache.parts.library import MAX_LOOKED, Removed
from cache.parts.shelf import key_of
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    HalfRecord,
    RevocationRecord,
    UsageRecord,
)
from cache.rows import Rows
from cache.store import Store
from tests.cache.samples import (
    AGREEMENT,
    DOCUMENT,
    HALF,
    OTHER,
    PEER,
    PROVIDER_AGREEMENT,
    PROVIDER_HALF,
    trio,
)
from tests.cache.states import set_agreement_state, set_state
from tests.clauses import clause


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Give an empty store."""
    with Store(tmp_path / "store") as store:
        yield store


def both(store: Store) -> tuple[AgreementRecord, AgreementRecord]:
    """Store the requester's and the provider's side of one document."""
    return (
        store.save_agreement(DOCUMENT, HALF, AGREEMENT),
        store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT),
    )


def states(store: Store) -> list[AgreementState]:
    """Return the states of everything about the document."""
    agreements = [one.state for one in store.agreements_of(DOCUMENT.hash)]
    return [*agreements, *(half.state for half in store.halves(DOCUMENT.hash))]


@clause("ANP-86")
def test_what_is_revoked_is_neither_found_nor_stored_again(store: Store) -> None:
    both(store)
    ruled = store.revoke(DOCUMENT.hash, reason="no", at=5.0)
    assert (len(ruled.revocations), ruled.records) == (1, 4)
    assert set(states(store)) == {AgreementState.REVOKED}
    assert store.is_revoked(DOCUMENT.hash)
    assert store.provider_half(DOCUMENT.hash, PEER) is None
    with pytest.raises(RecordError, match="revoked"):
        store.save_agreement(DOCUMENT, HALF, AGREEMENT)
    assert store.revoke(DOCUMENT.hash, at=6.0) == type(ruled)((), 0)
    assert store.revoke(DOCUMENT.hash, peer_did=PEER, at=6.0).records == 0


def test_given_back_each_is_what_it_was(store: Store) -> None:
    ours, _ = both(store)
    set_agreement_state(store, ours, AgreementState.FAILED)
    store.revoke(DOCUMENT.hash, at=5.0)
    assert store.give_back(DOCUMENT.hash).records == 4
    assert sorted(states(store)) == ["active", "active", "active", "failed"]
    assert not store.is_revoked(DOCUMENT.hash)
    assert store.give_back(DOCUMENT.hash).revocations == ()


def test_one_peer_is_refused_and_another_served(store: Store) -> None:
    both(store)
    store.revoke(DOCUMENT.hash, peer_did=PEER, at=5.0)
    assert store.provider_half(DOCUMENT.hash, PEER) is None
    assert store.provider_half(DOCUMENT.hash, OTHER) is not None
    assert store.is_revoked(DOCUMENT.hash, PEER)
    assert not store.is_revoked(DOCUMENT.hash)
    with pytest.raises(RecordError):
        store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    other = replace(PROVIDER_AGREEMENT, peer_did=OTHER)
    store.save_agreement(DOCUMENT, PROVIDER_HALF, other)
    # A peer with whom nothing was agreed can be refused as well.
    store.revoke(DOCUMENT.hash, peer_did="did:key:zNew", at=5.0)
    assert store.provider_half(DOCUMENT.hash, "did:key:zNew") is None


def test_one_for_all_takes_the_place_of_single_ones(store: Store) -> None:
    ours, _ = both(store)
    set_agreement_state(store, ours, AgreementState.STALE)
    store.revoke(DOCUMENT.hash, peer_did=PEER, at=5.0)
    store.revoke(DOCUMENT.hash, at=6.0)
    [known] = store.revocations(DOCUMENT.hash)
    assert known.peer_did is None
    assert store.give_back(DOCUMENT.hash, peer_did=PEER).revocations == ()
    store.give_back(DOCUMENT.hash)
    assert sorted(states(store)) == ["active", "active", "active", "stale"]


def test_a_damaged_revocation_still_holds_and_brings_nothing_into_use(
    store: Store,
) -> None:
    both(store)
    store.revoke(DOCUMENT.hash, at=5.0)
    [known] = store.revocations()
    set_state(store, DOCUMENT.hash, AgreementState.REVOKED)

    def damage(cache: Rows) -> None:
        cache.set(key_of(known), {"format": 1})

    store._database.write(damage)
    assert store.is_revoked(DOCUMENT.hash)
    assert [one.key for one in store.damaged] == []
    assert store.revocations() == []
    assert [one.key for one in store.damaged] == [key_of(known)]
    store.give_back(DOCUMENT.hash)
    assert set(states(store)) == {AgreementState.STALE}


def test_a_revocation_needs_no_text(store: Store) -> None:
    store.revoke("f" * 64, at=1.0)
    assert store.is_revoked("f" * 64)
    assert store.revocations() == [RevocationRecord("f" * 64, None, 1.0)]


# Counts.


def test_counts_add_up_over_restarts(tmp_path: Path) -> None:
    one = UsageRecord(None, agreement=2, negotiated=1, first_used=1.0, last_used=3.0)
    here = replace(one, hash=DOCUMENT.hash)
    with Store(tmp_path / "s") as store:
        saved, _ = both(store)
        store.add_usage([one, here], [(saved, 3, 3.0)])
    with Store(tmp_path / "s") as store:
        later = UsageRecord(None, consensus=1, failed=4, first_used=7.0, last_used=9.0)
        store.add_usage([later])
        total = store.usage()
        assert (total.agreement, total.consensus, total.negotiated) == (2, 1, 1)
        assert (total.first_used, total.last_used) == (1.0, 9.0)
        assert total.hit_rate == 0.75
        assert store.usage(DOCUMENT.hash) == here
        assert store.usage("e" * 64).hit_rate is None
        assert store.last_uses() == {DOCUMENT.hash: 3.0}
        assert sorted(a.uses for a in store.agreements_of(DOCUMENT.hash)) == [0, 3]


# Pages.


def test_pages_hold_everything_once(store: Store) -> None:
    for number in range(7):
        store.save_agreement(*trio(number))
    store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    unbound = replace(trio(8)[1], role=AgreementRole.PROVIDER, revision=1)

    def work(cache: Rows) -> None:
        store._shelf.put(cache, unbound)

    store._database.write(work)
    for limit in (1, 2, 3, 8, 9, 100):
        seen: list[AgreementRecord | HalfRecord] = []
        after: str | None = ""
        while after is not None:
            page = store.page(after=after, limit=limit)
            assert len(page.agreements) + len(page.unbound) <= limit
            seen += [*page.agreements, *page.unbound]
            after = page.after
        assert len(seen) == len({key_of(one) for one in seen}) == 9
        assert seen[-1] == unbound


def test_a_page_looks_at_no_more_than_its_limit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cache.parts.library.MAX_LOOKED", 3)
    for number in range(7):
        store.save_agreement(*trio(number))
    page = store.page(limit=100, wanted=lambda _: False)
    assert (page.agreements, page.after is None) == ((), False)
    assert MAX_LOOKED > 100


# Pruning.


def old(record: AgreementRecord) -> str | None:
    """Say that the agreements of before 1004 may go."""
    return "old" if record.created < 1004 else None


def unused(_: HalfRecord, used: bool) -> str | None:
    """Say that halves nobody uses may go."""
    return None if used else "unused"


def test_pruning_drops_agreement_half_and_text_together(store: Store) -> None:
    for number in range(7):
        store.save_agreement(*trio(number))
    kept = trio(1)[0].hash
    dry = store.prune(old, unused, keep=frozenset({kept}), dry_run=True)
    assert len(store.all_agreements()) == 7
    done = store.prune(old, unused, keep=frozenset({kept}), dry_run=False)

    def key(one: Removed) -> tuple[str, str, str]:
        return one.hash, one.why, str(one.record)

    assert sorted(map(key, done)) == sorted(map(key, dry))
    assert all(one.size > 100 for one in done)
    assert len(done) == 9
    hashes = {one.hash for one in store.all_agreements()}
    assert hashes == {kept, *(trio(number)[0].hash for number in (4, 5, 6))}
    for number in (0, 2, 3):
        assert store.halves(trio(number)[0].hash) == []
        assert store.document(trio(number)[0].hash) is None
    assert store.prune(old, unused, keep=frozenset({kept}), dry_run=False) == []


def test_a_half_and_its_text_stay_with_what_still_uses_them(store: Store) -> None:
    both(store)
    second = replace(AGREEMENT, need_key="2" * 64, created=2000.0)
    store.save_agreement(DOCUMENT, HALF, second)
    done = store.prune(old, unused, keep=frozenset(), dry_run=False)
    [ours, theirs, half] = done
    assert isinstance(ours.record, AgreementRecord)
    assert isinstance(theirs.record, AgreementRecord)
    assert isinstance(half.record, HalfRecord)
    assert half.record.role is AgreementRole.PROVIDER
    assert store.document(DOCUMENT.hash) is not None
    assert [one.need_key for one in store.all_agreements()] == ["2" * 64]


def test_what_a_damaged_agreement_may_use_stays(store: Store) -> None:
    saved = store.save_agreement(DOCUMENT, HALF, AGREEMENT)

    def damage(cache: Rows) -> None:
        cache.set(key_of(saved), {"format": 1})

    store._database.write(damage)
    assert store.prune(old, unused, keep=frozenset(), dry_run=False) == []
    assert store.halves(DOCUMENT.hash) != []
