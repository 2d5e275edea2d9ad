"""The part of the store for leases: which daemon of a fleet works on which item.

An item of a log that is at work has one owner, whose lease ends when it is not renewed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cache.parts.shelf import StoreBase, aside_transaction, read_transaction
from cache.records.logs import LogLeaseRecord
from cache.rows import Rows


class LeaseStore(StoreBase):
    """Stores leases of items. `now` and `until` are seconds since 1970."""

    @aside_transaction
    def lease_items(
        self,
        cache: Rows,
        items: Mapping[str, str],
        *,
        owner: str,
        now: float,
        until: float,
    ) -> set[str]:
        """Take or renew the leases of items; return those that another one has.

        Args:
            items: The log of each item.
            owner: Id of who takes them.
        """
        taken = set()
        for item, log in items.items():
            known = self._shelf.get(cache, LogLeaseRecord, f"log_lease/{item}")
            if known is not None and known.owner != owner and known.until > now:
                taken.add(item)
                continue
            self._shelf.put(cache, LogLeaseRecord(item, log, owner, until))
        return taken

    @aside_transaction
    def end_leases(self, cache: Rows, items: Iterable[str], *, owner: str) -> None:
        """End leases of an owner; those of others stay."""
        for item in items:
            key = f"log_lease/{item}"
            known = self._shelf.get(cache, LogLeaseRecord, key)
            if known is not None and known.owner == owner:
                cache.delete(key)

    @read_transaction
    def leases(self, cache: Rows) -> dict[str, tuple[str, str, float]]:
        """Return all leases: log, owner and end of each by its item."""
        found = self._shelf.scan(cache, LogLeaseRecord, "log_lease/")
        return {one.item: (one.log, one.owner, one.until) for one in found}
