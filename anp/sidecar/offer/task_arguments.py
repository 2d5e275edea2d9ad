"""The arguments of a capability in the messages of a task. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from anp.interaction.chunks import MAX_CONTENT, join_parts
from anp.interaction.elements import Message, Part, PartKind, Task
from anp.interaction.stored import element_size
from anp.sidecar.attachments.part_json import part_json, takes_file
from jsonic.exact_numbers import write_json
from negotiation.need import Capability

MAX_INLINE: Final = 2 * 1024 * 1024
"Most bytes of a file that an argument has in base64."


class UnfitPartsError(Exception):
    """The contents of a task are no arguments of its capability; says why."""


@dataclass(frozen=True, slots=True)
class LaidFile:
    """A file in the place of its argument, until it is fetched or has a path."""

    part: Part

    as_path: bool
    "The argument is a path; else an object with the bytes."

    task: str = ""
    "Id of the task of which it is a result; empty for a file of the task itself."


def contents_of(messages: Iterable[Message]) -> tuple[Part, ...]:
    """Return the parts of messages in their order."""
    return tuple(part for message in messages for part in message.parts)


def arguments_of(task: Task, capability: Capability) -> dict[str, Any]:
    """Return the arguments in a task's messages.

    They are the first JSON object. A text will do for a capability that needs nothing
    but one text; where that has a place for an object, too, the object goes there
    instead. Files go where the input schema has them: to the argument of their
    name, else into the first list of files, else to the first file that is not given.
    So do the files in the results of tasks that it depends on, as far as there is room.

    Raises:
        UnfitPartsError: There is no such place, or there are no arguments.
    """
    parts = contents_of(task.messages)
    files = [part for part in parts if part.kind in (PartKind.BYTES, PartKind.URI)]
    arguments = _values(parts, capability, has_files=bool(files))
    lay_files(arguments, files, capability)
    properties = _properties(capability)
    for laid in _results(task):
        with suppress(UnfitPartsError):
            _lay(arguments, properties, laid)
    return arguments


def lay_files(
    arguments: dict[str, Any], files: Iterable[Part], capability: Capability
) -> None:
    """Put files among the arguments, where the input schema of a capability has them.

    Raises:
        UnfitPartsError: There is no place for one of them.
    """
    properties = _properties(capability)
    for file in files:
        _lay(arguments, properties, LaidFile(file, as_path=False))


def further_parts(task: Task, arguments: Mapping[str, Any]) -> list[Part]:
    """Return the parts of a task's messages that are not among its arguments.

    Args:
        arguments: As `arguments_of` gave them; all files are there.
    """
    parts = contents_of(task.messages)
    texts = [str(part.content) for part in parts if part.kind is PartKind.TEXT]
    is_given = "\n".join(texts) in [*arguments.values()]
    objects = [
        part
        for part in parts
        if part.kind is PartKind.JSON and isinstance(part.content, dict)
    ]
    return [
        part
        for part in parts
        if (part.kind is PartKind.TEXT and not is_given)
        or (part.kind is PartKind.JSON and part not in objects[:1])
    ]


def _results(task: Task) -> Iterator[LaidFile]:
    """Yield the files in the results of the tasks that a task depends on."""
    messages: dict[tuple[str, str], list[Message]] = {}
    for one in task.inputs:
        if isinstance(one, Message):
            messages.setdefault((one.task, one.id), []).append(one)
    for (name, _), chunks in messages.items():
        chunks.sort(key=lambda one: 0 if one.chunk is None else one.chunk.index)
        for part in join_parts(part for one in chunks for part in one.parts):
            if part.kind is PartKind.BYTES or part.is_file:
                yield LaidFile(part, as_path=False, task=name)


def part_of(output: Any) -> Part:
    """Return an output as a value, or as the text of one that needs chunks."""
    part = Part.value(output)
    if element_size(part) <= MAX_CONTENT:
        return part
    text = write_json(output, ensure_ascii=False, separators=(",", ":"))
    return Part.text(text, media_type="application/json")


def _values(
    parts: Iterable[Part], capability: Capability, *, has_files: bool
) -> dict[str, Any]:
    found = list(parts)
    texts = [str(part.content) for part in found if part.kind is PartKind.TEXT]
    values = [
        dict(part.content)
        for part in found
        if part.kind is PartKind.JSON and isinstance(part.content, dict)
    ]
    name = _only_text(capability)
    words = {name: "\n".join(texts)} if texts and name is not None else {}
    if values:
        place = _only_object(capability) if name else None
        known = _properties(capability)
        if name is None or place is None or not known.keys().isdisjoint(values[0]):
            return words | values[0]
        if len(values) > 1:
            raise UnfitPartsError("there is a place for one JSON object only")
        return {name: "\n".join(texts), place: values[0]}
    if not words and (texts or (found and not has_files)):
        raise UnfitPartsError("the arguments are a JSON object in a data item")
    return words


def _lay(arguments: dict[str, Any], properties: dict[str, Any], laid: LaidFile) -> None:
    file = laid.part
    lists = [name for name, one in properties.items() if _takes_files(one)]
    single = [
        name
        for name, one in properties.items()
        if _takes_file(one) and name not in arguments
    ]
    # Without its ending, `photo.png` is the file for `photo`.
    wanted = {file.name, file.name.rpartition(".")[0]}
    places = [name for name in (*lists, *single) if name in wanted]
    for place in places or [*lists, *single]:
        if place in single:
            arguments[place] = _laid(laid, properties[place])
            return
        if isinstance(given := arguments.get(place, []), list):
            arguments[place] = [*given, _laid(laid, properties[place]["items"])]
            return
    raise UnfitPartsError(
        f"there is no place for the file {file.name[:100]!r} among the arguments"
    )


def _laid(laid: LaidFile, schema: Any) -> Any:
    file = laid.part
    as_path = not takes_file(schema)
    if not as_path and file.is_file and (file.size or 0) > MAX_INLINE:
        raise UnfitPartsError(
            f"the argument for {file.name[:100]!r} takes at most {MAX_INLINE} bytes"
        )
    if as_path and file.kind is PartKind.URI and not file.is_file:
        raise UnfitPartsError("nobody fetches the content elsewhere of a file")
    if as_path or file.is_file:
        return replace(laid, as_path=as_path)
    return part_json(file)


def _takes_files(schema: Any) -> bool:
    return (
        isinstance(schema, dict)
        and schema.get("type") == "array"
        and _takes_file(schema.get("items"))
    )


def _takes_file(schema: Any) -> bool:
    return takes_file(schema) or _takes_path(schema)


def _takes_path(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    branches = schema.get("anyOf", ())
    return schema.get("format") == "path" or any(map(_takes_path, branches))


def _properties(capability: Capability) -> dict[str, Any]:
    schema = capability.input_schema
    found = schema.get("properties") if isinstance(schema, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def _only_object(capability: Capability) -> str | None:
    """Return the only argument that is an object and may be left out."""
    found = [
        name
        for name, schema in _properties(capability).items()
        if isinstance(schema, dict)
        and schema.get("type") == "object"
        and not takes_file(schema)
    ]
    return found[0] if len(found) == 1 else None


def _only_text(capability: Capability) -> str | None:
    schema = capability.input_schema
    required = schema.get("required", []) if isinstance(schema, dict) else []
    if len(required) != 1:
        return None
    kind = _properties(capability).get(required[0])
    is_string = isinstance(kind, dict) and kind.get("type") == "string"
    is_text = is_string and not _takes_path(kind)
    return str(required[0]) if is_text else None
