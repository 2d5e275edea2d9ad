"""The logs of sessions, whose contents are encrypted at rest (DESIGN.md, Trust).

The store knows logs, events and items by their ids and numbers alone. Each content is
sealed for its place, so that none can be put into the place of another.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Final

from anp.interaction.errors import InteractionError, InteractionFault
from anp.sidecar.home.rest_cipher import RestCipher
from cache.errors import RecordError
from cache.parts.logs import Log, LogChange, LogEvent, LogItem
from cache.records.logs import MAX_LOG_CONTENT
from cache.store import Store

logger = logging.getLogger(__name__)

PURPOSE: Final = b"anpd: sessions at rest"
"Purpose of the secret that seals contents; see `PrivateKey.derive`."

MAX_CONTENT: Final = MAX_LOG_CONTENT - 64
"Most bytes of an event or a task; sealing makes them somewhat longer."


MAX_NAMES: Final = 1000
"Names that are remembered; one more, and all are forgotten first."


class SealedLogs:
    """The methods of `LogStore` that sessions need; contents go in and out in clear.

    A content that cannot be opened is damaged: `RecordError`, except for events, of
    which each is marked for itself.
    """

    def __init__(self, store: Store, secret: bytes) -> None:
        """Use a store.

        Args:
            secret: 32 bytes that only this identity can derive.
        """
        self._store = store
        self._cipher = RestCipher(secret, "a part of a session")
        self.names: dict[str, str | None] = {}
        """Ids of the logs that were found by their names, None for a name of none. Each
        operation of a peer tries several. A write forgets all; during a write that
        changes names, and where other daemons write as well, nothing is remembered."""

        self._writes: set[object] = set()
        "Writes under way that change names; a prune is one of many transactions."

    def append_log(self, change: LogChange) -> Log:
        """See `LogStore.append_log`.

        Raises:
            InteractionError: Something in it is larger than a log can hold.
        """
        log = change.log
        contents = (*change.events, *(one.content for one in change.items))
        if max(map(len, contents), default=0) > MAX_CONTENT:
            raise InteractionError(
                InteractionFault.TOO_LARGE,
                f"a message, or what a task holds, has at most {MAX_CONTENT} bytes",
            )
        events = tuple(
            self._cipher.seal(data, _event(log, change.after + number))
            for number, data in enumerate(change.events, start=1)
        )
        items = tuple(
            replace(one, content=self._cipher.seal(one.content, _item(log, one.id)))
            for one in change.items
        )
        head = change.content
        if head is not None:
            head = self._cipher.seal(head, _head(log))
        is_named = change.names or any(one.names for one in change.items)
        with self._forgetting() if is_named else nullcontext():
            kept = self._store.append_log(
                replace(change, events=events, items=items, content=head)
            )
        return self._log(kept)

    def log(self, log: str) -> Log | None:
        """See `LogStore.log`."""
        found = self._store.log(log)
        return None if found is None else self._log(found)

    def log_named(self, name: str) -> str | None:
        """Return the id of the log of a name; see `LogStore.log_named`."""
        # What is forgotten meanwhile is put into a dictionary that nobody reads. It is
        # taken first, or a write could begin between the two.
        names, remembers = self.names, not (self._writes or self._store.is_shared)
        found = self._store.log_named(name)
        log = None if found is None else found[0]
        if remembers:
            if len(names) >= MAX_NAMES:
                names.clear()
            names[name] = log
        return log

    def logs(self, *, before: str = "", limit: int = 100) -> list[Log]:
        """See `LogStore.logs`."""
        found = self._store.logs(before=before, limit=limit)
        return [self._log(one) for one in found]

    def busy_logs(self, *, after: str = "", limit: int = 100) -> list[str]:
        """See `LogStore.busy_logs`."""
        return self._store.busy_logs(after=after, limit=limit)

    def log_events(
        self, log: str, *, after: int = 0, limit: int = 100
    ) -> list[LogEvent]:
        """See `LogStore.log_events`; one that cannot be opened is marked as damaged."""
        found = self._store.log_events(log, after=after, limit=limit)
        return [self._opened(log, one) for one in found]

    def _opened(self, log: str, event: LogEvent) -> LogEvent:
        try:
            content = self._cipher.open(event.content, _event(log, event.number))
        except RecordError:
            logger.warning("event damaged session=%s number=%d", log, event.number)
            return replace(event, content=b"", damaged=True)
        return replace(event, content=content)

    def log_item(self, item: str) -> LogItem | None:
        """See `LogStore.log_item`."""
        found = self._store.log_item(item)
        return None if found is None else self._items([found])[0]

    def log_items(
        self,
        *,
        before: str = "",
        limit: int = 100,
        only_open: bool = False,
        owner: str | None = None,
    ) -> list[LogItem]:
        """See `LogStore.log_items`."""
        return self._items(
            self._store.log_items(
                before=before, limit=limit, only_open=only_open, owner=owner
            )
        )

    def items_of_log(
        self, log: str, *, after: str = "", limit: int = 100
    ) -> list[LogItem]:
        """See `LogStore.items_of_log`."""
        return self._items(self._store.items_of_log(log, after=after, limit=limit))

    @property
    def is_shared(self) -> bool:
        """See `Store.is_shared`."""
        return self._store.is_shared

    def lease_items(
        self, items: Mapping[str, str], *, owner: str, now: float, until: float
    ) -> set[str]:
        """See `LeaseStore.lease_items`."""
        return self._store.lease_items(items, owner=owner, now=now, until=until)

    def end_leases(self, items: Iterable[str], *, owner: str) -> None:
        """See `LeaseStore.end_leases`."""
        self._store.end_leases(items, owner=owner)

    def leases(self) -> dict[str, tuple[str, str, float]]:
        """See `LeaseStore.leases`."""
        return self._store.leases()

    def trim_log(self, log: str, *, before: int) -> int:
        """See `LogStore.trim_log`."""
        return self._store.trim_log(log, before=before)

    def prune_logs(self, *, older_than: float, max_bytes: int) -> int:
        """See `LogStore.prune_logs`."""
        with self._forgetting():
            return self._store.prune_logs(older_than=older_than, max_bytes=max_bytes)

    def drop_log(self, log: str) -> bool:
        """See `LogStore.drop_log`."""
        with self._forgetting():
            return self._store.drop_log(log)

    @contextmanager
    def _forgetting(self) -> Iterator[None]:
        """Forget the names before and after a write that changes some."""
        write = object()
        self._writes.add(write)
        self.names = {}
        try:
            yield
        finally:
            self.names = {}
            self._writes.remove(write)

    def _log(self, log: Log) -> Log:
        return replace(log, content=self._cipher.open(log.content, _head(log.id)))

    def _items(self, items: Iterable[LogItem]) -> list[LogItem]:
        return [
            replace(one, content=self._cipher.open(one.content, _item(one.log, one.id)))
            for one in items
        ]


def _event(log: str, number: int) -> str:
    return f"event/{log}/{number}"


def _item(log: str, item: str) -> str:
    return f"item/{log}/{item}"


def _head(log: str) -> str:
    return f"head/{log}"
