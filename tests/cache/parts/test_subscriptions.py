"""The store of subscriptions: one change after the other, and pages of firings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cache.errors import LogConflict
from cache.parts.subscriptions import KEPT_FIRINGS
from cache.records.subscriptions import FiringRecord
from cache.store import Store
from tests.cache.samples import FIRING, SUBSCRIPTION

NEW = replace(SUBSCRIPTION, revision=0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as opened:
        yield opened


def test_only_one_change_of_a_revision_is_stored(store: Store) -> None:
    first = store.save_subscription(NEW, [FIRING])
    assert first.revision == 1
    with pytest.raises(LogConflict):
        store.save_subscription(NEW, [replace(FIRING, number=2)])
    assert [one.number for one in store.firings(NEW.id)] == [1]
    assert store.save_subscription(first).revision == 2
    assert store.subscription(NEW.id) == replace(first, revision=2)


def test_lists_come_in_pages_newest_first(store: Store) -> None:
    for name in ("01", "02", "03"):
        store.save_subscription(replace(NEW, id=name))
    assert [one.id for one in store.subscriptions(limit=2)] == ["03", "02"]
    assert [one.id for one in store.subscriptions(before="02")] == ["01"]


def test_the_oldest_firings_go(store: Store) -> None:
    last = store.save_subscription(NEW, [FIRING])
    later = FiringRecord(NEW.id, KEPT_FIRINGS + 1, FIRING.sealed)
    last = store.save_subscription(last, [later])
    assert store.firing(NEW.id, 1) is None
    assert [one.number for one in store.firings(NEW.id)] == [KEPT_FIRINGS + 1]
    assert store.drop_subscription(NEW.id)
    assert store.firings(NEW.id) == []
    # A change of what was dropped brings nothing back.
    with pytest.raises(LogConflict):
        store.save_subscription(last)
