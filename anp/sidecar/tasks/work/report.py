"""Everything that the requester of a task is told while it is at work, in order."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from anp.interaction.chunks import MAX_CONTENT, split_message
from anp.interaction.conversation import Conversation
from anp.interaction.elements import Message, Part, SenderRole, Task, TaskProgress
from anp.interaction.errors import InteractionError
from anp.interaction.states import TaskState
from anp.interaction.step import Step
from anp.sidecar.attachments.attachment import Progress
from anp.sidecar.tasks.known import utc_now
from anp.sidecar.tasks.sessions import Sessions

logger = logging.getLogger(__name__)

MAX_NOTES = 64
"Notes on progress that wait to be told; of more only the newest are."

Room = Callable[[str, str], Awaitable[None]]
"Waits until a peer has taken most of what it was told in a session of our own id."


class WorkReport:
    """Enters what is told of one task into the log of its session."""

    def __init__(self, log: str, task: Task, sessions: Sessions, room: Room) -> None:
        self._log = log
        self.task = task
        self._sessions = sessions
        self._room = room
        self._notes: deque[Progress] = deque(maxlen=MAX_NOTES)
        self._noted = asyncio.Event()

    async def room(self) -> None:
        """Wait until the requester has read most of what it was told."""
        await self._room(self._log, self.task.requester)

    def note(self, note: Progress) -> None:
        """Take note of progress, which is told soon."""
        self._notes.append(note)
        self._noted.set()

    async def tell_progress(self) -> None:
        """Tell progress as it is noted, until cancelled."""
        while True:
            while not self._notes:
                self._noted.clear()
                await self._noted.wait()
            await self._tell_note()

    async def _tell_note(self) -> None:
        note = self._notes.popleft()
        told = TaskProgress(
            task=self.task.id,
            progress=note.progress,
            total=note.total,
            text=note.message,
        )
        try:
            await self.room()
            await self.apply(lambda c: c.progress(told, wall_now=utc_now()))
        except InteractionError as exc:
            logger.debug("progress not told session=%s: %s", self._log, exc.text)

    async def end(self, notes: asyncio.Task[None]) -> None:
        """End `tell_progress`, and tell what it has left."""
        notes.cancel()
        await asyncio.wait({notes})
        await self.tell_waiting()

    async def tell_waiting(self) -> None:
        """Tell the progress that was reported before what is told next."""
        while self._notes:
            await self._tell_note()

    async def change(self, state: TaskState, **more: Any) -> None:
        """Tell a state of the task; `more` as for `Conversation.report`."""
        await self.apply(
            lambda c: c.report(self.task.id, state, wall_now=utc_now(), **more)
        )

    async def post(self, parts: Sequence[Part], **more: Any) -> None:
        """Send a message about the task, in chunks if it is long."""
        message = Message(
            id=str(uuid.uuid4()),
            session=self.task.session,
            task=self.task.id,
            sender="",
            role=SenderRole.SERVICE,
            parts=tuple(parts),
            **more,
        )
        for chunk in split_message(message, max_content=MAX_CONTENT):
            await self._send(chunk)

    async def _send(self, message: Message) -> None:
        # The end is stored with the last of the result, in one write.
        await self.apply(
            lambda c: (c.give if message.final else c.post)(message, wall_now=utc_now())
        )

    def apply(self, act: Callable[[Conversation], Step]) -> Awaitable[Step]:
        """Give the session one input."""
        return self._sessions.apply(self._log, act)
