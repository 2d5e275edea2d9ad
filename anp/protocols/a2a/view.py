"""A task of a session as A2A shows it: made of the events of its log. Pure.

view = A2aView(task_id, context)
for event in events:
    for update in view.take(event):
        ...
view.task
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from anp.interaction.chunks import join_parts
from anp.interaction.elements import (
    FILE_URN,
    Message,
    MessagePurpose,
    Part,
    PartKind,
    SenderRole,
    SessionEvent,
    Task,
    TaskChange,
    TaskProgress,
)
from anp.interaction.states import TaskState, is_pause, is_terminal
from anp.protocols.a2a.intents import INTENTS
from anp.protocols.a2a.modes import JSON, only_text
from anp.protocols.a2a.objects import (
    A2aMessage,
    A2aTask,
    Artifact,
    ArtifactUpdate,
    StatusUpdate,
)
from jsonic.exact_numbers import write_json
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

OUTPUT: Final = "output"
"Id of the artifact with what an agent gives and names no artifact for."

ARTIFACT: Final = "artifact"
"Entry in a part's metadata with the artifact that it belongs to."

LAST_CHUNK: Final = "lastChunk"
"Entry that is true in the parts with which their artifact ends."

_OWN_METADATA: Final = frozenset({ARTIFACT, "append", LAST_CHUNK, "status"})


ASKING: Final = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
"Pauses that begin with a state, and go on with the message that says the question."


class A2aView:
    """One task; `take` its session's events in order, then read `task`.

    Artifacts grow by each result; a result in chunks is shown when it is whole. Who
    asks in words alone gets words: a result that is one text, as text, and other values
    also as the text of their JSON.
    """

    def __init__(self, task: str, context: str, *, name: str, files: str = "") -> None:
        """Begin before its first event.

        Args:
            task: Its id in A2A.
            context: Id of its session in A2A.
            name: Its id in the session.
            files: URL below which the caller finds the files of its tasks; empty when
                there is none.
        """
        self._files = files
        self.task = A2aTask(id=task, context=context, state=TaskState.REQUESTED)
        self._name = name
        self._chunks: dict[str, list[Message]] = {}
        self._was_asked = False
        self._in_words = False
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
        made = A2aView(
            self.task.id, self.task.context, name=self._name, files=self._files
        )
        made.task, made.is_known = self.task, self.is_known
        made._was_asked, made._in_words = self._was_asked, self._in_words
        made._chunks = {name: list(held) for name, held in self._chunks.items()}
        return made

    def take(self, event: SessionEvent) -> Iterator[StatusUpdate | ArtifactUpdate]:
        """Yield what an event of the session means for this task."""
        content = event.content
        match content:
            case Task() if content.id == self._name:
                self.is_known = True
                self._in_words = all(_is_words(one) for one in content.messages)
                self.task = replace(
                    self.task,
                    changed_at=event.at,
                    history=tuple(self._message(one) for one in _said(content)),
                )
            case TaskChange(task=name) if name == self._name:
                update = self._changed(content, event)
                # The question follows, and one update tells both.
                if content.state not in ASKING or update.message is not None:
                    yield update
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
        metadata: dict[str, Any] = {}
        if is_terminal(change.state) and change.state != TaskState.COMPLETED:
            metadata["mayHaveRun"] = change.may_have_run
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
            self._in_words = self._in_words and _is_words(message)
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
        ended: set[str] = set()
        for part in message.parts:
            name = part.metadata.get(ARTIFACT)
            key = name if isinstance(name, str) and name else OUTPUT
            shown = self._shown(self._linked(_own(part)))
            of_artifacts.setdefault(key, []).extend(shown)
            if part.metadata.get(LAST_CHUNK) is True:
                ended.add(key)
        for key, parts in of_artifacts.items():
            last = bool(message.final) or key in ended
            yield self._result(key, tuple(parts), last=last)

    def _linked(self, part: Part) -> Part:
        """Return a file that is kept here as a link that its caller can fetch."""
        if not (part.is_file and self._files):
            return part
        more = {"size": part.size, "sha256": part.sha256}
        return replace(
            part,
            content=file_url(self._files, self.task.id, str(part.content)),
            metadata={**part.metadata, **more},
        )

    def _shown(self, part: Part) -> Iterable[Part]:
        if not self._in_words:
            return (part,)
        value = _value(part)
        text = only_text(value)
        if text is not None:
            return (Part.text(text, metadata=part.metadata),)
        if part.kind is not PartKind.JSON:
            return (part,)
        return part, Part.text(write_json(value, ensure_ascii=False))

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
            parts=tuple(self._linked(part) for part in message.parts),
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


def file_url(files: str, task: str, uri: str) -> str:
    """Return the URL of a file of a task.

    Args:
        files: As for `A2aView`.
        uri: The file's own, which begins with `FILE_URN`.
    """
    name = quote(uri.removeprefix(FILE_URN), safe="")
    return f"{files}/tasks/{quote(task, safe='')}/files/{name}"


def _said(task: Task) -> tuple[Message, ...]:
    """Return the messages of a new task as the requester said them."""
    if not task.said:
        return task.messages
    (first,) = task.messages
    files = [one for one in first.parts if one.kind in (PartKind.BYTES, PartKind.URI)]
    return (replace(first, parts=(*task.said, *files)),)


def _own(part: Part) -> Part:
    """Return a part without the entries that say where it belongs."""
    kept = {key: one for key, one in part.metadata.items() if key not in _OWN_METADATA}
    return part if len(kept) == len(part.metadata) else replace(part, metadata=kept)


def _value(part: Part) -> Any:
    """Return the JSON value in a part, also where it is too long for one message."""
    if part.kind is PartKind.JSON:
        return part.content
    if part.kind is PartKind.TEXT and part.media_type == JSON:
        text = str(part.content).encode("utf-8", "surrogatepass")
        with contextlib.suppress(JsonError):
            return parse_json(text, max_size=len(text))
    return None


def _is_words(message: Message) -> bool:
    """Return whether a message says in words what it wants, and names no skill.

    Files may go along with the words.
    """
    kinds = {part.kind for part in message.parts}
    is_text = PartKind.TEXT in kinds and PartKind.JSON not in kinds
    return is_text and INTENTS not in message.metadata
