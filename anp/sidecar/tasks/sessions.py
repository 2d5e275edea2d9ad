"""The sessions of this daemon: their machines, restored from the store and kept there.

Every step is stored before anything follows from it. So a session that is not in memory
is the same as one that is.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from anp.errors import UnknownError
from anp.interaction.conversation import Conversation
from anp.interaction.elements import Session, SessionEvent, Task
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import Acknowledgement, Send, SessionOpen
from anp.interaction.record import RECENT_EVENTS, Step
from anp.interaction.states import is_terminal
from anp.interaction.stored import (
    event_bytes,
    head_bytes,
    read_event,
    read_head,
    read_task,
    task_bytes,
)
from anp.sidecar.tasks.sealed_logs import SealedLogs
from cache.errors import LogConflict
from cache.parts.logs import Log, LogChange, LogEvent, LogItem

__all__ = ["Act", "KnownTask", "Maker", "NoTask", "Sessions", "maker_of", "utc_now"]

logger = logging.getLogger(__name__)

MAX_KEPT = 256
"Sessions without work that stay in memory."

WATCHED = 16
"Events that are in memory for one watcher, who may read slowly or not at all."

PAGE = 100
"Records that are read from the store at a time."

Act = Callable[[Conversation], Step]
"One input of a session's machine."


class NoTask(UnknownError):
    """There is no task or session of an id."""

    def __init__(self, what: str) -> None:
        super().__init__(f"there is no {what}")


class Maker(StrEnum):
    """The side that made a session: the last letter of our own ids of it and its tasks.

    So a list shows at once what a local program may see.
    """

    AGENT = "a"
    OWNER = "o"
    PEER = "p"


def maker_of(own_id: str) -> Maker | None:
    """Return the maker of the session that our own id belongs to; None for no such id.

    Args:
        own_id: Id of a session or of a task.
    """
    return Maker(own_id[-1]) if re.fullmatch(r"[0-9a-f]{24}[aop]", own_id) else None


def utc_now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class KnownTask:
    """A task with the ids under which this daemon has it."""

    id: str
    "Our own id of it, new among all tasks; other than the one on the wire."

    log: str
    "Our own id of its session."

    task: Task


@dataclass(slots=True, eq=False)
class _Entry:
    """A session in memory."""

    log: str
    conversation: Conversation
    items: dict[str, str]
    "Our own ids of its tasks, by the ids on the wire."

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    broken: bool = False
    "What is stored is not what is in memory."


class Sessions:
    """Keeps sessions; see `apply`."""

    def __init__(self, store: SealedLogs, follow: Callable[[str, Step], None]) -> None:
        """Begin with those in the store.

        Args:
            follow: Does what follows from a step that is stored; it gets our own id of
                the session and must not wait. Steps of one session come in order.
        """
        self._store = store
        self._follow = follow
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._loading: dict[str, asyncio.Lock] = {}
        self._unwatched = False
        self.watchers = 0
        "Streams of events that somebody follows now."

        self.publish: Callable[[str, dict[str, Any]], object] = lambda kind, data: None
        "Tells those who follow all events of the daemon that a task has changed."

    # Steps

    async def begin(self, session: Session, *, maker: Maker = Maker.AGENT) -> str:
        """Open a session of our own; return our own id of it."""
        conversation, step = Conversation.begin(session, wall_now=utc_now())
        return await self._enter(conversation, step, maker)

    async def join(self, session: Session, *, own: str, sender: str, ref: int) -> str:
        """Take a session that a peer opened; a repeat is acknowledged again.

        Raises:
            InteractionError: It is refused.
        """
        known = await self.find(session.requester.id, session.id)
        if known is None:
            conversation, step = Conversation.join(
                session, own=own, sender=sender, ref=ref, wall_now=utc_now()
            )
            try:
                return await self._enter(conversation, step, Maker.PEER)
            except LogConflict:
                # The same one came twice at a time.
                known = await self.find(session.requester.id, session.id)
        if known is None:
            raise InteractionError(
                InteractionFault.UNKNOWN_SESSION, "the session could not be stored"
            )
        opening = SessionOpen(session=session)
        await self.apply(
            known,
            lambda conversation: conversation.receive(
                opening,
                sender=sender,
                ref=ref,
                now=time.monotonic(),
                wall_now=utc_now(),
            ),
        )
        return known

    async def apply(self, log: str, act: Act) -> Step:
        """Give a session one input, store what changed, and do what follows.

        Raises:
            InteractionError: It is not allowed, or there is no such session; nothing
                changed.
            CacheError: It could not be stored; nothing changed.
        """
        while True:
            entry = await self._entry(log)
            async with entry.lock:
                if entry.broken:
                    continue
                step = act(entry.conversation)
                if step.events or step.tasks or not entry.conversation.is_busy:
                    try:
                        await self._keep(entry, step)
                    except LogConflict:
                        # Another daemon of the fleet was faster: look again.
                        continue
                self._follow(log, step)
                self._told(entry, step)
                if step.events:
                    entry.changed.set()
                    entry.changed = asyncio.Event()
                return step

    async def acknowledge(self, log: str, *, sender: str, ref: int) -> None:
        """Take note that a peer has stored an operation of ours."""
        await self.apply(
            log,
            lambda conversation: conversation.receive(
                Acknowledgement(session=conversation.session.id, ref=ref),
                sender=sender,
                ref=0,
                now=time.monotonic(),
                wall_now=utc_now(),
            ),
        )

    async def unsent(self, log: str, peer: str) -> list[Send]:
        """Return the operations that a peer has to get again, in order."""
        entry = await self._entry(log)
        async with entry.lock:
            found: list[Send] = []
            for number in entry.conversation.unacknowledged(peer):
                rows = await asyncio.to_thread(
                    self._store.log_events, log, after=number - 1, limit=1
                )
                for row in rows:
                    event = read_event(row.content)
                    if event.number == number:
                        found.append(entry.conversation.operation_of(event, peer))
            return found

    # Look-ups

    async def find(self, requester: str, session: str) -> str | None:
        """Return our own id of a session by its name on the wire, or None."""
        name = _session_name(requester, session)
        found = await asyncio.to_thread(self._store.log_named, name)
        return None if found is None else found[0]

    async def conversation(self, log: str) -> Conversation:
        """Return the machine of a session, to be read only.

        Raises:
            InteractionError: There is no such session.
        """
        return (await self._entry(log)).conversation

    async def task(self, item: str) -> KnownTask | None:
        """Return a task by our own id, or None."""
        found = await asyncio.to_thread(self._store.log_item, item)
        return None if found is None else _known(found)

    async def item_of(self, log: str, task: str) -> str:
        """Return our own id of a task."""
        return (await self._entry(log)).items[task]

    async def tasks(
        self, *, before: str = "", limit: int = PAGE, only_open: bool = False
    ) -> list[KnownTask]:
        """Return a page of all tasks, newest first."""
        found = await asyncio.to_thread(
            self._store.log_items, before=before, limit=limit, only_open=only_open
        )
        return [_known(one) for one in found]

    async def logs(self, *, before: str = "", limit: int = PAGE) -> list[Log]:
        """Return a page of the heads of all sessions, newest first."""
        return await asyncio.to_thread(self._store.logs, before=before, limit=limit)

    async def busy(self) -> AsyncIterator[str]:
        """Yield our own ids of the sessions that a restart has to look at."""
        after = ""
        while True:
            page = await asyncio.to_thread(
                self._store.busy_logs, after=after, limit=PAGE
            )
            for log in page:
                yield log
            if len(page) < PAGE:
                return
            after = page[-1]

    async def events(
        self, log: str, *, after: int = 0, limit: int = PAGE
    ) -> list[SessionEvent]:
        """Return stored events of a session in order."""
        rows = await asyncio.to_thread(
            self._store.log_events, log, after=after, limit=limit
        )
        return [read_event(row.content) for row in rows]

    async def stored(self, log: str, *, after: int = 0) -> list[LogEvent]:
        """Return a page of the events of a session as they are stored."""
        return await asyncio.to_thread(
            self._store.log_events, log, after=after, limit=PAGE
        )

    async def overview(self, log: str) -> tuple[Log, list[KnownTask]]:
        """Return the head of a session, and its first 1,000 tasks.

        Raises:
            NoTask: There is no such session.
        """
        head = await asyncio.to_thread(self._store.log, log)
        if head is None:
            raise NoTask(f"session {log[:80]}")
        items = await asyncio.to_thread(self._store.items_of_log, log, limit=1000)
        return head, [_known(one) for one in items]

    async def watch(self, log: str, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        """Yield the events of a session from a number on, and wait for new ones.

        Raises:
            InteractionError: There is no such session any more.
        """
        while not self._unwatched:
            entry = await self._entry(log)
            changed = entry.changed
            events = await self.events(log, after=after, limit=WATCHED)
            for event in events:
                after = event.number
                yield event
            if not events:
                await changed.wait()

    async def delete(self, log: str) -> bool:
        """Delete a session with everything in it; False if there is none."""
        entry = self._entries.pop(log, None)
        try:
            return await asyncio.to_thread(self._store.drop_log, log)
        finally:
            if entry is not None:
                entry.broken = True
                # Its watchers look again, and find it gone.
                entry.changed.set()

    def end_watching(self) -> None:
        """End what waits for events, since the daemon stops."""
        self._unwatched = True
        for entry in self._entries.values():
            entry.changed.set()

    # The store

    async def _enter(self, conversation: Conversation, step: Step, maker: Maker) -> str:
        log = _new_id(maker)
        entry = _Entry(log, conversation, {})
        async with entry.lock:
            await self._keep(entry, step, new=True)
            self._entries[log] = entry
            self._follow(log, step)
            self._told(entry, step)
        return log

    def _told(self, entry: _Entry, step: Step) -> None:
        for name in step.tasks:
            state = entry.conversation.tasks[name].state
            data = {"task": entry.items[name], "session": entry.log, "state": state}
            self.publish("task.changed", data)

    async def _keep(self, entry: _Entry, step: Step, *, new: bool = False) -> None:
        conversation = entry.conversation
        for name in step.tasks:
            entry.items.setdefault(name, _new_id(entry.log[-1]))
        session = conversation.session
        change = LogChange(
            log=entry.log,
            after=conversation.last - len(step.events),
            at=time.time(),
            events=tuple(event_bytes(event) for event in step.events),
            items=tuple(
                LogItem(
                    id=entry.items[name],
                    content=task_bytes(conversation.tasks[name]),
                    open=not is_terminal(conversation.tasks[name].state),
                )
                for name in step.tasks
            ),
            content=head_bytes(conversation.head),
            open=conversation.is_open(utc_now()),
            busy=conversation.is_busy,
            names=(_session_name(session.requester.id, session.id),) if new else (),
        )
        try:
            await asyncio.shield(asyncio.to_thread(self._store.append_log, change))
        except BaseException:
            # Also when it was only cancelled: nobody knows whether it is stored.
            entry.broken = True
            self._entries.pop(entry.log, None)
            raise

    async def _entry(self, log: str) -> _Entry:
        entry = self._entries.get(log)
        if entry is not None:
            self._entries.move_to_end(log)
            return entry
        async with self._loading.setdefault(log, asyncio.Lock()):
            try:
                entry = self._entries.get(log)
                if entry is None:
                    entry = await asyncio.to_thread(self._load, log)
                    self._entries[log] = entry
                    self._forget()
                return entry
            finally:
                self._loading.pop(log, None)

    def _load(self, log: str) -> _Entry:
        found = self._store.log(log)
        if found is None:
            raise InteractionError(
                InteractionFault.UNKNOWN_SESSION, "there is no such session"
            )
        items: dict[str, str] = {}
        tasks: list[Task] = []
        after = ""
        while page := self._store.items_of_log(log, after=after):
            after = page[-1].id
            for item in page:
                task = read_task(item.content)
                items[task.id] = item.id
                tasks.append(task)
        events: list[SessionEvent] = []
        number = max(0, found.last - RECENT_EVENTS)
        while rows := self._store.log_events(log, after=number):
            number = rows[-1].number
            events += [read_event(row.content) for row in rows]
        conversation = Conversation.restore(
            read_head(found.content), tasks, events, now=time.monotonic()
        )
        return _Entry(log, conversation, items)

    def _forget(self) -> None:
        """Take sessions without work out of memory, the longest unused first."""
        for log, entry in list(self._entries.items()):
            if len(self._entries) <= MAX_KEPT:
                return
            if not entry.lock.locked() and not entry.conversation.is_busy:
                entry.broken = True
                entry.changed.set()
                del self._entries[log]


def _known(item: LogItem) -> KnownTask:
    return KnownTask(item.id, item.log, read_task(item.content))


def _new_id(maker: str) -> str:
    """Return an id whose order is that of time; see `Maker`."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(6)}{maker}"


def _session_name(requester: str, session: str) -> str:
    name = f"session\0{requester}\0{session}"
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
