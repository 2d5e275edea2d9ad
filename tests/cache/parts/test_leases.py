"""Leases of items: one owner at a time, as long as it renews."""

from __future__ import annotations

from pathlib import Path

from cache.store import Store


def test_an_item_has_one_owner_until_its_lease_ends(tmp_path: Path) -> None:
    with Store(tmp_path) as store:

        def lease(owner: str, now: float) -> set[str]:
            items = {"11": "01", "12": "01"}
            return store.lease_items(items, owner=owner, now=now, until=now + 30)

        assert lease("a", 0.0) == set()
        assert lease("b", 29.0) == {"11", "12"}
        assert lease("a", 29.0) == set()
        # Who lets it lapse has lost it.
        assert lease("b", 59.0) == set()
        assert lease("a", 60.0) == {"11", "12"}
        assert store.leases() == {"11": ("01", "b", 89.0), "12": ("01", "b", 89.0)}
        store.end_leases(["11", "12"], owner="a")
        assert len(store.leases()) == 2
        store.end_leases(["11", "13"], owner="b")
        assert store.leases().keys() == {"12"}
