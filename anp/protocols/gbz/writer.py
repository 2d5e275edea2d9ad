"""Operations become the bytes of GB/Z 185.6, exactly by its tables 2 to 5."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from anp.interaction.elements import (
    Message,
    Part,
    PartKind,
    Party,
    Session,
    Task,
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
from anp.protocols.fields import given_fields
from anp.protocols.gbz.file_fields import with_piece
from anp.protocols.gbz.reader import INTENT, is_json
from anp.protocols.gbz.words import ENCODINGS, FILE, PROGRESS, GbzOperation
from anp.protocols.timestamps import write_timestamp
from jsonic.exact_numbers import write_json
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json


class GbzTooLarge(JsonError):
    """A frame of ours would be over the limit."""


def write_frame(
    operation: Operation, ref: int, *, max_size: int, raw: bool = False
) -> bytes:
    """Return the bytes of a frame.

    Args:
        ref: Number of the operation; that of the answered one for an answer.
        max_size: Most bytes.
        raw: A piece of a file goes as it is, as peers with the extension `binary` read.

    Raises:
        GbzTooLarge: It would have more.
        JsonError: It is nothing that a strict reader takes.
    """
    op, value = _frame(operation)
    piece = operation.piece if isinstance(operation, Acknowledgement) else None
    if isinstance(operation, Acknowledgement | RefusedOperation):
        ref = operation.ref
    data = json_bytes({"op": op, "ref": ref, **value})
    parse_json(data, max_size=max(max_size, len(data)))
    if piece is not None:
        data = with_piece(data, piece, raw=raw)
    if len(data) > max_size:
        raise GbzTooLarge(f"{len(data)} bytes, at most {max_size} are sent")
    return data


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """Return the bytes of a frame; JsonError if it cannot be written as JSON."""
    try:
        text = write_json(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        return text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as exc:
        raise JsonError(f"cannot be written as JSON: {type(exc).__name__}") from None


def _frame(operation: Operation) -> tuple[GbzOperation, dict[str, Any]]:
    match operation:
        case SessionOpen() | SessionUpdate() | SessionClose():
            return _of_session(operation)
        case TaskCreate() | TaskUpdate() | TaskCancel() | TaskGet():
            return _of_task(operation)
        case MessageSend(message=message):
            return GbzOperation.MESSAGE_SEND, written_message(message)
        case NotifyRegister():
            value = {
                "sessionId": operation.session,
                **given_fields(taskId=operation.task),
                "address": operation.address,
            }
            if operation.expires is not None:
                value["expires"] = write_timestamp(operation.expires)
            return GbzOperation.NOTIFY_REGISTER, value
        case NotifyUnregister(session=session_id, task=name):
            value = {"sessionId": session_id, **given_fields(taskId=name)}
            return GbzOperation.NOTIFY_UNREGISTER, value
        case Acknowledgement(session=session_id, task=found):
            # Its piece of a file is put in at the end.
            told = {} if found is None else {"task": written_task(found)}
            return GbzOperation.ACK, {"sessionId": session_id, **told}
        case RefusedOperation(session=session_id, code=code, text=text) as refused:
            value = {"sessionId": session_id, "code": str(code), "text": text}
            # Not in the seed: we say when to come again.
            more = given_fields(retryAfter=refused.retry_after)
            return GbzOperation.ERROR, {**value, **more}
        case SubscribeCreate() | SubscribeCancel():
            raise JsonError("version 1 has no subscriptions")


def _of_session(
    operation: SessionOpen | SessionUpdate | SessionClose,
) -> tuple[GbzOperation, dict[str, Any]]:
    match operation:
        case SessionOpen(session=session):
            return GbzOperation.SESSION_OPEN, _session(session)
        case SessionUpdate(session=session):
            return GbzOperation.SESSION_UPDATE, _session(session)
        case SessionClose(session=name):
            return GbzOperation.SESSION_CLOSE, {"id": name}


def _of_task(
    operation: TaskCreate | TaskUpdate | TaskCancel | TaskGet,
) -> tuple[GbzOperation, dict[str, Any]]:
    match operation:
        case TaskCreate(task=task):
            return GbzOperation.TASK_CREATE, written_task(task)
        case TaskUpdate():
            return GbzOperation.TASK_UPDATE, written_update(operation)
        case TaskCancel(session=session_id, task=name):
            return GbzOperation.TASK_CANCEL, {"id": name, "sessionId": session_id}
        case TaskGet(session=session_id, task=name, file=file):
            value: dict[str, Any] = {"id": name, "sessionId": session_id}
            if file is not None:
                place = {"offset": file.offset, "length": file.length}
                value[FILE] = {"id": file.id, **place}
            return GbzOperation.TASK_GET, value


def _session(session: Session) -> dict[str, Any]:
    value = {
        **session.extra,
        "id": session.id,
        "sender": written_party(session.requester),
        "receivers": [
            {**written_party(one), "mode": str(one.mode), "params": dict(one.params)}
            for one in session.participants
        ],
    }
    if session.expires is not None:
        value["expires"] = write_timestamp(session.expires)
    if session.context:
        value["context"] = [_either(one) for one in session.context]
    return value


def written_party(party: Party) -> dict[str, Any]:
    """Return an agent's id and address."""
    return {**party.extra, "id": party.id, "address": party.address}


def _either(element: Message | Task) -> dict[str, Any]:
    return (
        written_message(element)
        if isinstance(element, Message)
        else written_task(element)
    )


def written_task(task: Task) -> dict[str, Any]:
    """Return a task, by table 4."""
    messages = [written_message(one) for one in task.messages]
    value: dict[str, Any] = {
        **task.extra,
        "id": task.id,
        "sessionId": task.session,
        "state": task.state,
    }
    if task.changed_at is not None:
        value["stateChangedAt"] = write_timestamp(task.changed_at)
    if task.capability and messages:
        messages[0]["dataItems"][0]["metadata"][INTENT] = task.capability
    elif task.capability:
        value["capability"] = task.capability
    if task.inputs:
        value["artifacts"] = [_either(one) for one in task.inputs]
    return value | given_fields(
        messages=messages,
        dependsOn=list(task.depends_on),
        parent=task.parent,
        trigger=dict(task.trigger or {}),
        code=task.code,
        reason=task.reason,
        mayHaveRun=task.may_have_run,
    )


def written_update(update: TaskUpdate) -> dict[str, Any]:
    """Return a report of an executor."""
    content = update.content
    value: dict[str, Any] = {"id": content.task, "sessionId": update.session}
    if isinstance(content, TaskProgress):
        told = {"progress": content.progress, "total": content.total}
        value["state"] = PROGRESS
        value["progress"] = {
            **{name: one for name, one in told.items() if one is not None},
            **given_fields(text=content.text),
        }
    else:
        value |= {"state": content.state} | given_fields(
            code=content.code, reason=content.reason, mayHaveRun=content.may_have_run
        )
    if update.at is not None:
        value["stateChangedAt"] = write_timestamp(update.at)
    if update.messages:
        value["messages"] = [written_message(one) for one in update.messages]
    return value


def written_message(message: Message) -> dict[str, Any]:
    """Return a message, by table 3."""
    value: dict[str, Any] = {
        **message.extra,
        "senderRole": str(message.role),
        "senderId": message.sender,
        "sessionId": message.session,
        **given_fields(taskId=message.task),
        "id": message.id,
    }
    if message.purpose is not None:
        value["artifact"] = str(message.purpose)
    if message.final is not None:
        value["final"] = message.final
    if message.chunk is not None:
        value["chunkIndex"] = message.chunk.index
        value["lastChunk"] = message.chunk.last
    value["dataItems"] = [write_data(one) for one in message.parts]
    return value | given_fields(metadata=dict(message.metadata))


def write_data(part: Part) -> dict[str, Any]:
    """Return a data item, by table 2."""
    payload: Any = part.content
    encoding, media_type = "", part.media_type
    match part.kind:
        case PartKind.BYTES:
            assert isinstance(part.content, bytes)
            encoding = "base64"
            payload = base64.b64encode(part.content).decode("ascii")
        case PartKind.URI:
            encoding = "uri"
        case PartKind.TEXT:
            encoding = "text" if is_json(part.media_type) else ""
        case PartKind.JSON if payload is None:
            encoding, payload = "json", "null"
        case PartKind.JSON if isinstance(payload, str) and not is_json(media_type):
            # Under any other type it would be read as a text.
            media_type = "application/json"
    # An agent's own entry must not say how the payload is read.
    metadata = {
        name: value
        for name, value in part.metadata.items()
        if name != "encoding" or value not in ENCODINGS
    } | given_fields(
        encoding=encoding, name=part.name, sha256=part.sha256, continued=part.continued
    )
    if part.size is not None:
        metadata["size"] = part.size
    return {**part.extra, "type": media_type, "metadata": metadata, "payload": payload}
