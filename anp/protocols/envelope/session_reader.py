"""Messages of the envelope 1.1 become operations on sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final

from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Part,
    PartKind,
    SenderRole,
    Session,
    TaskChange,
    TaskProgress,
)
from anp.interaction.errors import InteractionError, InteractionFault
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
    TaskCancel,
    TaskCreate,
    TaskGet,
    TaskUpdate,
)
from anp.interaction.states import MAX_STATE, TaskState
from anp.protocols.envelope.messages import (
    EnvelopeMessage,
    EnvelopeStatus,
    ErrorPayload,
    EventPayload,
    MessageType,
    RequestPayload,
    ResponsePayload,
)
from anp.protocols.envelope.reader import EnvelopeError, read_message
from anp.protocols.envelope.session_objects import (
    read_chunk,
    read_mixed,
    read_said,
    read_session,
    read_task,
)
from anp.protocols.envelope.session_words import (
    CANCELED,
    ENVELOPE_TASKS_VERSION,
    NEEDS,
    REJECTED,
    SessionAction,
    SessionEntry,
    SessionEventName,
)
from anp.protocols.fields import MAX_ID, MAX_REF, MAX_TEXT, Fields, invalid
from anp.protocols.line import InvalidFrame, OperationFrame

_STATE_OF: Final = {word: state for state, word in NEEDS.items()}


def is_of_session(data: bytes, *, max_size: int, wall_now: datetime) -> bool:
    """Return whether a message belongs to a session and not to a call of one turn."""
    try:
        message = read_message(data, max_size=max_size, wall_now=wall_now)
    except EnvelopeError:
        return False
    return SessionEntry.SESSION in message.metadata


def read_operation(
    data: bytes,
    *,
    own_names: frozenset[str],
    peer_names: frozenset[str],
    max_size: int,
    wall_now: datetime,
) -> OperationFrame:
    """Read one message of a session; requester and executor of a task are not in it.

    Args:
        own_names: The DIDs that mean us on this channel.
        peer_names: The DIDs that the peer has proved.
        max_size: Most bytes.
        wall_now: Our clock, to flag messages from another time.

    Raises:
        InvalidFrame: It is not valid.
    """
    try:
        message = read_message(
            data, max_size=max_size, wall_now=wall_now, version=ENVELOPE_TASKS_VERSION
        )
    except EnvelopeError as exc:
        head = exc.head
        is_request = head.message_type == MessageType.REQUEST
        raise InvalidFrame(
            invalid(exc.reason),
            request=(head.message_id or "") if is_request else "",
            # Nobody would know which message an answer without both names means.
            answerable=is_request and head.message_id is not None,
        ) from None
    about = Fields(dict(message.metadata), "metadata")
    named = about.rest.get(SessionEntry.SESSION)
    session = named if isinstance(named, str) and len(named) <= MAX_ID else ""
    is_request = message.message_type == MessageType.REQUEST
    is_answer = SessionEntry.ANSWERS in message.metadata
    ref = 0
    try:
        _check_parties(message, own_names, peer_names)
        ref = _number(about, SessionEntry.ANSWERS if is_answer else SessionEntry.REF)
        if is_answer:
            operation = _answer(message, about, ref)
        else:
            operation = _operation(message, about)
    except InteractionError as exc:
        raise InvalidFrame(
            exc,
            ref=ref,
            session=session,
            request=message.message_id if is_request else "",
            answerable=is_request or bool(ref and session and not is_answer),
        ) from None
    return OperationFrame(
        ref=ref,
        operation=operation,
        request=message.message_id if is_request else "",
        flags=(*message.flags, *about.flags),
    )


def _check_parties(
    message: EnvelopeMessage, own_names: frozenset[str], peer_names: frozenset[str]
) -> None:
    """Let nobody speak in another's name, or to somebody else (ENV-Q13)."""
    if message.sender_id not in peer_names:
        raise InteractionError(
            InteractionFault.NOT_ALLOWED, "sender_id is not who speaks on this channel"
        )
    if message.receiver_id not in own_names:
        raise InteractionError(
            InteractionFault.NOT_ALLOWED, "receiver_id is nobody on this channel"
        )


def _number(about: Fields, name: str) -> int:
    if not about.has(SessionEntry.SESSION):
        raise InteractionError(
            InteractionFault.NOT_ALLOWED,
            "this channel carries sessions; calls of one turn have one of their own",
        )
    least = 0 if name == SessionEntry.ANSWERS else 1
    number = about.integer(name, least=least)
    if number is None or number > MAX_REF:
        raise invalid(f"metadata: {name} is not an integer of {least} to {MAX_REF}")
    return number


def _answer(message: EnvelopeMessage, about: Fields, ref: int) -> Operation:
    session = about.optional_text(SessionEntry.SESSION)
    match message.payload:
        case EventPayload(SessionEventName.RECEIVED, data):
            fields = Fields(data, "event_data")
            told = fields.take("task")
            task = None if told is None else read_task(Fields(told, "a task"))
            return Acknowledgement(session=session, ref=ref, task=task)
        case EventPayload(SessionEventName.REFUSED, data):
            fields = Fields(data, "event_data")
            code = fields.text("code", limit=MAX_STATE)
            text = fields.for_people("message")
        case ErrorPayload(code, text, details):
            fields = Fields(details, "details")
            code, text = code[:MAX_STATE], text[:MAX_TEXT]
        case _:
            raise invalid("an answer is an error, or an event received or refused")
    seconds = max(0.0, float(fields.number("retry_after") or 0))
    return RefusedOperation(
        session=session, ref=ref, code=code, text=text, retry_after=seconds
    )


def _operation(message: EnvelopeMessage, about: Fields) -> Operation:
    session = about.text(SessionEntry.SESSION)
    match message.payload:
        case RequestPayload(action, parameters):
            fields = Fields(parameters, "parameters")
            read = _REQUESTS.get(action)
            if read is not None:
                return read(session, fields)
            return _task_create(message, session, action, fields)
        case ResponsePayload() as payload:
            return _response(message, payload, session, about)
        case ErrorPayload() as payload:
            return _handed_back(message, payload, session, about)
        case EventPayload(SessionEventName.MESSAGE, data):
            return _said(message, Fields(data, "event_data"), session, about)
    raise InteractionError(
        InteractionFault.UNKNOWN_OPERATION, "no such message in a session"
    )


# Requests.


def _open(name: str, fields: Fields) -> Operation:
    return SessionOpen(session=_named(name, fields))


def _session_update(name: str, fields: Fields) -> Operation:
    return SessionUpdate(session=_named(name, fields))


def _named(name: str, fields: Fields) -> Session:
    return replace(read_session(fields), id=name)


def _close(name: str, fields: Fields) -> Operation:
    return SessionClose(session=name)


def _cancel(name: str, fields: Fields) -> Operation:
    return TaskCancel(session=name, task=fields.text("message_id"))


def _status(name: str, fields: Fields) -> Operation:
    return TaskGet(session=name, task=fields.text("message_id"))


def _notify(name: str, fields: Fields) -> Operation:
    address = fields.address("address")
    if not address:
        raise invalid("parameters: address is empty")
    return NotifyRegister(
        session=name,
        task=fields.optional_text("message_id"),
        address=address,
        expires=fields.date_time("expires"),
    )


def _notify_end(name: str, fields: Fields) -> Operation:
    return NotifyUnregister(session=name, task=fields.optional_text("message_id"))


_REQUESTS: Final[dict[str, Callable[[str, Fields], Operation]]] = {
    SessionAction.OPEN: _open,
    SessionAction.UPDATE: _session_update,
    SessionAction.CLOSE: _close,
    SessionAction.CANCEL: _cancel,
    SessionAction.STATUS: _status,
    SessionAction.NOTIFY: _notify,
    SessionAction.NOTIFY_END: _notify_end,
}


def _task_create(
    message: EnvelopeMessage, session: str, action: str, fields: Fields
) -> Operation:
    task = read_task(fields, id=message.message_id, session=session)
    named = "" if action == SessionAction.TASK else action
    return TaskCreate(task=replace(task, capability=named, state=TaskState.REQUESTED))


# Answers to a request that began a task.


def _response(
    message: EnvelopeMessage, payload: ResponsePayload, session: str, about: Fields
) -> Operation:
    result = Fields(payload.result, "result")
    task = message.correlation_id or ""
    is_end = payload.status in (EnvelopeStatus.SUCCESS, EnvelopeStatus.FAILURE)
    told = result.take("message")
    if told is not None and not is_end:
        said = read_said(
            Fields(told, "a message"),
            session=session,
            task=task,
            sender=message.sender_id,
            role=SenderRole.SERVICE,
        )
        return MessageSend(message=replace(said, chunk=read_chunk(about)))
    messages = read_mixed(result, "messages")
    if not all(isinstance(one, Message) for one in messages):
        raise invalid("result: messages has something else")
    content = _content(payload, result, task)
    if payload.status == EnvelopeStatus.SUCCESS and result.rest and not messages:
        messages = (_plain_result(message, payload, session, task),)
    return TaskUpdate(
        session=session,
        content=content,
        at=about.date_time(SessionEntry.AT),
        messages=tuple(one for one in messages if isinstance(one, Message)),
    )


def _plain_result(
    message: EnvelopeMessage, payload: ResponsePayload, session: str, task: str
) -> Message:
    """Return the result of a peer that gives it with its success, as in a call."""
    return Message(
        id=message.message_id,
        session=session,
        task=task,
        sender=message.sender_id,
        role=SenderRole.SERVICE,
        purpose=MessagePurpose.RESULT,
        final=True,
        parts=(
            Part(
                kind=PartKind.JSON,
                content=payload.result,
                media_type="application/json",
            ),
        ),
    )


def _content(
    payload: ResponsePayload, result: Fields, task: str
) -> TaskChange | TaskProgress:
    if payload.status == EnvelopeStatus.SUCCESS:
        return TaskChange(task=task, state=TaskState.COMPLETED)
    if payload.status == EnvelopeStatus.FAILURE:
        state = result.optional_text("state", limit=MAX_STATE)
        error = Fields(payload.error, "error")
        return _failure(error, task, is_failed=state == TaskState.FAILED)
    needs = result.optional_text("needs", limit=MAX_STATE)
    state = _STATE_OF.get(needs, needs) or result.optional_text(
        "state", limit=MAX_STATE
    )
    if state:
        if state in _ENDS:
            raise invalid("result: a state that ends the task is told by the status")
        return TaskChange(
            task=task,
            state=state,
            code=result.optional_text("code", limit=MAX_STATE),
            reason=result.for_people("reason"),
        )
    # Any other word than those of an end says how far the work is.
    told = Fields(result.mapping("progress"), "progress")
    return TaskProgress(
        task=task,
        progress=told.number("progress"),
        total=told.number("total"),
        text=told.for_people("text"),
    )


_ENDS: Final = frozenset(
    {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED}
)


def _failure(error: Fields, task: str, *, is_failed: bool) -> TaskChange:
    code = error.optional_text("code", limit=MAX_STATE)
    is_cancel = code == CANCELED and not is_failed
    return TaskChange(
        task=task,
        state=TaskState.CANCELED if is_cancel else TaskState.FAILED,
        code=error.optional_text("cause", limit=MAX_STATE) if is_cancel else code,
        reason=error.for_people("message"),
        may_have_run=error.boolean("may_have_run") or False,
    )


def _handed_back(
    message: EnvelopeMessage, payload: ErrorPayload, session: str, about: Fields
) -> Operation:
    """Read the error by which a service does not do a task."""
    if message.correlation_id is None:
        raise invalid("metadata: correlation_id names no request")
    details = Fields(payload.details, "details")
    code = payload.code[:MAX_STATE]
    if code == REJECTED:
        code = details.optional_text("code", limit=MAX_STATE)
    change = TaskChange(
        task=message.correlation_id,
        state=TaskState.REJECTED,
        code=code,
        reason=payload.message,
    )
    messages = read_mixed(details, "messages")
    return TaskUpdate(
        session=session,
        content=change,
        at=about.date_time(SessionEntry.AT),
        messages=tuple(one for one in messages if isinstance(one, Message)),
    )


def _said(
    message: EnvelopeMessage, fields: Fields, session: str, about: Fields
) -> Operation:
    said = read_said(
        fields,
        session=session,
        task=fields.optional_text("task"),
        sender=message.sender_id,
        role=None,
    )
    return MessageSend(message=replace(said, chunk=read_chunk(about)))
