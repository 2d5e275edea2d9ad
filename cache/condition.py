"""An examination of a store: rows, room and damage."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from cache.errors import CacheError, StoreDamaged, StoreFull, StoreUnavailable
from cache.parts.shelf import StoreBase
from cache.rows import Room

LEAST_ROOM = 100 * 1024 * 1024
"Free bytes below which the owner is warned, or 5 % of a disk where that is less."

FRESH = 5.0
"Seconds for which an examination counts, however often it is asked for."


class StoreFault(StrEnum):
    """The worst fault of a store."""

    AWAY = "away"
    "It cannot be opened, does not answer, or refuses changes."

    FULL = "full"
    "It takes no changes; all that is stored can be read."

    DAMAGED = "damaged"
    "It, or some of its records, cannot be read as what they were."

    LOW = "low"
    "It works; there is little room left."


@dataclass(frozen=True, slots=True)
class StoreCondition:
    """The result of one examination."""

    fault: StoreFault | None
    "None when all is well."

    text: str
    "In words, for the owner; may name files."

    works: bool
    "True when rows can be read and written."

    room: Room | None = None
    "Room on the disk or server, if it is limited and known."


def condition_of(store: StoreBase, *, thorough: bool = False) -> StoreCondition:
    """Write, read and delete a row, and look at the room and for damage. Blocks.

    Args:
        thorough: Read every row and page, too; takes a second for each 100 MiB.
    """
    try:
        store.probe()
        room = store.room()
        faults = store.check_file() if thorough and not store.is_shared else []
        if thorough:
            store.check()
    except StoreUnavailable as exc:
        return StoreCondition(fault_of(exc), str(exc), works=False)
    if faults:
        return StoreCondition(
            StoreFault.DAMAGED, f"the file has faults: {faults[0]}", False, room
        )
    if store.damaged:
        text = f"{len(store.damaged)} records are damaged and count as absent"
        return StoreCondition(StoreFault.DAMAGED, text, True, room)
    left = "" if room is None else f", {room.free // 1024**2} MiB free"
    is_low = room is not None and room.free < min(LEAST_ROOM, room.total // 20)
    return StoreCondition(
        StoreFault.LOW if is_low else None, f"it takes and gives rows{left}", True, room
    )


def fault_of(exc: CacheError) -> StoreFault:
    """Return the fault that an error of the store tells of."""
    if isinstance(exc, StoreFull):
        return StoreFault.FULL
    return StoreFault.DAMAGED if isinstance(exc, StoreDamaged) else StoreFault.AWAY


class StoreWatch:
    """Remembers the last examination, so that asking often costs nothing."""

    def __init__(
        self, store: StoreBase, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._clock = clock
        self._looking = threading.Lock()
        self._found: tuple[float, StoreCondition] | None = None

    def look(self) -> StoreCondition:
        """Return the condition of the last seconds, or examine the store. Blocks.

        One caller examines; others meanwhile are told what was found before.
        """
        found = self._found
        if found is not None and self._clock() < found[0] + FRESH:
            return found[1]
        if not self._looking.acquire(blocking=False):
            silent = StoreCondition(StoreFault.AWAY, "it did not answer yet", False)
            return silent if found is None else found[1]
        try:
            condition = condition_of(self._store)
            self._found = self._clock(), condition
            return condition
        finally:
            self._looking.release()

    def forget(self) -> None:
        """Have the next `look` examine the store."""
        self._found = None
