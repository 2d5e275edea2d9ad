"""Groups in the store: heads, and pages of events."""

from __future__ import annotations

from pathlib import Path

import pytest

from cache.errors import LogConflict, RecordError
from cache.parts.groups import GroupChange
from cache.records.groups import MAX_GROUP_CONTENT
from cache.store import Store


def page(first: int, count: int, group: str = "g", **more: object) -> GroupChange:
    fields = {"group": group, "at": 100.0, "first": first, "count": count, **more}
    content = f"{first}+{count}".encode()
    return GroupChange(page=content, **fields)  # type: ignore[arg-type]  # of all types


def test_pages_are_read_from_a_number_on(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_group(page(1, 3, content=b"head"))
        store.save_group(page(4, 1))
        store.save_group(page(5, 5))
        store.save_group(page(1, 1, "h"))
    with Store(tmp_path) as store:
        (head,) = store.groups()
        assert (head.id, head.content, head.open) == ("g", b"head", True)
        for after, firsts in ((0, [1, 4, 5]), (2, [1, 4, 5]), (3, [4, 5]), (8, [5])):
            assert [one.first for one in store.group_pages("g", after=after)] == firsts
        assert store.group_pages("g", after=9) == []
        assert [one.first for one in store.group_pages("g", after=2, limit=2)] == [1, 4]
        newest = store.last_group_page("g")
        assert newest is not None
        assert (newest.first, newest.count, newest.content) == (5, 5, b"5+5")
        assert store.last_group_page("none") is None


def test_a_number_is_given_once(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_group(page(1, 3))
        with pytest.raises(LogConflict):
            store.save_group(page(1, 1, content=b"other"))
        assert store.groups() == []


def test_a_content_has_a_largest_size(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        with pytest.raises(RecordError):
            store.save_group(
                GroupChange(group="g", at=1.0, content=b"x" * (MAX_GROUP_CONTENT + 1))
            )
        store.save_group(
            GroupChange(group="g", at=1.0, content=b"x" * MAX_GROUP_CONTENT)
        )


def test_old_pages_go_and_whole_groups(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_group(page(1, 3, content=b"head"))
        store.save_group(page(4, 2))
        store.save_group(page(6, 1))
        assert store.trim_group("g", before=5) == 1
        assert store.trim_group("g", before=6) == 1
        assert [one.first for one in store.group_pages("g")] == [6]
        store.drop_group("g")
        assert store.groups() == []
        assert store.group_pages("g") == []


def test_rows_change_with_events_and_go_with_their_group(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.save_group(page(1, 3, content=b"head", rows={"a": b"1", "b": b"2"}))
        store.save_group(page(1, 1, "h", rows={"a": b"other"}))
        with pytest.raises(LogConflict):
            store.save_group(page(1, 1, rows={"a": b"lost"}))
    with Store(tmp_path) as store:
        assert store.group_rows("g") == {"a": b"1", "b": b"2"}
        store.save_group(page(4, 1, rows={"a": None, "b": b"3"}))
        assert store.group_rows("g") == {"b": b"3"}
        store.drop_group("g")
        assert store.group_rows("g") == {}
        assert store.group_rows("h") == {"a": b"other"}
