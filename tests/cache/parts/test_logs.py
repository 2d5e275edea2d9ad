"""Logs of sessions: numbers, pages, lists, deletion and pruning."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from cache.errors import LogConflict, RecordError, StoreUnavailable
from cache.parts.logs import LogChange, LogItem
from cache.records.logs import MAX_LOG_CONTENT
from cache.store import Store


def change(
    log: str = "01", after: int = 0, *events: bytes, **more: object
) -> LogChange:
    fields = {"log": log, "after": after, "at": 100.0, "events": events, **more}
    return LogChange(**fields)  # type: ignore[arg-type]  # fields of all types


def item(name: str, content: bytes = b"t", *, is_open: bool = True) -> LogItem:
    return LogItem(id=name, content=content, open=is_open)


def test_events_are_numbered_from_1_and_read_from_a_number_on(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        head = store.append_log(change("01", 0, b"a", b"b", content=b"head"))
        assert (head.first, head.last, head.size, head.content) == (1, 2, 2, b"head")
        head = store.append_log(change("01", 2, b"c"))
        assert (head.last, head.content) == (3, b"head")
        store.append_log(change("02", 0, b"x"))
        found = store.log_events("01")
        assert [(one.number, one.content) for one in found] == [
            (1, b"a"),
            (2, b"b"),
            (3, b"c"),
        ]
        assert [one.number for one in store.log_events("01", after=1, limit=1)] == [2]
        assert store.log_events("01", after=3) == []
        assert store.log_events("none") == []
    with Store(tmp_path) as store:
        assert [one.content for one in store.log_events("01", after=2)] == [b"c"]


def test_a_change_that_follows_another_number_changes_nothing(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append_log(change("01", 0, b"a", items=(item("11"),)))
        for after in (0, 2):
            with pytest.raises(LogConflict):
                store.append_log(
                    change("01", after, b"b", items=(item("12"),), content=b"no")
                )
        with pytest.raises(LogConflict):
            store.append_log(change("02", 1, b"b"))
        assert [one.content for one in store.log_events("01")] == [b"a"]
        assert [one.id for one in store.log_items()] == ["11"]
        assert store.log("02") is None


def test_two_daemons_cannot_give_one_number_twice(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        head = store.append_log(change("01", 0, b"a"))
        store.append_log(change("01", head.last, b"of the first"))
        with pytest.raises(LogConflict):
            store.append_log(change("01", head.last, b"of the second"))


def test_names_find_logs_and_items_and_belong_to_one(tmp_path: Path) -> None:
    one, two = "a" * 64, "b" * 64
    named = LogItem(id="11", content=b"t", open=True, names=(two,))
    with Store(tmp_path) as store:
        store.append_log(change("01", 0, b"a", names=(one,), items=(named,)))
        assert store.log_named(one) == ("01", None)
        assert store.log_named(two) == ("01", "11")
        assert store.log_named("c" * 64) is None
        with pytest.raises(LogConflict):
            store.append_log(change("02", 0, b"a", names=(one,)))
        assert store.log("02") is None
        # A change of the item keeps its name.
        store.append_log(change("01", 1, items=(item("11", b"new"),)))
        assert store.log_named(two) == ("01", "11")
        found = store.log_item("11")
        assert found is not None
        assert (found.content, found.log, found.names) == (b"new", "01", (two,))


def test_logs_and_items_are_listed_in_pages_newest_first(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for number in range(7):
            items = tuple(
                item(f"{number}-{each}", is_open=bool(each % 2)) for each in range(3)
            )
            store.append_log(change(f"{number}", 0, b"a", items=items))
        pages = []
        before = ""
        while page := store.logs(before=before, limit=3):
            pages.append([one.id for one in page])
            before = page[-1].id
        assert pages == [["6", "5", "4"], ["3", "2", "1"], ["0"]]
        assert [one.id for one in store.log_items(limit=4)] == [
            *("6-2", "6-1", "6-0", "5-2"),
        ]
        assert [one.id for one in store.log_items(before="5-2", limit=2)] == [
            *("5-1", "5-0"),
        ]
        open_ones = store.log_items(only_open=True, limit=100)
        assert [one.id for one in open_ones] == [f"{n}-1" for n in reversed(range(7))]
        assert [one.id for one in store.items_of_log("3")] == ["3-0", "3-1", "3-2"]
        assert [one.id for one in store.items_of_log("3", after="3-1")] == ["3-2"]


def test_an_item_that_ends_leaves_the_list_of_open_ones(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append_log(change("01", 0, b"a", items=(item("11"),)))
        store.append_log(change("01", 1, b"b", items=(item("11", is_open=False),)))
        assert store.log_items(only_open=True) == []
        assert [one.open for one in store.log_items()] == [False]


def test_busy_logs_are_found_after_a_restart(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for name in ("01", "02", "03"):
            store.append_log(change(name, 0, b"a", busy=name != "02"))
    with Store(tmp_path) as store:
        assert store.busy_logs() == ["01", "03"]
        assert store.busy_logs(after="01") == ["03"]
        store.append_log(change("01", 1, b"b"))
        assert store.busy_logs() == ["03"]


def test_a_deleted_log_leaves_nothing(tmp_path: Path) -> None:
    one, two = "a" * 64, "b" * 64
    named = LogItem(id="11", content=b"t", open=True, names=(two,))
    with Store(tmp_path) as store:
        events = [b"x"] * 1200
        store.append_log(
            change("01", 0, *events, names=(one,), items=(named,), busy=True)
        )
        store.append_log(change("02", 0, b"stays", items=(item("12"),)))
        assert store.drop_log("01")
        assert not store.drop_log("01")
        assert (store.log("01"), store.log_events("01")) == (None, [])
        assert (store.log_named(one), store.log_named(two)) == (None, None)
        assert (store.log_item("11"), store.busy_logs()) == (None, [])
        assert [log.id for log in store.logs()] == ["02"]
        assert [each.id for each in store.log_items()] == ["12"]
        assert store._database.read(lambda rows: len(rows.keys("log"))) == 5


def test_a_deletion_that_was_cut_off_is_hidden_and_finished_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path) as store:
        store.append_log(change("01", 0, b"a", b"b", items=(item("11"),)))
        with monkeypatch.context() as patched:

            def away(*_: object) -> None:
                raise StoreUnavailable("away")

            patched.setattr(store, "_drop_rows", away)
            with pytest.raises(StoreUnavailable):
                store.drop_log("01")
        assert (store.log("01"), store.logs(), store.log_events("01")) == (None, [], [])
        with pytest.raises(LogConflict):
            store.append_log(change("01", 2, b"c"))
        assert store.prune_logs(older_than=0.0, max_bytes=10**9) == 1
        assert store._database.read(lambda rows: rows.keys("log")) == []


def test_old_and_surplus_logs_go_and_busy_ones_stay(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append_log(change("01", 0, b"a" * 10, open=False, at=50.0))
        # Nobody may ever close it.
        store.append_log(change("02", 0, b"a" * 10, open=True, at=50.0))
        store.append_log(change("03", 0, b"a" * 10, open=False, busy=True, at=50.0))
        for name in ("04", "05", "06"):
            store.append_log(change(name, 0, b"a" * 10, open=False))
        assert store.prune_logs(older_than=100.0, max_bytes=1000) == 2
        assert [one.id for one in store.logs()] == ["06", "05", "04", "03"]
        assert store.prune_logs(older_than=0.0, max_bytes=20) == 1
        assert [one.id for one in store.logs()] == ["06", "05", "03"]


def test_the_oldest_events_of_a_log_can_go(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append_log(change("01", 0, *[b"abc"] * 1100))
        assert store.trim_log("01", before=1090) == 1089
        head = store.log("01")
        assert head is not None
        assert (head.first, head.last, head.size) == (1090, 1100, 33)
        assert store.log_events("01")[0].number == 1090
        assert store.append_log(change("01", 1100, b"d")).last == 1101
        assert store.trim_log("01", before=5000) == 12
        assert store.append_log(change("01", 1101, b"e")).first == 1102
        assert [one.content for one in store.log_events("01")] == [b"e"]


def test_content_has_a_limit(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append_log(change("01", 0, bytes(MAX_LOG_CONTENT)))
        with pytest.raises(RecordError):
            store.append_log(change("01", 1, bytes(MAX_LOG_CONTENT + 1)))
        # A page ends after 16 MiB, its first event always included.
        store.append_log(change("01", 1, *[bytes(MAX_LOG_CONTENT)] * 2))
        assert [one.number for one in store.log_events("01")] == [1, 2]


def test_a_change_that_fails_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        with pytest.raises(RecordError):
            store.append_log(change("01", 0, b"a", items=(item("no id"),)))
        assert (store.log("01"), store.log_items()) == (None, [])


def test_a_list_of_many_items_takes_memory_for_one_page(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for number in range(20):
            items = tuple(
                item(f"{number:02d}{each:03d}", b"x" * 500) for each in range(100)
            )
            store.append_log(change(f"{number:02d}", 0, b"a", items=items))
        store.log_items(limit=50)
        tracemalloc.start()
        try:
            before = ""
            count = 0
            while page := store.log_items(before=before, limit=50, only_open=True):
                count += len(page)
                before = page[-1].id
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert count == 2000
        # 2,000 items have a megabyte of content.
        assert peak < 1_000_000


@pytest.mark.on_disk
def test_a_damaged_event_is_left_out_and_the_others_are_read(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append_log(change("01", 0, b"a", b"b", b"c"))
        key = "log_event/01/000000000002"
        store._database.write(lambda rows: rows.set(key, {"no": "record"}))
        assert [one.number for one in store.log_events("01")] == [1, 3]
        assert [one.key for one in store.damaged] == [key]
