"""Tasks at peers without a protocol for them: calls whose states are made here.

The peer sees a call of one turn. What it would have told of a task is written into the
log in its name, so that a watcher sees the same as with any other peer.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from anp.errors import CallError
from anp.interaction.conversation import Conversation
from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Part,
    PartKind,
    SenderRole,
    Task,
    TaskChange,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import MessageSend, Operation, TaskCreate, TaskUpdate
from anp.interaction.states import TaskState, is_started, is_terminal
from anp.interaction.step import Step
from anp.sidecar.bound.updates import UpdateSink, UpdatesWrong, part_of
from anp.sidecar.calls.call import CallRequest
from anp.sidecar.calls.caller import Caller
from anp.sidecar.tasks.chronicle import created
from anp.sidecar.tasks.known import NEW, NO_PROTOCOL, SENT, is_new, utc_now
from anp.sidecar.tasks.sessions import Sessions
from negotiation.need import Need

logger = logging.getLogger(__name__)

INTERRUPTED = "interrupted"
"Code of a task whose call was lost with the daemon."

PAGE: Final = 64
"Operations that are read from a log at a time."


class OneTurn:
    """Carries tasks of ours as calls."""

    def __init__(self, sessions: Sessions, caller: Caller) -> None:
        self._sessions = sessions
        self._caller = caller
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def close(self) -> None:
        """End the calls; the next start fails their tasks."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def carry(self, log: str, address: str, is_left: Callable[[], bool]) -> None:
        """Make a call of each task that the peer was not asked for yet.

        Args:
            address: The peer's address for calls.
            is_left: Tells that something else carries what was not taken before.
        """
        if not is_left():
            await self._take_new(log)
        conversation = await self._sessions.conversation(log)
        for task in conversation.unfinished:
            key = log, task.id
            running = self._running.get(key)
            if running and task.cancel_requested and not running.cancelling():
                # Once: what ends is not interrupted while it says so.
                running.cancel()
            is_other = task.executor not in conversation.peers()
            if running or is_other or task.state == TaskState.HELD:
                continue
            if is_new(conversation, task):
                await self._make(log, task, address)
            elif is_left():
                continue
            elif task.cancel_requested:
                await self._change(log, task, TaskState.CANCELED, may_have_run=True)
            else:
                await self.lose(log, task, "the peer speaks no protocol for tasks now")

    async def _make(self, log: str, task: Task, address: str) -> None:
        """Begin the call of a task, or end the task where that cannot be."""
        if task.cancel_requested:
            ran = is_started(task.state)
            await self._change(log, task, TaskState.CANCELED, may_have_run=ran)
        elif is_started(task.state):
            await self._change(
                log,
                task,
                TaskState.FAILED,
                code=INTERRUPTED,
                reason="the daemon ended while the call was under way",
                may_have_run=True,
            )
        else:
            key = log, task.id
            whole = await created(self._sessions, log, task.id) or task
            now = (await self._sessions.conversation(log)).tasks[task.id].state
            is_begun = is_started(now) or is_terminal(now)
            if key not in self._running and not is_begun:
                running = asyncio.create_task(self._guarded(log, whole, address))
                self._running[key] = running
                running.add_done_callback(partial(self._ended, key))

    async def _take_new(self, log: str) -> Conversation:
        """Note the tasks of which the peer was told nothing, and tell it nothing more.

        The others it took over another protocol.
        """
        conversation = await self._sessions.conversation(log)
        for peer in conversation.peers():
            while sends := await self._sessions.untold(log, peer, after=0, limit=PAGE):
                tasks = {
                    send.operation.task.id: send.ref
                    for send in sends
                    if isinstance(send.operation, TaskCreate)
                }
                for send in sends:
                    await self._sessions.acknowledge(log, sender=peer, ref=send.ref)
                if tasks:
                    # This stores both.
                    await self._sessions.apply(log, partial(self._note_new, log, tasks))
            await self._sessions.acknowledge_all(log, sender=peer)
        return await self._sessions.conversation(log)

    def _note_new(
        self, log: str, tasks: Mapping[str, int], conversation: Conversation
    ) -> Step:
        """Note tasks as new, unless they were sent, or the peer said something of them.

        Args:
            tasks: The numbers of the events that made them, by their ids.
        """
        threads = conversation.threads
        for name, number in tasks.items():
            was_sent = self._sessions.standing.was_sent(log, number)
            is_sent = was_sent or SENT + name in threads
            if conversation.tasks[name].state == TaskState.REQUESTED and not is_sent:
                threads[NEW + name] = "1"
        for key in [one for one in threads if one.startswith(NEW)]:
            if is_terminal(conversation.tasks[key.removeprefix(NEW)].state):
                del threads[key]
        return Step(is_head_changed=True)

    async def lose(self, log: str, task: Task, reason: str) -> None:
        """End a task of which nothing more is heard."""
        if task.state == TaskState.REQUESTED:
            # The peer had it, whatever it told of it before.
            await self._change(log, task, TaskState.ACCEPTED)
        await self._change(
            log,
            task,
            TaskState.FAILED,
            code=NO_PROTOCOL,
            reason=reason,
            may_have_run=True,
        )

    def _ended(self, key: tuple[str, str], call: asyncio.Task[None]) -> None:
        self._running.pop(key, None)
        if not call.cancelled() and (exc := call.exception()) is not None:
            # As when its session was deleted while it said that it was cancelled.
            logger.info("call of a task not told session=%s: %s", key[0], exc)

    async def refuse(self, log: str, reason: str) -> None:
        """End the tasks of a session that the peer cannot be told of."""
        self._sessions.refused(log, reason)
        conversation = await self._take_new(log)
        for task in conversation.unfinished:
            if task.state == TaskState.HELD:
                continue
            if not is_new(conversation, task):
                await self.lose(log, task, reason)
                continue
            await self._change(
                log, task, TaskState.REJECTED, code=NO_PROTOCOL, reason=reason
            )

    async def _guarded(self, log: str, task: Task, address: str) -> None:
        try:
            await self._call(log, task, address)
        except asyncio.CancelledError:
            conversation = await self._sessions.conversation(log)
            if not conversation.tasks[task.id].cancel_requested:
                raise
            # The call has told the peer; it may have run before that.
            await self._change(log, task, TaskState.CANCELED, may_have_run=True)
        except InteractionError as exc:
            # It was given up meanwhile.
            logger.info("call of a task not told session=%s: %s", log, exc.text)
        except Exception:
            logger.exception("call of a task failed session=%s", log)

    async def _call(self, log: str, task: Task, address: str) -> None:
        arguments = _arguments(task)
        if arguments is None:
            await self._change(
                log,
                task,
                TaskState.REJECTED,
                code="400",
                reason="a call of this peer needs its arguments as one JSON object, "
                "and takes no files",
            )
            return
        conversation = await self._sessions.conversation(log)
        if conversation.tasks[task.id].state != TaskState.ACCEPTED:
            await self._change(log, task, TaskState.ACCEPTED)
        await self._change(log, task, TaskState.WORKING)
        updates = UpdateSink(partial(self._update, log, task))
        request = CallRequest(
            peer=address,
            need=Need(task.capability or _words(task)),
            arguments=arguments,
            trust_first_use=True,
            lasts=True,
            updates=updates,
        )
        try:
            result = await self._caller.call(request)
        except CallError as exc:
            await self._change(
                log,
                task,
                TaskState.FAILED,
                code=str(exc.kind)[:64],
                reason=str(exc.detail)[:500],
                may_have_run=exc.may_have_run,
            )
            return
        if not updates.whole:
            await self._result(log, task, Part.value(result.output), final=True)
        await self._change(log, task, TaskState.COMPLETED)

    async def _update(self, log: str, task: Task, value: Any) -> None:
        """Enter a part of the result that came before the answer."""
        try:
            await self._result(log, task, part_of(value))
        except InteractionError as exc:
            raise UpdatesWrong(exc.text) from exc

    async def _result(
        self, log: str, task: Task, part: Part, *, final: bool = False
    ) -> None:
        message = Message(
            id=str(uuid.uuid4()),
            session=task.session,
            task=task.id,
            sender=task.executor,
            role=SenderRole.SERVICE,
            purpose=MessagePurpose.RESULT,
            parts=(part,),
            final=final,
        )
        await self._told(log, task, MessageSend(message=message))

    async def _change(
        self, log: str, task: Task, state: TaskState, **more: Any
    ) -> None:
        change = TaskChange(task=task.id, state=state, **more)
        update = TaskUpdate(session=task.session, content=change, at=utc_now())
        await self._told(log, task, update)

    async def _told(self, log: str, task: Task, operation: Operation) -> None:
        """Enter what the peer would have told."""

        def take(conversation: Conversation) -> Any:
            if is_terminal(conversation.tasks[task.id].state):
                raise InteractionError(
                    InteractionFault.STATE, "the task has ended already"
                )
            return conversation.receive(
                operation,
                sender=task.executor,
                # Above all that came before.
                ref=conversation.last + 1,
                now=time.monotonic(),
                wall_now=utc_now(),
            )

        await self._sessions.apply(log, take)


def _arguments(task: Task) -> dict[str, Any] | None:
    parts = [part for message in task.messages for part in message.parts]
    # A file that the call has no place for is not left out without a word.
    files = any(part.kind in (PartKind.BYTES, PartKind.URI) for part in parts)
    for part in parts:
        if part.kind is PartKind.JSON and isinstance(part.content, dict):
            return None if files else part.content
    return None if parts else {}


def _words(task: Task) -> str:
    parts = [part for message in task.messages for part in message.parts]
    texts = [str(part.content) for part in parts if part.kind is PartKind.TEXT]
    return "\n".join(texts) or "an answer"
