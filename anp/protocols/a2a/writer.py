"""Writes the objects of A2A in the form of 0.3 or of 1.0 (A2A-13 to A2A-18). Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from anp.interaction.elements import Part, PartKind
from anp.protocols.a2a.objects import (
    A2aMessage,
    A2aPage,
    A2aTask,
    Artifact,
    ArtifactUpdate,
    ListParams,
    PushConfig,
    StatusUpdate,
    TaskUpdate,
)
from anp.protocols.a2a.words import A2aVersion, state_word
from anp.protocols.timestamps import write_timestamp

OLD = A2aVersion.V03


def write_task(
    task: A2aTask, version: A2aVersion, *, history: int | None = None
) -> dict[str, Any]:
    """Return a task as JSON.

    Args:
        history: Most messages of the history, the newest; None for all.
    """
    messages = task.history
    if history is not None:
        messages = messages[-history:] if history else ()
    written = {
        "id": task.id,
        "contextId": task.context,
        "status": _status(task, version),
        **_some("artifacts", [write_artifact(one, version) for one in task.artifacts]),
        **_some("history", [write_message(one, version) for one in messages]),
        **_some("metadata", dict(task.metadata)),
    }
    return _kind(written, "task", version)


def write_page(
    page: A2aPage, wanted: ListParams, version: A2aVersion
) -> dict[str, Any]:
    """Return a page of tasks as JSON."""
    tasks = [
        one if wanted.with_artifacts else replace(one, artifacts=())
        for one in page.tasks
    ]
    return {
        "tasks": [write_task(one, version, history=wanted.history) for one in tasks],
        "nextPageToken": page.next_token,
        "pageSize": wanted.page_size,
        "totalSize": page.total,
    }


def _status(found: A2aTask | StatusUpdate, version: A2aVersion) -> dict[str, Any]:
    status: dict[str, Any] = {"state": state_word(found.state, version)}
    if found.message is not None:
        status["message"] = write_message(found.message, version)
    if found.changed_at is not None:
        status["timestamp"] = write_timestamp(found.changed_at)
    return status


def write_message(message: A2aMessage, version: A2aVersion) -> dict[str, Any]:
    """Return a message as JSON."""
    role = "agent" if message.is_agent else "user"
    written = {
        "messageId": message.id,
        "role": role if version is OLD else f"ROLE_{role.upper()}",
        "parts": [write_part(part, version) for part in message.parts],
        **_some("taskId", message.task),
        **_some("contextId", message.context),
        **_some("metadata", dict(message.metadata)),
        **_some("extensions", list(message.extensions)),
        **_some("referenceTaskIds", list(message.references)),
    }
    return _kind(written, "message", version)


def write_artifact(artifact: Artifact, version: A2aVersion) -> dict[str, Any]:
    """Return an artifact as JSON."""
    return {
        "artifactId": artifact.id,
        **_some("name", artifact.name),
        **_some("description", artifact.description),
        "parts": [write_part(part, version) for part in artifact.parts],
        **_some("metadata", dict(artifact.metadata)),
    }


def write_part(part: Part, version: A2aVersion) -> dict[str, Any]:
    """Return a part as JSON.

    In 0.3 data has to be an object; any other value stands there as `value`.
    """
    return _old_part(part) if version is OLD else _part(part)


def _part(part: Part) -> dict[str, Any]:
    written: dict[str, Any] = {
        **_content(part, text="text", data="raw", link="url"),
        **_some("filename", part.name),
        **_some("metadata", dict(part.metadata)),
    }
    if part.kind is not PartKind.TEXT or part.media_type != "text/plain":
        written["mediaType"] = part.media_type
    return written


def _old_part(part: Part) -> dict[str, Any]:
    metadata = _some("metadata", dict(part.metadata))
    match part.kind:
        case PartKind.TEXT:
            return {"kind": "text", "text": part.content, **metadata}
        case PartKind.JSON:
            value = part.content
            data = value if isinstance(value, dict) else {"value": value}
            return {"kind": "data", "data": data, **metadata}
    file = {
        **_content(part, text="", data="bytes", link="uri"),
        "mimeType": part.media_type,
        **_some("name", part.name),
    }
    return {"kind": "file", "file": file, **metadata}


def _content(part: Part, *, text: str, data: str, link: str) -> dict[str, Any]:
    if isinstance(part.content, bytes):
        return {data: base64.b64encode(part.content).decode("ascii")}
    names = {PartKind.TEXT: text, PartKind.URI: link, PartKind.JSON: "data"}
    return {names[part.kind]: part.content}


def write_stream(update: TaskUpdate, version: A2aVersion) -> dict[str, Any]:
    """Return an object of a stream as JSON; 1.0 names the kind of each."""
    match update:
        case A2aTask():
            return _wrap("task", write_task(update, version), version)
        case A2aMessage():
            return _wrap("message", write_message(update, version), version)
        case StatusUpdate():
            return _wrap("statusUpdate", _status_update(update, version), version)
        case ArtifactUpdate():
            return _wrap("artifactUpdate", _artifact_update(update, version), version)


def _status_update(update: StatusUpdate, version: A2aVersion) -> dict[str, Any]:
    written = {
        "taskId": update.task,
        "contextId": update.context,
        "status": _status(update, version),
        **_some("metadata", dict(update.metadata)),
    }
    if version is OLD:
        written["final"] = update.is_last
    return _kind(written, "status-update", version)


def _artifact_update(update: ArtifactUpdate, version: A2aVersion) -> dict[str, Any]:
    written = {
        "taskId": update.task,
        "contextId": update.context,
        "artifact": write_artifact(update.artifact, version),
        "append": update.append,
        "lastChunk": update.last,
    }
    return _kind(written, "artifact-update", version)


def write_push(config: PushConfig, version: A2aVersion) -> dict[str, Any]:
    """Return an address for push notifications as JSON, without its credentials."""
    written: dict[str, Any] = {
        "url": config.url,
        **_some("id", config.id),
        **_some("token", config.token),
    }
    if version is OLD:
        if config.scheme:
            written["authentication"] = {"schemes": [config.scheme]}
        return {"taskId": config.task, "pushNotificationConfig": written}
    if config.scheme:
        written["authentication"] = {"scheme": config.scheme}
    return {**written, "taskId": config.task}


def write_pushes(configs: Iterable[PushConfig], version: A2aVersion) -> Any:
    """Return the addresses of a task as JSON."""
    written = [write_push(one, version) for one in configs]
    return written if version is OLD else {"configs": written, "nextPageToken": ""}


def _wrap(name: str, written: dict[str, Any], version: A2aVersion) -> dict[str, Any]:
    return written if version is OLD else {name: written}


def _kind(written: dict[str, Any], kind: str, version: A2aVersion) -> dict[str, Any]:
    return {**written, "kind": kind} if version is OLD else written


def _some(name: str, value: Mapping[str, Any] | Iterable[Any] | str) -> dict[str, Any]:
    """Return a field, or nothing for an empty value."""
    return {name: value} if value else {}
