"""diskcache without pickle: keys are text, values are JSON or bytes, all in SQLite.

diskcache's own `Disk` unpickles any row that is marked as pickled (CVE-2025-69872),
keeps large values in files, and opens or deletes the file that a row names. This
module reads a row only in the forms that it writes; any other row counts as damaged.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Final, NoReturn

import diskcache
from diskcache.core import MODE_RAW

from cache.errors import RecordError
from cache.rows import Row, decode_json, encode_json

__all__ = ["SETTINGS", "PlainCache", "PlainDisk"]

SETTINGS: Final[dict[str, Any]] = {
    "statistics": 0,
    "tag_index": 0,
    # Nothing is ever dropped to make room: an agreement is not a cached copy.
    "eviction_policy": "none",
    "cull_limit": 0,
    "size_limit": 2**62,
    "disk_min_file_size": 2**62,
    "disk_pickle_protocol": 0,
    "sqlite_auto_vacuum": 0,
    "sqlite_cache_size": 2**11,
    "sqlite_journal_mode": "wal",
    # SQLite must not map the file: if it shrank, SIGBUS would kill the process.
    "sqlite_mmap_size": 0,
    # FULL: committed data survives a power failure.
    "sqlite_synchronous": 2,
}
"Every setting of diskcache 5, so that none is taken from the file."


class PlainDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Converts keys and values between Python and SQLite, and never unpickles."""

    def __init__(
        self, directory: str, min_file_size: int = 0, pickle_protocol: int = 0
    ) -> None:
        super().__init__(directory, min_file_size, pickle_protocol)

    def put(self, key: object) -> tuple[str, bool]:
        """Return the database form of `key`, which is text."""
        if type(key) is not str:
            raise TypeError(f"keys are text, got {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: object) -> str:
        """Return the key of a row; RecordError if we never wrote it."""
        if type(key) is not str or raw != 1:
            raise RecordError("the key is not a plain text")
        return key

    def store(
        self, value: object, read: bool, key: object = None
    ) -> tuple[int, int, None, object]:
        """Return size, mode, no file name, and the database form of `value`.

        bytes become a BLOB, everything else JSON text.
        """
        if read:
            raise TypeError("values are JSON or bytes, not files")
        if type(value) is bytes:
            return len(value), MODE_RAW, None, sqlite3.Binary(value)
        text = encode_json(value)
        return len(text), MODE_RAW, None, text

    def fetch(
        self, mode: object, filename: object, value: object, read: object
    ) -> object:
        """Return the value of a row; RecordError if we never wrote it."""
        if mode != MODE_RAW or filename is not None or read:
            raise RecordError(f"unknown storage mode {mode!r:.20}")
        if type(value) is bytes:
            return value
        if type(value) is not str:
            raise RecordError("the value is neither text nor bytes")
        return decode_json(value)

    def filename(self, key: object = None, value: object = None) -> NoReturn:
        """Refuse to name a file: values are never kept in files."""
        raise TypeError("values are kept in SQLite only")

    def remove(self, file_path: object) -> None:
        """Do nothing: the name comes from a row that this program did not write."""


class PlainCache(diskcache.Cache):  # type: ignore[misc]  # diskcache has no types
    """diskcache's `Cache`, with look-ups of all rows whose key has a prefix."""

    def rows(
        self,
        prefix: str,
        *,
        limit: int = -1,
        descending: bool = False,
        after: str = "",
    ) -> list[Row]:
        """Return rows whose key begins with `prefix`, in order of their keys.

        SQLite's index over the keys finds the range, so no other row is read.

        Args:
            after: Only rows whose key comes later than this one.
        """
        sql = _SELECT_DOWN if descending else _SELECT_UP
        low, high = _range(prefix)
        # The NUL character sorts first, so no key lies between `after` and this one.
        low = max(low, f"{after}\0") if after else low
        found = self._sql(sql, (low, high, limit)).fetchall()
        return [self._row(*columns) for columns in found]

    def set(self, key: str, value: object, *, keep: float | None = None) -> object:
        """Store a value; on disk it stays until it is deleted."""
        return super().set(key, value)

    def keys(self, prefix: str, *, descending: bool = False) -> list[str]:
        """Return the keys that begin with `prefix`; no value is read."""
        return [key for key, _ in self.sizes(prefix, descending=descending)]

    def sizes(self, prefix: str, *, descending: bool = False) -> list[tuple[str, int]]:
        """Return such keys with their sizes in bytes; no value is read."""
        sql = _SIZES_DOWN if descending else _SIZES_UP
        found: list[tuple[str, int]] = self._sql(sql, _range(prefix)).fetchall()
        return found

    def abandon_transaction(self) -> None:
        """Roll back after a failed commit, so that another transaction can begin."""
        if self._con.in_transaction:
            self._con.rollback()

    def check_integrity(self) -> list[str]:
        """Return the faults that SQLite finds in the whole file; reads all of it."""
        found = self._sql("PRAGMA integrity_check(100)").fetchall()
        return [str(text) for (text,) in found if text != "ok"]

    @property
    def _con(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = super()._con
        # Undecodable text would fail the whole query; decoded so, only its row is
        # damaged.
        connection.text_factory = _any_text
        return connection

    def _row(
        self, key: str, raw: object, mode: object, filename: object, value: object
    ) -> Row:
        try:
            self._disk.get(key, raw)
            return Row(key, self._disk.fetch(mode, filename, value, False), None)
        except RecordError as exc:
            return Row(key, None, str(exc))


# A key beginning with the prefix is at least the prefix and below the prefix followed
# by the last character there is. SQLite sorts blobs behind all text, so planted blob
# keys are never in the range.
_WHERE = "FROM Cache WHERE key >= ? AND key < ? ORDER BY key"
_SELECT_UP = f"SELECT key, raw, mode, filename, value {_WHERE} LIMIT ?"
_SELECT_DOWN = f"SELECT key, raw, mode, filename, value {_WHERE} DESC LIMIT ?"
_SIZES_UP = f"SELECT key, size {_WHERE}"
_SIZES_DOWN = f"SELECT key, size {_WHERE} DESC"


def _range(prefix: str) -> tuple[str, str]:
    return prefix, prefix + "\U0010ffff"


def _any_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
