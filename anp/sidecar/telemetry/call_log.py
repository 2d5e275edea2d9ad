"""The access log: an entry for each call of our agent and of peers, kept on disk.

Calls that go well have a line each. Calls of peers that fail are limited in pace for
each peer and outcome, because a peer makes as many of them as it likes; one line then
tells their count. The entries of both directions stand in files of their own, so that
calls of peers push out none of our agent's.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anp.sidecar.config.settings import AccessLogConfig
from anp.sidecar.telemetry.call_entry import CallEntry, Direction, read_entry
from anp.sidecar.telemetry.history import History
from anp.sidecar.telemetry.line_files import LineFiles, Place
from anp.sidecar.telemetry.log_limit import LogLimit

logger = logging.getLogger(__name__)

DIRECTIONS: Final[tuple[Direction, ...]] = ("made", "served")

FLUSH_INTERVAL: Final = 0.25
"Seconds that entries wait to be told and written together, after their calls."

MAX_WAITING: Final = 10_000
"Entries that wait for a disk that does not take them; later ones are lost."

MAX_SCANNED: Final = 10_000
"Entries that are read for one page; it may have less than was asked for."

MAX_FAILED: Final = 30
"Lines of one peer's failed calls with one outcome in a minute; others are counted."

MAX_CAUSES: Final = 100
"Peers and outcomes that are told apart in a minute; all others share one limit."

SUPPRESSED: Final = "as many calls like the last one failed and have no line"
"Reason of the entry that tells a count."


@dataclass(frozen=True, slots=True)
class CallPage:
    """Some entries, the newest first."""

    entries: list[CallEntry]

    next: str | None
    "The place where the next page begins; None at the end."


class CallLog:
    """Takes entries of calls, and gives them back in pages."""

    def __init__(
        self,
        folder: Path,
        config: AccessLogConfig,
        *,
        publish: Callable[[CallEntry], None] = lambda entry: None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the log; it touches no file before the first entry.

        Args:
            folder: Holds the files; made when it is needed.
            publish: Told each entry that has a line, also while the log is off.
        """
        self._enabled = config.enabled
        self._keep = config.keep
        self._publish = publish
        self._clock = clock
        self._monotonic = monotonic
        self._files = {
            direction: LineFiles(
                folder,
                direction,
                max_size=config.max_size // len(DIRECTIONS),
                keep=config.keep,
                time_of=_time_of,
                clock=clock,
            )
            for direction in DIRECTIONS
        }
        self._limit = LogLimit(max_lines=MAX_FAILED, max_causes=MAX_CAUSES)
        self._waiting: list[tuple[Direction, bytes]] = []
        self._lost = 0
        self._writing = asyncio.Lock()
        self._flushing: asyncio.Task[None] | None = None
        self._ended: deque[CallEntry] = deque()
        self._came = asyncio.Event()
        self._history = History()
        self._began: float | None = clock()
        "Calls that ended before are not in the history yet; None when they are."

    def put(self, entry: CallEntry) -> None:
        """Take the entry of a call that has ended; `run` looks at it later."""
        self._ended.append(entry)
        self._came.set()

    def add(self, entry: CallEntry) -> None:
        """Take the entry of a call that has ended, at once."""
        entry = entry.cleaned()
        self._history.add(entry)
        if entry.direction == "served" and entry.outcome != "ok":
            now = self._monotonic()
            self._count_suppressed(now)
            cause = ("served", entry.outcome, entry.peer or "")
            if not self._limit.admits(cause, now=now):
                return
        self._take(entry)

    async def run(self) -> None:
        """Write entries soon after they came, and prune; never ends by itself."""
        pruned = -self._limit.interval
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limit.interval):
                    await self._came.wait()
                # No call waits for this, and many are written at once.
                await asyncio.sleep(FLUSH_INTERVAL)
            self._drain()
            self._count_suppressed(self._monotonic())
            if self._flushing is None or self._flushing.done():
                # Beside, since entries come on while a disk does not answer.
                self._flushing = asyncio.create_task(self.flush())
            if self._monotonic() - pruned >= self._limit.interval:
                pruned = self._monotonic()
                await self._in_thread(self._prune)

    async def close(self) -> None:
        """Write what waits, the counts of what has no line among it."""
        self._drain()
        self._count_suppressed(float("inf"))
        await self.flush()

    async def flush(self) -> None:
        """Write the entries that wait; what cannot be written is lost, and said so."""
        async with self._writing:
            waiting, self._waiting = self._waiting, []
            if waiting:
                await self._in_thread(lambda: self._write(waiting))
            lost, self._lost = self._lost, 0
            if lost:
                logger.warning("calls without a line in the access log count=%d", lost)

    async def page(
        self,
        wanted: Callable[[CallEntry], bool],
        *,
        direction: Direction | None = None,
        after: str | None = None,
        limit: int,
    ) -> CallPage:
        """Return entries, the one that ended last first.

        A page may hold less than `limit`, and still be followed by another.

        Args:
            direction: Only calls in this direction; None is both.
            after: `next` of the page before; see `page_start`.
        """
        self._drain()
        await self.flush()
        directions = DIRECTIONS if direction is None else (direction,)
        places = page_start(after)
        return await asyncio.to_thread(self._page, wanted, directions, places, limit)

    async def history(self) -> History:
        """Return the counts over time, with calls from before this daemon's start.

        Those are read from the files the first time, `MAX_SCANNED` of them at most.
        """
        self._drain()
        began, self._began = self._began, None
        if began is not None:
            page = await self.page(lambda one: one.ended < began, limit=MAX_SCANNED)
            for entry in page.entries:
                self._history.add(entry)
        return self._history

    def _page(
        self,
        wanted: Callable[[CallEntry], bool],
        directions: tuple[Direction, ...],
        places: dict[str, Place],
        limit: int,
    ) -> CallPage:
        found: list[CallEntry] = []
        # What comes meanwhile belongs to no later page.
        places = {one: self._files[one].end() for one in directions} | places
        each = [self._entries(one, places[one]) for one in directions]
        merged = heapq.merge(*each, key=lambda one: -one[0].ended)
        for scanned, (entry, place) in enumerate(merged, start=1):
            places[entry.direction] = place
            if wanted(entry):
                found.append(entry)
            if len(found) >= limit or scanned >= MAX_SCANNED:
                return CallPage(found, _after(places))
        return CallPage(found, None)

    def _entries(
        self, direction: Direction, place: Place
    ) -> Iterator[tuple[CallEntry, Place]]:
        oldest = self._clock() - self._keep
        for line, at in self._files[direction].backwards(place):
            entry = read_entry(line)
            if entry is None or entry.direction != direction:
                continue
            if entry.ended < oldest:
                return
            yield entry, at

    def _take(self, entry: CallEntry) -> None:
        self._publish(entry)
        if not self._enabled:
            return
        if len(self._waiting) >= MAX_WAITING:
            self._lost += 1
            return
        self._waiting.append((entry.direction, entry.line()))

    def _drain(self) -> None:
        self._came.clear()
        while self._ended:
            self.add(self._ended.popleft())

    def _count_suppressed(self, now: float) -> None:
        """Take an entry for the failed calls of each interval that is over."""
        for one in self._limit.ended(now=now):
            _, outcome, peer = one.cause
            known = one.cause[0] == "served"
            self._take(
                CallEntry(
                    id=secrets.token_hex(8),
                    direction="served",
                    at=round(self._clock(), 3),
                    ms=0.0,
                    outcome=outcome,
                    reason=SUPPRESSED,
                    peer=peer if known and peer else None,
                    count=one.count,
                )
            )

    def _write(self, waiting: list[tuple[Direction, bytes]]) -> None:
        for direction, files in self._files.items():
            lines = [line for way, line in waiting if way == direction]
            if lines:
                files.append(lines)

    def _prune(self) -> None:
        for files in self._files.values():
            files.prune()

    async def _in_thread(self, work: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(work)
        except OSError as exc:
            # Calls go on without it, as they do on a full disk.
            logger.warning("access log not written reason=%s", exc)


def page_start(after: str | None) -> dict[str, Place]:
    """Return the place in each direction where a page begins.

    Raises:
        ValueError: The text is not `next` of a page.
    """
    places: dict[str, Place] = {}
    for part in (after or "").split("_") if after else ():
        direction, number, offset = part.split(".")
        if direction not in DIRECTIONS:
            raise ValueError(f"no direction {direction}")
        places[direction] = int(number), int(offset)
    return places


def _after(places: dict[str, Place]) -> str:
    return "_".join(
        f"{direction}.{number}.{offset}"
        for direction, (number, offset) in sorted(places.items())
    )


def _time_of(line: bytes) -> float | None:
    entry = read_entry(line)
    return None if entry is None else entry.at
