"""The part of the store for groups: a head each, and pages of events in order.

A page has the events that were stored at one time, so that many of them cost one row.
The store knows nothing of the contents, which the caller encrypts.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from cache.errors import LeaseLost, LogConflict, RecordError
from cache.parts.shelf import StoreBase, aside_transaction, key_of, read_transaction
from cache.records.groups import (
    MAX_GROUP_CONTENT,
    GroupLeaseRecord,
    GroupPageRecord,
    GroupRecord,
    GroupRowRecord,
)
from cache.rows import Rows

DROP_BATCH = 200
"Pages that one transaction deletes at most, so that others wait only shortly."


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """Everything that is stored of a group at one time."""

    group: str
    "Id of up to 64 letters, digits, `_` and `-`."

    at: float
    "Seconds since 1970."

    first: int = 0
    "Number of the first event of the page; 0 for no page."

    count: int = 0
    page: bytes = b""
    "The events, in the caller's form."

    content: bytes | None = None
    "New content of the head; None leaves it as it is."

    open: bool = True

    rows: Mapping[str, bytes | None] = field(default_factory=dict)
    """Rows that are new or changed, by name of up to 64 letters, digits, `_` and `-`;
    None deletes one."""

    owner: str = ""
    "Id of the run of a daemon that has to have the lease; empty without a fleet."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGroup:
    """The head of a group."""

    id: str
    updated: float
    "In seconds since 1970."

    open: bool
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage:
    """Events of a group that were stored at one time."""

    first: int
    "Number of the first event in it."

    count: int
    content: bytes


class GroupStore(StoreBase):
    """Stores groups, as hub and as member."""

    @aside_transaction
    def save_group(self, cache: Rows, change: GroupChange) -> None:
        """Store new events, the head and rows, or some of these.

        Raises:
            LogConflict: There is a page with that number; nothing was changed.
            LeaseLost: Another daemon has the group; nothing was changed.
            RecordError: A content is over its limit.
        """
        if change.owner:
            lease = self._shelf.get(
                cache, GroupLeaseRecord, f"group_lease/{change.group}"
            )
            if lease is None or lease.owner != change.owner:
                raise LeaseLost("another daemon of the fleet has the group")
        if change.count:
            page = GroupPageRecord(
                change.group, change.first, change.count, change.at, _text(change.page)
            )
            if key_of(page) in cache:
                raise LogConflict("the group has other events of these numbers")
            self._shelf.put(cache, page)
        if change.content is not None:
            sealed = _text(change.content)
            self._shelf.put(
                cache, GroupRecord(change.group, change.at, change.open, sealed)
            )
        for name, row in change.rows.items():
            if row is None:
                cache.delete(f"group_row/{change.group}/{name}")
            else:
                self._shelf.put(cache, GroupRowRecord(change.group, name, _text(row)))

    @aside_transaction
    def lease_groups(
        self,
        cache: Rows,
        groups: Iterable[str],
        *,
        owner: str,
        now: float,
        until: float,
    ) -> set[str]:
        """Take or renew the leases of groups; return those that another one has.

        Args:
            owner: Id of the run of a daemon that takes them.
            now: Seconds since 1970, as `until`.
        """
        taken = set()
        for group in groups:
            known = self._shelf.get(cache, GroupLeaseRecord, f"group_lease/{group}")
            if known is not None and known.owner != owner and known.until > now:
                taken.add(group)
            else:
                self._shelf.put(cache, GroupLeaseRecord(group, owner, until))
        return taken

    @read_transaction
    def group_leases(self, cache: Rows) -> dict[str, tuple[str, float]]:
        """Return all leases: owner and end of each by its group."""
        found = self._shelf.scan(cache, GroupLeaseRecord, "group_lease/")
        return {one.group: (one.owner, one.until) for one in found}

    @read_transaction
    def group_lease(self, cache: Rows, group: str) -> tuple[str, float] | None:
        """Return the owner and the end of a lease, or None."""
        found = self._shelf.get(cache, GroupLeaseRecord, f"group_lease/{group}")
        return None if found is None else (found.owner, found.until)

    @read_transaction
    def group(self, cache: Rows, group: str) -> bytes | None:
        """Return the content of the head of a group, or None."""
        found = self._shelf.get(cache, GroupRecord, f"group/{group}")
        return None if found is None else _bytes(found.sealed)

    def send_mail(self, box: str, letter: bytes) -> None:
        """Put a letter into the box of a sister; see `StoreBackend.send_mail`."""
        self._database.send_mail(box, letter)

    def mail(self, box: str, after: str, wait: float) -> tuple[str, list[bytes]]:
        """Return the letters of a box; see `StoreBackend.mail`."""
        return self._database.mail(box, after, wait)

    @read_transaction
    def group_rows(self, cache: Rows, group: str) -> dict[str, bytes]:
        """Return the rows of a group by their names."""
        found = self._shelf.scan(cache, GroupRowRecord, f"group_row/{group}/")
        return {one.name: _bytes(one.sealed) for one in found}

    @read_transaction
    def groups(self, cache: Rows) -> list[StoredGroup]:
        """Return the heads of all groups."""
        found = self._shelf.scan(cache, GroupRecord, "group/")
        return [
            StoredGroup(
                id=one.id,
                updated=one.updated,
                open=one.open,
                content=_bytes(one.sealed),
            )
            for one in found
        ]

    @read_transaction
    def group_pages(
        self, cache: Rows, group: str, *, after: int = 0, limit: int = 16
    ) -> list[GroupPage]:
        """Return pages in order, from that with the event after a number on.

        The first page may begin with events before it.
        """
        prefix = f"group_page/{group}/"
        before = self._shelf.scan(
            cache,
            GroupPageRecord,
            prefix,
            limit=1,
            descending=True,
            before=f"{prefix}{after + 2:012d}",
        )
        found = [one for one in before if one.first + one.count > after + 1]
        rows = cache.rows(prefix, limit=limit, after=f"{prefix}{after + 1:012d}")
        later = (self._shelf.open(GroupPageRecord, row) for row in rows)
        found += [one for one in later if one is not None]
        return [_page(one) for one in found[:limit]]

    @read_transaction
    def last_group_page(self, cache: Rows, group: str) -> GroupPage | None:
        """Return the newest page, or None."""
        found = self._shelf.scan(
            cache, GroupPageRecord, f"group_page/{group}/", limit=1, descending=True
        )
        return _page(found[0]) if found else None

    def trim_group(self, group: str, *, before: int) -> int:
        """Delete pages whose events all have numbers below `before`; count them."""
        gone = 0
        while count := self._trim_group(group, before):
            gone += count
        return gone

    def drop_group(self, group: str) -> None:
        """Delete a group with all its events."""
        for kind in ("group", "group_lease"):
            self._database.write(partial(_delete, f"{kind}/{group}"), aside=True)
        gone: dict[str, bytes | None] = dict.fromkeys(self.group_rows(group))
        self.save_group(GroupChange(group=group, at=0.0, rows=gone))
        self.trim_group(group, before=10**12)

    @aside_transaction
    def _trim_group(self, cache: Rows, group: str, before: int) -> int:
        found = self._shelf.scan(
            cache, GroupPageRecord, f"group_page/{group}/", limit=DROP_BATCH
        )
        gone = [one for one in found if one.first + one.count <= before]
        for one in gone:
            cache.delete(key_of(one))
        return len(gone)


def _delete(key: str, cache: Rows) -> None:
    cache.delete(key)


def _page(record: GroupPageRecord) -> GroupPage:
    return GroupPage(
        first=record.first, count=record.count, content=_bytes(record.sealed)
    )


def _text(content: bytes) -> str:
    if len(content) > MAX_GROUP_CONTENT:
        raise RecordError(f"{len(content)} bytes, at most {MAX_GROUP_CONTENT} are kept")
    return base64.b64encode(content).decode("ascii")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RecordError("a content is not base64") from None
