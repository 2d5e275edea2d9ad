"""The store on disk: SQLite through diskcache without pickle.

diskcache's own `Disk` unpickles any row that is marked as pickled (CVE-2025-69872),
keeps large values in files, and opens or deletes the file that a row names. Here keys
are text and values JSON or bytes, all in SQLite; a row in any other form than those
that this module writes counts as damaged.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import sqlite3
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import diskcache
from diskcache.core import DBNAME, DEFAULT_SETTINGS, METADATA, MODE_RAW

from cache.errors import RecordError, StoreDamaged, StoreFull, StoreUnavailable
from cache.records.records import decode_json, encode_json
from cache.rows import Room, Row

logger = logging.getLogger(__name__)

LOCK_TIMEOUT = 5.0
"Seconds to wait for another process that holds the database."

MAX_SEEN = 65_536
"Largest number of names that `first_time` remembers."

PROBE = "probe"
"Key of the row that `probe` writes; it is never there when a transaction ends."

PROBE_SIZE = 16 * 1024
"Bytes of it: more than one page, so that gaps in the file are not enough."

T = TypeVar("T")

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
    # Pages, 2 MiB in all. The system keeps the file in memory as well; with a larger
    # bound the daemon's memory grows long after the start.
    "sqlite_cache_size": 2**9,
    "sqlite_journal_mode": "wal",
    # SQLite must not map the file: if it shrank, SIGBUS would kill the process.
    "sqlite_mmap_size": 0,
    # FULL: committed data survives a power failure.
    "sqlite_synchronous": 2,
}
"Every setting of diskcache 5, so that none is taken from the file."

MADE: Final = zlib.crc32(f"{diskcache.__version__} {SETTINGS}".encode()) & 0x7FFF_FFFF
"""Number in the head of a file (PRAGMA user_version) whose tables and settings were all
written by this version of the library with `SETTINGS`."""


class PlainDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Converts keys and values between Python and SQLite, and never unpickles."""

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

    def __init__(self, folder: str, *, timeout: float) -> None:
        """Open or make the database in `folder`."""
        try:
            super().__init__(folder, timeout=timeout, disk=PlainDisk, **SETTINGS)
            self._sql(f"PRAGMA user_version = {MADE}")
        except BaseException:
            # Its connection would keep others out for as long as the error is known.
            if hasattr(self, "_local"):
                self.close()
            raise

    def rows(
        self,
        prefix: str,
        *,
        limit: int = -1,
        descending: bool = False,
        after: str = "",
        before: str = "",
    ) -> list[Row]:
        """See `Rows.rows`; SQLite's index finds the range, so no other row is read."""
        sql = _SELECT_DOWN if descending else _SELECT_UP
        low, high = _range(prefix)
        # The NUL character sorts first, so no key lies between `after` and this one.
        low = max(low, f"{after}\0") if after else low
        high = min(high, before) if before else high
        found = self._sql(sql, (low, high, limit)).fetchall()
        return [self._row(*columns) for columns in found]

    def set(self, key: str, value: object, *, keep: float | None = None) -> object:
        """Store a value; on disk it stays until it is deleted."""
        return super().set(key, value)

    def keys(self, prefix: str, *, descending: bool = False) -> list[str]:
        """See `Rows.keys`."""
        return [key for key, _ in self.sizes(prefix, descending=descending)]

    def sizes(self, prefix: str, *, descending: bool = False) -> list[tuple[str, int]]:
        """See `Rows.sizes`."""
        sql = _SIZES_DOWN if descending else _SIZES_UP
        found: list[tuple[str, int]] = self._sql(sql, _range(prefix)).fetchall()
        return found

    def compact(self) -> None:
        """Write the file anew without gaps; needs as much room again meanwhile."""
        self._sql("VACUUM")
        self._sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def abandon_transaction(self) -> None:
        """Roll back after a failed commit, so that another transaction can begin."""
        if self._con.in_transaction:
            self._con.rollback()

    @classmethod
    def as_found(
        cls, folder: str, *, timeout: float, alone: bool = False
    ) -> PlainCache:
        """Open a database that is there, and write nothing.

        diskcache stores its settings whenever it opens a database, each in a
        transaction of its own, which takes long and which a full disk refuses.

        Args:
            alone: Nobody else can open the database meanwhile: SQLite then keeps in
                memory the index for which a full disk may have no room, either.
        """
        cache: PlainCache = cls.__new__(cls)
        cache._directory, cache._timeout = folder, timeout
        cache._local, cache._txn_id = threading.local(), None
        cache._disk = PlainDisk(folder, pickle_protocol=0)
        for name, value in SETTINGS.items():
            setattr(cache, name, value)
        connection = sqlite3.connect(
            os.path.join(folder, DBNAME), timeout=timeout, isolation_level=None
        )
        if alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        for name in ("cache_size", "mmap_size", "synchronous"):
            connection.execute(f"PRAGMA {name} = {SETTINGS[f'sqlite_{name}']}")
        cache._local.con, cache._local.pid = connection, os.getpid()
        return cache

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


class Database:
    """One open database; see `cache.rows.StoreBackend`.

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
        self._ident = self._thread.submit(threading.get_ident).result()
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
    def is_open(self) -> bool:
        """True until `close` is called."""
        return self._cache is not None

    @property
    def is_shared(self) -> bool:
        """See `StoreBackend.is_shared`."""
        return False

    def send_mail(self, box: str, letter: bytes) -> None:
        """See `StoreBackend.send_mail`."""
        raise StoreUnavailable("cache: no other daemon uses a store in a folder")

    def mail(self, box: str, after: str, wait: float) -> tuple[str, list[bytes]]:
        """See `StoreBackend.mail`."""
        raise StoreUnavailable("cache: no other daemon uses a store in a folder")

    @property
    def thread(self) -> ThreadPoolExecutor | None:
        """See `StoreBackend.thread`; None once it is closed, which work then finds."""
        return self._thread if self.is_open else None

    @property
    def writes(self) -> int | None:
        """See `StoreBackend.writes`."""
        return self._writes

    def read(self, work: Callable[[PlainCache], T]) -> T:
        """See `StoreBackend.read`."""
        cache = self._open_cache()
        return self._in_thread(lambda: work(cache))

    def write(self, work: Callable[[PlainCache], T], *, aside: bool = False) -> T:
        """See `StoreBackend.write`."""
        cache = self._open_cache()

        def transact() -> T:
            try:
                with cache.transact():
                    return work(cache)
            finally:
                # Counted also when it failed: too many is safe, too few is not.
                self._writes += not aside
                cache.abandon_transaction()

        return self._in_thread(transact)

    def first_time(self, names: Sequence[str], *, keep: float) -> bool:
        """See `StoreBackend.first_time`; in memory, as only this process asks."""

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
        """See `StoreBackend.changes`."""
        return 0

    def check(self) -> list[str]:
        """Return what SQLite finds wrong with the file; reads all of it."""
        cache = self._open_cache()
        return self._in_thread(cache.check_integrity)

    def probe(self) -> None:
        """See `StoreBackend.probe`."""
        cache = self._open_cache()

        def work() -> None:
            try:
                with cache.transact():
                    cache.set(PROBE, bytes(PROBE_SIZE))
                    found = cache.get(PROBE)
                    cache.delete(PROBE)
            finally:
                cache.abandon_transaction()
            if found != bytes(PROBE_SIZE):
                raise sqlite3.DatabaseError("a row is not what was written")

        self._in_thread(work)

    def room(self) -> Room | None:
        """See `StoreBackend.room`."""
        try:
            usage = shutil.disk_usage(self._folder)
        except OSError as exc:
            raise _unavailable(exc, self._folder) from exc
        return Room(usage.free, usage.total)

    def compact(self) -> tuple[int, int]:
        """See `StoreBackend.compact`; nothing else is read or written meanwhile."""
        cache = self._open_cache()
        before = self._size()
        self._in_thread(cache.compact)
        return before, self._size()

    def _size(self) -> int:
        files = (self._folder / f"{DBNAME}{end}" for end in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

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
            if threading.get_ident() == self._ident:
                return work()
            return self._thread.submit(work).result()
        except (sqlite3.Error, diskcache.Timeout, OSError) as exc:
            raise _unavailable(exc, self._folder) from exc

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
        try:
            if self._inspect(file):
                return PlainCache.as_found(folder, timeout=self._lock_timeout)
            return PlainCache(folder, timeout=self._lock_timeout)
        except sqlite3.OperationalError as exc:
            if not _has_no_room(exc):
                raise
            # What is stored can be read, and is used until there is room again.
            try:
                self._inspect(file, alone=True)
            except sqlite3.OperationalError:
                # Another process uses it; what is wrong is the room all the same.
                raise exc from None
        logger.error("store opened on a full disk, nothing new is kept folder=%s", file)
        return PlainCache.as_found(folder, timeout=self._lock_timeout, alone=True)

    def _inspect(self, file: str, *, alone: bool = False) -> bool:
        """Look at the file before diskcache does: it trusts what it finds.

        It would wait a minute for a lock, and set any attribute and PRAGMA that the
        settings table names. Only the first pages are read.

        Args:
            alone: Open it as `PlainCache.as_found` does.

        Returns:
            True if all of it was made by this version of diskcache.
        """
        connection = sqlite3.connect(
            file, timeout=self._lock_timeout, isolation_level=None
        )
        try:
            if alone:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN IMMEDIATE")
            made = connection.execute("PRAGMA user_version").fetchone() == (MADE,)
            journal = connection.execute("PRAGMA journal_mode").fetchone()
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            )
            names = {name for (name,) in tables.fetchall()}
            if alone and not {"Settings", "Cache"} <= names:
                raise sqlite3.OperationalError("disk is full")
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
        return made and journal == ("wal",) and {"Settings", "Cache"} <= names


def _has_no_room(exc: sqlite3.Error) -> bool:
    """Return whether SQLite could not make one of its files larger."""
    name = getattr(exc, "sqlite_errorname", "")
    # The second one is about the index of the write-ahead log, which is a file.
    return name == "SQLITE_FULL" or name.startswith("SQLITE_IOERR_SHM")


def _unavailable(exc: Exception, folder: Path) -> StoreUnavailable:
    """Return an error of one line: what failed, and what the owner can do."""
    # diskcache raises Timeout for every failure to begin a transaction.
    cause = exc.__context__
    if isinstance(exc, diskcache.Timeout) and isinstance(cause, sqlite3.Error):
        exc = cause
    text = str(exc)
    if "locked" in text or "busy" in text:
        return StoreUnavailable(
            f"cache: {folder} is in use by another process; stop that one (is another "
            "anpd running?) and try again"
        )
    if isinstance(exc, OSError):
        full = exc.errno in {errno.ENOSPC, errno.EDQUOT}
        text = exc.strerror or text
    else:
        full = "full" in text or (isinstance(exc, sqlite3.Error) and _has_no_room(exc))
    if full:
        return StoreFull(f"cache: no space left for {folder}; free some and try again")
    if isinstance(exc, sqlite3.OperationalError | OSError) and "malformed" not in text:
        return StoreUnavailable(
            f"cache: cannot use {folder}: {text}; check that it can be written"
        )
    return StoreDamaged(_move_aside(f"is damaged ({text})", folder))


def _move_aside(what: str, folder: Path) -> str:
    # The whole folder: the old write-ahead log would be applied to a new database.
    return (
        f"cache: {folder} {what}; restore it from a backup, or stop anpd and start "
        f"anew with: mv {folder} {folder}.damaged"
    )
