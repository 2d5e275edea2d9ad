"""The deletion of logs, in batches, so that other transactions wait only shortly.

A head that is `gone` hides its log at once; the next `prune_logs` goes on with what was
broken off.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import replace

from cache.errors import RecordError
from cache.parts.shelf import StoreBase, aside_transaction, read_transaction
from cache.records.logs import LogEventRecord, LogItemRecord, LogRecord
from cache.rows import Rows

DROP_BATCH = 500
"Events that one transaction deletes at most, so that others wait only shortly."

MAX_PAGE = 1000
"Entries that one page has at most."


class LogDeletion(StoreBase):
    """Deletes logs and parts of them."""

    def drop_log(self, log: str) -> bool:
        """Delete a log with everything in it; False if there is none.

        Nobody sees it from the first moment on, also if the rest is done by a later
        `prune_logs` only.
        """
        if not self._bury(log):
            return False
        self._clear(log)
        return True

    def trim_log(self, log: str, *, before: int) -> int:
        """Delete the events with numbers below `before`; return how many went."""
        gone = 0
        while count := self._trim(log, before):
            gone += count
        return gone

    def prune_logs(self, *, older_than: float, max_bytes: int) -> int:
        """Delete logs that are not busy and too old, and the oldest over a size.

        Also open ones, since who forgets to close a log should not fill the disk.

        Args:
            older_than: Logs that were changed last before this time go, in seconds
                since 1970.
            max_bytes: Bytes that the events of all logs may have; of busy logs nothing
                goes.

        Returns:
            The number of deleted logs.
        """
        gone = 0
        total = 0
        before = ""
        while heads := self._heads(before=before, limit=MAX_PAGE):
            for head in heads:
                total += head.size
                is_surplus = head.updated < older_than or total > max_bytes
                if head.gone or (is_surplus and not head.busy):
                    total -= head.size
                    gone += self.drop_log(head.id)
            before = heads[-1].id
        return gone

    @read_transaction
    def _heads(self, cache: Rows, *, before: str, limit: int) -> list[LogRecord]:
        return self._shelf.scan(
            cache,
            LogRecord,
            "log/",
            limit=limit,
            descending=True,
            before=f"log/{before}" if before else "",
        )

    @aside_transaction
    def _bury(self, cache: Rows, log: str) -> bool:
        key = f"log/{log}"
        if key not in cache:
            return False
        head = self._shelf.get(cache, LogRecord, key)
        if head is not None and not head.gone:
            self._shelf.put(cache, replace(head, gone=True, open=False, busy=False))
            for name in head.names:
                cache.delete(f"log_name/{name}")
        cache.delete(f"log_mark/busy/{log}")
        return True

    def _clear(self, log: str) -> None:
        for area in (f"log_event/{log}/", f"log_item/{log}/"):
            while keys := self._some_keys(area):
                self._drop_rows(log, keys)
        self._database.write(lambda cache: cache.delete(f"log/{log}"), aside=True)

    @read_transaction
    def _some_keys(self, cache: Rows, area: str) -> list[str]:
        return [row.key for row in cache.rows(area, limit=DROP_BATCH)]

    @aside_transaction
    def _drop_rows(self, cache: Rows, log: str, keys: Sequence[str]) -> None:
        for key in keys:
            if key.startswith("log_item/"):
                item = self._shelf.get(cache, LogItemRecord, key)
                for name in () if item is None else item.names:
                    cache.delete(f"log_name/{name}")
                areas = ["items", "open"]
                if item is not None and item.owner is not None:
                    areas.append(f"of-{item.owner}")
                for area in areas:
                    cache.delete(f"log_mark/{area}/{key.rpartition('/')[2]}")
            cache.delete(key)

    @aside_transaction
    def _trim(self, cache: Rows, log: str, before: int) -> int:
        head = self._shelf.get(cache, LogRecord, f"log/{log}")
        if head is None:
            return 0
        end = min(before, head.last + 1, head.first + DROP_BATCH)
        size = 0
        for number in range(head.first, end):
            key = event_key(log, number)
            event = self._shelf.get(cache, LogEventRecord, key)
            size += 0 if event is None else len(opened(event.sealed))
            cache.delete(key)
        if end <= head.first:
            return 0
        changed = replace(head, first=end, size=max(0, head.size - size))
        self._shelf.put(cache, changed)
        return end - head.first


def event_key(log: str, number: int) -> str:
    """Return the key of an event's row."""
    return f"log_event/{log}/{number:012d}"


def opened(sealed: str) -> bytes:
    """Return a content of the caller's as it was given.

    Raises:
        RecordError: The row is damaged.
    """
    try:
        return base64.b64decode(sealed, validate=True)
    except binascii.Error:
        raise RecordError("the content is not base64") from None
