"""The part of the store for counts of calls, which are written in batches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cache.parts.agreements import AgreementStore
from cache.parts.shelf import key_of
from cache.records.records import AgreementRecord, UsageRecord
from cache.rows import Rows

__all__ = ["UsageStore"]


class UsageStore(AgreementStore):
    """Counts the use of each protocol; see `AgreementStore`."""

    def add_usage(
        self,
        counted: Iterable[UsageRecord],
        uses: Iterable[tuple[AgreementRecord, int, float]] = (),
    ) -> None:
        """Add counts to the stored ones in one transaction.

        Args:
            counted: New calls by document; the record without a hash counts all.
            uses: Agreements, each with its new calls and the end of the last one in
                seconds since 1970.
        """

        def work(cache: Rows) -> None:
            for one in counted:
                known = self._shelf.get(cache, UsageRecord, key_of(one))
                self._shelf.put(cache, one if known is None else known.plus(one))
            for agreement, count, last in uses:
                stored = self._shelf.get(cache, AgreementRecord, key_of(agreement))
                if stored is not None:
                    latest = max(last, stored.last_used or 0.0)
                    total = stored.uses + count
                    self._shelf.put(
                        cache, replace(stored, uses=total, last_used=latest)
                    )

        self._database.write(work)

    def usage(self, hash_: str | None = None) -> UsageRecord:
        """Return the counts of a document, or those of all calls."""
        empty = UsageRecord(hash_.lower() if hash_ is not None else None)
        found = self._database.read(
            lambda cache: self._shelf.get(cache, UsageRecord, key_of(empty))
        )
        return empty if found is None else found

    def last_uses(self) -> dict[str, float]:
        """Return for each document's hash when the last call through it ended."""
        found = self._database.read(
            lambda cache: self._shelf.scan(cache, UsageRecord, "usage/")
        )
        return {
            one.hash: one.last_used
            for one in found
            if one.hash is not None and one.last_used is not None
        }
