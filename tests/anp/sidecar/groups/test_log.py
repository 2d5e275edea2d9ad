"""The log of a group, over a true store."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from anp.interaction.errors import InteractionError
from anp.sidecar.groups.log import GroupLog
from anp.sidecar.groups.shelf import GroupShelf, StoredEvent
from cache.store import Store


def event(number: int) -> StoredEvent:
    return StoredEvent(number, "did:key:x", number, b"{}")


async def test_what_the_store_has_otherwise_is_given_up_and_holds_up_no_stop(
    tmp_path: Path,
) -> None:
    with Store(tmp_path) as store:
        shelf = GroupShelf(store, bytes(32))
        await asyncio.to_thread(shelf.save, "g", [event(1)])
        log = GroupLog(shelf, "g", head=lambda: (b"head", True))
        log.put([event(1)])
        began = time.monotonic()
        with pytest.raises(InteractionError):
            await log.durable()
        with pytest.raises(InteractionError):
            log.check_room()
        log.put((), head=True)
        await log.close()
        assert time.monotonic() - began < 2.0
