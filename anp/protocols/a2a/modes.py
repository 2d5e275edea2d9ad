"""Input and output modes: the media types of skills and of answers (A2A-19). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from anp.interaction.elements import Part, PartKind
from anp.protocols.a2a.objects import (
    A2aMessage,
    A2aTask,
    Artifact,
    ArtifactUpdate,
    StatusUpdate,
    TaskUpdate,
)
from jsonic.exact_numbers import write_json
from negotiation.need import Capability

JSON: Final = "application/json"
TEXT: Final = "text/plain"
BINARY: Final = "application/octet-stream"

_SHORT: Final = {"text": TEXT, "data": JSON, "file": BINARY}
"Names that older clients use in place of media types."


def input_modes(skill: Capability) -> tuple[str, ...]:
    """Return the media types that a skill takes."""
    return _modes(skill.input_modes, skill.input_schema)


def output_modes(skill: Capability) -> tuple[str, ...]:
    """Return the media types that a skill gives; JSON is given as text as well."""
    return _modes(skill.output_modes, skill.output_schema)


def _modes(said: Sequence[str], schema: Any) -> tuple[str, ...]:
    files = () if said or not _has_files(schema) else (BINARY,)
    return tuple(dict.fromkeys((JSON, TEXT, *map(_whole, said), *files)))


def _has_files(schema: Any) -> bool:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return isinstance(properties, dict) and not {"parts", "files"}.isdisjoint(
        properties
    )


def is_taken(modes: Sequence[str], accepted: Sequence[str]) -> bool:
    """Return whether a client takes one of the modes; without a word it takes all."""
    return not accepted or any(_takes(accepted, mode) for mode in modes)


def takes_files(modes: Sequence[str], parts: Sequence[Part]) -> bool:
    """Return whether a skill takes the files among parts; `BINARY` is any file."""
    files = (one for one in parts if one.kind in (PartKind.BYTES, PartKind.URI))
    return BINARY in modes or all(
        _takes(modes, _whole(one.media_type)) for one in files
    )


def _takes(accepted: Sequence[str], mode: str) -> bool:
    kind = mode.partition("/")[0]
    wanted = {_whole(one) for one in accepted}
    return not wanted.isdisjoint({mode, f"{kind}/*", "*/*", "*"})


def _whole(mode: str) -> str:
    """Return a media type in one form, without its parameters."""
    plain = mode.partition(";")[0].strip().lower()
    return _SHORT.get(plain, plain)


def fit(update: TaskUpdate, accepted: Sequence[str]) -> TaskUpdate:
    """Return an answer with its JSON as text for a client that takes only that."""
    if not _wants_text(accepted):
        return update
    match update:
        case A2aTask():
            return fit_task(update, accepted)
        case ArtifactUpdate():
            return replace(update, artifact=_artifact(update.artifact))
        case A2aMessage():
            return replace(update, parts=_texts(update.parts))
        case StatusUpdate():
            return update


def fit_task(task: A2aTask, accepted: Sequence[str]) -> A2aTask:
    """Return a task with its JSON as text for a client that takes only that."""
    if not _wants_text(accepted):
        return task
    return replace(task, artifacts=tuple(_artifact(one) for one in task.artifacts))


def _wants_text(accepted: Sequence[str]) -> bool:
    return bool(accepted) and not _takes(accepted, JSON) and _takes(accepted, TEXT)


def _artifact(artifact: Artifact) -> Artifact:
    return replace(artifact, parts=_texts(artifact.parts))


def _texts(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(
        Part.text(_words(part.content), metadata=dict(part.metadata))
        if part.kind is PartKind.JSON
        else part
        for part in parts
    )


def only_text(value: Any) -> str | None:
    """Return the text of an output that is nothing but one text, or None."""
    if isinstance(value, dict) and len(value) == 1:
        (found,) = value.values()
        return found if isinstance(found, str) else None
    return None


def _words(value: Any) -> str:
    text = only_text(value)
    return write_json(value, ensure_ascii=False) if text is None else text
