"""The part of the store for append-only logs, such as those of sessions.

A log has events with the numbers 1, 2, 3…, and items: the present state of what it is
about. All changes of one step are one transaction, durable before the method returns.
The store knows nothing of the contents, which the caller encrypts.

A transaction that appends reads single rows and no range, so that daemons that share a
server get into each other's way only in the same log.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cache.errors import LogConflict, RecordError
from cache.parts.shelf import StoreBase, aside_transaction, key_of, read_transaction
from cache.records.logs import (
    MAX_LOG_CONTENT,
    LogEventRecord,
    LogItemRecord,
    LogMarkRecord,
    LogNameRecord,
    LogRecord,
)
from cache.rows import Rows

# The deletion of logs, in batches, so that other transactions wait only shortly.
#
# A head that is `gone` hides its log at once; the next `prune_logs` deletes what a
# deletion that was broken off has left.


DROP_BATCH = 500
"Events that one transaction deletes at most, so that others wait only shortly."

MAX_PAGE = 1000
"Entries that one page has at most."


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


MAX_PAGE_BYTES = 16 * 1024 * 1024
"Bytes after which a page of events ends, its first event always included."


@dataclass(frozen=True, slots=True, kw_only=True)
class LogItem:
    """The present state of one thing that a log is about."""

    id: str
    "Id of up to 64 letters, digits, `_` and `-`; its order is that of the lists."

    content: bytes

    open: bool
    "False when it changes no more."

    log: str = ""
    "Its log; filled in by the store."

    names: tuple[str, ...] = ()
    "Hashes under which it can be found; fixed when it is stored first."

    owner: str | None = None
    "Hash of the list in which it stands besides; fixed in the same way."

    updated: float = 0.0
    "When it was changed last, in seconds since 1970; filled in by the store."


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChange:
    """Everything that one step changes in one log."""

    log: str
    "Id of up to 64 letters, digits, `_` and `-`; its order is that of the lists."

    after: int
    "Number of the newest event that the caller knows; 0 for a new log."

    at: float
    "Seconds since 1970."

    events: tuple[bytes, ...] = ()
    "Contents of new events, in order."

    items: tuple[LogItem, ...] = ()
    "Items that are new or changed."

    content: bytes | None = None
    "New content of the head; None leaves it as it is."

    open: bool = True
    "False when its owner closed it."

    busy: bool = False
    "True when a restart has to look at it, so that it may not be dropped."

    names: tuple[str, ...] = ()
    "Hashes under which a new log can be found."


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The head of a log."""

    id: str
    created: float
    updated: float
    "In seconds since 1970, like `created`."

    first: int
    "Number of the oldest event that is kept."

    last: int
    "Number of the newest event; 0 before the first."

    size: int
    "Bytes of the kept events."

    open: bool
    busy: bool
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """One event of a log."""

    number: int
    at: float
    "Seconds since 1970."

    content: bytes

    damaged: bool = False
    "True when the content could not be read, and is empty; those who seal it say so."


class LogStore(StoreBase):
    """Stores logs; the newest come first in all lists of logs and of items."""

    # Changes

    @aside_transaction
    def append_log(self, cache: Rows, change: LogChange) -> Log:
        """Make the changes of one step; the events get the numbers after `after`.

        Raises:
            LogConflict: The log has other events than the caller knows, or a name
                belongs to another log; nothing was changed.
            RecordError: A content is over its limit, or the log is damaged.
        """
        head = self._head_to_change(cache, change)
        for number, content in enumerate(change.events, start=head.last + 1):
            self._shelf.put(
                cache, LogEventRecord(head.id, number, change.at, _sealed(content))
            )
        for item in change.items:
            self._put_item(cache, item, change)
        head = replace(
            head,
            updated=change.at,
            last=head.last + len(change.events),
            size=head.size + sum(map(len, change.events)),
            open=change.open,
            busy=change.busy,
            sealed=head.sealed if change.content is None else _sealed(change.content),
        )
        self._shelf.put(cache, head)
        self._mark(cache, LogMarkRecord("busy", head.id, head.id), there=head.busy)
        return _log(head)

    def _head_to_change(self, cache: Rows, change: LogChange) -> LogRecord:
        key = f"log/{change.log}"
        head = self._shelf.get(cache, LogRecord, key)
        if head is None and key in cache:
            raise RecordError("the head of this log is damaged")
        if head is None:
            if change.after:
                raise LogConflict("the log is not there any more")
            for name in change.names:
                self._put_name(cache, LogNameRecord(name, change.log))
            return LogRecord(
                change.log,
                created=change.at,
                updated=change.at,
                first=1,
                last=0,
                size=0,
                open=True,
                busy=False,
                sealed="",
                names=change.names,
            )
        if head.gone or head.last != change.after:
            raise LogConflict(
                f"the log has {head.last} events, and the change follows {change.after}"
            )
        return head

    def _put_item(self, cache: Rows, item: LogItem, change: LogChange) -> None:
        log = change.log
        known = self._shelf.get(cache, LogItemRecord, f"log_item/{log}/{item.id}")
        names = item.names if known is None else known.names
        owner = item.owner if known is None else known.owner
        record = LogItemRecord(
            log, item.id, change.at, item.open, _sealed(item.content), names, owner
        )
        self._shelf.put(cache, record)
        if known is None:
            for name in names:
                self._put_name(cache, LogNameRecord(name, log, item.id))
            self._shelf.put(cache, LogMarkRecord("items", item.id, log))
            if owner is not None:
                self._shelf.put(cache, LogMarkRecord(f"of-{owner}", item.id, log))
        self._mark(cache, LogMarkRecord("open", item.id, log), there=item.open)

    def _put_name(self, cache: Rows, record: LogNameRecord) -> None:
        known = self._shelf.get(cache, LogNameRecord, key_of(record))
        if known is not None and known != record:
            raise LogConflict("the name belongs to another log")
        self._shelf.put(cache, record)

    def _mark(self, cache: Rows, mark: LogMarkRecord, *, there: bool) -> None:
        is_there = key_of(mark) in cache
        if there and not is_there:
            self._shelf.put(cache, mark)
        elif is_there and not there:
            cache.delete(key_of(mark))

    # Look-ups

    @read_transaction
    def log(self, cache: Rows, log: str) -> Log | None:
        """Return the head of a log, or None if it is absent or damaged."""
        head = self._shelf.get(cache, LogRecord, f"log/{log}")
        return None if head is None or head.gone else _log(head)

    @read_transaction
    def log_named(self, cache: Rows, name: str) -> tuple[str, str | None] | None:
        """Return the ids of the log, and of the item if it is one, of a name."""
        found = self._shelf.get(cache, LogNameRecord, f"log_name/{name}")
        return None if found is None else (found.log, found.item)

    @read_transaction
    def logs(self, cache: Rows, *, before: str = "", limit: int = 100) -> list[Log]:
        """Return a page of heads, newest first.

        Args:
            before: Id of the last one of the page before; empty for the first page.
        """
        found: list[Log] = []
        while len(found) < limit:
            wanted = min(limit - len(found), MAX_PAGE)
            rows = cache.rows(
                "log/",
                limit=wanted,
                descending=True,
                before=f"log/{before}" if before else "",
            )
            heads = (self._shelf.open(LogRecord, row) for row in rows)
            found += [_log(one) for one in heads if one is not None and not one.gone]
            if len(rows) < wanted:
                break
            before = rows[-1].key.removeprefix("log/")
        return found

    @read_transaction
    def busy_logs(self, cache: Rows, *, after: str = "", limit: int = 100) -> list[str]:
        """Return ids of logs that a restart has to look at, oldest first.

        Args:
            after: Id of the last one of the page before.
        """
        marks = self._marks(cache, "busy", after=after, limit=limit)
        return [mark.id for mark in marks]

    @read_transaction
    def log_events(
        self, cache: Rows, log: str, *, after: int = 0, limit: int = 100
    ) -> list[LogEvent]:
        """Return the events of a log with numbers above `after`, in order.

        A page ends early after 16 MiB; an empty one means that there are no more. A
        damaged event is left out.
        """
        head = self._shelf.get(cache, LogRecord, f"log/{log}")
        if head is None or head.gone:
            return []
        found: list[LogEvent] = []
        size = 0
        # One by one, so that a page of large events is not in memory as a whole.
        for number in range(max(after + 1, head.first), head.last + 1):
            record = self._shelf.get(cache, LogEventRecord, event_key(log, number))
            if record is not None:
                content = opened(record.sealed)
                found.append(LogEvent(number=number, at=record.at, content=content))
                size += len(content)
            if len(found) >= limit or size >= MAX_PAGE_BYTES:
                break
        return found

    @read_transaction
    def log_item(self, cache: Rows, item: str) -> LogItem | None:
        """Return an item of any log, or None if it is absent or damaged."""
        mark = self._shelf.get(cache, LogMarkRecord, f"log_mark/items/{item}")
        return None if mark is None else self._item(cache, mark)

    @read_transaction
    def log_items(
        self,
        cache: Rows,
        *,
        before: str = "",
        limit: int = 100,
        only_open: bool = False,
        owner: str | None = None,
    ) -> list[LogItem]:
        """Return a page of the items of all logs, newest first.

        Args:
            owner: See `LogItem.owner`; only those, whether open or not.
            before: Id of the last one of the page before; empty for the first page.
        """
        area = "open" if only_open else "items"
        area = area if owner is None else f"of-{owner}"
        marks = self._marks(cache, area, before=before, limit=limit, descending=True)
        found = (self._item(cache, mark) for mark in marks)
        return [item for item in found if item is not None]

    @read_transaction
    def items_of_log(
        self, cache: Rows, log: str, *, after: str = "", limit: int = MAX_PAGE
    ) -> list[LogItem]:
        """Return a page of the items of one log, oldest first."""
        area = f"log_item/{log}/"
        rows = cache.rows(
            area, limit=min(limit, MAX_PAGE), after=f"{area}{after}" if after else ""
        )
        found = (self._shelf.open(LogItemRecord, row) for row in rows)
        return [_item(one) for one in found if one is not None]

    def _marks(
        self,
        cache: Rows,
        area: str,
        *,
        limit: int,
        after: str = "",
        before: str = "",
        descending: bool = False,
    ) -> list[LogMarkRecord]:
        prefix = f"log_mark/{area}/"
        rows = cache.rows(
            prefix,
            limit=min(limit, MAX_PAGE),
            descending=descending,
            after=f"{prefix}{after}" if after else "",
            before=f"{prefix}{before}" if before else "",
        )
        found = (self._shelf.open(LogMarkRecord, row) for row in rows)
        return [mark for mark in found if mark is not None]

    def _item(self, cache: Rows, mark: LogMarkRecord) -> LogItem | None:
        key = f"log_item/{mark.log}/{mark.id}"
        found = self._shelf.get(cache, LogItemRecord, key)
        return None if found is None else _item(found)

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


def _sealed(content: bytes) -> str:
    if len(content) > MAX_LOG_CONTENT:
        raise RecordError(f"{len(content)} bytes, at most {MAX_LOG_CONTENT} are kept")
    return base64.b64encode(content).decode("ascii")


def _log(head: LogRecord) -> Log:
    return Log(
        id=head.id,
        created=head.created,
        updated=head.updated,
        first=head.first,
        last=head.last,
        size=head.size,
        open=head.open,
        busy=head.busy,
        content=opened(head.sealed),
    )


def _item(record: LogItemRecord) -> LogItem:
    return LogItem(
        id=record.id,
        content=opened(record.sealed),
        open=record.open,
        log=record.log,
        names=record.names,
        owner=record.owner,
        updated=record.updated,
    )
