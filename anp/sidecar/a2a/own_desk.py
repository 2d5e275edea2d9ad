"""A2A for callers at this daemon: its own agent does their tasks.

A caller is the requester of its sessions, so what is exposed to it, approvals and
limits are those of any requester.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from anp.interaction.elements import Message, Part, Party, Session, Task
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import MessageSend, Operation, TaskCancel, TaskCreate
from anp.protocols.a2a.modes import input_modes, is_taken, output_modes, takes_files
from anp.protocols.a2a.objects import A2aMessage
from anp.protocols.a2a.words import A2aError, A2aFault
from anp.sidecar.a2a.desk import A2aDesk, Begun, made_of, message_of, named
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.push import PushDesk
from anp.sidecar.tasks.choice import Choice
from anp.sidecar.tasks.known import KnownTask, receive
from anp.sidecar.tasks.service import TaskService


class OwnDesk(A2aDesk):
    """Has this daemon do the tasks of its callers; `contextId` is the session's id."""

    def __init__(
        self,
        tasks: TaskService,
        own: str,
        *,
        pushes: PushDesk | None = None,
        files: str = "",
    ) -> None:
        """Make the desk.

        Args:
            own: Our canonical DID, the executor of all these tasks.
            pushes: Brings updates to addresses; None when that is not offered.
            files: As for `A2aView`.
        """
        super().__init__(tasks, pushes, files=files)
        self._own = own
        self._skills = tasks.desk.skills
        self._refs = 0

    def _session_id(self, caller: A2aCaller, context: str) -> str:
        return context

    async def _context(self, known: KnownTask) -> str:
        return known.task.session

    async def _is_of(self, caller: A2aCaller, known: KnownTask) -> bool:
        return known.task.requester == caller.id

    async def _start(
        self, caller: A2aCaller, message: A2aMessage, modes: Sequence[str]
    ) -> Begun:
        # The same message again is the same task, not a second one (A2A-Q4).
        name = made_of(caller.id, message.id, "task")
        context = message.context or made_of(caller.id, message.id, "context")
        session = Session(
            id=context,
            requester=Party(id=caller.id, reads_log=True),
            participants=(Party(id=self._own),),
            owner=caller.id,
        )
        first = message_of(message, session, name)
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
            self._check_modes(caller, chosen, first.parts, modes)
            # Named at once; all else is found out while the task is at work.
            task = named(task, chosen)
        opening, ref = self._ref(), self._ref()
        create = receive(TaskCreate(task=task), sender=caller.id, ref=ref)
        try:
            log, before, is_repeat = await self._find_room(caller, context, name)
            if log is None:
                # The session and its first task are one write.
                log = await self._sessions.join(
                    session, own=self._own, sender=caller.id, ref=opening, first=create
                )
            else:
                await self._sessions.apply(log, create)
            item = await self._sessions.item_of(log, name)
            made = (await self._sessions.conversation(log)).task(name)
        except InteractionError as exc:
            raise refused(exc) from exc
        return await self._begun(KnownTask(item, log, made), before, is_repeat)

    async def _find_room(
        self, caller: A2aCaller, context: str, task: str
    ) -> tuple[str | None, int, bool]:
        """Return our own id of a session, its newest event, and if it has a task.

        Without a session, or for a new task in it, there has to be room for one more.
        """
        log = await self._sessions.find(caller.id, context)
        before, is_repeat = 0, False
        if log is not None:
            conversation = await self._sessions.conversation(log)
            before, is_repeat = conversation.last, task in conversation.tasks
        else:
            self._tasks.desk.check_sessions(caller.share)
        if not is_repeat:
            self._sessions.room.check()
            self._tasks.desk.check_room(caller.share)
        return log, before, is_repeat

    def _check_modes(
        self,
        caller: A2aCaller,
        chosen: Choice,
        parts: Sequence[Part],
        modes: Sequence[str],
    ) -> None:
        """Check that skill and caller take each other's media types, before it runs."""
        offered = self._skills.offered(caller.id, caller.reach)
        skill = next(one for one in offered if one.name == chosen.capability)
        taken, given = input_modes(skill), output_modes(skill)
        text = ""
        if not is_taken(given, modes):
            text = f"{skill.name} answers with {', '.join(given)}"
        elif not takes_files(taken, parts):
            text = f"{skill.name} takes {', '.join(taken)}"
        if text:
            raise A2aError(A2aFault.CONTENT_TYPE_NOT_SUPPORTED, text[:300])

    async def _post(self, caller: A2aCaller, known: KnownTask, sent: Message) -> None:
        await self._apply(caller, known.log, MessageSend(message=sent))

    async def _end(self, caller: A2aCaller, known: KnownTask) -> None:
        task = known.task
        await self._apply(
            caller, known.log, TaskCancel(session=task.session, task=task.id)
        )

    async def _apply(self, caller: A2aCaller, log: str, operation: Operation) -> None:
        try:
            await self._sessions.apply(
                log, receive(operation, sender=caller.id, ref=self._ref())
            )
        except InteractionError as exc:
            raise refused(exc) from exc

    def _ref(self) -> int:
        """Return the number of an operation; it grows also from one run to the next."""
        self._refs = max(self._refs + 1, time.time_ns() // 1_000)
        return self._refs


_FAULTS: Final = {
    InteractionFault.UNKNOWN_TASK: A2aFault.TASK_NOT_FOUND,
    InteractionFault.STATE: A2aFault.UNSUPPORTED_OPERATION,
    InteractionFault.CLOSED: A2aFault.UNSUPPORTED_OPERATION,
    InteractionFault.TOO_MANY: A2aFault.TOO_MANY,
}


def refused(error: InteractionError) -> A2aError:
    """Return the error of A2A for what the session refuses."""
    code = InteractionFault(error.code)
    if code is InteractionFault.CONFLICT:
        # Ids of tasks are made of those of messages.
        text = "message.messageId: was used before for something else"
        return A2aError(A2aFault.PARAMS, text)
    return A2aError(_FAULTS.get(code, A2aFault.PARAMS), error.text)
