"""Parts of a result as JSON, for the one answer of a call of one turn. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any, Final

from anp.interaction.elements import Part, PartKind
from jsonic.exact_numbers import write_json

FILE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "mediaType": {"type": "string"},
        "name": {"type": "string"},
        "data": {"type": "string", "description": "Bytes in base64."},
    },
    "required": ["mediaType", "data"],
}
"JSON Schema of a file among the arguments of a capability."

BINARY: Final = "application/octet-stream"
"Media type of bytes about which nothing is said."

MAX_NAME: Final = 200
"Most characters of a part's name."

FOLDERS: Final = re.compile(r".*[/\\]", re.DOTALL)
"The folders before a file's name, which is data and never a path."

URI: Final = "uri"
"Key in a part's metadata with the URI of an embedded resource."

ANNOTATIONS: Final = "annotations"
"Key in a part's metadata with what MCP says of its audience, priority and age."


def part_json(part: Part) -> dict[str, str]:
    """Return a part as an object with its media type, and text, bytes or URI."""
    found = {"mediaType": part.media_type}
    if part.name:
        found["name"] = part.name
    if URI in part.metadata:
        found["uri"] = part.metadata[URI]
    if isinstance(part.content, bytes):
        found["data"] = base64.b64encode(part.content).decode("ascii")
    elif part.kind is PartKind.JSON:
        found["text"] = write_json(part.content, ensure_ascii=False)
    else:
        found["uri" if part.kind is PartKind.URI else "text"] = str(part.content)
    return found


def result_json(part: Part) -> dict[str, Any]:
    """Return a part of a result as `part_json` does, with its annotations."""
    found: dict[str, Any] = {**part_json(part)}
    if ANNOTATIONS in part.metadata:
        found[ANNOTATIONS] = part.metadata[ANNOTATIONS]
    return found


def is_plain(part: Part) -> bool:
    """Return whether a part is a text that is joined with the other texts."""
    return part.kind is PartKind.TEXT and URI not in part.metadata


def listed(parts: Sequence[Part], *, values: bool = False) -> list[dict[str, Any]]:
    """Return the parts that an output lists beside its joined text.

    These are files, links and embedded resources. Where a text stands behind one of
    them, or has annotations, all parts are listed in their order, since the joined text
    alone does not say which words belong to which picture.

    Args:
        values: JSON values are listed, too, since the output has no other place for
            them.
    """
    found = [part for part in parts if part.content != ""]
    kinds = [is_plain(part) for part in found if values or part.kind != PartKind.JSON]
    is_mixed = False in kinds and True in kinds[kinds.index(False) :]
    if is_mixed or any(is_plain(p) and ANNOTATIONS in p.metadata for p in found):
        return [result_json(part) for part in found]
    return [
        result_json(part)
        for part in found
        if not is_plain(part) and (values or part.kind != PartKind.JSON)
    ]


def takes_file(schema: Any) -> bool:
    """Return whether a JSON Schema is that of a file, as `FILE` is."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return isinstance(properties, dict) and {"mediaType", "data"} <= properties.keys()


def bytes_of(file: Any) -> bytes:
    """Return the bytes of an object of `FILE`.

    Raises:
        ValueError: They are not base64.
    """
    data = file.get("data") if isinstance(file, dict) else None
    if not isinstance(data, str):
        raise ValueError("a file is an object with its bytes in data")
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        raise ValueError("the bytes of a file are not base64") from None
