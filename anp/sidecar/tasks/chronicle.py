"""The events of one task in order, and the content that they carry in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from anp.errors import UnknownError
from anp.interaction.chunks import join_parts
from anp.interaction.elements import (
    Chunk,
    EventContent,
    Message,
    MessagePurpose,
    Part,
    PartKind,
    SenderRole,
    Session,
    SessionEvent,
    SubscriptionWish,
    Task,
    TaskChange,
    Unreadable,
)
from anp.interaction.errors import InteractionError
from anp.interaction.states import is_pause, is_terminal
from anp.sidecar.tasks.known import KnownTask, NoTask
from anp.sidecar.tasks.sessions import Sessions

RECENT = 200
"Newest events of a session in which the newest messages of a task are looked for."

MAX_ARTIFACT = 64 * 1024 * 1024
"Bytes of one binary content; what is put together has no more."


@dataclass(frozen=True, slots=True)
class ContentPlace:
    """The place at which a content begins: its number in the paths of the local API."""

    event: int
    "Number of the event in its session."

    part: int
    "Index of the part in the message, from 0; in a new task, in all its messages."

    @classmethod
    def read(cls, text: str) -> ContentPlace:
        """Return the place of `12.0`; UnknownError if it is none."""
        event, _, part = text.partition(".")
        if not all(one.isascii() and one.isdigit() for one in (event, part)):
            raise UnknownError(f"there is no content {text[:40]}")
        return cls(int(event[:12]), int(part[:6]))

    def __str__(self) -> str:
        return f"{self.event}.{self.part}"


@dataclass(frozen=True, slots=True)
class Told:
    """An event with what is needed to show it by itself."""

    event: SessionEvent

    begun: ContentPlace | None = None
    """The place at which the content of the first part began, when it goes on with that
    of an earlier chunk; None when it begins here."""


@dataclass(slots=True)
class _Begun:
    """The contents that go on, by the ids of their messages."""

    places: dict[str, ContentPlace] = field(default_factory=dict)

    due: dict[str, int] = field(default_factory=dict)
    "The chunk of each message that comes next."

    held: dict[str, dict[int, int]] = field(default_factory=dict)
    "Events with chunks that came before their turn, by message and chunk."

    def next_of(self, event: SessionEvent, chunk: Chunk, name: str) -> list[int] | None:
        """Return the events whose chunks follow this one; None if it has to wait."""
        due, held = self.due.get(name, 0), self.held.setdefault(name, {})
        if chunk.index > due:
            held[chunk.index] = event.number
            return None
        found = []
        due = chunk.index + 1
        while due in held:
            found.append(held.pop(due))
            due += 1
        self.due[name] = due
        return found

    def take(self, event: SessionEvent) -> ContentPlace | None:
        """Return where the first part of an event began, and note what goes on."""
        message = event.content
        if not isinstance(message, Message) or message.chunk is None:
            return None
        begun = self.places.pop(message.id, None)
        last = len(message.parts) - 1
        if message.parts[last].continued:
            is_same = last == 0 and begun is not None
            place = begun if is_same else None
            self.places[message.id] = place or ContentPlace(event.number, last)
        return begun


class Chronicle:
    """Reads what is stored about tasks; see `watch` and `content`."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def watch(
        self, log: str, task: KnownTask | None = None, *, after: int = 0
    ) -> AsyncIterator[Told]:
        """Yield the events of a session, or of one task, and wait for new ones.

        Those of a task end with its end, those of a session when it is deleted or the
        daemon stops. Nothing is held for who reads slowly: the log is read again.

        Args:
            log: Our own id of the session.
            after: Only events with higher numbers.
        """
        self._sessions.watchers += 1
        try:
            async for told in self._watch(log, task, after):
                yield told
        finally:
            self._sessions.watchers -= 1

    async def _watch(
        self, log: str, task: KnownTask | None, after: int
    ) -> AsyncIterator[Told]:
        begun, knows_before = _Begun(), after == 0
        name = None if task is None else task.task.id
        async for event in self._events(log, after, live=_is_open(task)):
            if name is not None and task_of(event.content) != name:
                continue
            message = event.content
            if isinstance(message, Message) and message.chunk is not None:
                if not knows_before:
                    # The watcher has chunks of earlier events, or they waited there.
                    knows_before = True
                    await self._look_back(log, after, begun)
                whole = await self._in_turn(log, event, begun)
                if whole is not None:
                    yield Told(whole, begun.take(whole))
                continue
            yield Told(event, begun.take(event))
            if name is not None and is_end(event.content):
                return

    async def _in_turn(
        self, log: str, event: SessionEvent, begun: _Begun
    ) -> SessionEvent | None:
        """Return an event with a chunk, and with those after it that came before it.

        It is None if it has to wait itself: a peer may send chunks in any order.
        """
        message = event.content
        assert isinstance(message, Message)
        assert message.chunk is not None
        others = begun.next_of(event, message.chunk, message.id)
        if others is None:
            return None
        last, parts = message, [*message.parts]
        for number in others:
            for other in await self._sessions.events(log, after=number - 1, limit=1):
                assert isinstance(other.content, Message)
                last = other.content
                parts += last.parts
        if last is message:
            return event
        joined = [*join_parts(parts)]
        joined[-1] = replace(joined[-1], continued=parts[-1].continued)
        assert last.chunk is not None
        chunk = replace(message.chunk, last=last.chunk.last)
        whole = replace(last, parts=tuple(joined), chunk=chunk)
        return replace(event, content=whole)

    async def said(
        self, log: str, task: str, *, by: SenderRole | None = None
    ) -> list[Message]:
        """Return what was said about a task after its creation, whole messages only.

        Args:
            task: Its id on the wire.
            by: Only messages of this side.
        """
        found: dict[str, list[Message]] = {}
        async for event in self._events(log, 0, live=False):
            one = event.content
            if not isinstance(one, Message) or one.task != task:
                continue
            if by in (None, one.role):
                found.setdefault(one.id, []).append(one)
        return [one for pieces in found.values() for one in _whole(pieces)]

    async def newest(self, task: KnownTask, *, most: int) -> tuple[list[Told], int]:
        """Return the newest messages of a task, and the last number of its session."""
        last = (await self._sessions.conversation(task.log)).last
        begun, found = _Begun(), []
        async for event in self._events(task.log, max(0, last - RECENT), live=False):
            if task_of(event.content) != task.task.id:
                continue
            if isinstance(event.content, Message):
                found.append(Told(event, begun.take(event)))
        return found[-most:], last

    async def wait(
        self,
        items: Sequence[str],
        *,
        states: Collection[str] = (),
        any_of: bool = False,
        timeout: float,
    ) -> tuple[bool, list[KnownTask]]:
        """Wait until tasks have ended.

        Args:
            items: Our own ids of them.
            states: States besides the final ones in which a task is waited for no more.
            any_of: One of them is enough.
            timeout: Seconds.

        Returns:
            True if it came to that, and the tasks as they are now.

        Raises:
            NoTask: There is none of an id.
        """
        enough = any if any_of else all
        tasks = [await self._task(item) for item in items]
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                logs = {one.log for one in tasks}
                async for _ in self._sessions.watching.changes(logs):
                    tasks = [await self._task(item) for item in items]
                    now = [one.task.state for one in tasks]
                    if enough(is_terminal(one) or one in states for one in now):
                        return True, tasks
        return False, tasks

    async def _task(self, item: str) -> KnownTask:
        found = await self._sessions.task(item)
        if found is None:
            raise NoTask(f"task {item[:80]}")
        return found

    async def content(self, task: KnownTask, place: ContentPlace) -> Part:
        """Return the whole content that begins at a place, or what announces a file.

        Raises:
            UnknownError: None begins there, a piece is missing yet, or it is too long.
        """
        first: Message | None = None
        pieces: dict[int, Message] = {}
        async for event in self._events(task.log, place.event - 1, live=False):
            message = event.content
            if first is None:
                first = _message_at(event, task, place)
                if first is None:
                    break
            elif not isinstance(message, Message) or message.id != first.id:
                continue
            if isinstance(message, Message) and message.chunk is not None:
                pieces[message.chunk.index] = message
            with suppress(LookupError):
                return _join(first, place.part, pieces)
        if first is not None and first.chunk is not None:
            # Chunks may come in any order, and so before the first one.
            async for event in self._before(task.log, place.event, first.id):
                assert isinstance(event.content, Message)
                assert event.content.chunk is not None
                pieces[event.content.chunk.index] = event.content
            with suppress(LookupError):
                return _join(first, place.part, pieces)
        raise UnknownError(f"there is no content {place} in this task")

    async def _look_back(self, log: str, until: int, begun: _Begun) -> None:
        """Take note of the chunks up to an event."""
        async for event in self._before(log, until + 1):
            whole = await self._in_turn(log, event, begun)
            if whole is not None:
                begun.take(whole)

    async def _before(
        self, log: str, number: int, message: str = ""
    ) -> AsyncIterator[SessionEvent]:
        """Yield the chunks of a message, or of all, that came before an event."""
        async for event in self._events(log, 0, live=False):
            if event.number >= number:
                return
            content = event.content
            if (
                isinstance(content, Message)
                and message in ("", content.id)
                and content.chunk is not None
            ):
                yield event

    async def _events(
        self, log: str, after: int, *, live: bool
    ) -> AsyncIterator[SessionEvent]:
        if live:
            with suppress(InteractionError):
                async for event in self._sessions.watch(log, after=after):
                    yield event
            return
        while events := await self._sessions.events(log, after=max(0, after)):
            for event in events:
                yield event
            after = events[-1].number


def task_of(content: EventContent) -> str:
    """Return the id on the wire of the task that an event is about, or nothing."""
    match content:
        case Task(id=name):
            return name
        case Session() | Unreadable() | SubscriptionWish():
            return ""
    return content.task


def is_end(content: EventContent) -> bool:
    """Return whether an event is the end of its task."""
    return isinstance(content, TaskChange) and is_terminal(content.state)


def question_in(task: KnownTask, newest: list[Told]) -> Message | None:
    """Return the question that a task waits with, or None."""
    if not is_pause(task.task.state):
        return None
    for told in reversed(newest):
        message = told.event.content
        assert isinstance(message, Message)
        if told.event.by != task.task.executor:
            continue
        if message.purpose is not MessagePurpose.RESULT:
            return message
    return None


def _is_open(task: KnownTask | None) -> bool:
    return task is None or not is_terminal(task.task.state)


def _message_at(
    event: SessionEvent, task: KnownTask, place: ContentPlace
) -> Message | None:
    message = event.content
    if isinstance(message, Task) and message.messages:
        # The request: its messages are whole, and are read as one.
        parts = [part for one in message.messages for part in one.parts]
        message = replace(message.messages[0], parts=tuple(parts))
    if (
        event.number != place.event
        or not isinstance(message, Message)
        or message.task != task.task.id
        or place.part >= len(message.parts)
    ):
        return None
    return message


def _join(first: Message, part: int, pieces: dict[int, Message]) -> Part:
    """Return the part when all its pieces are there; LookupError until then."""
    found = [first.parts[part]]
    if found[0].is_file:
        return found[0]
    if found[0].kind is not PartKind.BYTES:
        raise UnknownError("that content is no bytes; the event has it itself")
    index = 0 if first.chunk is None else first.chunk.index
    is_last = part == len(first.parts) - 1
    while found[-1].continued and is_last:
        index += 1
        message = pieces[index]
        found.append(message.parts[0])
        is_last = len(message.parts) == 1
    if (
        sum(len(p.content) for p in found if isinstance(p.content, bytes))
        > MAX_ARTIFACT
    ):
        raise UnknownError("that content is too long")
    return replace(next(join_parts(found)), continued=False)


def _whole(pieces: list[Message]) -> Iterator[Message]:
    """Yield the message that its chunks are, if all of them are there."""
    placed = {0 if one.chunk is None else one.chunk.index: one for one in pieces}
    last = placed[max(placed)]
    if last.chunk is None:
        yield last
    elif last.chunk.last and len(placed) == last.chunk.index + 1:
        parts = [part for index in sorted(placed) for part in placed[index].parts]
        yield replace(last, parts=tuple(join_parts(parts)), chunk=None)


async def created(sessions: Sessions, log: str, name: str) -> Task | None:
    """Return a task as it was created, with its messages; None if that is gone."""
    async for content in _contents(sessions, log):
        if isinstance(content, Task) and content.id == name:
            return content
    return None


async def results(sessions: Sessions, log: str, name: str) -> list[Message]:
    """Return the messages with the results of a task."""
    return [
        content
        async for content in _contents(sessions, log)
        if isinstance(content, Message)
        and content.task == name
        and content.purpose is MessagePurpose.RESULT
    ]


async def _contents(sessions: Sessions, log: str) -> AsyncIterator[EventContent]:
    after = 0
    while events := await sessions.events(log, after=after):
        for event in events:
            yield event.content
        after = events[-1].number
