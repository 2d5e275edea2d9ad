"""Sessions, tasks and their events as the local API shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

from anp.interaction.elements import (
    CancelRequest,
    Message,
    Part,
    PartKind,
    Registration,
    Session,
    SubscriptionWish,
    Task,
    TaskChange,
    TaskProgress,
    Unreadable,
)
from anp.interaction.states import is_terminal
from anp.sidecar.api.answers import LEFT_OUT
from anp.sidecar.calls.events import Event
from anp.sidecar.tasks.chronicle import ContentPlace, Told, question_in
from anp.sidecar.tasks.known import KnownTask, Maker, maker_of
from anp.sidecar.tasks.work.worker import SCHEMA, URL

NEWEST = 20
"Messages that are shown with a task."


@dataclass(frozen=True, slots=True, kw_only=True)
class PartView:
    """One content of a message."""

    kind: Literal["text", "json", "bytes", "uri"]
    media_type: str

    name: str = LEFT_OUT
    "The sender's name for it, such as a file's; never a path to write to."

    text: str = LEFT_OUT
    "A text."

    value: Any = LEFT_OUT
    "Any JSON value."

    uri: str = LEFT_OUT
    "Address of content elsewhere; nobody fetched it."

    artifact: str = LEFT_OUT
    "Number of bytes under `/v1/tasks/{id}/artifacts/{n}`."

    size: int = LEFT_OUT
    "Bytes: in this piece, or announced for a file or content elsewhere."

    sha256: str = LEFT_OUT
    "Announced hash of a file, or of content elsewhere."

    begun: bool = LEFT_OUT
    "True when it goes on with content of an earlier event."

    continued: bool = LEFT_OUT
    "True when it goes on in the next event of this message."

    metadata: Mapping[str, Any] = LEFT_OUT
    "The sender's remarks on it."


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """One message, or one chunk of it."""

    number: int
    "Number of its event in the session."

    at: float
    "Seconds since 1970."

    id: str
    "Id on the wire; all chunks of one message have the same."

    task: str
    "Id of its task on the wire; empty if it belongs to none."

    by: str
    "DID of the sender."

    role: Literal["requester", "service"]
    purpose: Literal["communication", "result"] | None
    final: bool | None
    "True when it is surely the last result."

    chunk: int | None
    "Index of the chunk, from 0; null for a whole message."

    last_chunk: bool | None
    parts: Sequence[PartView]
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionView:
    """A question of the executor that the task waits with."""

    number: int
    "Number of its event in the session."

    text: str

    schema: Mapping[str, Any] | None
    "JSON Schema of the wanted value; null for an answer in words."

    url: str | None
    "Page on which something has to be done first; nobody opened it."


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """A task, as a list shows it."""

    id: str
    "Our own id; other than the one on the wire."

    session: str
    "Our own id of its session."

    wire_id: str
    "Its id on the wire."

    state: str
    """`accepted`, `working`, `completed`, `failed`, `canceled`, `rejected`, or a word
    that begins with `x-`, such as `x-input-required`."""

    ended: bool
    "True when the state never changes again."

    made_by: Literal["agent", "owner", "peer"]
    "The one who began its session."

    capability: str
    "Wanted capability; empty when the words say what to do."

    requester: str
    "DID of the requester."

    executor: str
    "DID of the executor."

    created: float
    "Seconds since 1970, by our clock."

    changed: float | None
    "Last change of the state, in seconds since 1970, by the executor's clock."

    code: str
    "Code of a failure or refusal."

    reason: str
    "Reason of a failure or refusal, in words."

    may_have_run: bool
    "True for a task that did not end well, whose work may have been done all the same."

    cancel_requested: bool

    depends_on: Sequence[str]
    "Ids on the wire of tasks that have to be completed first."

    parent: str
    "Id on the wire of the task that it is a part of; empty for none."


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetails(TaskView):
    """A task with its newest messages."""

    last: int
    "Newest number of its session, from which a watcher can go on."

    messages: Sequence[MessageView]
    "Its newest messages besides the request, in order."

    question: QuestionView | None
    "The question that it waits with."


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A page of tasks, the newest first."""

    tasks: Sequence[TaskView]
    next: str | None
    "For `after` of the next page; null on the last one."


def task_view(known: KnownTask) -> TaskView:
    """Return a task as a list shows it."""
    return TaskView(**_task_fields(known))


def task_details(known: KnownTask, newest: list[Told], last: int) -> TaskDetails:
    """Return a task with its newest messages."""
    asked = question_in(known, newest)
    return TaskDetails(
        **_task_fields(known),
        last=last,
        messages=[_message_view(told) for told in newest],
        question=next(
            (_question(told) for told in newest if told.event.content is asked), None
        ),
    )


def event_of(told: Told) -> Event:
    """Return an event of a session for a stream."""
    event = told.event
    at = event.at.timestamp()
    content = event.content
    kind, data = "task.message", dict[str, Any]()
    match content:
        case Message():
            kind = "task.message" if content.task else "session.message"
            return Event(
                number=event.number,
                type=kind,
                at=at,
                data={"message": _message_view(told)},
            )
        case Session():
            kind, data = "session.state", {"state": content.state}
        case Task():
            kind = "task.created"
            data = {
                "task": content.id,
                "state": content.state,
                "capability": content.capability,
                "messages": _request(content, event.number, at, event.by),
            }
        case TaskChange():
            kind = "task.state"
            data = {
                "task": content.task,
                "state": content.state,
                "ended": is_terminal(content.state),
                "code": content.code,
                "reason": content.reason,
                "may_have_run": content.may_have_run,
            }
        case TaskProgress():
            kind = "task.progress"
            data = {
                "task": content.task,
                "progress": content.progress,
                "total": content.total,
                "text": content.text,
            }
        case CancelRequest():
            kind, data = "task.cancel_requested", {"task": content.task}
        case Unreadable():
            kind = "session.damaged"
        case Registration():
            data = {"task": content.task, "address": content.address}
            kind = "session.registered"
        case SubscriptionWish():
            wanted = content.subscription is not None
            kind = "session.subscribed" if wanted else "session.unsubscribed"
            data = {"subscription": content.id}
    return Event(number=event.number, type=kind, at=at, data={"by": event.by, **data})


def _task_fields(known: KnownTask) -> dict[str, Any]:
    task = known.task
    return {
        "id": known.id,
        "session": known.log,
        "wire_id": task.id,
        "state": task.state,
        "ended": is_terminal(task.state),
        "made_by": made_by(known.id),
        "capability": task.capability,
        "requester": task.requester,
        "executor": task.executor,
        "created": int(known.id[:12], 16) / 1000,
        "changed": seconds(task.changed_at),
        "code": task.code,
        "reason": task.reason,
        "may_have_run": task.may_have_run,
        "cancel_requested": task.cancel_requested,
        "depends_on": task.depends_on,
        "parent": task.parent,
    }


def made_by(own_id: str) -> str:
    """Return the maker of a task or session, by our own id."""
    return (maker_of(own_id) or Maker.PEER).name.lower()


def seconds(at: datetime | None) -> float | None:
    """Return a time in seconds since 1970."""
    return None if at is None else at.timestamp()


def _message_view(told: Told) -> MessageView:
    event = told.event
    return _shown(
        cast(Message, event.content),
        event.number,
        event.at.timestamp(),
        event.by,
        begun=told.begun,
    )


def _request(task: Task, number: int, at: float, by: str) -> list[MessageView]:
    """Return the messages of a new task; `ContentPlace` numbers their bytes."""
    found, before = [], 0
    for message in task.messages:
        found.append(_shown(message, number, at, by, before=before))
        before += len(message.parts)
    return found


def _shown(
    message: Message,
    number: int,
    at: float,
    by: str,
    *,
    begun: ContentPlace | None = None,
    before: int = 0,
) -> MessageView:
    chunk = message.chunk
    return MessageView(
        number=number,
        at=at,
        id=message.id,
        task=message.task,
        by=by,
        role=message.role.value,
        purpose=None if message.purpose is None else message.purpose.value,
        final=message.final,
        chunk=None if chunk is None else chunk.index,
        last_chunk=None if chunk is None else chunk.last,
        parts=[
            _part(part, ContentPlace(number, index), begun if index == before else None)
            for index, part in enumerate(message.parts, start=before)
        ],
        metadata=message.metadata,
    )


def _part(part: Part, place: ContentPlace, begun: ContentPlace | None) -> PartView:
    content: dict[str, Any] = {}
    match part.kind:
        case PartKind.TEXT:
            content = {"text": part.content}
        case PartKind.JSON:
            content = {"value": part.content}
        case PartKind.URI if part.is_file:
            content = {"artifact": str(place), "size": part.size, "sha256": part.sha256}
        case PartKind.URI:
            content = {
                "uri": part.content,
                "size": LEFT_OUT if part.size is None else part.size,
                "sha256": part.sha256 or LEFT_OUT,
            }
        case PartKind.BYTES if isinstance(part.content, bytes):
            content = {"artifact": str(begun or place), "size": len(part.content)}
    return PartView(
        kind=PartKind.BYTES.value if part.is_file else part.kind.value,
        media_type=part.media_type,
        name=part.name or LEFT_OUT,
        begun=True if begun is not None else LEFT_OUT,
        continued=True if part.continued else LEFT_OUT,
        metadata=part.metadata or LEFT_OUT,
        **content,
    )


def _question(told: Told) -> QuestionView:
    message = cast(Message, told.event.content)
    schema, url = message.metadata.get(SCHEMA), message.metadata.get(URL)
    texts = [p.content for p in message.parts if p.kind is PartKind.TEXT]
    return QuestionView(
        number=told.event.number,
        text="\n".join(str(text) for text in texts),
        schema=schema if isinstance(schema, Mapping) else None,
        url=url if isinstance(url, str) else None,
    )
