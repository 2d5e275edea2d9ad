"""Keys of DIDs on the web, on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import cache.parts.dids
from cache.errors import RecordError
from cache.records.dids import MAX_DID_KEYS, DidKeysRecord
from cache.store import Store

RECORD = DidKeysRecord(did="did:wba:a.example", trusted=("zA",), seen=1000.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    found = Store(tmp_path / "store")
    yield found
    found.close()


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
    monkeypatch.setattr(cache.parts.dids, "MAX_DIDS", 10)
    dids = [f"did:wba:h{number}.example" for number in range(12)]
    for number, did in enumerate(dids):
        record = replace(RECORD, did=did, seen=float(number))
        store.save_did_keys(record, keep=frozenset(dids[:1]))
    kept = [did for did in dids if store.did_keys(did) is not None]
    assert kept == [dids[0], *dids[3:]]


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
