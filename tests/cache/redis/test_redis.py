"""A store on a server: its address, its transactions, and what is read when away."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import fakeredis
import pytest

from cache.errors import StoreUnavailable
from cache.records.peers import PeerState
from cache.redis.database import RedisDatabase
from cache.redis.place import PlaceError, RedisPlace
from cache.redis.rows import Remembered, RememberedReader
from cache.rows import Rows
from cache.store import Store, open_store
from tests.cache.samples import KNOWN_PEER
from tests.cache.servers import Server, fake_backend

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"redis://:{SECRET}@h", "redis://h:6379/0"),
        (f"rediss://u:{SECRET}@h:7000/3", "rediss://h:7000/3"),
        (f"redis://{SECRET}@[::1]:1/", "redis://[::1]:1/0"),
        (f"unix://u:{SECRET}@/run/r.sock?db=2", "unix:///run/r.sock?db=2"),
        ("redis://h/?db=4", "redis://h:6379/4"),
    ],
)
def test_an_address_is_shown_without_what_logs_in(url: str, shown: str) -> None:
    place = RedisPlace.parse(url)
    assert place.shown == shown
    assert SECRET not in repr(place)


def test_what_logs_in_is_read_as_it_was_meant() -> None:
    place = RedisPlace.parse("redis://a%40b:p%23%2F@h")
    assert (place.username, place.password) == ("a@b", "p#/")


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "h:6379",
            "http://h",
            "redis://",
            "redis:///1",
            "redis://h:x",
            "redis://h/a",
        ),
        *("redis://h:99999", "unix://h/p", "unix://", "redis://h?ssl_cert_reqs=none"),
        *("redis://h/1\n", "redis://h#f", "redis://:ü@h", "redis://h/9999999"),
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(PlaceError, match=r"^cache\.url") as caught:
        RedisPlace.parse(url.replace("://", f"://u:{SECRET}@", 1))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("prefix", ["", "a b", "a" * 65, "ü", "a*"])
def test_a_prefix_is_short_and_plain(prefix: str) -> None:
    with pytest.raises(PlaceError, match="prefix"):
        RedisPlace.parse("redis://h", prefix=prefix)


def test_without_the_package_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(StoreUnavailable, match=r"pip install 'anpd\[redis\]'"):
        open_store(tmp_path, url="redis://127.0.0.1:1/0")


def test_a_transaction_sees_what_it_wrote_and_others_only_the_whole() -> None:
    server = fakeredis.FakeServer()
    one, other = fake_backend(server), fake_backend(server)
    one.write(lambda rows: [rows.set(key, key) for key in ("a/1", "a/2", "b/1")])

    def work(rows: Rows) -> None:
        rows.set("a/3", "three")
        assert rows.delete("a/1")
        assert not rows.delete("a/1")
        assert "a/1" not in rows
        assert rows.get("a/1") is None
        assert rows.keys("a/") == ["a/2", "a/3"]
        assert rows.keys("a/", descending=True) == ["a/3", "a/2"]
        assert [row.value for row in rows.rows("a/")] == ["a/2", "three"]
        assert [row.key for row in rows.rows("a/", limit=1)] == ["a/2"]
        assert rows.sizes("a/") == [("a/2", 5), ("a/3", 7)]
        assert other.read(lambda seen: seen.keys("a/")) == ["a/1", "a/2"]

    one.write(work)
    assert other.read(lambda seen: seen.keys("")) == ["a/2", "a/3", "b/1"]
    assert (other.changes("a"), other.changes("b"), other.changes("c")) == (2, 1, 0)


@pytest.mark.parametrize("other_changes", ["a/1", "a/9"])
def test_work_runs_again_when_what_it_looked_at_has_changed(other_changes: str) -> None:
    server = fakeredis.FakeServer()
    one, other = fake_backend(server), fake_backend(server)
    seen: list[list[str]] = []

    def work(rows: Rows) -> None:
        seen.append([*rows.keys("a/"), str(rows.get("a/1"))])
        if len(seen) == 1:
            other.write(lambda rows: rows.set(other_changes, "new"))
        rows.set("b/1", "done")

    one.write(work)
    assert len(seen) == 2
    assert seen[0] != seen[1]


def test_what_work_complains_of_may_be_half_of_a_change_and_is_looked_at_again() -> (
    None
):
    server = fakeredis.FakeServer()
    one, other = fake_backend(server), fake_backend(server)
    tries: list[object] = []

    def work(rows: Rows) -> None:
        tries.append(rows.get("a/1"))
        if tries[-1] is None:
            other.write(lambda rows: rows.set("a/1", "there"))
            raise LookupError("absent")

    one.write(work)
    assert tries == [None, "there"]
    with pytest.raises(ZeroDivisionError):
        one.write(lambda rows: 1 // 0)
    one.write(lambda rows: rows.set("a/2", 1))


def test_a_name_is_new_once_for_all_daemons() -> None:
    server = fakeredis.FakeServer()
    one, other = fake_backend(server), fake_backend(server)
    assert one.first_time(["n1", "n2"], keep=60.0)
    assert not other.first_time(["n2", "n3"], keep=60.0)
    assert other.first_time(["n3"], keep=60.0)


def test_in_one_store_on_disk_a_name_is_new_once(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        assert store.first_time(["n1"], keep=60.0)
        assert not store.first_time(["n1", "n2"], keep=60.0)
        assert store.first_time(["n2"], keep=-1.0)
        assert store.first_time(["n2"], keep=60.0)
        assert (store.is_shared, store.changes("half")) == (False, 0)


def test_a_change_by_one_daemon_is_seen_by_the_other_at_once() -> None:
    server = fakeredis.FakeServer()
    one, other = Store(fake_backend(server)), Store(fake_backend(server))
    one.save_peer(KNOWN_PEER)
    before = other.changes("peer")
    one.save_peer(replace(KNOWN_PEER, state=PeerState.BLOCKED))
    found = other.peer(KNOWN_PEER.did)
    assert found is not None
    assert found.state is PeerState.BLOCKED
    assert other.changes("peer") > before


def test_what_is_remembered_is_bounded_and_forgotten_with_a_change() -> None:
    memory = Remembered(max_bytes=4000)
    reader = RememberedReader(memory, StoreUnavailable("away"))
    memory.note_range("peer/", ["peer/a", "peer/b"])
    memory.note_row("peer/a", b"1")
    memory.note_row("peer/b", None)
    assert reader.keys("peer/") == ["peer/a", "peer/b"]
    assert reader.stored(["peer/a", "peer/b"]) == [b"1", None]
    memory.note_row("key/x", b"never: each use has to be on the server first")
    for key in ("key/x", "peer/c"):
        with pytest.raises(StoreUnavailable):
            reader.stored([key])
    memory.forget(["peer/a"])
    for question in (lambda: reader.keys("peer/"), lambda: reader.stored(["peer/a"])):
        with pytest.raises(StoreUnavailable):
            question()
    for number in range(100):
        memory.note_row(f"half/{number}", b"x" * 100)
    assert memory._bytes <= 4000
    assert reader.stored(["half/99"]) == [b"x" * 100]
    memory.note_row("half/big", b"x" * 4000)
    with pytest.raises(StoreUnavailable):
        reader.stored(["half/big"])


def test_letters_come_in_order_and_what_was_read_is_dropped(server: Server) -> None:
    check_letters(server.backend(), server.backend())


def test_letters_come_in_order_over_a_server_in_memory() -> None:
    kept = fakeredis.FakeServer()
    check_letters(fake_backend(kept), fake_backend(kept))


def check_letters(one: RedisDatabase, other: RedisDatabase) -> None:
    for letter in (b"first", b"second"):
        one.send_mail("box", letter)
    place, letters = other.mail("box", "0", 0.1)
    assert letters == [b"first", b"second"]
    one.send_mail("box", b"third")
    one.send_mail("another", b"not here")
    place, letters = other.mail("box", place, 0.1)
    assert letters == [b"third"]
    # Nothing comes: it waits for a moment.
    assert other.mail("box", place, 0.01) == (place, [])
    # One that begins anew finds only what was not read.
    assert other.mail("box", "0", 0.01) == (place, [b"third"])
    for database in (one, other):
        database.close()


def test_a_store_in_a_folder_has_no_letters(tmp_path: Path) -> None:
    with Store(tmp_path / "store") as store:
        for use in (
            lambda: store.send_mail("box", b""),
            lambda: store.mail("b", "0", 0),
        ):
            with pytest.raises(StoreUnavailable, match="no other daemon"):
                use()
