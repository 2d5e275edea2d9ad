"""Watches all subscriptions: one timer for the next due time, and every event.

A firing is stored, together with the new state of its subscription, before anything
starts. Who finds that the subscription was changed meanwhile, as by another daemon of
the fleet, reads it again and decides anew; so exactly one of them stores a firing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from anp.errors import CallError
from anp.interaction.triggers.subscription import EventSource
from anp.interaction.triggers.watch import Happening, Occasion, Watch
from anp.sidecar.subscriptions.kept import (
    ENDED_BY_OTHERS,
    Kept,
    KeptRun,
    SubscriptionBook,
    Watcher,
    run_of,
)
from cache.errors import CacheError, LogConflict

logger = logging.getLogger(__name__)

LONGEST_SLEEP: Final = 30.0
"Seconds until the clock is looked at again, since it may be set."

LOOK: Final = 10.0
"Seconds between two looks at what other daemons of the fleet changed."

HOLD: Final = 30.0
"Seconds after which another daemon starts what one stored and did not start."

RETRY: Final = 5.0
"Seconds until a start is tried again that the store prevented."

MAX_STARTS: Final = 8
"Firings that are started at a time."

MAX_TRIES: Final = 5
"Times that a step is done anew because the subscription was changed meanwhile."

Take = Callable[[Watch, float], list[Occasion]]


@dataclass(slots=True)
class _Entry:
    """One subscription in memory."""

    kept: Kept
    watch: Watch
    due: float | None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    handing: asyncio.Task[None] | None = None


class Scheduler:
    """Keeps the machines of all open subscriptions that are watched here."""

    def __init__(
        self,
        book: SubscriptionBook,
        *,
        start: Callable[[Kept, KeptRun], Awaitable[str]],
        fits: Callable[[Mapping[str, Any], Any], Awaitable[bool]],
        may_see: Callable[[Kept, Happening], bool] = lambda kept, happening: True,
        publish: Callable[[str, dict[str, Any]], object] = lambda kind, data: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin without subscriptions; `load` reads them.

        Args:
            start: Makes the task of a run, once, however often it is called; returns
                our own id of it. CallError: there will be none.
            fits: Tells if a value fits a JSON Schema.
            may_see: Tells if an event is for who made a subscription.
            publish: Tells who follows the events of the daemon.
        """
        self._book = book
        self._start = start
        self._fits = fits
        self._may_see = may_see
        self._publish = publish
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._woken = asyncio.Event()
        self._starts = asyncio.Semaphore(MAX_STARTS)
        self._owner = secrets.token_hex(8)
        self._running: asyncio.Task[None] | None = None

    # Its life

    async def load(self) -> None:
        """Read what is stored, and go on with firings that were not started."""
        before = ""
        known: set[str] = set()
        while page := await self._book.page(before=before):
            before = page[-1].id
            for kept in page:
                if kept.record is not None and kept.record.open:
                    known.add(kept.id)
                    self._note(kept)
        for gone in self._entries.keys() - known:
            self._drop(gone)

    def run(self) -> None:
        """Watch the clock until `close`."""
        self._running = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Watch no more; what is not started yet is at the next start."""
        tasks = [one.handing for one in self._entries.values()]
        for task in (self._running, *tasks):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _run(self) -> None:
        looked = self._clock()
        while True:
            now = self._clock()
            if self._book.is_shared and abs(now - looked) >= LOOK:
                looked = now
                with contextlib.suppress(CacheError):
                    await self.load()
            await self.tick()
            due = self.next_due
            longest = LOOK if self._book.is_shared else LONGEST_SLEEP
            wait = longest if due is None else min(longest, due - self._clock())
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, wait)):
                    await self._woken.wait()

    @property
    def next_due(self) -> float | None:
        """When the next one is due, in seconds since 1970, or None."""
        found = (one.due for one in self._entries.values())
        return min((due for due in found if due is not None), default=None)

    async def tick(self) -> None:
        """Do everything that is due now."""
        now = self._clock()
        due = [
            one
            for one in self._entries.values()
            if one.due is not None and one.due <= now
        ]
        for entry in due:
            try:
                await self._step(entry, lambda watch, at: watch.handle_timer(now=at))
            except CacheError as exc:
                logger.warning("firing not stored id=%s: %s", entry.kept.id, exc)
                entry.due = now + RETRY
            except Exception:
                logger.exception("subscription not looked at id=%s", entry.kept.id)
                entry.due = now + RETRY

    # Changes

    def add(self, kept: Kept) -> None:
        """Watch a subscription that is stored."""
        self._note(kept)
        self._woken.set()

    async def end(self, name: str, reason: str, *, text: str = "") -> Kept | None:
        """End a subscription; return it as it is then, or None if there is none."""
        entry = self._entries.get(name)
        if entry is None:
            return await self._book.find(name)

        def take(watch: Watch, now: float) -> list[Occasion]:
            watch.end(reason)
            return []

        await self._step(entry, take, reason=text)
        return entry.kept

    async def observe(self, happening: Happening) -> list[str]:
        """Take an event; return the ids of the subscriptions that it started."""
        started = []
        for entry in list(self._entries.values()):
            if not self._may_see(entry.kept, happening):
                continue
            wanted = entry.watch.interested(happening)
            fits = [
                name
                for name, schema in wanted.items()
                if schema is None or await self._fits(schema, dict(happening.data))
            ]
            if not fits:
                continue

            def take(
                watch: Watch, now: float, names: list[str] = fits
            ) -> list[Occasion]:
                return watch.observe(happening, fits=names, now=now)

            if await self._step(entry, take):
                started.append(entry.kept.id)
        return started

    def is_watched(self, source: EventSource) -> bool:
        """Tell whether any subscription waits for events of a source."""
        return any(
            getattr(trigger, "source", None) is source
            for entry in self._entries.values()
            for trigger in entry.watch.triggers
        )

    def open(self, watcher: Watcher, *, peer: str = "") -> list[Kept]:
        """Return the open ones of a kind, of one peer or of all."""
        return [
            entry.kept
            for entry in self._entries.values()
            if entry.kept.watcher is watcher
            and peer in ("", entry.kept.order.peer)
            and not entry.watch.ended
        ]

    # One step

    async def _step(self, entry: _Entry, take: Take, *, reason: str = "") -> int:
        """Give a machine one input, and store what follows; return the new firings."""
        async with entry.lock:
            for _ in range(MAX_TRIES):
                now = self._clock()
                before = entry.watch.state
                runs = await self._fired(entry, take(entry.watch, now), now)
                kept = replace(entry.kept, state=entry.watch.state)
                if reason:
                    kept = replace(kept, reason=reason)
                if not runs and kept.state == before and not reason:
                    entry.due = entry.watch.get_timer()
                    return 0
                numbers = [*kept.starting, *(one.number for one in runs)]
                try:
                    stored = await self._book.save(
                        kept,
                        runs=runs,
                        starting=numbers,
                        holder=self._owner,
                        now=now,
                        until=now + HOLD,
                    )
                except LogConflict:
                    if not await self._again(entry):
                        return 0
                    continue
                except BaseException:
                    # What is not stored did not happen.
                    self._restore(entry, entry.kept)
                    raise
                entry.kept, entry.due = stored, entry.watch.get_timer()
                for run in runs:
                    told = {"subscription": stored.id, "number": run.number}
                    self._publish("subscription.fired", told)
                if stored.ended and not before["ended"]:
                    told = {"subscription": stored.id, "reason": stored.ended}
                    self._publish("subscription.ended", told)
                self._hand_over(entry)
                return len(runs)
        raise LogConflict("the subscription changes all the time")

    async def _fired(
        self, entry: _Entry, occasions: list[Occasion], now: float
    ) -> list[KeptRun]:
        condition = entry.kept.subscription.condition
        runs = []
        for one in occasions:
            if condition is not None and not await self._fits(condition, one.as_json()):
                continue
            firing = entry.watch.fire(one, now=now)
            if firing is not None:
                runs.append(run_of(firing))
        entry.watch.settle()
        return runs

    async def _again(self, entry: _Entry) -> bool:
        """Read a subscription that was changed by another one; False if it is gone."""
        found = await self._book.find(entry.kept.id)
        if found is None or found.record is None or not found.record.open:
            self._drop(entry.kept.id)
            return False
        self._restore(entry, found)
        return True

    def _restore(self, entry: _Entry, kept: Kept) -> None:
        entry.kept, entry.watch = kept, kept.watch()
        entry.due = entry.watch.get_timer()

    def _note(self, kept: Kept) -> None:
        entry = self._entries.get(kept.id)
        if entry is None:
            if kept.watcher is Watcher.PEER:
                return
            watch = kept.watch()
            entry = _Entry(kept, watch, watch.get_timer())
            self._entries[kept.id] = entry
        elif entry.kept.record != kept.record and not entry.lock.locked():
            self._restore(entry, kept)
        self._hand_over(entry)

    def _drop(self, name: str) -> None:
        self._entries.pop(name, None)

    # Starts

    def _hand_over(self, entry: _Entry) -> None:
        """Start what is stored and not started, one after the other."""
        record = entry.kept.record
        if record is None or not record.open:
            self._drop(entry.kept.id)
            return
        theirs = record.holder != self._owner and record.until > self._clock()
        is_handing = entry.handing is not None and not entry.handing.done()
        if not record.starting or is_handing or (theirs and self._book.is_shared):
            return
        entry.handing = asyncio.create_task(self._hand_all(entry))

    async def _hand_all(self, entry: _Entry) -> None:
        while entry.kept.starting:
            number = entry.kept.starting[0]
            try:
                async with self._starts:
                    run = await self._made(entry.kept, number)
                    await self._started(entry, number, run)
            except CacheError as exc:
                logger.warning("run not started id=%s: %s", entry.kept.id, exc)
                await asyncio.sleep(RETRY)
            except Exception:
                logger.exception("run not started id=%s", entry.kept.id)
                await asyncio.sleep(RETRY)
        self._hand_over(entry)

    async def _made(self, kept: Kept, number: int) -> KeptRun | None:
        """Make the task of a run; None if the run is not kept any more."""
        run = await self._book.run(kept.id, number)
        if run is None:
            return None
        if kept.ended in ENDED_BY_OTHERS:
            return replace(run, problem="the subscription was ended before")
        try:
            return replace(run, task=await self._start(kept, run))
        except CallError as exc:
            logger.info("run without task id=%s reason=%s", kept.id, exc.detail)
            return replace(run, problem=exc.detail[:500])

    async def _started(self, entry: _Entry, number: int, run: KeptRun | None) -> None:
        """Store that a run needs no start any more."""
        async with entry.lock:
            for _ in range(MAX_TRIES):
                rest = [one for one in entry.kept.starting if one != number]
                if len(rest) == len(entry.kept.starting):
                    return
                try:
                    entry.kept = await self._book.save(
                        entry.kept,
                        runs=() if run is None else (run,),
                        starting=rest,
                        holder=self._owner,
                        now=self._clock(),
                        until=self._clock() + HOLD,
                    )
                except LogConflict:
                    if not await self._again(entry):
                        return
                    continue
                if run is not None:
                    told = {
                        "subscription": entry.kept.id,
                        "number": number,
                        "task": run.task,
                    }
                    self._publish("subscription.started", told)
                return
