"""The disk: nothing is unpickled, no file is touched, only JSON and bytes."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from diskcache.core import MODE_BINARY, MODE_NONE, MODE_PICKLE, MODE_RAW, MODE_TEXT
from hypothesis import given
from hypothesis import strategies as st

from cache.disk import Database, PlainDisk
from cache.errors import RecordError
from cache.records.peers import PinRecord
from cache.store import Store
from tests.cache.samples import PEER, PIN


class Bomb:
    """Leaves a mark in the file system when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def plant(
    folder: Path,
    key: object,
    value: object,
    *,
    mode: int = MODE_RAW,
    raw: int = 1,
    filename: str | None = None,
) -> None:
    connection = sqlite3.connect(folder / "cache.db")
    with connection:
        connection.execute(
            "INSERT OR REPLACE INTO Cache"
            " (key, raw, store_time, access_time, mode, filename, value)"
            " VALUES (?, ?, 0, 0, ?, ?, ?)",
            (key, raw, mode, filename, value),
        )
    connection.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as opened:
        opened.save_pin(PIN)
        yield opened


def test_the_bomb_of_these_tests_works(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Bomb(tmp_path / "mark")))  # noqa: S301 - our own bytes
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize("raw", [0, 1])
@pytest.mark.parametrize("in_file", [False, True])
def test_a_planted_pickle_is_damage_and_is_never_run(
    store: Store, tmp_path: Path, in_file: bool, raw: int
) -> None:
    mark, folder = tmp_path / "mark", tmp_path / "store"
    data = pickle.dumps(Bomb(mark))
    url = "ws://h/"
    if in_file:
        (folder / "a.val").write_bytes(data)
        plant(folder, f"pin/{url}", None, mode=MODE_PICKLE, raw=raw, filename="a.val")
    else:
        plant(folder, f"pin/{url}", data, mode=MODE_PICKLE, raw=raw)
    # A pickled key is a blob with raw 0.
    plant(folder, pickle.dumps(Bomb(mark)), b"", raw=0)
    assert store.pin(url) is None
    assert store.pins() == [PIN]
    store.check()
    assert f"pin/{url}" in {damage.key for damage in store.damaged}
    store.save_pin(PinRecord(url, PEER, 1.0, PEER))
    store.forget_peer(PEER)
    assert not mark.exists()


@pytest.mark.parametrize("mode", [MODE_NONE, MODE_BINARY, MODE_TEXT, MODE_PICKLE, 99])
def test_a_row_in_another_mode_is_damage_and_its_file_stays(
    store: Store, tmp_path: Path, mode: int
) -> None:
    outside = tmp_path / "outside"
    outside.write_text('"secret"')
    for key in ("pin/ws://h/", "pin/ws://i/"):
        plant(tmp_path / "store", key, None, mode=mode, filename="../outside")
    assert store.pin("ws://h/") is None
    assert store.pins() == [PIN]
    # Replaced and deleted rows have their files removed by diskcache itself.
    store.save_pin(PinRecord("ws://h/", PEER, 1.0, PEER))
    assert store._database.write(lambda rows: rows.delete("pin/ws://i/"))
    assert outside.read_text() == '"secret"'


def test_raw_values_of_other_types_are_damage(store: Store, tmp_path: Path) -> None:
    values: list[object] = [1, 1.5, None, b"{}", "", "{", "NaN", "[" * 100_000, "null"]
    for number, value in enumerate(values):
        plant(tmp_path / "store", f"pin/ws://h{number}/", value)
    assert store.pins() == [PIN]
    # `null` and no row at all look the same to a single read, and mean the same.
    assert len(store.damaged) == len(values)


def test_keys_are_text_and_values_are_json_or_bytes() -> None:
    disk = PlainDisk("")
    for key in (1, 1.5, None, b"key", ("a",)):
        with pytest.raises(TypeError, match="keys are text"):
            disk.put(key)
    for value in (object(), {1, 2}, {"a": object()}, {b"a": 1}):
        with pytest.raises(TypeError):
            disk.store(value, False)
    with pytest.raises(ValueError):
        disk.store(float("nan"), False)
    with pytest.raises(TypeError, match="not files"):
        disk.store(b"", True)
    with pytest.raises(TypeError, match="SQLite only"):
        disk.filename()


@given(
    st.binary(max_size=50)
    | st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=20),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=5,
    )
)
def test_what_is_stored_is_fetched_again(value: object) -> None:
    disk = PlainDisk("")
    size, mode, filename, stored = disk.store(value, False)
    assert isinstance(stored, str | bytes | memoryview)
    # As SQLite gives it back.
    found = bytes(stored) if isinstance(stored, memoryview) else stored
    assert disk.fetch(mode, filename, found, False) == value
    assert size == len(found)


@given(
    mode=st.integers(-1, 5),
    filename=st.none() | st.text(max_size=5),
    value=st.none() | st.integers() | st.floats() | st.text() | st.binary(),
    read=st.booleans(),
)
def test_any_row_is_a_value_or_damage(
    mode: int, filename: str | None, value: object, read: bool
) -> None:
    disk = PlainDisk("")
    try:
        disk.fetch(mode, filename, value, read)
    except RecordError:
        return
    assert mode == MODE_RAW
    assert filename is None


def test_a_large_value_stays_inside_sqlite(tmp_path: Path) -> None:
    database = Database(tmp_path)
    database.write(lambda cache: cache.set("key", "x" * 5_000_000))
    value = database.read(lambda cache: cache.get("key"))
    database.close()
    assert len(value) == 5_000_000
    assert [path.name for path in tmp_path.iterdir()] == ["cache.db"]


def test_rows_are_found_by_prefix_in_order(tmp_path: Path) -> None:
    database = Database(tmp_path)
    keys = ["a", "a/", "a/1", "a/2", "a/é", "a/\U0001f600", "a0", "b/1"]
    for key in keys:
        database.write(lambda cache, key=key: cache.set(key, key))  # type: ignore[misc]

    def found(prefix: str, **options: Any) -> list[str]:
        rows = database.read(lambda cache: cache.rows(prefix, **options))
        return [row.key for row in rows]

    assert found("a/") == ["a/", "a/1", "a/2", "a/é", "a/\U0001f600"]
    assert found("a/", limit=2) == ["a/", "a/1"]
    assert found("a/", limit=2, descending=True) == ["a/\U0001f600", "a/é"]
    assert found("") == sorted(keys)
    assert found("c") == []
    assert database.read(lambda cache: cache.sizes("b")) == [("b/1", 5)]
    database.close()


def test_a_lookup_by_prefix_uses_the_index(tmp_path: Path) -> None:
    from cache import disk

    Database(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "cache.db")
    for statement in (disk._SELECT_UP, disk._SELECT_DOWN):
        plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", ("a", "b", 1))
        assert "SEARCH Cache USING INDEX Cache_key_raw" in str(plan.fetchall())
    connection.close()
