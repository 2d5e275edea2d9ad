"""The log of a group, over a true store."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from anp.interaction.errors import InteractionError
from anp.interaction.groups.offers import Offer
from anp.sidecar.groups import shelf
from anp.sidecar.groups.log import GroupLog
from anp.sidecar.groups.shelf import GroupShelf, StoredEvent
from cache.store import Store


def event(number: int) -> StoredEvent:
    return StoredEvent(number, "did:key:x", number, b"{}")


async def test_events_are_stored_by_the_store_s_own_thread_after_one_hop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = []
    save = GroupShelf.save

    def noted(self: GroupShelf, *args: Any, **also: Any) -> None:
        saved.append(threading.current_thread().name)
        save(self, *args, **also)

    monkeypatch.setattr(GroupShelf, "save", noted)
    with Store(tmp_path) as store:
        log = GroupLog(GroupShelf(store, bytes(32)), "g", head=lambda: (b"head", True))
        log.put([event(1)])
        await log.durable()
        await log.close()
        assert [name.startswith("anpd-store") for name in saved] == [True]
        assert store.group_pages("g")


def test_the_form_of_a_head_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def noted(kind: type) -> TypeAdapter[Any]:
        made.append(kind)
        return TypeAdapter(kind)

    monkeypatch.setattr(shelf, "TypeAdapter", noted)
    monkeypatch.setattr(shelf, "_ADAPTERS", {})
    offer = Offer(id="t", maker="did:key:x")
    for _ in range(2):
        assert shelf.read_head(Offer, shelf.head_bytes(Offer, offer)) == offer
    assert made == [Offer]


async def test_what_the_store_has_otherwise_is_given_up_and_holds_up_no_stop(
    tmp_path: Path,
) -> None:
    with Store(tmp_path) as store:
        kept = GroupShelf(store, bytes(32))
        await asyncio.to_thread(kept.save, "g", [event(1)])
        log = GroupLog(kept, "g", head=lambda: (b"head", True))
        log.put([event(1)])
        began = time.monotonic()
        with pytest.raises(InteractionError):
            await log.durable()
        with pytest.raises(InteractionError):
            log.check_room()
        log.put((), head=True)
        await log.close()
        assert time.monotonic() - began < 2.0
