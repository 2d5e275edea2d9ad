"""Counts calls without a disk access for each, and writes the counts together."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from cache.errors import CacheError
from cache.records.records import AgreementRecord, UsageRecord
from cache.store import Store

logger = logging.getLogger(__name__)

FLUSH_INTERVAL: Final = 5.0
"Seconds that counts stay in memory; a crash loses only those."


class Way(StrEnum):
    """The way a call took; also the names of the counts in a `UsageRecord`."""

    AGREEMENT = "agreement"
    CONSENSUS = "consensus"
    PUBLISHED = "published"
    NEGOTIATED = "negotiated"
    NATURAL_LANGUAGE = "natural_language"
    FAILED = "failed"
    SERVED = "served"


@dataclass(slots=True)
class _Tally:
    """Calls of one document that are not written yet."""

    first: float
    last: float
    counts: dict[Way, int] = field(default_factory=dict)

    def record(self, digest: str | None) -> UsageRecord:
        """Return it as it is stored."""
        counts = {way.value: count for way, count in self.counts.items()}
        return UsageRecord(digest, **counts, first_used=self.first, last_used=self.last)


class UseCounter:
    """Counts the calls that went each way, for each document and in all.

    One write for all calls of `FLUSH_INTERVAL` seconds, whatever their number.
    """

    def __init__(self, store: Store, *, interval: float = FLUSH_INTERVAL) -> None:
        self._store = store
        self._interval = interval
        self._counted: dict[str | None, _Tally] = {}
        self._uses: dict[int, tuple[AgreementRecord, int, float]] = {}
        "By the identity of the record, which is kept: its key takes long to make."
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None

    def count(
        self, way: Way, digest: str | None, agreement: AgreementRecord | None = None
    ) -> None:
        """Count one call.

        Args:
            digest: Hash of the document it went through, if it came to one.
            agreement: Agreement that the call went through, if it did.
        """
        at = time.time()
        for name in {None, digest}:
            self._add(name, {way: 1}, at, at)
        if agreement is not None:
            self._use(agreement, 1, at)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._interval, self._start)

    async def flush(self) -> None:
        """Write the counts; those that cannot be written wait for the next time."""
        counted, self._counted = self._counted, {}
        uses, self._uses = self._uses, {}
        if not counted:
            return
        try:
            await asyncio.to_thread(
                self._store.add_usage,
                [one.record(name) for name, one in counted.items()],
                list(uses.values()),
            )
        except CacheError as exc:
            logger.warning("counts not written yet reason=%s", exc)
            for name, one in counted.items():
                self._add(name, one.counts, one.first, one.last)
            for agreement, count, at in uses.values():
                self._use(agreement, count, at)

    async def close(self) -> None:
        """Write the remaining counts."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is not None:
            await asyncio.wait([self._writing])
        await self.flush()

    def _add(
        self, name: str | None, counts: Mapping[Way, int], first: float, last: float
    ) -> None:
        known = self._counted.get(name)
        if known is None:
            known = self._counted[name] = _Tally(first, last)
        for way, count in counts.items():
            known.counts[way] = known.counts.get(way, 0) + count
        known.first, known.last = min(first, known.first), max(last, known.last)

    def _use(self, agreement: AgreementRecord, count: int, at: float) -> None:
        key = id(agreement)
        _, more, last = self._uses.get(key, (agreement, 0, 0.0))
        self._uses[key] = agreement, count + more, max(at, last)

    def _start(self) -> None:
        self._timer = None
        self._writing = asyncio.create_task(self.flush())
