"""Every byte of a stored record changed in turn: refused, reported, the rest unharmed.

Both back ends read what is stored through `decode`, `open_envelope` and `key_of`, so
the first test, which needs no disk, is about both. The others show it in the files.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cache.disk import PlainDisk
from cache.errors import RecordError
from cache.parts.shelf import Shelf, key_of
from cache.records.records import KINDS, Record, seal
from cache.redis.rows import RedisRows, decode, encode
from cache.store import Store
from tests.cache.samples import RECORDS

FLIPS = (0x01, 0x20, 0x80, 0xFF)
"Among them other case, other digit, and bytes that are no text."


def names(record: Record) -> str:
    return record.kind


class Held:
    """Rows as a server holds them; see `cache.redis.rows.Reader`."""

    def __init__(self, rows: dict[str, bytes]) -> None:
        self._rows = rows

    def stored(self, keys: Sequence[str]) -> list[bytes | None]:
        return [self._rows.get(key) for key in keys]

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self._rows if key.startswith(prefix))

    def page(
        self, prefix: str, *, limit: int, descending: bool, after: str, before: str
    ) -> list[str]:
        raise NotImplementedError

    def sizes(self, keys: Sequence[str]) -> list[int]:
        return [len(self._rows[key]) for key in keys]


def flipped(data: bytes) -> Iterator[bytes]:
    for place in range(len(data)):
        for bits in FLIPS:
            yield data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :]


def test_the_samples_are_of_every_kind() -> None:
    assert {record.kind for record in RECORDS} == set(KINDS)


@pytest.mark.parametrize("record", RECORDS, ids=names)
def test_no_changed_byte_of_a_value_is_read(record: Record) -> None:
    key = key_of(record)
    data = encode(seal(record, key))
    disk = PlainDisk("unused")
    for changed in flipped(data):
        rows = {key: changed, "pin/ws://b/": b"{}"}
        shelf = Shelf()
        assert shelf.get(RedisRows(Held(rows)), type(record), key) is None
        assert [damage.key for damage in shelf.damaged] == [key]
        text = changed.decode("utf-8", "surrogateescape")
        try:
            value = disk.fetch(1, None, text, False)
        except RecordError:
            continue
        shelf = Shelf()
        assert value != decode(data)


@pytest.mark.parametrize("record", RECORDS, ids=names)
def test_no_record_is_read_under_a_key_with_a_changed_byte(record: Record) -> None:
    key = key_of(record)
    data = encode(seal(record, key))
    for changed in flipped(key.encode()):
        # As a driver gives text that is none.
        other = changed.decode("utf-8", "surrogateescape")
        rows = RedisRows(Held({other: data}))
        shelf = Shelf()
        assert shelf.scan(rows, type(record), "") == []
        shelf.check(rows)
        assert [damage.key for damage in shelf.damaged] == [other]


def put(store: Store, record: Record) -> None:
    store._database.write(lambda rows: store._shelf.put(rows, record))


def get(store: Store, record: Record) -> Record | None:
    kind = type(record)
    return store._database.read(
        lambda rows: store._shelf.get(rows, kind, key_of(record))
    )


def fill(folder: Path) -> None:
    with Store(folder) as store:
        for record in RECORDS:
            put(store, record)


@pytest.mark.parametrize("record", RECORDS, ids=names)
def test_in_the_file_only_the_changed_record_is_lost(
    tmp_path: Path, record: Record
) -> None:
    fill(tmp_path)
    file = tmp_path / "cache.db"
    good = file.read_bytes()
    stored = encode(seal(record, key_of(record)))
    place = good.index(stored)
    assert good.count(stored) == 1
    others = [other for other in RECORDS if other is not record]
    # Every byte was changed above; here it is the way through SQLite that counts.
    for number in range(0, len(stored), max(1, len(stored) // 24)):
        data = bytearray(good)
        data[place + number] ^= FLIPS[number % len(FLIPS)]
        file.write_bytes(data)
        with Store(tmp_path) as store:
            problems, damaged = store.check()
            assert [damage.key for damage in damaged] == [key_of(record)]
            assert problems == []
            for other in others:
                assert get(store, other) == other


@pytest.mark.parametrize(
    "column", ["raw", "mode", "filename", "expire_time", "tag", "size", "access_time"]
)
def test_a_changed_column_beside_the_value_gives_the_record_or_damage(
    tmp_path: Path, column: str
) -> None:
    fill(tmp_path)
    values: list[object] = [
        0,
        2,
        3,
        4,
        2**62,
        -1,
        1.5,
        "../../etc/passwd",
        b"\x80",
        None,
    ]
    for value in values:
        connection = sqlite3.connect(tmp_path / "cache.db")
        with connection:
            connection.execute(f"UPDATE Cache SET {column} = ?", (value,))
        connection.close()
        with Store(tmp_path) as store:
            store.check()
            lost = {damage.key for damage in store.damaged}
            for record in RECORDS:
                expected = None if key_of(record) in lost else record
                assert get(store, record) == expected
