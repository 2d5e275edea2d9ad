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
from collections.abc import AsyncGenerator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final

from anp.interaction.elements import (
    Message,
    MessagePurpose,
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
    SendParams,
    TaskUpdate,
)
from anp.protocols.a2a.view import A2aView
from anp.protocols.a2a.words import A2aError, A2aFault, same_state
from anp.sidecar.a2a.callers import A2aCaller
from anp.sidecar.tasks.choice import read_reach
from anp.sidecar.tasks.known import KnownTask
from anp.sidecar.tasks.service import TaskService
from sandbox.pool.shares import current_share

__all__ = ["A2aDesk", "made_of"]

MAX_VIEWS: Final = 256
"Tasks of which the view stays in memory."

CANCEL_WAIT: Final = 5.0
"Seconds for which an answer waits for the end of a task that is cancelled."

PAGE: Final = 200
"Events that are read from a log at a time."


@dataclass(slots=True)
class _Seen:
    """A view, and the number of the newest event in it."""

    view: A2aView
    number: int = 0


@dataclass(frozen=True, slots=True)
class _Begun:
    """A task that took a message, and the newest event before that."""

    known: KnownTask
    before: int

    is_repeat: bool = False
    "The message came before, so that nothing follows from it."


class A2aDesk(ABC):
    """Does for a caller what it may with its own tasks."""

    def __init__(self, tasks: TaskService) -> None:
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
        known = await self._mine(caller, task)
        if is_terminal(known.task.state):
            raise A2aError(A2aFault.UNSUPPORTED_OPERATION, "the task has ended")
        seen = await self._seen(known)
        return self._updates(_Begun(known, seen.number))

    async def get(self, caller: A2aCaller, task: str) -> A2aTask:
        """Return a task."""
        return (await self._seen(await self._mine(caller, task))).view.task

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
            tasks=tuple([(await self._seen(known)).view.task for known in page]),
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
        known = await self._mine(caller, task)
        if is_terminal(known.task.state):
            raise A2aError(A2aFault.TASK_NOT_CANCELABLE)
        seen = await self._seen(known)
        await self._end(caller, known)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_WAIT):
                async with contextlib.aclosing(
                    self._follow(_Begun(known, seen.number))
                ) as updates:
                    async for view, _ in updates:
                        if view.is_over:
                            break
        return (await self._seen(known)).view.task

    # Starting and going on.

    async def _begin(self, caller: A2aCaller, params: SendParams) -> _Begun:
        current_share.set(caller.share)
        # Judged here, where its sender can be told.
        read_intents(params.message.metadata)
        if params.message.task:
            return await self._go_on(caller, params.message)
        return await self._start(caller, params.message, params.output_modes)

    async def _start(
        self, caller: A2aCaller, message: A2aMessage, modes: Sequence[str]
    ) -> _Begun:
        # The same message again is the same task, not a second one (A2A-Q4).
        name = made_of(caller.id, message.id, "task")
        context = message.context or made_of(caller.id, message.id, "context")
        log = await self._session(caller, context)
        conversation = await self._sessions.conversation(log)
        before = conversation.last
        session = conversation.session
        is_repeat = name in conversation.tasks
        task = Task(
            id=name,
            session=session.id,
            requester=session.requester.id,
            executor=session.participants[0].id,
            messages=(_message(message, session, name),),
            extra=caller.reach.to_extra(),
        )
        await self._create(caller, log, task, modes=modes, is_repeat=is_repeat)
        item = await self._sessions.item_of(log, name)
        return _Begun(await self._tasks.task(item), before, is_repeat)

    async def _go_on(self, caller: A2aCaller, message: A2aMessage) -> _Begun:
        known = await self._mine(caller, message.task)
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
        sent = _message(message, conversation.session, known.task.id)
        await self._post(caller, known, sent)
        return _Begun(known, before, is_repeat=conversation.last == before)

    async def _mine(self, caller: A2aCaller, task: str) -> KnownTask:
        known = await self._sessions.task(task)
        # Of another's task nobody learns even that it is there.
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
    async def _session(self, caller: A2aCaller, context: str) -> str:
        """Return our own id of the session of a `contextId`; it may be a new one."""

    @abstractmethod
    async def _create(
        self,
        caller: A2aCaller,
        log: str,
        task: Task,
        *,
        modes: Sequence[str],
        is_repeat: bool,
    ) -> None:
        """Make a task; one of the same id has to be the same."""

    @abstractmethod
    async def _post(self, caller: A2aCaller, known: KnownTask, sent: Message) -> None:
        """Send a message about a task."""

    @abstractmethod
    async def _end(self, caller: A2aCaller, known: KnownTask) -> None:
        """Ask for the end of a task."""

    # What is seen of a task.

    async def _seen(self, known: KnownTask) -> _Seen:
        """Return a task with everything that is stored of it."""
        seen = self._views.pop(known.id, None) or _Seen(await self._view(known))
        while events := await self._sessions.events(
            known.log, after=seen.number, limit=PAGE
        ):
            for event in events:
                for _ in seen.view.take(event):
                    pass
            seen.number = events[-1].number
        self._views[known.id] = seen
        while len(self._views) > MAX_VIEWS:
            self._views.popitem(last=False)
        return seen

    async def _updates(self, begun: _Begun) -> AsyncGenerator[TaskUpdate, None]:
        is_first = True
        async with contextlib.aclosing(self._follow(begun)) as following:
            async for view, update in following:
                if is_first:
                    is_first = False
                    yield view.task
                if update is not None:
                    yield update

    async def _follow(
        self, begun: _Begun
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

    async def _until(self, begun: _Begun) -> _Seen:
        """Return a task as it was up to an event, its creation included."""
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
        return A2aView(known.id, await self._context(known), name=known.task.id)


def _is_within(caller: A2aCaller, known: KnownTask) -> bool:
    """Return whether a task is one of the agent that a caller speaks to."""
    return caller.agent in ("", read_reach(known.task.extra).agent)


def _message(message: A2aMessage, session: Session, task: str) -> Message:
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


def made_of(*names: str) -> str:
    """Return a UUID that is the same for the same names."""
    text = "\0".join(names).encode("utf-8", "surrogatepass")
    return str(uuid.UUID(bytes=hashlib.sha256(text).digest()[:16], version=5))
