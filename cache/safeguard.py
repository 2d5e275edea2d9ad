"""The file beside a store: which store it is, and what the owner refused.

A store can be lost: its file is empty after a power cut, a backup holds none, a server
forgot everything. Blocks of peers, revocations and withdrawn capabilities must not end
with it, so they stand in this file as well. What either of the two holds counts, and
whatever ends a refusal in the store takes it out of the file, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from cache.errors import RecordError, StoreUnavailable
from cache.records.peers import AliasRecord, PeerState
from cache.records.records import seal
from cache.rows import Row, Rows, StoreBackend

FORMAT: Final = 1
"Version of the file."

MAX_FILE: Final = 64 * 1024 * 1024
"Largest file that is read, in bytes."

PEER: Final = "peer/"
ALIAS: Final = "alias/"
REVOCATION: Final = "revocation/"
WITHDRAWN: Final = "withdrawn/"

REFUSALS: Final = (PEER, REVOCATION, WITHDRAWN)
"Beginnings of the keys of rows that may refuse something."

AREAS: Final = (ALIAS, *REFUSALS)
"Beginnings of the keys of all rows that can stand in the file, or follow from it."

T = TypeVar("T")


class Safeguard:
    """The file in a home, as it was read or written last.

    One thread at a time changes it: that of the store.
    """

    def __init__(self, path: Path) -> None:
        """Read the file, which need not be there.

        Raises:
            StoreUnavailable: The file cannot be read as what it was.
        """
        self._path = path
        self.store: str | None = None
        "Id of the store that belongs to the home; None before there was one."
        self.rows: dict[str, Any] = {}
        "Stored forms of the refusing records, by their keys."
        self.alone: frozenset[str] = frozenset()
        """Keys of rows that a store of several daemons did not hold at the start. Only
        the owner's word to this daemon ends them."""

        self.view: Mapping[str, Any] = {}
        "`rows`, and the rows that lead to a blocked peer from its other DIDs."
        try:
            with path.open("rb") as file:
                found = json.loads(file.read(MAX_FILE))
            if found["format"] != FORMAT:
                raise ValueError("it is of another version")
            self.store, self.rows = found["store"], dict(found["rows"])
            self._look()
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, RecordError) as exc:
            raise StoreUnavailable(
                f"cache: {path} holds the owner's blocks and revocations and cannot be "
                f"read ({str(exc)[:100]}); restore it from a backup, or move it away "
                "to go on with what the store holds"
            ) from exc

    @property
    def is_new(self) -> bool:
        """True until the file belongs to a store."""
        return self.store is None

    def take(self, changes: Mapping[str, object]) -> None:
        """Follow the changes of a transaction, before they are final in the store.

        So a refusal stands in the file when it is in the store, and one that ends is in
        neither, or still in the store, if the process is killed in between.

        Args:
            changes: The new values of rows by their keys; None for a deleted one.

        Raises:
            StoreUnavailable: The file cannot be written; nothing was changed.
        """
        rows = dict(self.rows)
        for key, value in changes.items():
            if not refuses(key, value):
                rows.pop(key, None)
            elif _meaning(key, rows.get(key)) != _meaning(key, value):
                rows[key] = value
        if rows != self.rows:
            self._write(self.store, rows)

    def belong(self, store: str) -> None:
        """Note which store belongs to the home from now on."""
        self._write(store, self.rows)

    def drop(self, keys: Iterable[str]) -> None:
        """Forget refusals that another daemon of the same store ended."""
        self.take(dict.fromkeys(set(keys) - self.alone))

    def _write(self, store: str | None, rows: dict[str, Any]) -> None:
        value = {"format": FORMAT, "store": store, "rows": rows}
        try:
            _replace(self._path, json.dumps(value, sort_keys=True).encode("ascii"))
        except OSError as exc:
            raise StoreUnavailable(
                f"cache: cannot write {self._path}: {exc.strerror or exc}; free some "
                "space, or check that the home can be written"
            ) from exc
        self.store, self.rows = store, rows
        self.alone &= rows.keys()
        self._look()

    def _look(self) -> None:
        view = dict(self.rows)
        for key, value in self.rows.items():
            if key.startswith(PEER):
                peer = value["record"]
                for alias in peer["aliases"]:
                    row = f"{ALIAS}{alias}"
                    view[row] = seal(AliasRecord(alias, peer["did"]), row)
        self.view = view


class GuardedRows:
    """The rows of a transaction, together with the refusals of the file."""

    def __init__(self, rows: Rows, kept: Mapping[str, Any]) -> None:
        self._rows = rows
        self._kept = kept
        self.changes: dict[str, object] = {}
        "New values of the rows in `AREAS` that the transaction changed."

    def __contains__(self, key: str) -> bool:
        return key in self._rows or self._of_file(key) is not None

    def get(self, key: str) -> object:
        """See `Rows.get`; a refusal counts before what the store holds."""
        kept = self._of_file(key)
        if kept is None:
            return self._rows.get(key)
        with contextlib.suppress(RecordError):
            found = self._rows.get(key)
            if key.startswith(ALIAS) and found is not None:
                return found
            return found if refuses(key, found) else kept
        return kept

    def set(self, key: str, value: object, *, keep: float | None = None) -> object:
        """See `Rows.set`."""
        if key.startswith(AREAS):
            self.changes[key] = value
        if key.startswith(PEER) and key in self._kept:
            # A store that was emptied has not got these, which the file made up for.
            for alias in self._kept[key]["record"]["aliases"]:
                if (row := f"{ALIAS}{alias}") not in self._rows:
                    self._rows.set(row, self._kept[row])
        return self._rows.set(key, value, keep=keep)

    def delete(self, key: str) -> bool:
        """See `Rows.delete`."""
        was_kept = self._of_file(key) is not None
        if key.startswith(AREAS):
            self.changes[key] = None
        return self._rows.delete(key) or was_kept

    def rows(
        self,
        prefix: str,
        *,
        limit: int = -1,
        descending: bool = False,
        after: str = "",
        before: str = "",
    ) -> list[Row]:
        """See `Rows.rows`."""
        found = self._rows.rows(
            prefix, limit=limit, descending=descending, after=after, before=before
        )
        more = {
            key: Row(key, self.get(key), None)
            for key in self._below(prefix)
            if key > after and (not before or key < before)
        }
        if not more:
            return found
        every = {row.key: row for row in found} | more
        in_order = [every[key] for key in sorted(every, reverse=descending)]
        return in_order if limit < 0 else in_order[:limit]

    def keys(self, prefix: str, *, descending: bool = False) -> list[str]:
        """See `Rows.keys`."""
        return [key for key, _ in self.sizes(prefix, descending=descending)]

    def sizes(self, prefix: str, *, descending: bool = False) -> list[tuple[str, int]]:
        """See `Rows.sizes`; one that stands in the file alone has the size 0."""
        found = self._rows.sizes(prefix, descending=descending)
        more = self._below(prefix)
        if not more:
            return found
        every = dict.fromkeys(more, 0) | dict(found)
        return sorted(every.items(), reverse=descending)

    def _of_file(self, key: str) -> Any:
        """Return the row of the file that counts, if this transaction left it."""
        return None if key in self.changes else self._kept.get(key)

    def _below(self, prefix: str) -> list[str]:
        kept = (key for key in self._kept if key.startswith(prefix))
        return [key for key in kept if key not in self.changes]


class GuardedBackend:
    """A back end whose rows are those of another one and those of the file."""

    def __init__(self, backend: StoreBackend, safeguard: Safeguard) -> None:
        self._backend = backend
        self._safeguard = safeguard

    @classmethod
    def over(cls, backend: StoreBackend, safeguard: Safeguard) -> StoreBackend:
        """Return the back end with the file in front of it."""
        # All that is not about rows is the other back end's: see `__getattr__`.
        return cast(StoreBackend, cls(backend, safeguard))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def read(self, work: Callable[[Rows], T]) -> T:
        """See `StoreBackend.read`."""
        kept = self._safeguard.view
        return self._backend.read(
            (lambda rows: work(GuardedRows(rows, kept))) if kept else work
        )

    def write(self, work: Callable[[Rows], T], *, aside: bool = False) -> T:
        """See `StoreBackend.write`; the file is changed just before the store."""

        def guarded(rows: Rows) -> T:
            seen = GuardedRows(rows, self._safeguard.view)
            result = work(seen)
            if seen.changes:
                self._safeguard.take(seen.changes)
            return result

        return self._backend.write(guarded, aside=aside)


def refuses(key: str, value: object) -> bool:
    """Tell whether a row refuses something to a peer.

    Args:
        value: Its stored form; None if there is no such row.
    """
    if not isinstance(value, dict):
        return False
    if key.startswith(PEER):
        return bool(value["record"]["state"] == PeerState.BLOCKED)
    if key.startswith(WITHDRAWN):
        return not value["record"]["is_open"]
    return key.startswith(REVOCATION)


def _meaning(key: str, value: Any) -> object:
    """Return what has to be kept of a row: not when a peer was seen last."""
    if value is None or not key.startswith(PEER):
        return value
    return value["record"]["state"], value["record"]["aliases"]


def _replace(path: Path, data: bytes) -> None:
    """Write a file anew so that a power cut leaves the old or the new content."""
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
