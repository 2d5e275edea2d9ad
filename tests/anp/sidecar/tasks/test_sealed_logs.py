"""Contents of sessions are encrypted in the store, each for its own place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from anp.sidecar.tasks.sealed_logs import SealedLogs
from cache.errors import RecordError
from cache.parts.logs import LogChange, LogItem
from cache.store import open_store

SECRET = bytes(range(32))
WORDS = b"only the owner reads this"


def change(**more: object) -> LogChange:
    made = LogChange(
        log="a1",
        after=0,
        at=1.0,
        events=(WORDS + b" 1", WORDS + b" 2"),
        items=(LogItem(id="t1", content=WORDS + b" 3", open=True),),
        content=WORDS + b" 4",
    )
    return replace(made, **more)  # type: ignore[arg-type]


def test_contents_come_back_and_do_not_stand_in_the_files(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", owner="did:key:z")
    logs = SealedLogs(store, SECRET)
    assert logs.append_log(change()).content == WORDS + b" 4"
    assert [one.content for one in logs.log_events("a1")] == [
        WORDS + b" 1",
        WORDS + b" 2",
    ]
    item = logs.log_item("t1")
    assert item is not None
    assert item.content == WORDS + b" 3"
    assert [one.content for one in logs.logs()] == [WORDS + b" 4"]
    assert len(logs.log_items()) == len(logs.items_of_log("a1")) == 1
    store.close()
    for file in (tmp_path / "store").rglob("*"):
        if file.is_file():
            assert WORDS not in file.read_bytes()


def test_a_content_in_another_place_or_of_another_identity_is_refused(
    tmp_path: Path,
) -> None:
    store = open_store(tmp_path / "store", owner="did:key:z")
    logs = SealedLogs(store, SECRET)
    logs.append_log(change())
    first, second = (one.content for one in store.log_events("a1"))
    store.append_log(LogChange(log="a1", after=2, at=2.0, events=(second, first)))
    assert [one.damaged for one in logs.log_events("a1")] == [False] * 2 + [True] * 2
    assert [one.content for one in logs.log_events("a1", after=2)] == [b"", b""]
    with pytest.raises(RecordError, match="cannot be opened"):
        SealedLogs(store, bytes(32)).log("a1")
    store.close()


def test_a_name_is_remembered_until_names_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every operation of a peer looks for its session by several names."""
    store = open_store(tmp_path / "store", owner="did:key:z")
    logs = SealedLogs(store, SECRET)
    one, two = "1" * 64, "2" * 64
    assert (logs.log_named(one), logs.names) == (None, {one: None})
    logs.append_log(change(names=(one,)))
    assert logs.names == {}
    assert (logs.log_named(one), logs.log_named(two)) == ("a1", None)
    # What changes no name leaves them.
    logs.append_log(LogChange(log="a1", after=2, at=2.0, events=(b"3",)))
    assert logs.names == {one: "a1", two: None}
    monkeypatch.setattr("anp.sidecar.tasks.sealed_logs.MAX_NAMES", 2)
    assert logs.log_named("3" * 64) is None
    assert logs.names == {"3" * 64: None}
    logs.drop_log("a1")
    assert logs.names == {}
    assert logs.log_named(one) is None
    store.close()


def test_a_look_up_that_a_write_overtakes_is_not_remembered(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", owner="did:key:z")
    logs = SealedLogs(store, SECRET)
    name, look = "1" * 64, store.log_named

    def overtaken(name: str) -> tuple[str, str | None] | None:
        found = look(name)
        logs.append_log(change(names=(name,)))
        return found

    store.log_named = overtaken  # type: ignore[method-assign]
    assert (logs.log_named(name), logs.names) == (None, {})
    store.close()


def test_a_name_that_is_looked_up_during_a_prune_is_not_remembered(
    tmp_path: Path,
) -> None:
    store = open_store(tmp_path / "store", owner="did:key:z")
    logs = SealedLogs(store, SECRET)
    name, prune = "1" * 64, store.prune_logs
    logs.append_log(change(names=(name,)))

    def look_meanwhile(*, older_than: float, max_bytes: int) -> int:
        assert logs.log_named(name) == "a1"
        gone = prune(older_than=older_than, max_bytes=max_bytes)
        # Here it would go on with the next log.
        assert logs.names == {}
        return gone

    store.prune_logs = look_meanwhile  # type: ignore[method-assign]
    assert logs.prune_logs(older_than=9e9, max_bytes=0) == 1
    assert (logs.log_named(name), logs.names) == (None, {name: None})
    store.close()
