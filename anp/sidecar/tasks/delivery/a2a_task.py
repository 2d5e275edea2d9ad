"""A task of ours at a peer of A2A: what the peer tells of it, entered into the log."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field, replace
from typing import Any, Final

from anp.interaction.elements import (
    Message,
    MessagePurpose,
    PartKind,
    SenderRole,
    Task,
    TaskChange,
    TaskProgress,
)
from anp.interaction.operations import MessageSend, Operation, TaskUpdate
from anp.interaction.states import TaskState, is_pause, is_started, is_terminal
from anp.protocols.a2a.objects import (
    A2aMessage,
    A2aTask,
    Artifact,
    ArtifactUpdate,
    StatusUpdate,
)
from anp.protocols.a2a.objects import TaskUpdate as A2aUpdate
from anp.protocols.a2a.view import ARTIFACT, LAST_CHUNK, A2aView
from anp.protocols.a2a.words import same_state
from anp.sidecar.tasks.known import utc_now
from anp.sidecar.tasks.sessions import Sessions

NOT_TAKEN: Final = frozenset({TaskState.REJECTED, TaskState.CANCELED})
"Ends of a task that was never accepted."


@dataclass(slots=True)
class TaskAtPeer:
    """The part of a task at the peer that stands in the log."""

    sessions: Sessions
    log: str
    task: Task
    state: str = TaskState.REQUESTED

    parts: dict[str, int] = field(default_factory=dict)
    "Number of parts of each artifact."

    seen: dict[str, int] = field(default_factory=dict)
    "Number of those that the stream had so far; a later stream has them again."

    said: set[str] = field(default_factory=set)
    "Ids of the peer's messages."

    @classmethod
    async def read(cls, sessions: Sessions, log: str, task: Task) -> TaskAtPeer:
        """Return what stands in the log."""
        view = A2aView(task.id, "", name=task.id)
        known = cls(sessions, log, task)
        after = 0
        while events := await sessions.events(log, after=after):
            for event in events:
                for _ in view.take(event):
                    pass
            after = events[-1].number
        known.state = view.task.state
        known.parts = {one.id: len(one.parts) for one in view.task.artifacts}
        known.said = {one.id for one in view.task.history}
        return known

    async def take(self, update: A2aUpdate) -> bool:
        """Enter an object into the log; return whether the stream ends with it."""
        match update:
            case ArtifactUpdate():
                await self._artifact(
                    update.artifact, append=update.append, last=update.last
                )
                return False
            case A2aMessage():
                await self._post(update.parts, MessagePurpose.RESULT)
                change = TaskChange(task=self.task.id, state=TaskState.COMPLETED)
                await self.change(change)
                return True
            case A2aTask():
                for artifact in update.artifacts:
                    await self._artifact(artifact, append=False)
        return await self._status(update)

    async def _artifact(
        self, artifact: Artifact, *, append: bool, last: bool = False
    ) -> None:
        count = self.parts.get(artifact.id, 0)
        # The whole of it begins with what came before.
        begin = self.seen.get(artifact.id, count) if append else 0
        self.seen[artifact.id] = begin + len(artifact.parts)
        parts = artifact.parts[max(0, count - begin) :]
        if parts:
            self.parts[artifact.id] = count + len(parts)
            mark: dict[str, Any] = {ARTIFACT: artifact.id}
            if last:
                mark[LAST_CHUNK] = True
            marked = [
                replace(part, metadata={**part.metadata, **mark}) for part in parts
            ]
            await self._post(marked, MessagePurpose.RESULT, final=False)

    async def _status(self, update: A2aTask | StatusUpdate) -> bool:
        said = update.message
        is_new = said is not None and said.id not in self.said
        parts = said.parts if said is not None and is_new else ()
        if said is not None:
            self.said.add(said.id)
        words = "\n".join(str(p.content) for p in parts if p.kind is PartKind.TEXT)
        is_over = is_terminal(update.state)
        if update.state == TaskState.COMPLETED and parts:
            await self._post(parts, MessagePurpose.RESULT, final=False)
        if not same_state(update.state, self.state):
            was_taken = self.state != TaskState.REQUESTED
            had_begun = is_started(self.state)
            self.state = update.state
            if not was_taken and update.state not in NOT_TAKEN:
                taken = TaskChange(task=self.task.id, state=TaskState.ACCEPTED)
                await self.change(taken)
            code = said.metadata.get("code") if said is not None else None
            # What gave a part of its result is not handed back any more (GBZ-62).
            is_rejected = update.state == TaskState.REJECTED
            state = TaskState.FAILED if is_rejected and self.parts else update.state
            # A peer that does not say it may have done anything by then.
            said_nothing = had_begun and state != TaskState.REJECTED
            may_have_run = update.metadata.get("mayHaveRun", said_nothing) is True
            change = TaskChange(
                task=self.task.id,
                state=state,
                code=code[:64] if isinstance(code, str) else "",
                reason=words[:500] if is_over else "",
                may_have_run=may_have_run and is_over,
            )
            await self.change(change)
        if is_pause(update.state) and parts:
            assert said is not None
            await self._post(parts, MessagePurpose.COMMUNICATION, name=said.id)
        elif not is_over:
            if words:
                told = TaskProgress(task=self.task.id, text=words[:2000])
                await self.change(told)
            others = [part for part in parts if part.kind is not PartKind.TEXT]
            if others:
                # It is said while the peer works, and so is no part of the result.
                await self._post(others, MessagePurpose.COMMUNICATION)
        return is_over or (is_pause(update.state) and said is not None)

    async def change(self, content: TaskChange | TaskProgress) -> None:
        """Enter a new state, or words about the task."""
        update = TaskUpdate(session=self.task.session, content=content, at=utc_now())
        await self._enter(update)

    async def _post(
        self,
        parts: Any,
        purpose: MessagePurpose,
        *,
        final: bool | None = None,
        name: str = "",
    ) -> None:
        message = Message(
            id=name or str(uuid.uuid4()),
            session=self.task.session,
            task=self.task.id,
            sender=self.task.executor,
            role=SenderRole.SERVICE,
            purpose=purpose,
            parts=tuple(parts),
            final=final,
        )
        await self._enter(MessageSend(message=message))

    async def _enter(self, operation: Operation) -> None:
        """Enter what the peer told."""
        await self.sessions.apply(
            self.log,
            lambda c: c.receive(
                operation,
                sender=self.task.executor,
                # Above all that came before.
                ref=c.last + 1,
                now=time.monotonic(),
                wall_now=utc_now(),
            ),
        )
