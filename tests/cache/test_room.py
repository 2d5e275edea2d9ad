"""A disk with no room left, and the room that deleted rows leave."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from cache.condition import StoreFault, StoreWatch, condition_of
from cache.disk import Database
from cache.errors import StoreFull
from cache.rows import Room
from cache.store import Store
from tests.cache.samples import PIN, trio


def no_room(*_: object, **__: object) -> None:
    exc = sqlite3.OperationalError("database or disk is full")
    exc.sqlite_errorname = "SQLITE_FULL"
    raise exc


def limit_pages(store: Store) -> None:
    """Let the file grow no more."""
    database = store._database
    assert isinstance(database, Database)

    def work() -> None:
        cache = database._open_cache()
        # No gaps in the file, which a small row could fill.
        cache._sql("VACUUM")
        ((pages,),) = cache._sql("PRAGMA page_count").fetchall()
        cache._sql(f"PRAGMA max_page_count = {pages}").fetchall()

    database._in_thread(work)


def test_a_full_disk_does_not_prevent_a_start_that_only_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path) as store:
        saved = store.save_agreement(*trio(0))
    with sqlite3.connect(tmp_path / "cache.db") as connection:
        connection.execute("PRAGMA user_version = 0")
    connection.close()
    with monkeypatch.context() as patched:
        # diskcache writes its settings when it opens a database of another version.
        patched.setattr("diskcache.Cache.__init__", no_room)
        store = Store(tmp_path)
    with store:
        assert store.agreements_of(saved.hash) == [saved]
        limit_pages(store)
        with pytest.raises(StoreFull, match="no space left"):
            store.probe()
        assert store.agreements_of(saved.hash) == [saved]
    # And nothing is different afterwards.
    with Store(tmp_path) as store:
        store.save_pin(PIN)
        assert store.check() == ([], ())


def test_a_full_disk_without_a_store_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diskcache.Cache.__init__", no_room)
    with pytest.raises(StoreFull, match="no space left"):
        Store(tmp_path)


def test_the_condition_names_the_worst_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path) as store:
        assert condition_of(store, thorough=True).fault is None
        with monkeypatch.context() as patched:
            patched.setattr(Store, "room", lambda store: Room(10, 10**9))
            low = condition_of(store)
        assert (low.fault, low.works) == (StoreFault.LOW, True)
        limit_pages(store)
        full = condition_of(store)
        assert (full.fault, full.works) == (StoreFault.FULL, False)


def test_a_row_that_is_written_to_try_leaves_nothing_and_ends_no_way_of_a_call(
    tmp_path: Path,
) -> None:
    with Store(tmp_path) as store:
        before = store.writes
        store.probe()
        assert store.writes == before
        assert store._database.read(lambda rows: rows.keys("")) == []


def test_many_who_ask_for_the_condition_make_one_examination(tmp_path: Path) -> None:
    now, looked = [0.0], []
    waits, goes_on = threading.Event(), threading.Event()
    with Store(tmp_path) as store:
        watch = StoreWatch(store, clock=lambda: now[0])

        def probe() -> None:
            looked.append(now[0])
            if len(looked) == 2:
                waits.set()
                goes_on.wait(10)

        store.probe = probe  # type: ignore[method-assign]  # a slow store
        assert [watch.look().works for _ in range(3)] == [True] * 3
        assert len(looked) == 1
        now[0] = 60.0
        thread = threading.Thread(target=watch.look)
        thread.start()
        assert waits.wait(10)
        # The store does not answer now: nobody else waits for it.
        assert watch.look().works
        goes_on.set()
        thread.join(10)
        assert len(looked) == 2


def test_deleted_rows_leave_a_smaller_file(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        keys = [f"half/{number}" for number in range(50)]
        text = "x" * 100_000
        store._database.write(lambda rows: [rows.set(key, text) for key in keys])
        store._database.write(lambda rows: [rows.delete(key) for key in keys])
        before, after = store.compact()
        assert before > 5_000_000
        assert after < 200_000
        file = tmp_path / "cache.db"
        assert file.stat().st_size == after
        assert store.check_file() == []
