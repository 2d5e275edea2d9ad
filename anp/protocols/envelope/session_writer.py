"""Operations on sessions become messages of the envelope 1.1."""

from __future__ import annotations

import base64
import hashlib
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from anp.interaction.elements import (
    Message,
    Part,
    PartKind,
    Party,
    PartyMode,
    SenderRole,
    Session,
    Task,
    TaskChange,
    TaskProgress,
)
from anp.interaction.operations import (
    Acknowledgement,
    MessageSend,
    NotifyRegister,
    NotifyUnregister,
    Operation,
    RefusedOperation,
    SessionClose,
    SessionOpen,
    SessionUpdate,
    SubscribeCancel,
    SubscribeCreate,
    TaskCancel,
    TaskCreate,
    TaskGet,
    TaskUpdate,
)
from anp.interaction.states import TaskState, is_pause
from anp.protocols.envelope.messages import (
    EnvelopeMessage,
    EnvelopeStatus,
    ErrorPayload,
    EventPayload,
    MessageType,
    Payload,
    RequestPayload,
    ResponsePayload,
    build_message,
)
from anp.protocols.envelope.reader import MAX_ID
from anp.protocols.envelope.session_words import (
    CANCELED,
    ENVELOPE_TASKS_VERSION,
    NEEDS,
    REJECTED,
    SessionAction,
    SessionEntry,
    SessionEventName,
    status_of,
)
from anp.protocols.fields import given_fields
from anp.protocols.timestamps import write_timestamp
from negotiation.errors import JsonError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """The content of a message, and its place."""

    kind: MessageType
    payload: Payload
    session: str

    answers: str | None = None
    "The message that it answers, by id."

    name: str = ""
    "Its own id, where that is fixed."

    sender: str = ""
    "Its sender, where that is not the identity of the channel."

    metadata: dict[str, Any]


def write_operation(
    operation: Operation,
    ref: int,
    *,
    own_id: str,
    peer_id: str,
    sent_at: datetime,
    max_size: int,
    request: str = "",
) -> bytes:
    """Return the bytes of the message that tells a peer of an operation.

    Args:
        ref: Number of the operation; unused in an answer.
        own_id: Our DID on the channel.
        peer_id: The peer's DID on the channel.
        request: Id of the request that a refusal answers; empty for other messages.

    Raises:
        JsonError: It is over `max_size` bytes, or nothing that a strict reader takes.
    """
    told = _told(operation, request)
    number = ref
    place: dict[str, Any] = {}
    if told.session:
        place[SessionEntry.SESSION] = told.session
    if isinstance(operation, Acknowledgement | RefusedOperation):
        number = operation.ref
        place[SessionEntry.ANSWERS] = number
    else:
        place[SessionEntry.REF] = number
    sender = told.sender or own_id
    name = told.name or _name(told.kind, sender, told.session, number)
    if len(name) > MAX_ID:
        raise JsonError(f"the id of a task has at most {MAX_ID} characters here")
    message = EnvelopeMessage(
        message_id=name,
        sender_id=sender,
        receiver_id=peer_id,
        message_type=told.kind,
        payload=told.payload,
        sent_at=sent_at,
        metadata={**place, **told.metadata},
        correlation_id=told.answers,
        version=ENVELOPE_TASKS_VERSION,
    )
    return build_message(message, max_size=max_size)


def _name(kind: MessageType, sender: str, session: str, number: int) -> str:
    """Return the id of a message, the same one whenever it is repeated."""
    place = "\0".join((kind, sender, session, str(number)))
    digest = hashlib.sha256(place.encode("utf-8", "surrogatepass")).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def _told(operation: Operation, request: str) -> _Told:
    match operation:
        case TaskCreate(task=task):
            return _request(
                task.session,
                task.capability or SessionAction.TASK,
                _task_content(task),
                name=task.id,
            )
        case TaskUpdate():
            return _update(operation)
        case MessageSend(message=message):
            return _message_sent(message)
        case Acknowledgement(session=session, task=task):
            data = {} if task is None else {"task": _task(task)}
            return _event(session, SessionEventName.RECEIVED, data)
        case RefusedOperation(session=session, code=code, text=text) as refusal:
            more = {"retry_after": refusal.retry_after} if refusal.retry_after else {}
            if request:
                payload = ErrorPayload(str(code), text, more)
                return _Told(
                    kind=MessageType.ERROR,
                    payload=payload,
                    session=session,
                    answers=request,
                    metadata={},
                )
            refused = {"code": str(code), "message": text, **more}
            return _event(session, SessionEventName.REFUSED, refused)
        case SubscribeCreate() | SubscribeCancel():
            raise JsonError("the envelope has no subscriptions")
        case _:
            return _managed(operation)


def _managed(
    operation: SessionOpen
    | SessionUpdate
    | SessionClose
    | TaskCancel
    | TaskGet
    | NotifyRegister
    | NotifyUnregister,
) -> _Told:
    """Return the request of a requester, besides those that begin a task."""
    match operation:
        case SessionOpen(session=session):
            return _request(session.id, SessionAction.OPEN, _session(session))
        case SessionUpdate(session=session):
            return _request(session.id, SessionAction.UPDATE, _session(session))
        case SessionClose(session=name):
            return _request(name, SessionAction.CLOSE, {})
        case TaskCancel(session=name, task=task):
            return _request(name, SessionAction.CANCEL, {"message_id": task})
        case TaskGet(session=name, task=task):
            return _request(name, SessionAction.STATUS, {"message_id": task})
        case NotifyRegister():
            parameters = {
                "address": operation.address,
                **given_fields(
                    message_id=operation.task, expires=_moment(operation.expires)
                ),
            }
            return _request(operation.session, SessionAction.NOTIFY, parameters)
        case NotifyUnregister(session=name, task=task):
            return _request(
                name, SessionAction.NOTIFY_END, given_fields(message_id=task)
            )


def _request(
    session: str, action: str, parameters: dict[str, Any], *, name: str = ""
) -> _Told:
    return _Told(
        kind=MessageType.REQUEST,
        payload=RequestPayload(str(action), parameters),
        session=session,
        name=name,
        metadata={},
    )


def _event(session: str, name: str, data: dict[str, Any]) -> _Told:
    return _Told(
        kind=MessageType.EVENT,
        payload=EventPayload(str(name), data),
        session=session,
        metadata={},
    )


def _update(update: TaskUpdate) -> _Told:
    content = update.content
    result: dict[str, Any] = {}
    if update.messages:
        result["messages"] = [_message(one) for one in update.messages]
    payload: Payload
    if isinstance(content, TaskProgress):
        told = {"progress": content.progress, "total": content.total}
        result["progress"] = {
            **{name: one for name, one in told.items() if one is not None},
            **given_fields(text=content.text),
        }
        payload = ResponsePayload(EnvelopeStatus.IN_PROGRESS, result, {})
    else:
        payload = _state(content, result)
    is_error = isinstance(payload, ErrorPayload)
    return _Told(
        kind=MessageType.ERROR if is_error else MessageType.RESPONSE,
        payload=payload,
        session=update.session,
        answers=content.task,
        metadata=given_fields(at=_moment(update.at)),
    )


def _state(change: TaskChange, result: dict[str, Any]) -> Payload:
    status = status_of(change.state)
    why = given_fields(code=change.code, reason=change.reason)
    if change.state == TaskState.REJECTED:
        return ErrorPayload(
            REJECTED, change.reason, given_fields(code=change.code) | result
        )
    if status is EnvelopeStatus.SUCCESS:
        return ResponsePayload(status, result, {})
    if status is EnvelopeStatus.FAILURE:
        error: dict[str, Any] = {"code": change.code, "message": change.reason}
        if change.state == TaskState.CANCELED:
            error = {**error, "code": CANCELED, **given_fields(cause=change.code)}
        elif change.code == CANCELED:
            # The agent's own code, which alone would mean that it was cancelled.
            result["state"] = str(change.state)
        error["may_have_run"] = change.may_have_run
        return ResponsePayload(status, result, error)
    if is_pause(change.state):
        result["needs"] = NEEDS.get(change.state, change.state)
    else:
        result["state"] = str(change.state)
    return ResponsePayload(status, result | why, {})


def _message_sent(message: Message) -> _Told:
    chunk: dict[str, Any] = {}
    if message.chunk is not None:
        chunk[SessionEntry.CHUNK_INDEX] = message.chunk.index
        chunk[SessionEntry.LAST_CHUNK] = message.chunk.last
    content = _message(message, place=False)
    if message.task and message.role is SenderRole.SERVICE:
        return _Told(
            kind=MessageType.RESPONSE,
            payload=ResponsePayload(
                EnvelopeStatus.IN_PROGRESS, {"message": content}, {}
            ),
            session=message.session,
            answers=message.task,
            sender=message.sender,
            metadata=chunk,
        )
    content |= given_fields(task=message.task)
    content["role"] = str(message.role)
    return _Told(
        kind=MessageType.EVENT,
        payload=EventPayload(SessionEventName.MESSAGE, content),
        session=message.session,
        sender=message.sender,
        metadata=chunk,
    )


# Objects.


def _moment(at: datetime | None) -> str:
    return "" if at is None else write_timestamp(at)


def _session(session: Session) -> dict[str, Any]:
    value = {
        **session.extra,
        "requester": _party(session.requester),
        "participants": [_party(one) for one in session.participants],
        **given_fields(expires=_moment(session.expires)),
    }
    if session.context:
        value["context"] = [_either(one) for one in session.context]
    return value


def _party(party: Party) -> dict[str, Any]:
    value = {
        **party.extra,
        "id": party.id,
        **given_fields(address=party.address, params=dict(party.params)),
    }
    if party.mode is not PartyMode.P2P:
        value["mode"] = str(party.mode)
    return value


def _either(element: Message | Task) -> dict[str, Any]:
    return _message(element) if isinstance(element, Message) else _task(element)


def _task_content(task: Task) -> dict[str, Any]:
    """Return what a request says of a task, besides its action and its id."""
    value: dict[str, Any] = {**task.extra}
    if task.inputs:
        value["inputs"] = [_either(one) for one in task.inputs]
    return value | given_fields(
        messages=[_message(one) for one in task.messages],
        depends_on=list(task.depends_on),
        parent=task.parent,
        trigger=dict(task.trigger or {}),
    )


def _task(task: Task) -> dict[str, Any]:
    """Return a task with its state, as a part of another object."""
    return {
        **_task_content(task),
        "message_id": task.id,
        "session_id": task.session,
        "state": str(task.state),
        **given_fields(
            action=task.capability,
            at=_moment(task.changed_at),
            code=task.code,
            reason=task.reason,
            may_have_run=task.may_have_run,
        ),
    }


def _message(message: Message, *, place: bool = True) -> dict[str, Any]:
    """Return a message; with its place when the envelope does not tell that."""
    value: dict[str, Any] = {**message.extra, "id": message.id}
    if place:
        value |= {
            "session_id": message.session,
            "sender_id": message.sender,
            "role": str(message.role),
            **given_fields(task=message.task),
        }
        if message.chunk is not None:
            value[SessionEntry.CHUNK_INDEX] = message.chunk.index
            value[SessionEntry.LAST_CHUNK] = message.chunk.last
    if message.purpose is not None:
        value["purpose"] = str(message.purpose)
    if message.final is not None:
        value["final"] = message.final
    value["parts"] = [write_part(one) for one in message.parts]
    return value | given_fields(metadata=dict(message.metadata))


def write_part(part: Part) -> dict[str, Any]:
    """Return a part: its type, and one of text, value, bytes and uri."""
    content: Any = part.content
    field = "value" if part.kind is PartKind.JSON else str(part.kind)
    if isinstance(content, bytes):
        content = base64.b64encode(content).decode("ascii")
    value = {
        **part.extra,
        "type": part.media_type,
        field: content,
        **given_fields(
            name=part.name,
            sha256=part.sha256,
            continued=part.continued,
            metadata=dict(part.metadata),
        ),
    }
    if part.size is not None:
        value["size"] = part.size
    return value
