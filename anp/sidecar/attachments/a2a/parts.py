"""Parts of A2A and parts of a conversation, each made from the other. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from anp.interaction.elements import Part, PartKind
from anp.sidecar.attachments.attachment import ToolError
from anp.sidecar.attachments.part_json import FOLDERS, MAX_NAME

# `a2a` takes half a second to import, so it is imported where a card is read.
if TYPE_CHECKING:
    from a2a.types.a2a_pb2 import Part as A2aPart

PART: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "mediaType": {"type": "string"},
        "name": {"type": "string"},
        "data": {"type": "string", "description": "Bytes in base64."},
        "uri": {"type": "string"},
    },
    "required": ["mediaType"],
}
"JSON Schema of a file in the output of a call."


def parts_of(found: Iterable[A2aPart], metadata: dict[str, Any]) -> list[Part]:
    """Return what an agent said, without its empty parts.

    Args:
        metadata: Put on each part.
    """
    return [
        part for one in found if (part := _part_of(one, dict(metadata))) is not None
    ]


def _part_of(found: A2aPart, metadata: dict[str, Any]) -> Part | None:
    more: dict[str, Any] = {"metadata": metadata}
    if found.media_type:
        more["media_type"] = found.media_type
    if found.filename:
        # A name is data of the agent's, never a path.
        more["name"] = FOLDERS.sub("", found.filename)[:MAX_NAME]
    match found.WhichOneof("content"):
        case "text":
            return Part.text(found.text, **more)
        case "raw":
            return Part.data(found.raw, **more)
        case "url":
            return Part.link(found.url, **more)
        case "data":
            return Part.value(_plain(found.data), **more)
    return None


def file_part(file: dict[str, str]) -> dict[str, str]:
    """Return an object of `PART` as a part in the JSON of A2A 1.0.

    Raises:
        ToolError: 400, its bytes are not base64; the library would take any text.
    """
    try:
        base64.b64decode(file.get("data", ""), validate=True)
    except ValueError:
        words = "the bytes of a file are not base64"
        raise ToolError(400, words, may_have_run=False) from None
    names = {"mediaType": "mediaType", "name": "filename", "data": "raw", "uri": "url"}
    return {names[key]: value for key, value in file.items() if key in names}


def join_chunks(parts: Iterable[Part]) -> list[Part]:
    """Return the parts of an artifact with what came in chunks made one.

    Bytes go on with the file before when they have its name and type. Nothing else says
    that they do: two pictures without a name are two pictures. Texts go on with the
    text before.
    """
    joined: list[Part] = []
    for (name, _, kind), same in groupby(parts, _file_of):
        found = list(same)
        if kind is PartKind.TEXT:
            text = "".join(str(part.content) for part in found)
            found = [replace(found[0], content=text)]
        elif name and len(found) > 1:
            content = b"".join(p.content for p in found if isinstance(p.content, bytes))
            found = [replace(found[0], content=content)]
        joined += found
    return joined


def _file_of(part: Part) -> tuple[str, str, PartKind]:
    is_file = part.kind is PartKind.BYTES
    return part.name if is_file else "", part.media_type, part.kind


def a2a_part(part: Part) -> dict[str, Any]:
    found: dict[str, Any] = {"mediaType": part.media_type}
    if part.name:
        found["filename"] = part.name
    match part.kind:
        case PartKind.TEXT:
            found["text"] = part.content
        case PartKind.BYTES:
            assert isinstance(part.content, bytes)
            found["raw"] = base64.b64encode(part.content).decode("ascii")
        case PartKind.URI:
            found["url"] = part.content
        case PartKind.JSON:
            found["data"] = part.content
    return found


def _plain(value: Any) -> Any:
    """Return a protobuf `Value` as JSON; whole numbers are integers again."""
    from google.protobuf.json_format import MessageToDict

    return _whole(MessageToDict(value))


def _whole(value: Any) -> Any:
    match value:
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case dict():
            return {key: _whole(one) for key, one in value.items()}
        case list():
            return [_whole(one) for one in value]
    return value
