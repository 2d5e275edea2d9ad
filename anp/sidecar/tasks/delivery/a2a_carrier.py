"""Tasks of ours at a peer that takes them over A2A.

One channel carries all of them. The log of each session says what the peer has still
to be told; a request that it answered counts as acknowledged. What the peer tells of a
task is entered into the log in its name.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.stranger_work import counted
from anp.interaction.conversation import Conversation
from anp.interaction.elements import Message, Part, PartKind, Task, TaskChange
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import (
    MessageSend,
    Operation,
    Send,
    TaskCancel,
    TaskCreate,
)
from anp.interaction.states import TaskState, is_pause, is_terminal
from anp.interaction.step import Step
from anp.protocols.a2a.calls import skill_part
from anp.protocols.a2a.objects import A2aMessage, A2aTask, ArtifactUpdate, StatusUpdate
from anp.protocols.a2a.objects import TaskUpdate as A2aUpdate
from anp.protocols.a2a.results import read_result
from anp.protocols.a2a.words import A2aError, A2aFault, A2aMethod, A2aVersion
from anp.protocols.a2a.writer import write_message
from anp.sidecar.tasks.delivery.a2a_requests import UNANSWERED, A2aRequests, Refused
from anp.sidecar.tasks.delivery.a2a_task import TaskAtPeer
from anp.sidecar.tasks.known import NO_PROTOCOL, SENT, is_new
from anp.sidecar.tasks.sessions import Sessions

logger = logging.getLogger(__name__)

LOOK: Final = 0.1
"Seconds between two looks at what the peer has to be told."

PAGE: Final = 32
"Operations that are read from a log at a time."

RETRY: Final = 1.0
"Seconds until a request that was refused for a while is sent again."

PAUSED: Final = 30.0
"Seconds between two looks at a task that waits for an answer; the peer may end it."

TASK: Final = "a2a task "
"Before the id of a task of ours, in the names that the peer has in a session."

CONTEXT: Final = "a2a context"
"The same for the peer's id of the session."


TOO_LARGE: Final = str(A2aFault.RESULT_TOO_LARGE.code)

LOST: Final = frozenset({TOO_LARGE, str(A2aFault.TASK_NOT_FOUND.code)})
"Codes of errors after which nothing more is heard of a task."

CANCEL_AGAIN: Final = 5.0
"Seconds until a cancel that failed at the peer is sent again."

FINAL: Final = frozenset(
    str(one.code)
    for one in (
        A2aFault.METHOD,
        A2aFault.PARAMS,
        A2aFault.TASK_NOT_FOUND,
        A2aFault.TASK_NOT_CANCELABLE,
        A2aFault.UNSUPPORTED_OPERATION,
    )
)
"Codes of errors that a cancel would have again."


class A2aCarrier:
    """Carries tasks of ours over one channel; see `run`."""

    def __init__(
        self, sessions: Sessions, channel: Channel, version: A2aVersion
    ) -> None:
        """Take a channel that is bound to a protocol of A2A."""
        self._sessions = sessions
        self._channel = channel
        self._version = version
        self._requests = A2aRequests(channel, version)
        self._following: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._told: dict[str, int] = {}
        self._asked_for: dict[tuple[str, str], float] = {}
        "Times at which tasks that wait for an answer were looked at."
        self._cancels: dict[tuple[str, str], float] = {}
        "Times at which tasks that were cancelled are cancelled again."

    async def run(self, logs: Callable[[], list[str]]) -> None:
        """Carry what is in sessions until there are none, or the channel ends.

        Args:
            logs: Our own ids of the sessions in which the peer has something to do.
        """
        reading = asyncio.create_task(counted(self._requests.read()))
        try:
            while self._channel.open and (found := logs()):
                for log in found:
                    if self._channel.open:
                        await self._look_unless_deleted(log)
                # What is new stands in logs; no single event tells of all of them.
                await asyncio.sleep(LOOK)
        except ChannelClosed as exc:
            logger.info("channel with tasks ended reason=%s", exc.detail)
        finally:
            working = [reading, *self._following.values()]
            for one in working:
                one.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            await self._channel.close("no more work")

    async def _resumed(self, remote: str) -> AsyncGenerator[Any, None]:
        """Yield a task of the peer as it is, and then what happens in it."""
        # One that has ended is not subscribed to.
        with contextlib.suppress(Refused):
            following = self._requests.ask(A2aMethod.SUBSCRIBE, {"id": remote})
            async with contextlib.aclosing(following) as found:
                async for result in found:
                    yield result
        request = {"id": remote, "historyLength": 0}
        async with contextlib.aclosing(
            self._requests.ask(A2aMethod.GET, request)
        ) as found:
            async for result in found:
                yield result

    # What the peer is told.

    async def _look_unless_deleted(self, log: str) -> None:
        try:
            await self._look(log)
        except InteractionError as exc:
            if exc.code != InteractionFault.UNKNOWN_SESSION:
                raise
            for key in [key for key in self._cancels if key[0] == log]:
                del self._cancels[key]

    async def _look(self, log: str) -> None:
        conversation = await self._sessions.conversation(log)
        peer = conversation.session.participants[0].id
        after = self._told.get(log, 0)
        sends = await self._sessions.untold(log, peer, after=after, limit=PAGE)
        for send in sends:
            if self._is_early(log, conversation, send.operation):
                break
            self._told[log] = send.ref
            if not await self._tell(log, send):
                await self._sessions.acknowledge(log, sender=peer, ref=send.ref)
        for name in [name for at, name in self._cancels if at == log]:
            if is_terminal(conversation.tasks[name].state):
                del self._cancels[log, name]
        for task in conversation.unfinished:
            remote = conversation.threads.get(TASK + task.id)
            if remote:
                await self._look_at(log, task, remote)
            elif self._channel.open and not (
                task.state == TaskState.HELD
                or (task.state == TaskState.REQUESTED and sends)
                or (log, task.id) in self._following
                or is_new(conversation, task)
            ):
                # The peer was given it over another protocol.
                known = TaskAtPeer(self._sessions, log, task)
                words = "nothing is heard of it over A2A, which the peer speaks now"
                await self._refused(known, NO_PROTOCOL, words, 0)

    async def _look_at(self, log: str, task: Task, remote: str) -> None:
        """Cancel a task that the peer named, and ask for it, where that is to be."""
        key = log, task.id
        if task.cancel_requested:
            await self._cancel(key, task, remote)
        if not is_pause(task.state):
            self._asked_for.pop(key, None)
        elif time.monotonic() < self._asked_for.get(key, 0.0) + PAUSED:
            return
        if key not in self._following:
            # Begun over another channel, or its question ended the stream.
            self._asked_for[key] = time.monotonic()
            known = await TaskAtPeer.read(self._sessions, log, task)
            self._begin(known, self._resumed(remote), 0)

    def _is_early(
        self, log: str, conversation: Conversation, operation: Operation
    ) -> bool:
        """Return whether an operation is about a task that the peer is yet to name."""
        match operation:
            case MessageSend(message=Message(task=name)):
                is_named = TASK + name in conversation.threads
                return (log, name) in self._following and not is_named
            case _:
                return False

    async def _tell(self, log: str, send: Send) -> bool:
        """Tell an operation; return whether its acknowledgement follows later."""
        conversation = await self._sessions.conversation(log)
        match send.operation:
            case TaskCreate(task=task) if (
                TASK + task.id not in conversation.threads
                and not is_terminal(conversation.tasks[task.id].state)
            ):
                await self._sessions.apply(log, partial(_note_sent, task.id))
                (first,) = task.messages
                if task.capability:
                    first = replace(first, parts=_naming(task.capability, first.parts))
            case MessageSend(message=first) if (
                TASK + first.task in conversation.threads
            ):
                task = conversation.tasks[first.task]
            case TaskCancel(task=name):
                task = conversation.tasks[name]
                remote = conversation.threads.get(TASK + name)
                if remote and is_terminal(task.state):
                    # It was given up here; any other says itself that it is cancelled.
                    await self._cancel((log, name), task, remote)
                return False
            case _:
                # Sessions and registrations are nothing that A2A has. A task that the
                # peer named is there, and one that it never named has ended.
                return False
        await self._say(conversation, log, task, first, send.ref)
        return True

    async def _say(
        self, conversation: Conversation, log: str, task: Task, first: Message, ref: int
    ) -> None:
        """Send the first message of a task, or a further one."""
        if any(part.is_file for part in first.parts):
            words = "A2A has no way to fetch a file that is kept here"
            known = await TaskAtPeer.read(self._sessions, log, task)
            code = InteractionFault.TOO_LARGE
            await self._refused(known, code, words, ref, is_certain=True)
            return
        following = self._following.get((log, task.id))
        if following is not None and is_pause(task.state):
            # It has told its question; the answer gets a stream of its own.
            following.cancel()
            following = None
        beside = following is not None
        said = A2aMessage(
            id=first.id,
            parts=first.parts,
            task=conversation.threads.get(TASK + task.id, ""),
            context=conversation.threads.get(CONTEXT, conversation.session.id),
            metadata=first.metadata,
        )
        params: dict[str, Any] = {"message": write_message(said, self._version)}
        if beside:
            is_old = self._version is A2aVersion.V03
            now = {"blocking": False} if is_old else {"returnImmediately": True}
            params["configuration"] = now
        method = A2aMethod.SEND if beside else A2aMethod.STREAM
        known = await TaskAtPeer.read(self._sessions, log, task)
        self._begin(known, self._requests.ask(method, params), ref, beside=beside)

    async def _cancel(self, key: tuple[str, str], task: Task, remote: str) -> None:
        """Ask for the end of a task, if that was not done or failed a while ago."""
        if time.monotonic() >= self._cancels.get(key, 0.0):
            self._cancels[key] = math.inf
            known = await TaskAtPeer.read(self._sessions, key[0], task)
            self._begin(known, self._cancelled(key, remote), 0, beside=True)

    async def _cancelled(
        self, key: tuple[str, str], remote: str
    ) -> AsyncGenerator[Any, None]:
        """Yield the answer to a cancel."""
        asked = self._requests.ask(A2aMethod.CANCEL, {"id": remote})
        try:
            async with contextlib.aclosing(asked) as found:
                async for result in found:
                    yield result
        except Refused as exc:
            if exc.code not in FINAL:
                self._cancels[key] = time.monotonic() + CANCEL_AGAIN
            raise

    # What the peer tells.

    def _begin(
        self,
        known: TaskAtPeer,
        results: AsyncGenerator[Any, None],
        ref: int,
        *,
        beside: bool = False,
    ) -> None:
        """Follow the responses to a request.

        Args:
            ref: Number of the operation that the first of them acknowledges, or 0.
            beside: Another request has the task's stream; one response is enough.
        """
        work = asyncio.create_task(
            counted(self._follow(known, results, ref, beside=beside))
        )
        key = known.log, f"{known.task.id} {ref}" if beside else known.task.id
        self._following[key] = work
        work.add_done_callback(lambda _: self._forget(key, work))

    def _forget(self, key: tuple[str, str], work: asyncio.Task[None]) -> None:
        if self._following.get(key) is work:
            del self._following[key]
        if not work.cancelled() and (exc := work.exception()) is not None:
            # As when its session was deleted meanwhile.
            logger.info("a task of a peer is followed no more: %s", exc)

    async def _follow(
        self,
        known: TaskAtPeer,
        results: AsyncGenerator[Any, None],
        ref: int,
        *,
        beside: bool,
    ) -> None:
        log, task = known.log, known.task
        try:
            async with contextlib.aclosing(results):
                is_first = bool(ref)
                async for result in results:
                    update = read_result(result, self._version)
                    await self._remember(log, task, update)
                    if ref:
                        await self._sessions.acknowledge(
                            log, sender=task.executor, ref=ref
                        )
                        ref = 0
                    if beside and (log, task.id) in self._following:
                        return
                    rests = await known.take(update)
                    # A question in the first one may be that which is answered now.
                    if rests and not (is_first and is_pause(known.state)):
                        return
                    # One that is large comes before its task, in pieces.
                    is_first = is_first and isinstance(update, ArtifactUpdate)
        except ChannelClosed:
            return
        except (Refused, A2aError) as exc:
            code = exc.code if isinstance(exc, Refused) else "502"
            is_certain = bool(ref) and isinstance(exc, Refused) and code != UNANSWERED
            await self._refused(
                *(known, code, exc.text, ref), is_certain=is_certain, beside=beside
            )
        except InteractionError as exc:
            # What the log does not take is not asked for ten times a second.
            is_large = exc.code == InteractionFault.TOO_LARGE
            code = TOO_LARGE if is_large else exc.code
            await self._refused(known, code, exc.text, ref, beside=beside)
        except Exception:
            logger.exception("a task of a peer is not followed")

    async def _remember(self, log: str, task: Task, update: A2aUpdate) -> None:
        """Keep the ids that the peer has for a task and its session."""
        match update:
            case A2aTask(id=name):
                pass
            case StatusUpdate(task=name) | ArtifactUpdate(task=name):
                conversation = await self._sessions.conversation(log)
                if conversation.threads.get(TASK + task.id):
                    return
            case A2aMessage():
                return
        context = update.context

        def keep(conversation: Conversation) -> Step:
            conversation.threads[TASK + task.id] = name
            conversation.threads.pop(SENT + task.id, None)
            if context:
                conversation.threads[CONTEXT] = context
            return Step(is_head_changed=True)

        await self._sessions.apply(log, keep)

    async def _refused(
        self,
        known: TaskAtPeer,
        code: str,
        text: str,
        ref: int,
        *,
        is_certain: bool = False,
        beside: bool = False,
    ) -> None:
        """End a task that the peer refused, or go on with it.

        Args:
            ref: Number of the operation that this answers, or 0.
            is_certain: The peer answered that it does not do what it was asked for.
            beside: Another request has the task's stream.
        """
        log, task = known.log, known.task
        if ref:
            await self._sessions.acknowledge(log, sender=task.executor, ref=ref)
        logger.info("refused by the peer code=%s reason=%r", code, text[:200])
        if beside and (log, task.id) in self._following:
            # The stream of the task tells how it goes on.
            return
        conversation = await self._sessions.conversation(log)
        is_new = conversation.tasks[task.id].state == TaskState.REQUESTED
        is_named = bool(conversation.threads.get(TASK + task.id))
        is_lost = code in LOST or (is_new and not is_certain)
        self._asked_for.pop((log, task.id), None)
        if is_named and code not in LOST:
            # It goes on at the peer, and is asked for again.
            await asyncio.sleep(RETRY)
            return
        changes = [
            TaskChange(
                task=task.id,
                state=TaskState.REJECTED
                if is_new and not is_lost
                else TaskState.FAILED,
                code=code[:64],
                reason=text[:500],
                may_have_run=is_lost or not is_new,
            )
        ]
        if is_new and is_lost:
            # The peer had it, whatever it told of it before.
            changes.insert(0, TaskChange(task=task.id, state=TaskState.ACCEPTED))
        with contextlib.suppress(InteractionError):
            for change in changes:
                await known.change(change)


def is_over_a2a(conversation: Conversation, task: Task) -> bool:
    """Return whether a task went out over A2A."""
    threads = conversation.threads
    return bool(threads.get(TASK + task.id)) or SENT + task.id in threads


def _note_sent(name: str, conversation: Conversation) -> Step:
    """Note that a task goes out: from now on the peer may have it."""
    threads, tasks = conversation.threads, conversation.tasks
    for key in [one for one in threads if one.startswith(SENT)]:
        if is_terminal(tasks[key.removeprefix(SENT)].state):
            del threads[key]
    threads[SENT + name] = "1"
    return Step(is_head_changed=True)


def _naming(capability: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return parts in which the arguments are those of a named skill."""
    given = [part for part in parts if part.kind is PartKind.JSON]
    rest = [part for part in parts if part.kind is not PartKind.JSON]
    arguments = given[0].content if given else {}
    return (skill_part(capability, arguments), *rest)
