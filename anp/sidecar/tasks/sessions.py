"""The sessions of this daemon: their machines, restored from the store and kept there.

Every step is stored before anything follows from it. So a session that is not in memory
is the same as one that is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from anp.channel.stranger_work import counted
from anp.interaction.conversation import Conversation
from anp.interaction.elements import Session, SessionEvent, Task, Unreadable
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import Acknowledgement, Send, SessionOpen
from anp.interaction.record import RECENT_EVENTS
from anp.interaction.states import is_terminal
from anp.interaction.step import Step
from anp.interaction.stored import (
    event_bytes,
    head_bytes,
    read_head,
    read_task,
    task_bytes,
)
from anp.sidecar.tasks.known import (
    Act,
    KnownTask,
    LiveSession,
    Maker,
    NoTask,
    event_in,
    known_task,
    new_id,
    owner_name,
    receive,
    session_name,
    utc_now,
)
from anp.sidecar.tasks.room import LogRoom
from anp.sidecar.tasks.sealed_logs import SealedLogs
from anp.sidecar.tasks.standing import Standing
from anp.sidecar.tasks.watchers import Watchers
from cache.errors import LogConflict
from cache.parts.logs import Log, LogChange, LogEvent, LogItem

logger = logging.getLogger(__name__)

MAX_KEPT = 256
"Sessions that stay in memory; the others are read again when something happens there."

MAX_WEIGHT = 200_000
"Entries that the sessions in memory may have together; see `SessionRecord.weight`."

PAGE = 100
"Records that are read from the store at a time."


class Sessions:
    """Keeps sessions; see `apply`."""

    def __init__(
        self, store: SealedLogs, follow: Callable[[str, Step], None], *, max_size: int
    ) -> None:
        """Begin with those in the store.

        Args:
            max_size: Bytes of events after which `room` lets nothing in.
            follow: Does what follows from a step that is stored; it gets our own id of
                the session and must not wait. Steps of one session come in order.
        """
        self._store = store
        self._follow = follow
        self.room = LogRoom(store, max_size)
        self._entries: OrderedDict[str, LiveSession] = OrderedDict()
        self._loading: dict[str, asyncio.Lock] = {}
        self.watchers = 0
        "Streams of events that somebody follows now."

        self.watching = Watchers(store, self.events)
        "Wakes those who wait for events of sessions."
        self.publish: Callable[[str, dict[str, Any]], object] = lambda kind, data: None
        self.refused: Callable[[str, str], object] = lambda log, reason: None
        "Is told that a peer refused something of a session, and why."
        "Tells those who follow all events of the daemon that a task has changed."
        self._steps: set[asyncio.Task[Step]] = set()
        self.standing = Standing()
        "The peers with which something is unfinished; only of sessions seen so far."

    # Steps

    async def begin(
        self, session: Session, *, maker: Maker = Maker.AGENT, protocol: str = ""
    ) -> str:
        """Open a session of our own; see `Conversation.begin`. Return our own id."""
        conversation, step = Conversation.begin(
            session, wall_now=utc_now(), protocol=protocol
        )
        return await self._enter(conversation, step, maker)

    async def join(
        self,
        session: Session,
        *,
        own: str,
        sender: str,
        ref: int,
        first: Act | None = None,
        maker: Maker = Maker.PEER,
    ) -> str:
        """Take a session that a peer opened; a repeat is acknowledged again.

        Args:
            first: Its next input, which is stored with the session in one write.

        Raises:
            InteractionError: It is refused.
        """
        known = await self.find(session.requester.id, session.id)
        if known is None:
            conversation, step = Conversation.join(
                session, own=own, sender=sender, ref=ref, wall_now=utc_now()
            )
            if first is not None:
                step.add(first(conversation))
            try:
                return await self._enter(conversation, step, maker)
            except LogConflict:
                # The same one came twice at a time.
                known = await self.find(session.requester.id, session.id)
        if known is None:
            raise InteractionError(
                InteractionFault.UNKNOWN_SESSION, "the session could not be stored"
            )
        opening = SessionOpen(session=session)
        await self.apply(known, receive(opening, sender=sender, ref=ref))
        if first is not None:
            await self.apply(known, first)
        return known

    async def apply(self, log: str, act: Act) -> Step:
        """Give a session one input, store what changed, and do what follows.

        Whoever is cancelled meanwhile leaves no half of it: what is stored is told.

        Raises:
            InteractionError: It is not allowed, or there is no such session; nothing
                changed.
            CacheError: It could not be stored; nothing changed.
        """
        step = asyncio.create_task(counted(self._apply(log, act)))
        self._steps.add(step)
        step.add_done_callback(self._steps.discard)
        return await asyncio.shield(step)

    async def _apply(self, log: str, act: Act) -> Step:
        while True:
            entry = await self._entry(log)
            async with entry.lock:
                if entry.broken:
                    continue
                step = act(entry.conversation)
                is_changed = entry.busy is not entry.conversation.is_busy
                if (
                    step.events
                    or step.tasks
                    or step.is_head_changed
                    or (
                        # An open end of what is stored does no harm: it is told again.
                        is_changed and not entry.conversation.is_busy
                    )
                ):
                    try:
                        await self._keep(entry, step)
                    except LogConflict:
                        # Another daemon of the fleet was faster: look again.
                        continue
                self._done(entry, step)
                return step

    def _done(self, entry: LiveSession, step: Step) -> None:
        self.standing.note(entry.log, entry.conversation)
        self._follow(entry.log, step)
        for name in step.tasks:
            state = entry.conversation.tasks[name].state
            data = {"task": entry.items[name], "session": entry.log, "state": state}
            self.publish("task.changed", data)
        if step.events:
            self.watching.tell(entry.log, entry.conversation.last)

    @property
    def is_shared(self) -> bool:
        """True when other daemons have the same sessions."""
        return self._store.is_shared

    async def settle(self) -> None:
        """Wait for the steps under way."""
        await asyncio.gather(*self._steps, return_exceptions=True)

    async def acknowledge(self, log: str, *, sender: str, ref: int) -> None:
        """Take note that a peer has stored an operation of ours."""
        session = (await self.conversation(log)).session.id
        acknowledgement = Acknowledgement(session=session, ref=ref)
        await self.apply(log, receive(acknowledgement, sender=sender, ref=0))

    async def acknowledge_all(self, log: str, *, sender: str) -> None:
        """Tell a peer nothing more of what happened until now."""
        conversation = await self.conversation(log)
        for number in conversation.unacknowledged(sender):
            await self.acknowledge(log, sender=sender, ref=number)

    async def untold(
        self, log: str, peer: str, *, after: int, limit: int
    ) -> list[Send]:
        """Return some operations that a peer has not acknowledged, in order.

        Args:
            after: Only those of events above this number.
            limit: At most so many, fewer if they are large, but one at least.
        """
        entry = await self._entry(log)
        async with entry.lock:
            conversation = entry.conversation
            while numbers := conversation.unacknowledged(
                peer, after=after, limit=limit
            ):
                events = await self.events(log, after=numbers[0] - 1, limit=limit)
                wanted = set(numbers)
                found = [
                    conversation.operation_of(event, peer)
                    for event in events
                    if event.number in wanted
                    and not isinstance(event.content, Unreadable)
                ]
                if found:
                    return found
                # What is damaged or was dropped can be told to nobody.
                logger.warning("events not told session=%s from=%d", log, numbers[0])
                after = numbers[-1]
            return []

    # Look-ups

    async def find(self, requester: str, session: str) -> str | None:
        """Return our own id of a session by its name on the wire, or None."""
        name = session_name(requester, session)
        with contextlib.suppress(KeyError):
            return self._store.names[name]
        return await asyncio.to_thread(self._store.log_named, name)

    async def conversation(self, log: str) -> Conversation:
        """Return the machine of a session, to be read only.

        Raises:
            InteractionError: There is no such session.
        """
        return (await self._entry(log)).conversation

    async def task(self, item: str) -> KnownTask | None:
        """Return a task by our own id, or None."""
        found = await asyncio.to_thread(self._store.log_item, item)
        return None if found is None else known_task(found)

    async def item_of(self, log: str, task: str) -> str:
        """Return our own id of a task.

        Raises:
            InteractionError: There is no such session, or no such task in it.
        """
        entry = await self._entry(log)
        return entry.items[entry.conversation.task(task).id]

    async def tasks(
        self,
        *,
        before: str = "",
        limit: int = PAGE,
        only_open: bool = False,
        owner: str | None = None,
    ) -> list[KnownTask]:
        """Return a page of all tasks, newest first.

        Args:
            owner: Id of a local caller, of which alone the tasks are wanted.
        """
        found = await asyncio.to_thread(
            self._store.log_items,
            before=before,
            limit=limit,
            only_open=only_open,
            owner=None if owner is None else owner_name(owner),
        )
        return [known_task(one) for one in found]

    async def logs(self, *, before: str = "", limit: int = PAGE) -> list[Log]:
        """Return a page of the heads of all sessions, newest first."""
        return await asyncio.to_thread(self._store.logs, before=before, limit=limit)

    async def head(self, log: str) -> Log:
        """Return the head of a session as it is stored.

        Raises:
            InteractionError: There is no such session.
        """
        return await asyncio.to_thread(self._stored_head, log)

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
        return [*map(event_in, await self.stored(log, after=after, limit=limit))]

    async def stored(
        self, log: str, *, after: int = 0, limit: int = PAGE
    ) -> list[LogEvent]:
        """Return a page of the events of a session as they are stored."""
        return await asyncio.to_thread(
            self._store.log_events, log, after=after, limit=limit
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
        return head, [known_task(one) for one in items]

    async def watch(self, log: str, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        """Yield the events of a session from a number on; see `Watchers.watch`."""
        async for event in self.watching.watch(log, after=after):
            yield event

    async def delete(self, log: str) -> bool:
        """Delete a session with everything in it; False if there is none."""
        entry = self._entries.pop(log, None)
        if entry is not None:
            entry.broken = True
        self.standing.drop(log)
        is_gone = await asyncio.to_thread(self._store.drop_log, log)
        self.watching.tell(log)
        return is_gone

    async def refresh(self, log: str) -> Conversation:
        """Read a session again if another daemon has changed it; return its machine."""
        entry = self._entries.get(log)
        if entry is not None and not entry.lock.locked():
            last = entry.conversation.last
            head = await asyncio.to_thread(self._store.log, log)
            if head is not None and head.last != last and log in self._entries:
                self._entries.pop(log).broken = True
        return await self.conversation(log)

    @property
    def held(self) -> int:
        """Bytes of incomplete messages in memory."""
        return sum(entry.conversation.held for entry in self._entries.values())

    def expire(self, *, later: float = 0.0) -> None:
        """Give up the messages whose chunks do not come.

        Args:
            later: Seconds from now at which it counts.
        """
        now = time.monotonic() + later
        for entry in list(self._entries.values()):
            for name in entry.conversation.handle_timer(now=now):
                logger.info(
                    "chunks did not come session=%s message=%.80s", entry.log, name
                )

    # The store

    async def _enter(self, conversation: Conversation, step: Step, maker: Maker) -> str:
        log = new_id(maker)
        entry = LiveSession(log, conversation, {})
        async with entry.lock:
            await self._keep(entry, step, new=True)
            self._entries[log] = entry
            self._done(entry, step)
        self._forget()
        return log

    async def _keep(self, entry: LiveSession, step: Step, *, new: bool = False) -> None:
        conversation = entry.conversation
        for name in step.tasks:
            entry.items.setdefault(name, new_id(entry.log[-1]))
        session = conversation.session
        owner = owner_name(session.owner) if session.owner else None
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
                    owner=owner,
                )
                for name in step.tasks
            ),
            content=head_bytes(conversation.head),
            open=conversation.is_open(utc_now()),
            busy=conversation.is_busy,
            names=(session_name(session.requester.id, session.id),) if new else (),
        )
        try:
            await asyncio.to_thread(self._store.append_log, change)
        except BaseException:
            entry.broken = True
            self._entries.pop(entry.log, None)
            raise
        entry.busy = conversation.is_busy
        self.room.added(sum(map(len, change.events)))

    async def _entry(self, log: str) -> LiveSession:
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

    def _load(self, log: str) -> LiveSession:
        while True:
            found = self._stored_head(log)
            made = self._read_session(found)
            # Its parts are read one after the other, while the owner may delete it and
            # a sister daemon may go on with it: what was read then has not all tasks.
            if self._stored_head(log).last == found.last:
                return made

    def _stored_head(self, log: str) -> Log:
        found = self._store.log(log)
        if found is None:
            raise InteractionError(
                InteractionFault.UNKNOWN_SESSION, "there is no such session"
            )
        return found

    def _read_session(self, found: Log) -> LiveSession:
        log = found.id
        items: dict[str, str] = {}
        tasks: list[Task] = []
        after = ""
        while page := self._store.items_of_log(log, after=after):
            after = page[-1].id
            for item in page:
                task = read_task(item.content)
                items[task.id] = item.id
                tasks.append(task)
        # Page by page, since these may be gigabytes.
        conversation = Conversation.restore(
            read_head(found.content),
            tasks,
            self._read(log, max(0, found.last - RECENT_EVENTS)),
            now=time.monotonic(),
        )
        return LiveSession(log, conversation, items, busy=found.busy)

    def _read(self, log: str, after: int) -> Iterator[SessionEvent]:
        while rows := self._store.log_events(log, after=after):
            after = rows[-1].number
            yield from map(event_in, rows)

    def _forget(self) -> None:
        """Take sessions out of memory, the longest unused first."""
        weight = sum(one.conversation.weight for one in self._entries.values())
        for log, entry in list(self._entries.items())[:-1]:
            if len(self._entries) <= MAX_KEPT and weight <= MAX_WEIGHT:
                return
            if not entry.lock.locked():
                weight -= entry.conversation.weight
                entry.broken = True
                del self._entries[log]
