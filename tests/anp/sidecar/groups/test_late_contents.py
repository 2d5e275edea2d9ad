"""Messages whose keys come late, in the log of a member."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from anp.sidecar.groups.log import GroupLog
from anp.sidecar.groups.shelf import LOCKED, SEALED, GroupShelf, StoredEvent
from cache.errors import CacheError
from cache.store import Store
from tests.waiting import until

CONTENT = b'{"id": "m", "dataItems": [{"type": "text/plain", "payload": "late"}]}'


def event(number: int, mark: str = LOCKED) -> StoredEvent:
    frame = {"op": "message.send", "groupId": "g", "groupSeq": number, "id": "sealed"}
    return StoredEvent(number, "did:test:ann", 0, json.dumps(frame).encode(), mark)


def log_of(shelf: GroupShelf, last: int = 0) -> GroupLog:
    return GroupLog(shelf, "g", head=lambda: (b"head", True), last=last)


def shown(one: StoredEvent) -> tuple[int, str, Any]:
    frame = one.frame()
    assert frame["groupSeq"] == one.number
    return one.number, one.mark, frame.get("dataItems", [{}])[0].get("payload")


async def test_what_is_unlocked_is_read_in_its_place_and_watched_again(
    tmp_path: Path,
) -> None:
    with Store(tmp_path) as store:
        shelf = GroupShelf(store, bytes(32))
        log = log_of(shelf)
        log.put([event(1), event(2)], rows={"seat": b"state"})
        await log.durable()
        found: list[tuple[int, str, Any]] = []

        async def watch() -> None:
            async for page in log.watch():
                await asyncio.sleep(0)
                found.extend(shown(one) for one in page)

        watching = asyncio.create_task(watch())
        await until(lambda: len(found) == 2)
        log.unlock(1, CONTENT)
        # One that is on its way to the disk just now.
        log.put([event(3)])
        await asyncio.sleep(0)
        log.unlock(3, CONTENT)
        await until(lambda: (3, SEALED, "late") in found)
        await log.durable()
        watching.cancel()
        assert found[:2] == [(1, LOCKED, None), (2, LOCKED, None)]
        assert (1, SEALED, "late") in found
        wanted = [(1, SEALED, "late"), (2, LOCKED, None), (3, SEALED, "late")]
        for again in (log, log_of(shelf, last=3)):
            events = await again.events(after=0, limit=10)
            assert [shown(one) for one in events] == wanted
        # What the seat stored is its own, without these contents.
        assert shelf.rows("g") == {"seat": b"state"}


async def test_what_was_just_unlocked_is_read_unlocked_while_it_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path) as store:
        shelf = GroupShelf(store, bytes(32))
        log = log_of(shelf)
        log.put([event(1)])
        await log.durable()
        # Nothing is in memory any more, as after a start.
        log = log_of(shelf, last=1)
        full = True
        save = shelf.save

        def refuse(*args: Any, **more: Any) -> None:
            if full:
                raise CacheError("the disk is full")
            save(*args, **more)

        shelf.save = refuse  # type: ignore[method-assign]
        monkeypatch.setattr("anp.sidecar.groups.log.RETRY", 0.05)
        log.unlock(1, CONTENT)
        for _ in range(2):
            # Before it is written, and while it is.
            events = await log.events(after=0, limit=10)
            assert [shown(one) for one in events] == [(1, SEALED, "late")]
            await asyncio.sleep(0.01)
        full = False
        await log.durable()
        events = await log.events(after=0, limit=10)
        assert [shown(one) for one in events] == [(1, SEALED, "late")]


async def test_rows_are_stored_with_the_events_that_they_follow_from(
    tmp_path: Path,
) -> None:
    with Store(tmp_path) as store:
        shelf = GroupShelf(store, bytes(32))
        saved: list[tuple[list[int], dict[str, Any]]] = []
        save = shelf.save

        def spy(group: str, events: Any = (), head: Any = None, **more: Any) -> None:
            saved.append(([one.number for one in events], dict(more["rows"])))
            save(group, events, head, **more)

        shelf.save = spy  # type: ignore[method-assign]
        log = log_of(shelf)
        for number in range(1, 1201):
            log.put([event(number, "")], rows={"seat": b"%d" % number})
        log.put((), rows={"own": b"after all"})
        await log.durable()
        assert len(saved) > 2
        for numbers, rows in saved:
            if numbers:
                assert rows["seat"] == b"%d" % numbers[-1]
        assert [("own" in rows) for _, rows in saved] == [False] * (len(saved) - 1) + [
            True
        ]
