"""Agreements whose test cases failed: kept, and used by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cache.records.records import AgreementRole, AgreementState
from cache.store import Store
from tests.cache.samples import (
    AGREEMENT,
    DOCUMENT,
    HALF,
    OTHER,
    OWN,
    PEER,
    PROVIDER_AGREEMENT,
    PROVIDER_HALF,
    TASK_KEY,
)
from tests.cache.states import set_agreement_state

STRANGER = "did:key:zStranger"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as opened:
        yield opened


@pytest.mark.parametrize("state", [AgreementState.TESTING, AgreementState.FAILED])
def test_an_agreement_in_its_tests_or_failed_is_not_found(
    store: Store, state: AgreementState
) -> None:
    store.save_agreement(DOCUMENT, HALF, replace(AGREEMENT, state=state))
    assert store.agreements(OWN, PEER, AgreementRole.REQUESTER, TASK_KEY) == []
    [known] = store.agreements(
        OWN, PEER, AgreementRole.REQUESTER, TASK_KEY, states={state}
    )
    assert known.state is state


def test_tests_and_state_change_together(store: Store) -> None:
    begun = replace(AGREEMENT, state=AgreementState.TESTING)
    saved = store.save_agreement(DOCUMENT, HALF, begun)
    passed = store.set_tests(saved, {"cases": {}}, state=AgreementState.ACTIVE)
    assert (passed.state, passed.tests) == (
        AgreementState.ACTIVE,
        {**saved.tests, "cases": {}},
    )
    assert store.set_tests(saved, {}).state is AgreementState.ACTIVE
    # What the owner took back while the tests ran stays so.
    set_agreement_state(store, saved, AgreementState.REVOKED)
    assert (
        store.set_tests(saved, {}, state=AgreementState.ACTIVE).state
        is AgreementState.REVOKED
    )


def test_a_half_that_failed_with_one_peer_is_confirmed_to_no_stranger(
    store: Store,
) -> None:
    saved = store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    store.set_tests(saved, {}, state=AgreementState.FAILED)
    assert store.provider_half(DOCUMENT.hash, PEER) is None
    assert store.provider_half(DOCUMENT.hash, STRANGER) is None
    # Another peer with whom it passed goes on, and vouches for it.
    store.save_agreement(
        DOCUMENT, PROVIDER_HALF, replace(PROVIDER_AGREEMENT, peer_did=OTHER)
    )
    assert store.provider_half(DOCUMENT.hash, PEER) is None
    assert store.provider_half(DOCUMENT.hash, OTHER) is not None
    assert store.provider_half(DOCUMENT.hash, STRANGER) is not None


def test_a_released_failure_is_put_aside_and_may_be_agreed_anew(store: Store) -> None:
    ours = store.save_agreement(DOCUMENT, HALF, AGREEMENT)
    theirs = store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    assert store.release_failed(DOCUMENT.hash) == 0
    for saved in (ours, theirs):
        store.set_tests(saved, {}, state=AgreementState.FAILED)
    assert store.release_failed(DOCUMENT.hash.upper()) == 2
    assert store.release_failed(DOCUMENT.hash) == 0
    assert {one.state for one in store.all_agreements()} == {AgreementState.STALE}
    assert store.provider_half(DOCUMENT.hash, PEER) is None
    store.save_agreement(DOCUMENT, PROVIDER_HALF, PROVIDER_AGREEMENT)
    assert store.provider_half(DOCUMENT.hash, PEER) is not None
