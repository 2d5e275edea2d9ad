"""Opening, locking, closing and failing: always one line that says what to do."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
from pathlib import Path

import pytest
from diskcache.core import DEFAULT_SETTINGS

from cache.disk import SETTINGS, Database, PlainCache
from cache.errors import StoreUnavailable
from cache.parts.groups import GroupChange
from cache.parts.shelf import StoreLimits
from cache.store import Store
from tests.cache.samples import PIN, trio


def fails(folder: Path, match: str, *, lock_timeout: float = 0.05) -> str:
    with pytest.raises(StoreUnavailable, match=match) as caught:
        Store(folder, StoreLimits(lock_timeout=lock_timeout))
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)
    return str(caught.value)


def test_every_setting_of_diskcache_is_ours() -> None:
    assert SETTINGS.keys() == DEFAULT_SETTINGS.keys()
    assert SETTINGS["eviction_policy"] == "none"
    assert SETTINGS["cull_limit"] == 0
    assert SETTINGS["statistics"] == 0


def test_commits_are_synced_in_full(tmp_path: Path) -> None:
    database = Database(tmp_path)

    def pragma(cache: PlainCache) -> tuple[object, object]:
        names = ("synchronous", "journal_mode")
        one, two = (cache._sql(f"PRAGMA {name}").fetchone()[0] for name in names)
        return one, two

    assert database.read(pragma) == (2, "wal")
    database.close()


def test_little_of_the_file_is_held_in_memory(tmp_path: Path) -> None:
    """Pages that were read stay; a large bound makes memory grow long after start."""
    database = Database(tmp_path)

    def held(cache: PlainCache) -> int:
        pages, size = (
            cache._sql(f"PRAGMA {name}").fetchone()[0]
            for name in ("cache_size", "page_size")
        )
        # Below 0 it counts KiB.
        return int(pages * size if pages > 0 else -pages * 1024)

    assert 0 < database.read(held) <= 2**21
    database.close()


def test_opening_what_was_made_writes_nothing(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_pin(PIN)
    for _ in range(2):
        with Store(tmp_path) as store:
            assert (tmp_path / "cache.db-wal").stat().st_size == 0
            assert store.pins() == [PIN]


@pytest.mark.parametrize(
    "spoilt",
    ["PRAGMA user_version = 1", "PRAGMA journal_mode = delete", "DROP TABLE Settings"],
)
def test_a_file_that_another_program_made_is_set_up_anew(
    tmp_path: Path, spoilt: str
) -> None:
    with Store(tmp_path) as store:
        store.save_pin(PIN)
    with sqlite3.connect(tmp_path / "cache.db") as connection:
        connection.execute(spoilt).fetchall()
    connection.close()
    with Store(tmp_path) as store:
        assert (tmp_path / "cache.db-wal").stat().st_size > 0
        assert store.pins() == [PIN]


def test_the_files_are_the_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "store"
    with Store(folder) as store:
        store.save_pin(PIN)
        assert folder.stat().st_mode & 0o777 == 0o700
        for path in folder.iterdir():
            assert path.stat().st_mode & 0o777 == 0o600, path.name


def test_a_closed_store_says_so_and_closes_twice(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.pins()


def test_work_in_the_store_s_own_thread_waits_for_no_other(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        thread = store.thread
        assert thread is not None
        change = GroupChange(group="g", at=1.0, content=b"head")
        thread.submit(store.save_group, change).result(timeout=2)
        assert [one.content for one in store.groups()] == [b"head"]
    assert store.thread is None


def test_closing_leaves_one_file(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_pin(PIN)
    assert [path.name for path in tmp_path.iterdir()] == ["cache.db"]


@pytest.mark.parametrize("size", [1, 99, 100, 4096, 20_000])
def test_a_file_that_is_no_database_is_named_with_the_command(
    tmp_path: Path, size: int
) -> None:
    (tmp_path / "cache.db").write_bytes(b"not a database " * (size // 15 + 1))
    said = fails(tmp_path, "damaged")
    assert f"mv {tmp_path} {tmp_path}.damaged" in said


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "cache.db")
    connection.execute("CREATE TABLE notes (text)")
    connection.close()
    before = (tmp_path / "cache.db").read_bytes()
    fails(tmp_path, "is not ours")
    assert (tmp_path / "cache.db").read_bytes() == before


@pytest.mark.parametrize("setting", ["sqlite_key", "disk_evil", "__class__", "get"])
def test_settings_that_diskcache_would_obey_are_refused(
    tmp_path: Path, setting: str
) -> None:
    Store(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "cache.db")
    with connection:
        connection.execute("INSERT INTO Settings VALUES (?, 1)", (setting,))
    connection.close()
    fails(tmp_path, "is not ours")


def test_known_settings_in_the_file_are_overruled(tmp_path: Path) -> None:
    Store(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "cache.db")
    with connection:
        connection.executemany(
            "UPDATE Settings SET value = ? WHERE key = ?",
            [("least-recently-used", "eviction_policy"), (10, "cull_limit")],
        )
    connection.close()
    database = Database(tmp_path)
    assert database.read(lambda cache: (cache.eviction_policy, cache.cull_limit)) == (
        "none",
        0,
    )
    database.close()


def test_random_damage_ends_in_one_line_or_in_records_left_out(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for number in range(20):
            store.save_agreement(*trio(number))
        expected = {a.hash: a for a in store.all_agreements()}
    file = tmp_path / "cache.db"
    good = file.read_bytes()
    dice = random.Random(7)
    outcomes = set()
    for _ in range(40):
        data = bytearray(good)
        for _ in range(dice.choice([1, 20])):
            data[dice.randrange(len(data))] = dice.randrange(256)
        file.write_bytes(data[: dice.choice([len(data), len(data) // 2])])
        try:
            with Store(tmp_path, StoreLimits(lock_timeout=0.05)) as store:
                found = store.all_agreements()
                store.check()
        except StoreUnavailable as exc:
            outcomes.add("unavailable")
            said = str(exc)
        else:
            outcomes.add("opened")
            said = ""
            assert all(expected[each.hash] == each for each in found)
        assert "\n" not in said
    assert outcomes == {"unavailable", "opened"}


def test_a_database_that_another_process_holds_is_said_to_be_in_use(
    tmp_path: Path,
) -> None:
    Store(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    fails(tmp_path, "in use by another process")
    connection.execute("ROLLBACK")
    with Store(tmp_path, StoreLimits(lock_timeout=0.05)) as store:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="in use by another process"):
            store.save_pin(PIN)
        connection.execute("ROLLBACK")
        store.save_pin(PIN)
        assert store.pins() == [PIN]
    connection.close()


def test_a_full_disk_is_said_and_nothing_is_half_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save_agreement(*trio(0))
    before = store.all_agreements()

    def limit(pages: str) -> None:
        database = store._database
        assert isinstance(database, Database)
        database.read(
            lambda cache: cache._sql(f"PRAGMA max_page_count = {pages}").fetchall()
        )

    def save_many() -> None:
        for number in range(1, 50):
            store.save_agreement(*trio(number))

    limit("1")  # SQLite takes the present size instead
    with pytest.raises(StoreUnavailable, match="no space left"):
        save_many()
    agreements = store.all_agreements()
    assert all(store.document(a.hash) and store.halves(a.hash) for a in agreements)
    limit("1000000")
    store.save_agreement(*trio(99))
    assert len(store.all_agreements()) == len(agreements) + 1
    assert store.all_agreements()[-1] == before[0]
    store.close()


def test_a_failed_transaction_leaves_nothing_and_the_next_one_works(
    tmp_path: Path,
) -> None:
    database = Database(tmp_path)

    def fail(cache: PlainCache) -> None:
        cache.set("a", 1)
        raise KeyError("half way")

    with pytest.raises(KeyError, match="half way"):
        database.write(fail)
    assert database.read(lambda cache: cache.rows("")) == []
    database.write(lambda cache: cache.set("b", 2))
    assert [row.key for row in database.read(lambda cache: cache.rows(""))] == ["b"]
    database.close()


def test_a_commit_that_fails_does_not_block_the_next_one(tmp_path: Path) -> None:
    database = Database(tmp_path)

    def break_promise(cache: PlainCache) -> None:
        cache.set("a", 1)
        cache._sql("INSERT INTO Child VALUES (1)")

    def prepare(cache: PlainCache) -> None:
        cache._sql("PRAGMA foreign_keys = ON")
        cache._sql("CREATE TABLE Parent (id INTEGER PRIMARY KEY)")
        # Looked at by COMMIT only, which then fails and leaves the transaction open.
        cache._sql(
            "CREATE TABLE Child"
            " (id REFERENCES Parent (id) DEFERRABLE INITIALLY DEFERRED)"
        )

    database.read(prepare)
    with pytest.raises(StoreUnavailable):
        database.write(break_promise)
    database.write(lambda cache: cache.set("b", 2))
    assert [row.key for row in database.read(lambda cache: cache.rows(""))] == ["b"]
    database.close()


def test_places_that_cannot_hold_a_store_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    fails(tmp_path / "file", "cannot use")
    fails(tmp_path / "file" / "below", "cannot use")
    (tmp_path / "is-folder" / "cache.db").mkdir(parents=True)
    fails(tmp_path / "is-folder", "cannot use")


def test_a_path_that_diskcache_would_expand_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELSEWHERE", "elsewhere")
    fails(tmp_path / "$ELSEWHERE", "path with")
    assert os.listdir(tmp_path) == []


def test_many_threads_share_a_store(tmp_path: Path) -> None:
    errors: list[BaseException] = []
    with Store(tmp_path) as store:

        def work(first: int) -> None:
            try:
                for number in range(first, first + 10):
                    saved = store.save_agreement(*trio(number))
                    store.add_usage([], [(saved, 1, float(number))])
                    assert store.document(saved.hash) is not None
            except BaseException as exc:  # noqa: BLE001 - told to the main thread
                errors.append(exc)

        threads = [threading.Thread(target=work, args=(n * 10,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        found = store.all_agreements()
        assert len(found) == 60
        assert all(agreement.uses == 1 for agreement in found)
