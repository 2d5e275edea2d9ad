"""The operations of A2A for its callers, over the sessions of this daemon.

A caller is the requester of its sessions; the agent is this daemon's. So a task of a
caller has the same log, states, limits and gate as one of a peer.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Final

from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Party,
    SenderRole,
    Session,
    Task,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import MessageSend, Operation, TaskCancel, TaskCreate
from anp.interaction.states import is_terminal
from anp.protocols.a2a.intents import read_intents
from anp.protocols.a2a.modes import input_modes, is_taken, output_modes, takes_files
from anp.protocols.a2a.objects import (
    A2aMessage,
    A2aTask,
    ListParams,
    SendParams,
    TaskPage,
    TaskUpdate,
)
from anp.protocols.a2a.view import TaskView
from anp.protocols.a2a.words import A2aError, A2aFault, same_state
from anp.sidecar.a2a.callers import A2aCaller
from anp.sidecar.tasks.choice import Choice, read_reach
from anp.sidecar.tasks.known import KnownTask
from anp.sidecar.tasks.service import TaskService
from anp.sidecar.tasks.sessions import utc_now
from sandbox.pool.shares import current_share

__all__ = ["A2aDesk"]

MAX_VIEWS: Final = 256
"Tasks of which the view stays in memory."

CANCEL_WAIT: Final = 5.0
"Seconds for which an answer waits for the end of a task that is cancelled."

PAGE: Final = 200
"Events that are read from a log at a time."


@dataclass(slots=True)
class _Seen:
    """A view, and the number of the newest event in it."""

    view: TaskView
    number: int = 0


@dataclass(frozen=True, slots=True)
class _Begun:
    """A task that took a message, and the newest event before that."""

    known: KnownTask
    before: int

    is_repeat: bool = False
    "The message came before, so that nothing follows from it."


class A2aDesk:
    """Does for a caller what it may: its own tasks, and what is exposed to it."""

    def __init__(self, tasks: TaskService, own: str) -> None:
        """Make the desk.

        Args:
            own: Our canonical DID, the executor of all these tasks.
        """
        self._tasks = tasks
        self._sessions = tasks.sessions
        self._own = own
        self._skills = tasks.desk.skills
        self._views: OrderedDict[str, _Seen] = OrderedDict()
        self._refs = 0

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

    async def list(self, caller: A2aCaller, wanted: ListParams) -> TaskPage:
        """Return a page of the tasks of a caller, newest first."""
        found = [
            known
            async for known in self._all(caller)
            if self._is_wanted(known, wanted) and _is_within(caller, known)
        ]
        token = wanted.page_token
        rest = [known for known in found if not token or known.id < token]
        page = rest[: wanted.page_size]
        return TaskPage(
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

    @staticmethod
    def _is_wanted(known: KnownTask, wanted: ListParams) -> bool:
        task = known.task
        since = wanted.changed_since
        return (
            (not wanted.context or task.session == wanted.context)
            and (not wanted.state or same_state(task.state, wanted.state))
            and (since is None or (task.changed_at or since) >= since)
        )

    async def cancel(self, caller: A2aCaller, task: str) -> A2aTask:
        """Ask for the end of a task; return it as it is soon after."""
        known = await self._mine(caller, task)
        if is_terminal(known.task.state):
            raise A2aError(A2aFault.TASK_NOT_CANCELABLE)
        seen = await self._seen(known)
        session = known.task.session
        await self._apply(
            caller, known.log, TaskCancel(session=session, task=known.task.id)
        )
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
        if params.message.task:
            return await self._go_on(caller, params.message)
        return await self._start(caller, params.message, params.output_modes)

    async def _start(
        self, caller: A2aCaller, message: A2aMessage, modes: Sequence[str]
    ) -> _Begun:
        # The same message again is the same task, not a second one (A2A-Q4).
        name = str(_made_of(caller.id, message.id, "task"))
        context = message.context or str(_made_of(caller.id, message.id, "context"))
        log = await self._session(caller, context)
        conversation = await self._sessions.conversation(log)
        before = conversation.last
        first = _message(message, caller, session=context, task=name)
        task = Task(
            id=name,
            session=context,
            requester=caller.id,
            executor=self._own,
            messages=(first,),
            extra=caller.reach.to_extra(),
        )
        chosen = self._skills.named(caller.id, [first], caller.reach)
        if isinstance(chosen, Choice):
            self._check_modes(caller, chosen, message, modes)
            # Named at once; all else is found out while the task is at work.
            task = replace(
                task,
                capability=chosen.capability,
                messages=(replace(first, parts=chosen.parts),),
            )
        is_repeat = name in conversation.tasks
        if not is_repeat:
            self._check_room(caller)
        await self._apply(caller, log, TaskCreate(task=task))
        item = await self._sessions.item_of(log, name)
        return _Begun(await self._tasks.task(item), before, is_repeat)

    def _check_modes(
        self,
        caller: A2aCaller,
        chosen: Choice,
        message: A2aMessage,
        modes: Sequence[str],
    ) -> None:
        """Check that skill and caller take each other's media types, before it runs."""
        offered = self._skills.offered(caller.id, caller.reach)
        skill = next(one for one in offered if one.name == chosen.capability)
        taken, given = input_modes(skill), output_modes(skill)
        text = ""
        if not is_taken(given, modes):
            text = f"{skill.name} answers with {', '.join(given)}"
        elif not takes_files(taken, message.parts):
            text = f"{skill.name} takes {', '.join(taken)}"
        if text:
            raise A2aError(A2aFault.CONTENT_TYPE_NOT_SUPPORTED, text[:300])

    def _check_room(self, caller: A2aCaller) -> None:
        try:
            self._sessions.room.check()
            self._tasks.desk.check_room(caller.share)
        except InteractionError as exc:
            raise refused(exc) from exc

    async def _session(self, caller: A2aCaller, context: str) -> str:
        found = await self._sessions.find(caller.id, context)
        if found is not None:
            return found
        self._sessions.room.check()
        session = Session(
            id=context,
            requester=Party(id=caller.id, reads_log=True),
            participants=(Party(id=self._own),),
        )
        return await self._sessions.join(
            session, own=self._own, sender=caller.id, ref=self._ref()
        )

    async def _go_on(self, caller: A2aCaller, message: A2aMessage) -> _Begun:
        known = await self._mine(caller, message.task)
        if message.context and message.context != known.task.session:
            raise A2aError(
                A2aFault.PARAMS, "message.contextId: is not that of the task"
            )
        if is_terminal(known.task.state):
            raise A2aError(
                A2aFault.UNSUPPORTED_OPERATION, "the task has ended; begin another"
            )
        # Judged here, where its sender can be told.
        read_intents(message.metadata)
        conversation = await self._sessions.conversation(known.log)
        before = conversation.last
        sent = _message(message, caller, session=known.task.session, task=known.task.id)
        await self._apply(caller, known.log, MessageSend(message=sent))
        return _Begun(known, before, is_repeat=conversation.last == before)

    async def _apply(self, caller: A2aCaller, log: str, operation: Operation) -> None:
        try:
            await self._sessions.apply(
                log,
                lambda c: c.receive(
                    operation,
                    sender=caller.id,
                    ref=self._ref(),
                    now=time.monotonic(),
                    wall_now=utc_now(),
                ),
            )
        except InteractionError as exc:
            raise refused(exc) from exc

    def _ref(self) -> int:
        """Return the number of an operation; it grows also from one run to the next."""
        self._refs = max(self._refs + 1, time.time_ns() // 1_000)
        return self._refs

    async def _mine(self, caller: A2aCaller, task: str) -> KnownTask:
        known = await self._sessions.task(task)
        # Of another's task nobody learns even that it is there.
        if (
            known is None
            or known.task.requester != caller.id
            or not _is_within(caller, known)
        ):
            raise A2aError(A2aFault.TASK_NOT_FOUND)
        return known

    # What is seen of a task.

    async def _seen(self, known: KnownTask) -> _Seen:
        """Return a task with everything that is stored of it."""
        seen = self._views.pop(known.id, None) or _Seen(_view(known))
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
    ) -> AsyncGenerator[tuple[TaskView, TaskUpdate | None], None]:
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
        seen = _Seen(_view(begun.known))
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


def _is_within(caller: A2aCaller, known: KnownTask) -> bool:
    """Return whether a task is one of the agent that a caller speaks to."""
    return caller.agent in ("", read_reach(known.task.extra).agent)


def _view(known: KnownTask) -> TaskView:
    return TaskView(known.id, known.task.session, name=known.task.id)


def _message(
    message: A2aMessage, caller: A2aCaller, *, session: str, task: str
) -> Message:
    return Message(
        id=message.id,
        session=session,
        task=task,
        sender=caller.id,
        role=SenderRole.REQUESTER,
        purpose=MessagePurpose.COMMUNICATION,
        parts=message.parts,
        metadata=message.metadata,
    )


def _made_of(*names: str) -> uuid.UUID:
    text = "\0".join(names).encode("utf-8", "surrogatepass")
    return uuid.UUID(bytes=hashlib.sha256(text).digest()[:16], version=5)


_FAULTS: Final = {
    InteractionFault.UNKNOWN_TASK: A2aFault.TASK_NOT_FOUND,
    InteractionFault.STATE: A2aFault.UNSUPPORTED_OPERATION,
    InteractionFault.CLOSED: A2aFault.UNSUPPORTED_OPERATION,
    InteractionFault.TOO_MANY: A2aFault.TOO_MANY,
}


def refused(error: InteractionError) -> A2aError:
    """Return the error of A2A for what the session refuses."""
    code = InteractionFault(error.code)
    return A2aError(_FAULTS.get(code, A2aFault.PARAMS), error.text)
