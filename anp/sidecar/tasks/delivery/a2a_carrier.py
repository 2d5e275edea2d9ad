"""Tasks of ours at a peer that takes them over A2A.

One channel carries all of them. The log of each session says what the peer has still
to be told; a request that it answered counts as acknowledged. What the peer tells of a
task is entered into the log in its name.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.stranger_work import counted
from anp.interaction.conversation import Conversation
from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Part,
    PartKind,
    SenderRole,
    Task,
    TaskChange,
    TaskProgress,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import (
    MessageSend,
    Operation,
    Send,
    TaskCancel,
    TaskCreate,
    TaskUpdate,
)
from anp.interaction.states import TaskState, is_pause, is_terminal
from anp.interaction.step import Step
from anp.protocols.a2a.calls import skill_part
from anp.protocols.a2a.objects import (
    A2aMessage,
    A2aTask,
    Artifact,
    ArtifactUpdate,
    StatusUpdate,
)
from anp.protocols.a2a.objects import TaskUpdate as A2aUpdate
from anp.protocols.a2a.results import read_result
from anp.protocols.a2a.view import ARTIFACT, LAST_CHUNK, A2aView
from anp.protocols.a2a.words import (
    A2aError,
    A2aFault,
    A2aMethod,
    A2aVersion,
    same_state,
)
from anp.protocols.a2a.writer import write_message
from anp.sidecar.tasks.delivery.a2a_requests import A2aRequests, Refused
from anp.sidecar.tasks.sessions import Sessions, utc_now

__all__ = ["A2aCarrier"]

logger = logging.getLogger(__name__)

LOOK: Final = 0.1
"Seconds between two looks at what the peer has to be told."

PAGE: Final = 32
"Operations that are read from a log at a time."

RETRY: Final = 1.0
"Seconds until a request that was refused for a while is sent again."

TASK: Final = "a2a task "
"Before the id of a task of ours, in the names that the peer has in a session."

CONTEXT: Final = "a2a context"
"The same for the peer's id of the session."


TOO_LARGE: Final = str(A2aFault.RESULT_TOO_LARGE.code)

LOST: Final = frozenset({TOO_LARGE, str(A2aFault.TASK_NOT_FOUND.code)})
"Codes of errors after which nothing more is heard of a task."

NOT_TAKEN: Final = frozenset({TaskState.REJECTED, TaskState.CANCELED})
"Ends of a task that was never accepted."


@dataclass(slots=True)
class _Known:
    """The part of a task at the peer that stands in the log."""

    log: str
    task: Task
    state: str = TaskState.REQUESTED

    parts: dict[str, int] = field(default_factory=dict)
    "Number of parts of each artifact."

    read: dict[str, int] = field(default_factory=dict)
    "Number of those that the stream had so far; a later stream has them again."

    said: set[str] = field(default_factory=set)
    "Ids of the peer's messages."


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

    async def run(self, logs: Callable[[], list[str]]) -> None:
        """Carry what is in sessions until there are none, or the channel ends.

        Args:
            logs: Our own ids of the sessions in which the peer has something to do.
        """
        reading = asyncio.create_task(counted(self._requests.read()))
        try:
            while self._channel.open and (found := logs()):
                for log in found:
                    await self._look(log)
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

    async def _look(self, log: str) -> None:
        conversation = await self._sessions.conversation(log)
        peer = conversation.session.participants[0].id
        after = self._told.get(log, 0)
        for send in await self._sessions.untold(log, peer, after=after, limit=PAGE):
            if self._is_early(log, conversation, send.operation):
                break
            self._told[log] = send.ref
            if not await self._tell(log, send):
                await self._sessions.acknowledge(log, sender=peer, ref=send.ref)
        for task in conversation.unfinished:
            key = log, task.id
            remote = conversation.threads.get(TASK + task.id)
            if remote and key not in self._following and not is_pause(task.state):
                # Begun over another channel.
                known = await self._known(log, task)
                self._begin(known, self._resumed(remote), 0)

    def _is_early(
        self, log: str, conversation: Conversation, operation: Operation
    ) -> bool:
        """Return whether an operation is about a task that the peer is yet to name."""
        match operation:
            case TaskCancel(task=name) | MessageSend(message=Message(task=name)):
                is_named = bool(conversation.threads.get(TASK + name))
                return (log, name) in self._following and not is_named
            case _:
                return False

    async def _tell(self, log: str, send: Send) -> bool:
        """Tell an operation; return whether its acknowledgement follows later."""
        conversation = await self._sessions.conversation(log)
        match send.operation:
            case TaskCreate(task=task):
                (first,) = task.messages
                if task.capability:
                    first = replace(first, parts=_naming(task.capability, first.parts))
            case MessageSend(message=first) if (
                TASK + first.task in conversation.threads
            ):
                task = conversation.tasks[first.task]
            case TaskCancel(task=name) if remote := conversation.threads.get(
                TASK + name
            ):
                known = await self._known(log, conversation.tasks[name])
                request = self._requests.ask(A2aMethod.CANCEL, {"id": remote})
                self._begin(known, request, send.ref, beside=True)
                return True
            case _:
                # Sessions and registrations are nothing that A2A has, and a task that
                # the peer never named has ended.
                return False
        if any(part.is_file for part in first.parts):
            words = "A2A has no way to fetch a file that is kept here"
            known = await self._known(log, task)
            await self._refused(known, InteractionFault.TOO_LARGE, words, send.ref)
            return True
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
        known = await self._known(log, task)
        self._begin(known, self._requests.ask(method, params), send.ref, beside=beside)
        return True

    # What the peer tells.

    async def _known(self, log: str, task: Task) -> _Known:
        view = A2aView(task.id, "", name=task.id)
        known = _Known(log, task)
        after = 0
        while events := await self._sessions.events(log, after=after):
            for event in events:
                for _ in view.take(event):
                    pass
            after = events[-1].number
        known.state = view.task.state
        known.parts = {one.id: len(one.parts) for one in view.task.artifacts}
        known.said = {one.id for one in view.task.history}
        return known

    def _begin(
        self,
        known: _Known,
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

    async def _follow(
        self,
        known: _Known,
        results: AsyncGenerator[Any, None],
        ref: int,
        *,
        beside: bool,
    ) -> None:
        log, task = known.log, known.task
        try:
            async with contextlib.aclosing(results):
                is_first = True
                async for result in results:
                    update = read_result(result, self._version)
                    await self._remember(log, task, update)
                    if ref:
                        await self._sessions.acknowledge(
                            log, sender=task.executor, ref=ref
                        )
                        ref = 0
                    if beside:
                        return
                    rests = await self._take(known, update)
                    # A question in the first one may be that which is answered now.
                    if rests and not (is_first and is_pause(known.state)):
                        return
                    # One that is large comes before its task, in pieces.
                    is_first = is_first and isinstance(update, ArtifactUpdate)
        except ChannelClosed:
            return
        except (Refused, A2aError) as exc:
            code = exc.code if isinstance(exc, Refused) else "502"
            await self._refused(known, code, exc.text, ref, beside=beside)
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
            if context:
                conversation.threads[CONTEXT] = context
            return Step()

        await self._sessions.apply(log, keep)

    async def _refused(
        self, known: _Known, code: str, text: str, ref: int, *, beside: bool = False
    ) -> None:
        log, task = known.log, known.task
        if ref:
            await self._sessions.acknowledge(log, sender=task.executor, ref=ref)
        logger.info("refused by the peer code=%s reason=%r", code, text[:200])
        if beside and (log, task.id) in self._following:
            # The stream of the task tells how it goes on.
            return
        conversation = await self._sessions.conversation(log)
        is_new = conversation.tasks[task.id].state == TaskState.REQUESTED
        is_lost = code in LOST
        if not (is_new or is_lost) and conversation.threads.get(TASK + task.id):
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
                may_have_run=is_lost,
            )
        ]
        if is_new and is_lost:
            # The peer had it, whatever it told of it before.
            changes.insert(0, TaskChange(task=task.id, state=TaskState.ACCEPTED))
        with contextlib.suppress(InteractionError):
            for change in changes:
                await self._changed(known, change)

    async def _take(self, known: _Known, update: A2aUpdate) -> bool:
        """Enter an object into the log; return whether the stream ends with it."""
        match update:
            case ArtifactUpdate():
                await self._artifact(
                    known, update.artifact, append=update.append, last=update.last
                )
                return False
            case A2aMessage():
                await self._post(known, update.parts, MessagePurpose.RESULT)
                change = TaskChange(task=known.task.id, state=TaskState.COMPLETED)
                await self._changed(known, change)
                return True
            case A2aTask():
                for artifact in update.artifacts:
                    await self._artifact(known, artifact, append=False)
        return await self._status(known, update)

    async def _artifact(
        self, known: _Known, artifact: Artifact, *, append: bool, last: bool = False
    ) -> None:
        count = known.parts.get(artifact.id, 0)
        # The whole of it begins with what came before.
        begin = known.read.get(artifact.id, count) if append else 0
        known.read[artifact.id] = begin + len(artifact.parts)
        parts = artifact.parts[max(0, count - begin) :]
        if parts:
            known.parts[artifact.id] = count + len(parts)
            mark: dict[str, Any] = {ARTIFACT: artifact.id}
            if last:
                mark[LAST_CHUNK] = True
            marked = [
                replace(part, metadata={**part.metadata, **mark}) for part in parts
            ]
            await self._post(known, marked, MessagePurpose.RESULT, final=False)

    async def _status(self, known: _Known, update: A2aTask | StatusUpdate) -> bool:
        said = update.message
        is_new = said is not None and said.id not in known.said
        parts = said.parts if said is not None and is_new else ()
        if said is not None:
            known.said.add(said.id)
        words = "\n".join(str(p.content) for p in parts if p.kind is PartKind.TEXT)
        is_over = is_terminal(update.state)
        if update.state == TaskState.COMPLETED and parts:
            await self._post(known, parts, MessagePurpose.RESULT, final=False)
        # A task that is submitted may be rejected, which one that is accepted is not.
        if not same_state(update.state, known.state):
            was_taken = known.state != TaskState.REQUESTED
            known.state = update.state
            if not was_taken and update.state not in NOT_TAKEN:
                taken = TaskChange(task=known.task.id, state=TaskState.ACCEPTED)
                await self._changed(known, taken)
            code = said.metadata.get("code") if said is not None else None
            may_have_run = update.metadata.get("mayHaveRun") is True
            change = TaskChange(
                task=known.task.id,
                state=TaskState.FAILED
                if was_taken and update.state == TaskState.REJECTED
                else update.state,
                code=code[:64] if isinstance(code, str) else "",
                reason=words[:500] if is_over else "",
                may_have_run=may_have_run and is_over,
            )
            await self._changed(known, change)
        if is_pause(update.state) and parts:
            assert said is not None
            await self._post(known, parts, MessagePurpose.COMMUNICATION, name=said.id)
        elif not is_over and words:
            told = TaskProgress(task=known.task.id, text=words[:2000])
            await self._changed(known, told)
        return is_over or (is_pause(update.state) and said is not None)

    async def _changed(self, known: _Known, content: TaskChange | TaskProgress) -> None:
        update = TaskUpdate(session=known.task.session, content=content, at=utc_now())
        await self._enter(known, update)

    async def _post(
        self,
        known: _Known,
        parts: Any,
        purpose: MessagePurpose,
        *,
        final: bool | None = None,
        name: str = "",
    ) -> None:
        message = Message(
            id=name or str(uuid.uuid4()),
            session=known.task.session,
            task=known.task.id,
            sender=known.task.executor,
            role=SenderRole.SERVICE,
            purpose=purpose,
            parts=tuple(parts),
            final=final,
        )
        await self._enter(known, MessageSend(message=message))

    async def _enter(self, known: _Known, operation: Operation) -> None:
        """Enter what the peer told."""
        await self._sessions.apply(
            known.log,
            lambda c: c.receive(
                operation,
                sender=known.task.executor,
                # Above all that came before.
                ref=c.last + 1,
                now=time.monotonic(),
                wall_now=utc_now(),
            ),
        )


def _naming(capability: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return parts in which the arguments are those of a named skill."""
    given = [part for part in parts if part.kind is PartKind.JSON]
    rest = [part for part in parts if part.kind is not PartKind.JSON]
    arguments = given[0].content if given else {}
    return (skill_part(capability, arguments), *rest)
