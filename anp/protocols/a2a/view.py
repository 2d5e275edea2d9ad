"""A task of a session as A2A shows it: made of the events of its log. Pure.

view = A2aView(task_id, context)
for event in events:
    for update in view.take(event):
        ...
view.task
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from anp.interaction.chunks import join_parts
from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Part,
    SenderRole,
    SessionEvent,
    Task,
    TaskChange,
    TaskProgress,
)
from anp.interaction.states import TaskState, is_pause, is_terminal
from anp.protocols.a2a.objects import (
    A2aMessage,
    A2aTask,
    Artifact,
    ArtifactUpdate,
    StatusUpdate,
)

__all__ = ["ARTIFACT", "OUTPUT", "A2aView"]

OUTPUT: Final = "output"
"Id of the artifact with what an agent gives and names no artifact for."

ARTIFACT: Final = "artifact"
"Entry in a part's metadata with the artifact that it belongs to."

_OWN_METADATA: Final = frozenset({ARTIFACT, "append", "lastChunk", "status"})


class A2aView:
    """One task; `take` its session's events in order, then read `task`.

    Artifacts grow by each result; a result in chunks is shown when it is whole.
    """

    def __init__(self, task: str, context: str, *, name: str) -> None:
        """Begin before its first event.

        Args:
            task: Its id in A2A.
            context: Id of its session in A2A.
            name: Its id in the session.
        """
        self.task = A2aTask(id=task, context=context, state=TaskState.REQUESTED)
        self._name = name
        self._chunks: dict[str, list[Message]] = {}
        self._was_asked = False
        self.is_known = False
        "Its creation was among the events."

    @property
    def is_over(self) -> bool:
        """True when the task has ended."""
        return is_terminal(self.task.state)

    @property
    def is_at_rest(self) -> bool:
        """True when it has ended, or waits for its caller."""
        # A question follows the state in which it is asked.
        return self.is_over or (is_pause(self.task.state) and self._was_asked)

    def __copy__(self) -> A2aView:
        """Return another view that goes on from here."""
        made = A2aView(self.task.id, self.task.context, name=self._name)
        made.task, made.is_known = self.task, self.is_known
        made._was_asked = self._was_asked
        made._chunks = {name: list(held) for name, held in self._chunks.items()}
        return made

    def take(self, event: SessionEvent) -> Iterator[StatusUpdate | ArtifactUpdate]:
        """Yield what an event of the session means for this task."""
        content = event.content
        match content:
            case Task() if content.id == self._name:
                self.is_known = True
                self.task = replace(
                    self.task,
                    changed_at=event.at,
                    history=tuple(self._message(one) for one in content.messages),
                )
            case TaskChange(task=name) if name == self._name:
                yield self._changed(content, event)
            case TaskProgress(task=name) if name == self._name:
                yield self._progress(content, event)
            case Message(task=name) if name == self._name:
                whole = self._whole(content)
                if whole is not None:
                    yield from self._said(whole, event)

    def _changed(self, change: TaskChange, event: SessionEvent) -> StatusUpdate:
        self._was_asked, message = False, None
        if change.reason:
            code = {"code": change.code} if change.code else {}
            message = self._words(
                f"{self._name}-{event.number}", change.reason, metadata=code
            )
        metadata = {"mayHaveRun": True} if change.may_have_run else {}
        self.task = replace(
            self.task,
            state=change.state,
            changed_at=event.at,
            message=message,
            metadata={**self.task.metadata, **metadata},
        )
        return self._status(metadata)

    def _progress(self, found: TaskProgress, event: SessionEvent) -> StatusUpdate:
        metadata = {
            key: value
            for key, value in (("progress", found.progress), ("total", found.total))
            if value is not None
        }
        message = None
        if found.text:
            message = self._words(f"{self._name}-{event.number}", found.text)
        self.task = replace(self.task, message=message, changed_at=event.at)
        return self._status(metadata)

    def _status(self, metadata: dict[str, Any]) -> StatusUpdate:
        return StatusUpdate(
            task=self.task.id,
            context=self.task.context,
            state=self.task.state,
            changed_at=self.task.changed_at,
            message=self.task.message,
            is_last=self.is_at_rest,
            metadata=metadata,
        )

    def _whole(self, message: Message) -> Message | None:
        if message.chunk is None:
            return message
        held = self._chunks.setdefault(message.id, [])
        held.append(message)
        ends = [one.chunk.index for one in held if one.chunk and one.chunk.last]
        if not ends or len(held) <= ends[0]:
            return None
        del self._chunks[message.id]
        held.sort(key=lambda one: one.chunk.index if one.chunk else 0)
        parts = join_parts(part for one in held for part in one.parts)
        return replace(held[-1], parts=tuple(parts), chunk=None)

    def _said(
        self, message: Message, event: SessionEvent
    ) -> Iterator[StatusUpdate | ArtifactUpdate]:
        if message.role is SenderRole.REQUESTER:
            # What was asked has its answer.
            self._was_asked = False
            self._note(self._message(message))
        elif message.purpose is MessagePurpose.RESULT:
            yield from self._results(message)
        else:
            said = self._message(message)
            self._note(said)
            self._was_asked = is_pause(self.task.state)
            self.task = replace(self.task, message=said, changed_at=event.at)
            yield self._status({})

    def _note(self, message: A2aMessage) -> None:
        self.task = replace(self.task, history=(*self.task.history, message))

    def _results(self, message: Message) -> Iterator[ArtifactUpdate]:
        of_artifacts: dict[str, list[Part]] = {}
        for part in message.parts:
            name = part.metadata.get(ARTIFACT)
            key = name if isinstance(name, str) and name else OUTPUT
            of_artifacts.setdefault(key, []).append(_own(part))
        for key, parts in of_artifacts.items():
            yield self._result(key, tuple(parts), last=bool(message.final))

    def _result(self, key: str, parts: tuple[Part, ...], *, last: bool) -> Any:
        artifacts = {one.id: one for one in self.task.artifacts}
        known = artifacts.get(key)
        artifacts[key] = (
            Artifact(id=key, name=key, parts=parts)
            if known is None
            else replace(known, parts=(*known.parts, *parts))
        )
        self.task = replace(self.task, artifacts=tuple(artifacts.values()))
        return ArtifactUpdate(
            task=self.task.id,
            context=self.task.context,
            artifact=Artifact(id=key, name=key, parts=parts),
            append=known is not None,
            last=last,
        )

    def _message(self, message: Message) -> A2aMessage:
        return A2aMessage(
            id=message.id,
            parts=message.parts,
            is_agent=message.role is SenderRole.SERVICE,
            task=self.task.id,
            context=self.task.context,
            metadata=message.metadata,
        )

    def _words(
        self, name: str, text: str, *, metadata: dict[str, Any] | None = None
    ) -> A2aMessage:
        return A2aMessage(
            id=name,
            parts=(Part.text(text),),
            is_agent=True,
            task=self.task.id,
            context=self.task.context,
            metadata=metadata or {},
        )


def _own(part: Part) -> Part:
    """Return a part without the entries that say where it belongs."""
    kept = {key: one for key, one in part.metadata.items() if key not in _OWN_METADATA}
    return part if len(kept) == len(part.metadata) else replace(part, metadata=kept)
