"""The part of the store for calls that have an idempotency key."""

from __future__ import annotations

from cache.errors import RecordError
from cache.parts.shelf import StoreBase, aside_transaction, key_of, read_transaction
from cache.records.records import CallRecord
from cache.rows import Rows

KEEP_CALLS = 86_400.0
"Seconds for which a key is kept, counted from its first request."

MAX_CALLS = 4_096
"Keys that are kept; above it the oldest go."

MAX_CALL_BYTES = 64 * 1024 * 1024
"Bytes of all their outcomes; above it the oldest go."


class CallStore(StoreBase):
    """Stores calls by their idempotency key. `now` is seconds since 1970."""

    @aside_transaction
    def save_call(self, cache: Rows, record: CallRecord) -> None:
        """Store a call that is about to be sent, or its outcome."""
        self._shelf.put(cache, record, keep=KEEP_CALLS)

    @read_transaction
    def kept_call(self, cache: Rows, call_id: str, *, now: float) -> CallRecord | None:
        """Return a call, or None if it is absent or too old.

        Raises:
            RecordError: It is damaged, so that nobody knows what became of it.
        """
        where = f"call/{call_id}"
        if where not in cache:
            return None
        found = self._shelf.get(cache, CallRecord, where)
        if found is None:
            raise RecordError("the record of this idempotency_key is damaged")
        return None if _is_old(found, now) else found

    def drop_call(self, call_id: str) -> None:
        """Forget a call that was certainly not run."""
        self._database.write(lambda cache: cache.delete(f"call/{call_id}"), aside=True)

    @aside_transaction
    def prune_calls(self, cache: Rows, *, now: float) -> None:
        """Forget the calls that are too old, and the oldest of too many."""
        sizes = dict(cache.sizes("call/"))
        kept = self._shelf.scan(cache, CallRecord, "call/")
        size = 0
        newest = sorted(kept, key=lambda one: one.created, reverse=True)
        for count, record in enumerate(newest, start=1):
            size += sizes.get(key_of(record), 0)
            if count > MAX_CALLS or size > MAX_CALL_BYTES or _is_old(record, now):
                cache.delete(key_of(record))


def _is_old(record: CallRecord, now: float) -> bool:
    return record.created + KEEP_CALLS <= now
