"""Reads what agents of A2A 0.3 and 1.0 answer (A2A-14, A2A-15, A2A-18). Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from anp.protocols.a2a.objects import (
    A2aMessage,
    A2aTask,
    Artifact,
    ArtifactUpdate,
    StatusUpdate,
    TaskUpdate,
)
from anp.protocols.a2a.reader import A2aFields, read_message, read_part, wrong
from anp.protocols.a2a.words import A2aVersion, read_state
from anp.protocols.timestamps import read_timestamp

MAX_ARTIFACTS: Final = 1_000
"Most artifacts and messages of a task that are read."

_KINDS: Final = {
    "task": "task",
    "message": "message",
    "status-update": "statusUpdate",
    "artifact-update": "artifactUpdate",
}
"The kinds of 0.3, with the fields in which 1.0 has the same objects."


def read_result(value: Any, version: A2aVersion) -> TaskUpdate:
    """Read a result: a task, a message, or an object of a stream.

    Raises:
        A2aError: It is none of them.
    """
    fields = A2aFields(value, "result")
    if version is A2aVersion.V03:
        kind = _KINDS.get(fields.text("kind"), "")
    else:
        kind = next((one for one in _KINDS.values() if one in fields), "")
        if not kind and "status" in fields:
            # Some methods answer with the task alone.
            kind = "task"
        elif kind:
            fields = A2aFields(fields.raw(kind), fields.at(kind))
    match kind:
        case "task":
            return _task(fields, version)
        case "message":
            return _message(fields.whole, version, fields.path)
        case "statusUpdate":
            return _status_update(fields, version)
        case "artifactUpdate":
            return _artifact_update(fields, version)
    raise wrong(fields.path, "must be a task, a message or an update")


def _task(fields: A2aFields, version: A2aVersion) -> A2aTask:
    state, at, message = _status(fields, version)
    found = fields.items("artifacts", most=MAX_ARTIFACTS)
    return A2aTask(
        id=fields.text("id", needed=True),
        context=fields.text("contextId"),
        state=state,
        changed_at=at,
        message=message,
        artifacts=tuple(
            _artifact(A2aFields(one, f"{fields.at('artifacts')}[{index}]"), version)
            for index, one in enumerate(found)
        ),
        metadata=fields.mapping("metadata"),
    )


def _status_update(fields: A2aFields, version: A2aVersion) -> StatusUpdate:
    state, at, message = _status(fields, version)
    return StatusUpdate(
        task=fields.text("taskId", needed=True),
        context=fields.text("contextId"),
        state=state,
        changed_at=at,
        message=message,
        metadata=fields.mapping("metadata"),
    )


def _artifact_update(fields: A2aFields, version: A2aVersion) -> ArtifactUpdate:
    found = fields.fields("artifact") or A2aFields(None, fields.at("artifact"))
    return ArtifactUpdate(
        task=fields.text("taskId", needed=True),
        context=fields.text("contextId"),
        artifact=_artifact(found, version),
        append=fields.flag("append", default=False),
        last=fields.flag("lastChunk", default=False),
    )


def _status(
    fields: A2aFields, version: A2aVersion
) -> tuple[str, datetime | None, A2aMessage | None]:
    status = fields.fields("status") or A2aFields(None, fields.at("status"))
    state = read_state(status.text("state", needed=True))
    if state is None:
        raise wrong(status.at("state"), "must be a state of a task")
    stamp = status.text("timestamp")
    try:
        at = read_timestamp(stamp).at if stamp else None
    except ValueError:
        raise wrong(status.at("timestamp"), "must be a time in ISO 8601") from None
    said = status.raw("message")
    message = None
    if said is not None:
        message = _message(said, version, status.at("message"))
    return state, at, message


def _message(value: Any, version: A2aVersion, path: str) -> A2aMessage:
    return read_message(value, version, path=path)


def _artifact(fields: A2aFields, version: A2aVersion) -> Artifact:
    parts = fields.items("parts", most=MAX_ARTIFACTS)
    return Artifact(
        id=fields.text("artifactId", needed=True),
        name=fields.text("name"),
        description=fields.text("description", most=8192),
        parts=tuple(
            read_part(one, version, path=f"{fields.at('parts')}[{index}]")
            for index, one in enumerate(parts)
        ),
        metadata=fields.mapping("metadata"),
    )
