"""The events of one group: stored in batches, read again, and followed.

What is put is numbered by whoever puts it. While one batch is written, the next one
gathers, so that many events cost one write, and a single one waits for nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from anp.channel.stranger_work import counted
from anp.interaction.errors import InteractionError, InteractionFault
from anp.sidecar.groups.shelf import GroupShelf, StoredEvent, late_row, unlocked_of
from cache.errors import CacheError, LeaseLost, LogConflict

logger = logging.getLogger(__name__)

MAX_RECENT = 1024
"Newest events of a group that stay in memory."

MAX_RECENT_BYTES = 2 * 1024 * 1024

MAX_BATCH = 512
"Events of one write."

MAX_BATCH_BYTES = 4 * 1024 * 1024

MAX_WAITING_BYTES = 32 * 1024 * 1024
"Bytes that wait to be stored; with more, nothing is taken."

GATHERED = 0.02
"Seconds in which a member's events gather before they are stored; the hub has them."

PAGE = 64
"Most events that a watcher gets at once."

RETRY = 1.0
"Seconds after which a write that failed is tried again."


@dataclass(slots=True)
class _Watcher:
    """Somebody who follows a group."""

    early: bool
    within: bool
    late: deque[int] = field(default_factory=deque)
    "Numbers of events whose content came after them."


class GroupLog:
    """The events of one group on this daemon."""

    def __init__(
        self,
        shelf: GroupShelf,
        group: str,
        *,
        head: Callable[[], tuple[bytes, bool]],
        last: int = 0,
        stored: Callable[[Sequence[StoredEvent]], None] = lambda events: None,
        delay: float = 0.0,
    ) -> None:
        """Go on after a number.

        Args:
            head: Returns the present head of the group, and whether it is open.
            stored: Told of events as soon as they are stored.
            delay: Seconds for which events gather before they are written, unless
                somebody waits for that.
        """
        self._shelf = shelf
        self.group = group
        self._head = head
        self._stored = stored
        self.last = last
        "Number of the newest event, stored or not."

        self._recent: deque[StoredEvent] = deque()
        self._recent_size = 0
        self._waiting: deque[StoredEvent] = deque()
        self._waiting_size = 0
        self._head_changed = False
        self._rows: deque[tuple[int, Mapping[str, bytes | None]]] = deque()
        "Changed rows, each with the number of the last event that they follow from."

        self._unlocked: dict[str, bytes] = {}
        "Contents unlocked and not stored yet, by the names of their rows."

        self._delay = delay
        self._hurry = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self._heads = 0
        "Changes of the head so far, stored or not."

        self._heads_stored = 0
        self._durable: deque[tuple[int, int, asyncio.Future[None]]] = deque()
        self._watchers: dict[asyncio.Event, _Watcher] = {}
        "Those who follow it."

        self.ended = False
        self._lost = False
        "Another daemon stores the group."

    def check_room(self) -> None:
        """Check that more can be taken; InteractionError if not."""
        self._check_lost()
        if self._waiting_size > MAX_WAITING_BYTES:
            raise InteractionError(
                InteractionFault.TOO_MANY, "too much waits to be stored here"
            )

    def put(
        self,
        events: Sequence[StoredEvent],
        *,
        head: bool = False,
        rows: Mapping[str, bytes | None] | None = None,
    ) -> None:
        """Take events, in order, which are stored soon.

        Args:
            head: The head has changed, and is stored with them.
            rows: Rows that follow from all events so far; no transaction has them
                without these events, or these events without them.
        """
        head = head or bool(rows)
        self._heads += head
        self._head_changed |= head
        for one in events:
            self.last = one.number
            self._waiting.append(one)
            self._waiting_size += len(one.data)
        if rows:
            self._rows.append((self.last, rows))
        for changed, watcher in self._watchers.items():
            if watcher.early and events:
                changed.set()
        if self._writing is None and (self._waiting or self._head_changed):
            self._writing = asyncio.create_task(counted(self._write()))

    def follow(self, events: Sequence[StoredEvent]) -> None:
        """Take events that another daemon stored."""
        for one in events:
            self.last = one.number
            self._remember(one)
        self._trim()
        self._tell(events)

    def unlock(self, number: int, content: bytes) -> None:
        """Put the content of an event that could not be read when it came.

        Whoever watches gets the event once more.

        Args:
            content: A message of the protocol, as JSON.
        """
        for place, one in enumerate(self._waiting):
            if one.number == number:
                self._waiting[place] = new = one.unlocked(content)
                self._waiting_size += len(new.data) - len(one.data)
        for place, one in enumerate(self._recent):
            if one.number == number:
                self._recent[place] = new = one.unlocked(content)
                self._recent_size += len(new.data) - len(one.data)
        self._unlocked[late_row(number)] = content
        self.put((), rows={late_row(number): content})
        for watcher in self._watchers.values():
            watcher.late.append(number)
        self._wake()

    def _check_lost(self) -> None:
        if self._lost:
            raise _lost()

    async def durable(self) -> None:
        """Wait until all that was put up to now is stored.

        Raises:
            InteractionError: It is not: another daemon stores this group.
        """
        self._check_lost()
        if self._writing is None:
            return
        done = asyncio.get_running_loop().create_future()
        self._durable.append((self.last, self._heads, done))
        self._hurry.set()
        await done

    async def settle(self) -> None:
        """Wait until all that was put is stored."""
        while self._writing is not None:
            await asyncio.wait({self._writing})

    async def close(self) -> None:
        """Store what waits, and end all watching."""
        self.ended = True
        self._hurry.set()
        self._wake()
        try:
            async with asyncio.timeout(10.0):
                await self.settle()
        except TimeoutError:
            logger.warning("group not stored group=%s", self.group)

    def give_up(self) -> None:
        """Store nothing more, since another daemon does, or did."""
        self.ended = self._lost = True
        self._wake()
        while self._durable:
            done = self._durable.popleft()[2]
            if not done.done():
                done.set_exception(_lost())

    def recent(self, after: int, limit: int) -> list[StoredEvent] | None:
        """Return stored events from memory; None if they have to be read."""
        newest = self.stored_last
        if after >= newest:
            return []
        first = self._recent[0].number if self._recent else newest + 1
        if after + 1 < first:
            return None
        start = after + 1 - first
        end = min(start + limit, len(self._recent))
        return [self._recent[index] for index in range(start, end)]

    @property
    def stored_last(self) -> int:
        """Number of the newest event that is stored."""
        return self._waiting[0].number - 1 if self._waiting else self.last

    async def events(self, *, after: int, limit: int) -> list[StoredEvent]:
        """Return stored events with numbers above `after`, in order."""
        found = self.recent(after, limit)
        if found is None:
            # What is stored while the store is read may still be missing there.
            late = dict(self._unlocked)
            found = await asyncio.to_thread(
                self._shelf.events, self.group, after=after, limit=limit
            )
            late |= self._unlocked
            found = [unlocked_of(one, late) for one in found]
        return found

    async def watch(
        self, *, after: int = 0, early: bool = False, within: bool = False
    ) -> AsyncGenerator[Sequence[StoredEvent], None]:
        """Yield events from a number on, all that are there, and wait for new ones.

        Args:
            early: Also those that are not stored yet, which somebody else keeps.
            within: A part of the daemon follows, which counts as no watcher.
        """
        changed, watcher = asyncio.Event(), _Watcher(early, within)
        self._watchers[changed] = watcher
        try:
            while True:
                changed.clear()
                while watcher.late:
                    number = watcher.late.popleft()
                    if number <= after:
                        yield await self._next(number - 1, 1, early)
                found = await self._next(after, PAGE, early)
                if found:
                    after = found[-1].number
                    yield found
                if found or watcher.late:
                    continue
                if self.ended:
                    return
                await changed.wait()
        finally:
            del self._watchers[changed]

    async def _next(self, after: int, limit: int, early: bool) -> list[StoredEvent]:
        found = await self.events(after=after, limit=limit)
        if not found and early:
            later = (one for one in self._waiting if one.number > after)
            found = list(islice(later, limit))
        return found

    @property
    def watchers(self) -> int:
        """Number of those who follow it now."""
        return sum(not one.within for one in self._watchers.values())

    def _wake(self) -> None:
        for one in self._watchers:
            one.set()

    async def _write(self) -> None:
        try:
            while self._waiting or self._head_changed:
                await self._gather()
                batch, heads = self._next_batch(), self._heads
                head, is_open = None, True
                if self._head_changed:
                    self._head_changed = False
                    head, is_open = self._head()
                rows = self._next_rows(batch)
                await self._save(batch, head, is_open, rows)
                for name in rows:
                    self._unlocked.pop(name, None)
                if head is not None:
                    self._heads_stored = heads
                for _ in batch:
                    # It may have been unlocked while it was written.
                    one = self._waiting.popleft()
                    self._waiting_size -= len(one.data)
                    self._remember(one)
                self._trim()
                with contextlib.suppress(Exception):
                    self._wake()
                if batch:
                    self._tell(batch)
                self._release()
        except (LeaseLost, LogConflict) as exc:
            # A second try would end in the same way, and so would all that follows.
            logger.warning("group given up group=%s reason=%s", self.group, exc)
            self.give_up()
        finally:
            self._writing = None

    async def _gather(self) -> None:
        if not self._delay or self._durable or self.ended:
            return
        self._hurry.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._delay):
                await self._hurry.wait()

    def _release(self) -> None:
        """Let go on who waited for what is stored now."""
        stored = self.stored_last
        while self._durable:
            number, heads, done = self._durable[0]
            if number > stored or heads > self._heads_stored:
                return
            self._durable.popleft()
            if not done.done():
                done.set_result(None)

    def _tell(self, batch: Sequence[StoredEvent]) -> None:
        try:
            self._stored(batch)
        except Exception:
            logger.exception("group not distributed group=%s", self.group)

    def _next_batch(self) -> list[StoredEvent]:
        batch: list[StoredEvent] = []
        size = 0
        for one in self._waiting:
            if len(batch) >= MAX_BATCH or (batch and size > MAX_BATCH_BYTES):
                break
            if batch and one.number != batch[-1].number + 1:
                # A page has numbers without gaps.
                break
            batch.append(one)
            size += len(one.data)
        return batch

    def _next_rows(self, batch: Sequence[StoredEvent]) -> dict[str, bytes | None]:
        end = batch[-1].number if batch else self.stored_last
        rows: dict[str, bytes | None] = {}
        while self._rows and self._rows[0][0] <= end:
            rows |= self._rows.popleft()[1]
        return rows

    async def _save(
        self,
        batch: list[StoredEvent],
        head: bytes | None,
        is_open: bool,
        rows: Mapping[str, bytes | None],
    ) -> None:
        save = partial(
            self._shelf.save, self.group, batch, head, is_open=is_open, rows=rows
        )
        while True:
            try:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._shelf.thread, save)
            except (LeaseLost, LogConflict):
                raise
            except CacheError as exc:
                logger.warning("group not stored group=%s reason=%s", self.group, exc)
                await asyncio.sleep(RETRY)
            else:
                return

    def _remember(self, event: StoredEvent) -> None:
        if self._recent and event.number != self._recent[-1].number + 1:
            self._recent.clear()
            self._recent_size = 0
        self._recent.append(event)
        self._recent_size += len(event.data)

    def _trim(self) -> None:
        while self._recent and (
            len(self._recent) > MAX_RECENT or self._recent_size > MAX_RECENT_BYTES
        ):
            self._recent_size -= len(self._recent.popleft().data)


def _lost() -> InteractionError:
    return InteractionError(InteractionFault.STATE, "another daemon stores this group")
