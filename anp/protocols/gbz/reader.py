"""Bytes of a peer become an operation, strictly by tables 2 to 5 of GB/Z 185.6."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from anp.interaction.elements import (
    Chunk,
    Message,
    MessagePurpose,
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
from anp.interaction.states import MAX_STATE, TaskState, is_legal
from anp.protocols.fields import MAX_ITEMS, MAX_PARTIES, MAX_REF, Fields, invalid
from anp.protocols.gbz.file_fields import parse_frame, read_piece, read_range
from anp.protocols.gbz.words import (
    ENCODINGS,
    FILE,
    HYBRID,
    MODES,
    PROGRESS,
    PURPOSES,
    ROLES,
    STATES,
    GbzOperation,
)
from anp.protocols.line import InvalidFrame, OperationFrame
from negotiation.errors import JsonError

INTENT: Final = "intent"
"Entry of a data item's `metadata` that names the wanted capability."


def read_frame(data: bytes, *, max_size: int, raw: bool = False) -> OperationFrame:
    """Read one frame; requester and executor of a task are not in it.

    Args:
        max_size: Most bytes.
        raw: A piece of a file may stand behind the JSON (extension `binary`).

    Raises:
        InvalidFrame: It is not valid.
    """
    return read_operation(frame_fields(data, max_size=max_size, raw=raw))


def frame_fields(data: bytes, *, max_size: int, raw: bool = False) -> Fields:
    """Return the fields of a frame; InvalidFrame if it is no JSON object."""
    try:
        return Fields(parse_frame(data, max_size=max_size, raw=raw), "a frame")
    except JsonError as exc:
        raise InvalidFrame(invalid(str(exc))) from None
    except InteractionError as exc:
        raise InvalidFrame(exc) from None


def read_operation(fields: Fields) -> OperationFrame:
    """Read the fields of a frame; InvalidFrame if they are not valid."""
    op, ref = fields.take("op"), fields.take("ref")
    if isinstance(ref, bool) or not isinstance(ref, int) or not 0 <= ref <= MAX_REF:
        ref = None
    is_answer = op in (GbzOperation.ACK, GbzOperation.ERROR)
    session = _readable_session(fields, op)
    try:
        if ref is None or (ref == 0 and not is_answer):
            raise invalid(f"ref is not an integer of 1 to {MAX_REF}")
        read = _READERS.get(op) if isinstance(op, str) else None
        if read is None:
            raise InteractionError(
                InteractionFault.UNKNOWN_OPERATION, "no such operation in this version"
            )
        operation = read(fields, ref)
    except InteractionError as exc:
        raise InvalidFrame(
            exc, ref=ref or 0, session=session, answerable=not is_answer
        ) from None
    return OperationFrame(ref=ref, operation=operation, flags=tuple(fields.flags))


def _readable_session(fields: Fields, op: object) -> str:
    name = "id" if op in _OF_SESSION else "sessionId"
    value = fields.rest.get(name)
    return value if isinstance(value, str) and len(value) <= 512 else ""


_OF_SESSION = (
    GbzOperation.SESSION_OPEN,
    GbzOperation.SESSION_UPDATE,
    GbzOperation.SESSION_CLOSE,
)


# Operations


def _session_open(fields: Fields, ref: int) -> Operation:
    return SessionOpen(session=_session(fields))


def _session_update(fields: Fields, ref: int) -> Operation:
    return SessionUpdate(session=_session(fields))


def _session_close(fields: Fields, ref: int) -> Operation:
    return SessionClose(session=fields.text("id"))


def _task_create(fields: Fields, ref: int) -> Operation:
    return TaskCreate(task=read_task(fields))


def read_update(fields: Fields, ref: int) -> TaskUpdate:
    """Read a report of an executor."""
    progress = fields.mapping("progress")
    task = read_task(fields)
    content: TaskChange | TaskProgress
    if task.state == PROGRESS:
        told = Fields(progress, "progress")
        content = TaskProgress(
            task=task.id,
            progress=told.number("progress"),
            total=told.number("total"),
            text=told.for_people("text"),
        )
    else:
        content = TaskChange(
            task=task.id,
            state=task.state,
            code=task.code,
            reason=task.reason,
            may_have_run=task.may_have_run,
            at=task.changed_at,
        )
    return TaskUpdate(
        session=task.session,
        content=content,
        at=task.changed_at,
        messages=task.messages,
    )


def read_cancel(fields: Fields, ref: int) -> TaskCancel:
    """Read a wish for the end of a task."""
    return TaskCancel(session=fields.text("sessionId"), task=fields.text("id"))


def _task_get(fields: Fields, ref: int) -> Operation:
    return TaskGet(
        session=fields.text("sessionId"),
        task=fields.text("id"),
        file=read_range(fields.take(FILE)),
    )


def _message_send(fields: Fields, ref: int) -> Operation:
    return MessageSend(message=read_message(fields))


def _notify_register(fields: Fields, ref: int) -> Operation:
    address = fields.address("address")
    if not address:
        raise invalid("a frame: address is empty")
    return NotifyRegister(
        session=fields.text("sessionId"),
        task=fields.optional_text("taskId"),
        address=address,
        expires=fields.date_time("expires"),
    )


def _notify_unregister(fields: Fields, ref: int) -> Operation:
    return NotifyUnregister(
        session=fields.text("sessionId"), task=fields.optional_text("taskId")
    )


def _ack(fields: Fields, ref: int) -> Operation:
    task = fields.take("task")
    found = None if task is None else _as_state(read_task(fields.inner(task, "a task")))
    return Acknowledgement(
        session=fields.optional_text("sessionId"),
        ref=ref,
        task=found,
        piece=read_piece(fields.take(FILE)),
    )


def _error(fields: Fields, ref: int) -> Operation:
    return RefusedOperation(
        session=fields.optional_text("sessionId"),
        ref=ref,
        code=fields.text("code", limit=MAX_STATE),
        text=fields.for_people("text"),
        retry_after=max(0.0, float(fields.number("retryAfter") or 0)),
    )


_READERS: Final[dict[str, Callable[[Fields, int], Operation]]] = {
    GbzOperation.SESSION_OPEN: _session_open,
    GbzOperation.SESSION_UPDATE: _session_update,
    GbzOperation.SESSION_CLOSE: _session_close,
    GbzOperation.TASK_CREATE: _task_create,
    GbzOperation.TASK_UPDATE: read_update,
    GbzOperation.TASK_CANCEL: read_cancel,
    GbzOperation.TASK_GET: _task_get,
    GbzOperation.MESSAGE_SEND: _message_send,
    GbzOperation.NOTIFY_REGISTER: _notify_register,
    GbzOperation.NOTIFY_UNREGISTER: _notify_unregister,
    GbzOperation.ACK: _ack,
    GbzOperation.ERROR: _error,
}


# Objects


def _session(fields: Fields) -> Session:
    """Read table 5."""
    receivers = fields.items("receivers", limit=MAX_PARTIES)
    if not receivers:
        raise invalid("a session: receivers is not an array of at least one")
    name, context = fields.text("id"), _mixed(fields, "context")
    if any(one.session != name for one in context):
        raise invalid("a session: context has an element of another session")
    return Session(
        id=name,
        requester=read_party(fields.inner(fields.take("sender"), "sender")),
        participants=tuple(
            _receiver(fields.inner(one, "a receiver")) for one in receivers
        ),
        expires=fields.date_time("expires"),
        context=context,
        extra=dict(fields.rest),
    )


def read_party(fields: Fields) -> Party:
    """Read the id and the address of an agent."""
    return Party(
        id=fields.text("id"), address=fields.address("address"), extra=dict(fields.rest)
    )


def _receiver(fields: Fields) -> Party:
    params = fields.mapping("params")
    hybrid = PartyMode.GROUP if "groupId" in params else PartyMode.P2P
    mode: PartyMode = fields.word("mode", {**MODES, HYBRID: hybrid})
    if mode is PartyMode.GROUP and not isinstance(params.get("groupId"), str):
        raise invalid("a receiver: params.groupId is not a text")
    return replace(read_party(fields), mode=mode, params=params)


def _mixed(fields: Fields, name: str) -> tuple[Message, ...] | tuple[Task, ...]:
    """Read an array that has messages only, or tasks only (GBZ-Q13)."""
    values = fields.items(name, limit=MAX_ITEMS)
    found = [fields.inner(one, f"an element of {name}") for one in values]
    kinds = {(one.has("dataItems"), one.has("state")) for one in found}
    if kinds - {(True, False), (False, True)} or len(kinds) > 1:
        raise invalid(f"{name} has neither messages only nor tasks only")
    if kinds == {(True, False)}:
        return tuple(read_message(one) for one in found)
    return tuple(_as_state(read_task(one)) for one in found)


def _as_state(task: Task) -> Task:
    """Return a task whose state is one: who tells of progress is at work."""
    return replace(task, state=TaskState.WORKING) if task.state == PROGRESS else task


def read_task(fields: Fields) -> Task:
    """Read table 4."""
    messages = [
        read_message(fields.inner(one, "a message"))
        for one in fields.items("messages", limit=MAX_ITEMS)
    ]
    depends_on = fields.items("dependsOn", limit=MAX_ITEMS)
    if not all(isinstance(one, str) for one in depends_on):
        raise invalid("a task: dependsOn is not an array of texts")
    name = fields.text("id")
    if name in depends_on:
        raise invalid("a task: dependsOn names the task itself")
    trigger = fields.mapping("trigger")
    capability = fields.optional_text("capability")
    if not capability:
        capability, messages = _intent(messages)
    return Task(
        id=name,
        session=fields.text("sessionId"),
        requester="",
        executor="",
        state=_state(fields),
        changed_at=fields.date_time("stateChangedAt"),
        capability=capability,
        messages=tuple(messages),
        depends_on=tuple(depends_on),
        inputs=_mixed(fields, "artifacts"),
        parent=fields.optional_text("parent"),
        trigger=trigger or None,
        code=fields.optional_text("code", limit=MAX_STATE),
        reason=fields.for_people("reason"),
        may_have_run=fields.boolean("mayHaveRun") or False,
        extra=dict(fields.rest),
    )


def _state(fields: Fields) -> str:
    word = fields.text("state", limit=MAX_STATE)
    state = STATES.get(word, word)
    if state != PROGRESS and not is_legal(state):
        raise invalid("a task: state is not one of the words for states")
    return state


def _intent(messages: list[Message]) -> tuple[str, list[Message]]:
    """Take the wanted capability from the first data item of the first message."""
    if not messages:
        return "", messages
    first = messages[0].parts[0]
    intent = first.metadata.get(INTENT)
    if not isinstance(intent, str) or not intent:
        return "", messages
    metadata = {key: one for key, one in first.metadata.items() if key != INTENT}
    parts = (replace(first, metadata=metadata), *messages[0].parts[1:])
    return intent, [replace(messages[0], parts=parts), *messages[1:]]


def read_message(fields: Fields) -> Message:
    """Read table 3."""
    role: SenderRole = fields.word("senderRole", ROLES)
    purpose: MessagePurpose | None = fields.word("artifact", PURPOSES, needed=False)
    final = fields.boolean("final")
    chunk = _chunk(fields)
    if chunk is not None and not chunk.last:
        # It is read on the last chunk.
        final = None
    if final and (
        role is SenderRole.REQUESTER or purpose is MessagePurpose.COMMUNICATION
    ):
        raise invalid("a message: final belongs to results of a service")
    items = fields.take("dataItems")
    if isinstance(items, dict):
        items = [items]
    if not isinstance(items, list) or not 0 < len(items) <= MAX_ITEMS:
        raise invalid(f"a message: dataItems is not an array of 1 to {MAX_ITEMS}")
    return Message(
        id=fields.text("id"),
        session=fields.text("sessionId"),
        task=fields.optional_text("taskId"),
        sender=fields.text("senderId"),
        role=role,
        purpose=purpose,
        final=final,
        chunk=chunk,
        parts=tuple(read_data(one) for one in items),
        metadata=fields.mapping("metadata"),
        extra=dict(fields.rest),
    )


def _chunk(fields: Fields) -> Chunk | None:
    index = fields.integer("chunkIndex")
    last = fields.boolean("lastChunk")
    if (index is None) != (last is None):
        raise invalid("a message: chunkIndex and lastChunk come together")
    return None if index is None else Chunk(index=index, last=bool(last))


def read_data(value: object) -> Part:
    """Read table 2; InteractionError if it is no data item."""
    fields = Fields(value, "a data item")
    media_type = fields.media_type("type")
    about = Fields(fields.mapping("metadata", needed=True), "metadata")
    payload = fields.take("payload")
    if payload is None:
        raise invalid("a data item: payload is absent or null")
    encoding = about.take("encoding")
    is_known = isinstance(encoding, str) and encoding in ENCODINGS
    kind, content = _content(media_type, encoding if is_known else None, payload)
    # The encoding of a payload that we do not decode is for the agent that reads it.
    unread = {} if is_known or encoding is None else {"encoding": encoding}
    sha256 = about.sha256("sha256")
    return Part(
        kind=kind,
        content=content,
        media_type=media_type,
        name=about.optional_text("name"),
        size=about.integer("size"),
        sha256=sha256,
        continued=about.boolean("continued") or False,
        metadata={**about.rest, **unread},
        extra=dict(fields.rest),
    )


def _content(media_type: str, encoding: object, payload: Any) -> tuple[PartKind, Any]:
    """Return kind and content of a payload (GBZ-Q19)."""
    if encoding is None:
        if isinstance(payload, str) and not is_json(media_type):
            return PartKind.TEXT, payload
        return PartKind.JSON, payload
    if not isinstance(payload, str):
        raise invalid("a data item: a payload with an encoding is a text")
    match encoding:
        case "base64":
            try:
                return PartKind.BYTES, base64.b64decode(payload, validate=True)
            except (binascii.Error, ValueError):
                raise invalid("a data item: payload is not base64") from None
        case "uri":
            return PartKind.URI, payload
        case "text":
            return PartKind.TEXT, payload
        case "json" if payload == "null":
            return PartKind.JSON, None
        case _:
            raise invalid("a data item: only the payload `null` has the encoding json")


def is_json(media_type: str) -> bool:
    """Return whether a payload of this type is a JSON value and no text."""
    essence = media_type.partition(";")[0].strip().lower()
    return essence == "application/json" or essence.endswith("+json")
