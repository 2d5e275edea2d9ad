"""The arguments in the messages of a task, and the parameters for files. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from anp.interaction.elements import Part, PartKind, Task
from anp.sidecar.files.names import plain_name
from negotiation.need import Capability

__all__ = ["FilePlaces", "arguments_of", "file_places", "files_of"]

MAX_INLINE: Final = 2 * 1024 * 1024
"Most bytes of the files that a capability gets as base64 in its arguments."


def arguments_of(task: Task, capability: Capability) -> dict[str, Any] | None:
    """Return the arguments in a task's messages, or None if there are none.

    They are the first JSON object. A text will do for a capability that needs nothing
    but one text.
    """
    parts = [part for message in task.messages for part in message.parts]
    for part in parts:
        if part.kind is PartKind.JSON and isinstance(part.content, dict):
            return part.content
    texts = [str(part.content) for part in parts if part.kind is PartKind.TEXT]
    name = _only_text(capability)
    if not texts:
        # Files have their own way to the arguments.
        others = len(parts) - len(files_of(task))
        return {} if not others else None
    return None if name is None else {name: "\n".join(texts)}


def _only_text(capability: Capability) -> str | None:
    schema = capability.input_schema
    if not isinstance(schema, dict):
        return None
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return None
    required = schema.get("required", [])
    if len(required) != 1:
        return None
    kind = properties.get(required[0])
    is_text = isinstance(kind, dict) and kind.get("type") == "string"
    return str(required[0]) if is_text else None


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """The parameters of a capability that take the files of a task."""

    paths: Mapping[str, int]
    "Parameters that take the path of one file: its index."

    lists: Mapping[str, Sequence[int]]
    "Parameters that take the paths of several files."

    objects: Mapping[str, Sequence[int]]
    "Parameters that take files as objects with `mediaType`, `name` and `data`."


def files_of(task: Task) -> list[Part]:
    """Return the files that came with a task: announced ones, and bytes as they are."""
    parts = [part for message in task.messages for part in message.parts]
    return [one for one in parts if one.is_file or one.kind is PartKind.BYTES]


def file_places(
    schema: object, arguments: Mapping[str, Any], files: Sequence[Part]
) -> FilePlaces:
    """Find a parameter for each file: that of its name, else the next one for files.

    Raises:
        ValueError: The capability takes no such file; the words are for the requester.
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    free = {
        name: kind
        for name, one in (properties if isinstance(properties, Mapping) else {}).items()
        if name not in arguments and (kind := _kind(one))
    }
    paths: dict[str, int] = {}
    lists: dict[str, list[int]] = {}
    objects: dict[str, list[int]] = {}
    for index, file in sorted(
        enumerate(files), key=lambda one: one[1].name not in free
    ):
        several = [name for name, kind in free.items() if kind != "path"]
        single = [name for name in free if name not in several and name not in paths]
        named = [file.name] if file.name in (*single, *several) else []
        name = next(iter((*named, *single, *several)), None)
        if name is None:
            shown = plain_name(file.name) or "without a name"
            raise ValueError(f"the capability takes no file {shown!r} besides")
        if free[name] == "path":
            paths[name] = index
        else:
            (lists if free[name] == "paths" else objects).setdefault(name, []).append(
                index
            )
    if sum(files[i].size or 0 for of in objects.values() for i in of) > MAX_INLINE:
        raise ValueError(f"the capability takes files of at most {MAX_INLINE} bytes")
    return FilePlaces(paths, lists, objects)


def _kind(schema: object) -> str:
    """Return how a parameter takes files; empty if it takes none."""
    if not isinstance(schema, Mapping):
        return ""
    for branch in schema.get("anyOf", ()):
        if found := _kind(branch):
            return found
    if schema.get("format") == "path":
        return "path"
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return ""
    if items.get("format") == "path":
        return "paths"
    inside = items.get("properties")
    fits = isinstance(inside, Mapping) and {"mediaType", "data"} <= inside.keys()
    return "objects" if fits else ""
