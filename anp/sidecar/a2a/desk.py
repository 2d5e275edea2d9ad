"""The operations of A2A for its callers, over the sessions of this daemon.

So a task of a caller has the same log, states and limits as any other. `OwnDesk` has
this daemon do the tasks, `PeerDesk` has a peer do them.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import uuid
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Final

from anp.interaction.elements import (
    FILE_URN,
    Message,
    MessagePurpose,
    PartKind,
    SenderRole,
    Session,
    Task,
)
from anp.interaction.states import is_terminal
from anp.protocols.a2a.intents import read_intents
from anp.protocols.a2a.objects import (
    A2aMessage,
    A2aPage,
    A2aTask,
    ListParams,
    PushConfig,
    SendParams,
    TaskUpdate,
)
from anp.protocols.a2a.view import A2aView
from anp.protocols.a2a.words import A2aError, A2aFault, same_state
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.push import PushDesk
from anp.sidecar.files.sealed_file import BLOCK
from anp.sidecar.files.spool import KeptFile
from anp.sidecar.files.transfers import FileFailed
from anp.sidecar.tasks.choice import Choice, read_reach
from anp.sidecar.tasks.chronicle import task_of
from anp.sidecar.tasks.known import KnownTask, event_in
from anp.sidecar.tasks.service import TaskService
from sandbox.pool.shares import current_share

MAX_VIEWS: Final = 256
"Tasks of which the view stays in memory."

MAX_WEIGHT: Final = 32 * 1024 * 1024
"Bytes in the log of all that these views show."

CANCEL_WAIT: Final = 5.0
"Seconds for which an answer waits for the end of a task that is cancelled."

FILE_WAIT: Final = 20.0
"Seconds for which a request waits for a file that is on its way here."

PAGE: Final = 200
"Events that are read from a log at a time."


@dataclass(slots=True)
class _Seen:
    """A view, the number of the newest event in it, and the bytes of its own events."""

    view: A2aView
    number: int = 0
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Begun:
    """A task that took a message, and the newest event before that."""

    known: KnownTask
    before: int

    is_repeat: bool = False
    "The message came before, so that nothing follows from it."


class A2aDesk(ABC):
    """Does for a caller what it may with its own tasks."""

    def __init__(
        self, tasks: TaskService, pushes: PushDesk | None = None, *, files: str = ""
    ) -> None:
        """Make the desk.

        Args:
            pushes: Brings updates to addresses; None when that is not offered.
            files: As for `A2aView`.
        """
        self._files = files
        self.pushes = pushes
        self._tasks = tasks
        self._sessions = tasks.sessions
        self._views: OrderedDict[str, _Seen] = OrderedDict()

    # The methods of A2A. All raise `A2aError`.

    async def send(self, caller: A2aCaller, params: SendParams) -> A2aTask:
        """Start a task or go on with one; return it when it rests, or at once."""
        begun = await self._begin(caller, params)
        if not params.is_blocking:
            return (await self._seen(begun.known)).view.task
        task: A2aTask | None = None
        async with contextlib.aclosing(self._follow(begun)) as updates:
            async for view, _ in updates:
                task = view.task
        # The stream ends without rest only when the daemon stops.
        return task or (await self._seen(begun.known)).view.task

    async def stream(
        self, caller: A2aCaller, params: SendParams
    ) -> AsyncGenerator[TaskUpdate, None]:
        """Start a task or go on with one; yield it, then what happens in it."""
        begun = await self._begin(caller, params)
        return self._updates(begun)

    async def subscribe(
        self, caller: A2aCaller, task: str
    ) -> AsyncGenerator[TaskUpdate, None]:
        """Yield a task as it is, and then what happens in it."""
        known = await self.mine(caller, task)
        if is_terminal(known.task.state):
            raise A2aError(A2aFault.UNSUPPORTED_OPERATION, "the task has ended")
        seen = await self._seen(known)
        return self._updates(Begun(known, seen.number))

    async def get(self, caller: A2aCaller, task: str) -> A2aTask:
        """Return a task."""
        return (await self._seen(await self.mine(caller, task))).view.task

    async def list(self, caller: A2aCaller, wanted: ListParams) -> A2aPage:
        """Return a page of the tasks of a caller, newest first."""
        found = [
            known
            async for known in self._all(caller)
            if self._is_wanted(caller, known, wanted) and _is_within(caller, known)
        ]
        token = wanted.page_token
        rest = [known for known in found if not token or known.id < token]
        page = rest[: wanted.page_size]
        return A2aPage(
            tasks=tuple(seen.view.task for seen in await self._all_seen(page)),
            next_token=page[-1].id if len(rest) > len(page) else "",
            total=len(found),
        )

    async def _all(self, caller: A2aCaller) -> AsyncGenerator[KnownTask, None]:
        before = ""
        while page := await self._sessions.tasks(
            before=before, limit=PAGE, owner=caller.id
        ):
            for known in page:
                yield known
            before = page[-1].id

    def _is_wanted(
        self, caller: A2aCaller, known: KnownTask, wanted: ListParams
    ) -> bool:
        task = known.task
        since = wanted.changed_since
        context = wanted.context
        return (
            (not context or task.session == self._session_id(caller, context))
            and (not wanted.state or same_state(task.state, wanted.state))
            and (since is None or (task.changed_at or since) >= since)
        )

    async def cancel(self, caller: A2aCaller, task: str) -> A2aTask:
        """Ask for the end of a task; return it as it is soon after."""
        known = await self.mine(caller, task)
        if is_terminal(known.task.state):
            raise A2aError(A2aFault.TASK_NOT_CANCELABLE)
        seen = await self._seen(known)
        await self._end(caller, known)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_WAIT):
                async with contextlib.aclosing(
                    self._follow(Begun(known, seen.number))
                ) as updates:
                    async for view, _ in updates:
                        if view.is_over:
                            break
        return (await self._seen(known)).view.task

    async def file(self, caller: A2aCaller, task: str, name: str) -> KeptFile:
        """Return a file of a task, when all of it is here.

        Args:
            name: The file's URI without `FILE_URN`.
        """
        known = await self.mine(caller, task)
        files = self._tasks.files
        kept = files.spool.find(known.log, known.task.id, f"{FILE_URN}{name}")
        if kept is None:
            raise A2aError(A2aFault.TASK_NOT_FOUND, "the task has no such file")
        try:
            async with asyncio.timeout(FILE_WAIT):
                await files.whole(kept)
        except TimeoutError:
            raise A2aError(A2aFault.TOO_MANY, "the file is on its way here") from None
        except FileFailed as exc:
            words = "the file did not come"
            raise A2aError(A2aFault.TASK_NOT_FOUND, words) from exc
        return kept

    async def blocks(self, kept: KeptFile) -> AsyncGenerator[memoryview, None]:
        """Yield the content of a file that is here."""
        spool = self._tasks.files.spool
        for offset in range(0, kept.size, BLOCK):
            yield await asyncio.to_thread(spool.read, kept, offset, BLOCK)

    # Starting and going on.

    async def _begin(self, caller: A2aCaller, params: SendParams) -> Begun:
        current_share.set(caller.share)
        if params.push is not None:
            await self._pushes.check(caller, params.push)
        message = params.message
        # Judged here, where its sender can be told.
        read_intents(message.metadata)
        if message.task:
            begun = await self._go_on(caller, message)
        else:
            begun = await self._start(caller, message, params.output_modes)
        if params.push is not None:
            await self._set_push(caller, begun, params.push)
        return begun

    @property
    def _pushes(self) -> PushDesk:
        if self.pushes is None:
            raise A2aError(A2aFault.PUSH_NOTIFICATION_NOT_SUPPORTED)
        return self.pushes

    async def _set_push(
        self, caller: A2aCaller, begun: Begun, config: PushConfig
    ) -> None:
        # A message that came before may have been cut off before its address was kept.
        if begun.is_repeat and await self._pushes.has(begun.known, config.id):
            return
        after = 0 if begun.is_repeat else begun.before
        await self._pushes.set(caller, begun.known, config, after=after)

    async def newest(self, known: KnownTask) -> int:
        """Return the number of the newest event in the session of a task."""
        return (await self._sessions.conversation(known.log)).last

    async def _begun(self, known: KnownTask, before: int, is_repeat: bool) -> Begun:
        """Return a task that took its first message."""
        if not is_repeat and known.id not in self._views:
            # What came before says nothing about it.
            self._views[known.id] = _Seen(await self._view(known), before)
        return Begun(known, before, is_repeat)

    async def _go_on(self, caller: A2aCaller, message: A2aMessage) -> Begun:
        known = await self.mine(caller, message.task)
        session = known.task.session
        if message.context and self._session_id(caller, message.context) != session:
            raise A2aError(
                A2aFault.PARAMS, "message.contextId: is not that of the task"
            )
        if is_terminal(known.task.state):
            raise A2aError(
                A2aFault.UNSUPPORTED_OPERATION, "the task has ended; begin another"
            )
        conversation = await self._sessions.conversation(known.log)
        before = conversation.last
        sent = message_of(message, conversation.session, known.task.id)
        await self._post(caller, known, sent)
        return Begun(known, before, is_repeat=conversation.last == before)

    async def mine(self, caller: A2aCaller, task: str) -> KnownTask:
        """Return a task of a caller; of another's it learns not even that it is."""
        known = await self._sessions.task(task)
        if (
            known is None
            or not await self._is_of(caller, known)
            or not _is_within(caller, known)
        ):
            raise A2aError(A2aFault.TASK_NOT_FOUND)
        return known

    # The two kinds of desk differ in these.

    @abstractmethod
    def _session_id(self, caller: A2aCaller, context: str) -> str:
        """Return the id on the wire of the session of a `contextId`."""

    @abstractmethod
    async def _context(self, known: KnownTask) -> str:
        """Return the `contextId` of a task."""

    @abstractmethod
    async def _is_of(self, caller: A2aCaller, known: KnownTask) -> bool:
        """Return whether a task is one of a caller's."""

    @abstractmethod
    async def _start(
        self, caller: A2aCaller, message: A2aMessage, modes: Sequence[str]
    ) -> Begun:
        """Start a task; the same message again is the same task (A2A-Q4)."""

    @abstractmethod
    async def _post(self, caller: A2aCaller, known: KnownTask, sent: Message) -> None:
        """Send a message about a task."""

    @abstractmethod
    async def _end(self, caller: A2aCaller, known: KnownTask) -> None:
        """Ask for the end of a task."""

    # What is seen of a task.

    async def _seen(self, known: KnownTask) -> _Seen:
        """Return a task with everything that is stored of it."""
        (seen,) = await self._all_seen([known])
        return seen

    async def _all_seen(self, wanted: Sequence[KnownTask]) -> Sequence[_Seen]:
        """Return tasks with everything that is stored of them; a log is read once."""
        found: dict[str, _Seen] = {}
        of_logs: dict[str, dict[str, _Seen]] = {}
        for known in wanted:
            seen = self._views.pop(known.id, None) or _Seen(await self._view(known))
            found[known.id] = seen
            if not seen.view.is_over:
                of_logs.setdefault(known.log, {})[known.task.id] = seen
        for log, views in of_logs.items():
            await self._read(log, views)
        self._views.update(found)
        weight = sum(one.weight for one in self._views.values())
        while len(self._views) > MAX_VIEWS or weight > MAX_WEIGHT:
            _, gone = self._views.popitem(last=False)
            weight -= gone.weight
        return list(found.values())

    async def _read(self, log: str, views: Mapping[str, _Seen]) -> None:
        """Show the views of tasks of one session, by their names, what they lack."""
        after = min(one.number for one in views.values())
        while rows := await self._sessions.stored(log, after=after, limit=PAGE):
            after = rows[-1].number
            for row in rows:
                event = event_in(row)
                seen = views.get(task_of(event.content))
                if seen is not None and row.number > seen.number:
                    seen.weight += len(row.content)
                    for _ in seen.view.take(event):
                        pass
        for seen in views.values():
            seen.number = max(seen.number, after)

    async def _updates(self, begun: Begun) -> AsyncGenerator[TaskUpdate, None]:
        is_first = True
        async with contextlib.aclosing(self._follow(begun)) as following:
            async for view, update in following:
                if is_first:
                    is_first = False
                    yield view.task
                if update is not None:
                    yield update

    async def _follow(
        self, begun: Begun
    ) -> AsyncGenerator[tuple[A2aView, TaskUpdate | None], None]:
        """Yield the view before anything new, then with each update, until it rests."""
        seen = await self._until(begun)
        view = copy(seen.view)
        yield view, None
        if begun.is_repeat and view.is_at_rest:
            return
        async for event in self._tasks.watch(begun.known.log, after=seen.number):
            for update in view.take(event):
                yield view, update
            if view.is_at_rest:
                return

    async def _until(self, begun: Begun) -> _Seen:
        """Return a task as it was up to an event, its creation included."""
        kept = self._views.get(begun.known.id)
        if kept is not None and kept.number <= begun.before:
            seen = _Seen(copy(kept.view), kept.number)
        else:
            seen = _Seen(await self._view(begun.known))
        while events := await self._sessions.events(
            begun.known.log, after=seen.number, limit=PAGE
        ):
            for event in events:
                if event.number > begun.before and seen.view.is_known:
                    return seen
                for _ in seen.view.take(event):
                    pass
                seen.number = event.number
        return seen

    async def _view(self, known: KnownTask) -> A2aView:
        return A2aView(
            known.id, await self._context(known), name=known.task.id, files=self._files
        )


def _is_within(caller: A2aCaller, known: KnownTask) -> bool:
    """Return whether a task is one of the agent that a caller speaks to."""
    return caller.agent in ("", read_reach(known.task.extra).agent)


def message_of(message: A2aMessage, session: Session, task: str) -> Message:
    """Return a message of A2A as one of a session's requester."""
    return Message(
        id=message.id,
        session=session.id,
        task=task,
        sender=session.requester.id,
        role=SenderRole.REQUESTER,
        purpose=MessagePurpose.COMMUNICATION,
        parts=message.parts,
        metadata=message.metadata,
    )


def named(task: Task, chosen: Choice) -> Task:
    """Return a new task of one message with the capability that the message names."""
    (first,) = task.messages
    is_made = chosen.parts != first.parts
    files = (PartKind.BYTES, PartKind.URI)
    said = [one for one in first.parts if one.kind not in files] if is_made else ()
    return replace(
        task,
        capability=chosen.capability,
        messages=(replace(first, parts=chosen.parts),),
        said=tuple(said),
    )


def made_of(*names: str) -> str:
    """Return a UUID that is the same for the same names."""
    text = "\0".join(names).encode("utf-8", "surrogatepass")
    return str(uuid.UUID(bytes=hashlib.sha256(text).digest()[:16], version=5))
