"""The part of the store for subscriptions and their firings.

A subscription changes together with its new firings, in one transaction that fails when
it was changed meanwhile. So a firing is stored once, whoever else looks at the clock,
and however a daemon ends. Contents are encrypted by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cache.errors import LogConflict
from cache.parts.shelf import StoreBase, aside_transaction, read_transaction
from cache.records.subscriptions import FiringRecord, SubscriptionRecord
from cache.rows import Rows

KEPT_FIRINGS = 1_000
"Firings of one subscription that are kept; the oldest go."


class SubscriptionStore(StoreBase):
    """Stores subscriptions; the newest come first in lists."""

    @aside_transaction
    def save_subscription(
        self,
        cache: Rows,
        record: SubscriptionRecord,
        firings: Sequence[FiringRecord] = (),
    ) -> SubscriptionRecord:
        """Store a subscription with its new or changed firings; return it as stored.

        Args:
            record: With the revision that the caller knows; 0 for a new one.

        Raises:
            LogConflict: It was changed or dropped meanwhile; nothing was changed.
        """
        key = f"subscription/{record.id}"
        known = self._shelf.get(cache, SubscriptionRecord, key)
        if (0 if known is None else known.revision) != record.revision:
            raise LogConflict("the subscription was changed meanwhile")
        record = replace(record, revision=record.revision + 1)
        self._shelf.put(cache, record)
        for one in firings:
            self._shelf.put(cache, one)
            old = one.number - KEPT_FIRINGS
            if old > 0:
                cache.delete(f"firing/{one.subscription}/{old:012d}")
        return record

    @read_transaction
    def subscription(self, cache: Rows, name: str) -> SubscriptionRecord | None:
        """Return a subscription, or None if it is absent or damaged."""
        return self._shelf.get(cache, SubscriptionRecord, f"subscription/{name}")

    @read_transaction
    def subscriptions(
        self, cache: Rows, *, before: str = "", limit: int = 100
    ) -> list[SubscriptionRecord]:
        """Return a page of subscriptions, newest first.

        Args:
            before: Id of the last one of the page before; empty for the first page.
        """
        return self._shelf.scan(
            cache,
            SubscriptionRecord,
            "subscription/",
            limit=limit,
            descending=True,
            before=f"subscription/{before}" if before else "",
        )

    @read_transaction
    def firing(self, cache: Rows, name: str, number: int) -> FiringRecord | None:
        """Return a firing of a subscription, or None."""
        return self._shelf.get(cache, FiringRecord, f"firing/{name}/{number:012d}")

    @read_transaction
    def firings(
        self, cache: Rows, name: str, *, before: int = 0, limit: int = 100
    ) -> list[FiringRecord]:
        """Return a page of the firings of a subscription, newest first.

        Args:
            before: Number of the last one of the page before; 0 for the first page.
        """
        area = f"firing/{name}/"
        return self._shelf.scan(
            cache,
            FiringRecord,
            area,
            limit=limit,
            descending=True,
            before=f"{area}{before:012d}" if before else "",
        )

    def prune_subscriptions(self, *, older_than: float) -> int:
        """Delete those that ended and were changed last before a time; count them.

        Args:
            older_than: Seconds since 1970.
        """
        gone, before = 0, ""
        while page := self.subscriptions(before=before):
            before = page[-1].id
            for one in page:
                if not one.open and one.updated < older_than:
                    gone += self.drop_subscription(one.id)
        return gone

    @aside_transaction
    def drop_subscription(self, cache: Rows, name: str) -> bool:
        """Delete a subscription with its firings; False if there is none."""
        for key in cache.keys(f"firing/{name}/"):
            cache.delete(key)
        return cache.delete(f"subscription/{name}")
