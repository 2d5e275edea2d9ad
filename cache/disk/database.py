"""Opens the SQLite file, runs work on it in one thread, and explains its failures."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import diskcache
from diskcache.core import DBNAME, DEFAULT_SETTINGS, METADATA

from cache.disk.plain_cache import SETTINGS, PlainCache, PlainDisk
from cache.errors import StoreUnavailable

__all__ = ["LOCK_TIMEOUT", "Database"]

LOCK_TIMEOUT = 5.0
"Seconds to wait for another process that holds the database."

MAX_SEEN = 65_536
"Largest number of names that `first_time` remembers."

T = TypeVar("T")


class Database:
    """One open database; see `cache.rows.Backend`.

    It belongs to one daemon, or to a tool while that one does not run. All work runs
    in one thread of its own, over one connection that `close` ends. Callers from
    any thread take turns.
    """

    def __init__(self, folder: Path, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        """Open or make the database in `folder`, which becomes ours alone (0700).

        Raises:
            StoreUnavailable: with what the owner has to do.
        """
        self._folder = Path(os.path.abspath(folder))
        self._lock_timeout = lock_timeout
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="anpd-store")
        self._cache: PlainCache | None = None
        self._writes = 0
        self._seen: OrderedDict[str, float] = OrderedDict()
        "Names and the times at which they are forgotten, in the order of their entry."
        try:
            self._cache = self._in_thread(self._open)
        except BaseException:
            self._thread.shutdown()
            raise

    @property
    def folder(self) -> Path:
        """The folder with the database's files, absolute."""
        return self._folder

    @property
    def is_open(self) -> bool:
        """True until `close` is called."""
        return self._cache is not None

    @property
    def is_shared(self) -> bool:
        """See `Backend.is_shared`."""
        return False

    @property
    def writes(self) -> int | None:
        """See `Backend.writes`."""
        return self._writes

    def read(self, work: Callable[[PlainCache], T]) -> T:
        """Return what `work` returns; StoreUnavailable if the database fails it."""
        cache = self._open_cache()
        return self._in_thread(lambda: work(cache))

    def write(self, work: Callable[[PlainCache], T]) -> T:
        """Run `work` in one transaction: all of it lasts, or nothing of it happened."""
        cache = self._open_cache()

        def transact() -> T:
            try:
                with cache.transact():
                    return work(cache)
            finally:
                # Counted also when it failed: too many is safe, too few is not.
                self._writes += 1
                cache.abandon_transaction()

        return self._in_thread(transact)

    def first_time(self, names: Sequence[str], *, keep: float) -> bool:
        """See `Backend.first_time`; kept in memory, since only this process asks."""

        def work() -> bool:
            now = time.monotonic()
            if any(self._seen.get(name, now) > now for name in names):
                return False
            for name in names:
                self._seen.pop(name, None)
                self._seen[name] = now + keep
            while len(self._seen) > MAX_SEEN:
                self._seen.popitem(last=False)
            return True

        self._open_cache()
        return self._in_thread(work)

    def changes(self, area: str) -> int:
        """See `Backend.changes`."""
        return 0

    def check(self) -> list[str]:
        """Return what SQLite finds wrong with the file; reads all of it."""
        cache = self._open_cache()
        return self._in_thread(cache.check_integrity)

    def close(self) -> None:
        """Close the database; a second time does nothing."""
        cache, self._cache = self._cache, None
        if cache is not None:
            self._in_thread(cache.close)
            self._thread.shutdown()

    def _open_cache(self) -> PlainCache:
        if self._cache is None:
            raise StoreUnavailable(f"cache: {self._folder} is closed")
        return self._cache

    def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return self._thread.submit(work).result()
        except (sqlite3.Error, diskcache.Timeout, OSError) as exc:
            raise StoreUnavailable(_explain(exc, self._folder)) from exc

    def _open(self) -> PlainCache:
        folder = str(self._folder)
        # diskcache expands variables in the path and would use another folder.
        if os.path.expandvars(folder) != folder:
            raise StoreUnavailable(f"cache: a path with $ is not possible: {folder}")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)
        file = os.path.join(folder, DBNAME)
        # SQLite gives its other files the mode of this one.
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._inspect(file)
        return PlainCache(
            folder, timeout=self._lock_timeout, disk=PlainDisk, **SETTINGS
        )

    def _inspect(self, file: str) -> None:
        """Look at the file before diskcache does: it trusts what it finds.

        It would wait a minute for a lock, and set any attribute and PRAGMA that the
        settings table names. Only the first pages are read.
        """
        connection = sqlite3.connect(
            file, timeout=self._lock_timeout, isolation_level=None
        )
        try:
            connection.execute("BEGIN IMMEDIATE")
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            )
            names = {name for (name,) in tables.fetchall()}
            if names - {"Settings", "Cache", "sqlite_stat1"}:
                raise StoreUnavailable(_move_aside("is not ours", self._folder))
            if "Settings" in names:
                rows = connection.execute("SELECT key FROM Settings LIMIT 100")
                settings = {key for (key,) in rows.fetchall()}
                if settings - DEFAULT_SETTINGS.keys() - METADATA.keys():
                    raise StoreUnavailable(_move_aside("is not ours", self._folder))
            if "Cache" in names:
                # Damaged text should make its own row unreadable, not the whole file.
                connection.text_factory = bytes
                # Fails if a column is missing or the root page is damaged.
                connection.execute(
                    "SELECT key, raw, mode, filename, value, size, expire_time"
                    " FROM Cache LIMIT 1"
                ).fetchall()
            connection.execute("ROLLBACK")
        finally:
            connection.close()


def _explain(exc: Exception, folder: Path) -> str:
    """Return one line: what failed, and what the owner can do."""
    # diskcache raises Timeout for every failure to begin a transaction.
    if isinstance(exc, diskcache.Timeout) and isinstance(
        exc.__context__, sqlite3.Error
    ):
        exc = exc.__context__
    text = str(exc)
    if "locked" in text or "busy" in text:
        return (
            f"cache: {folder} is in use by another process; stop that one (is another "
            "anpd running?) and try again"
        )
    if isinstance(exc, OSError):
        full = exc.errno in {errno.ENOSPC, errno.EDQUOT}
        text = exc.strerror or text
    else:
        full = "full" in text
    if full:
        return f"cache: no space left for {folder}; free some and try again"
    if isinstance(exc, sqlite3.OperationalError | OSError) and "malformed" not in text:
        return f"cache: cannot use {folder}: {text}; check that it can be written"
    return _move_aside(f"is damaged ({text})", folder)


def _move_aside(what: str, folder: Path) -> str:
    # The whole folder: the old write-ahead log would be applied to a new database.
    return (
        f"cache: {folder} {what}; restore it from a backup, or stop anpd and start "
        f"anew with: mv {folder} {folder}.damaged"
    )
