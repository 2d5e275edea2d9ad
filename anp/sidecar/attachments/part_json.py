"""Parts of a result as JSON, for the one answer of a call of one turn. Pure."""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from anp.interaction.elements import Part, PartKind

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


def part_json(part: Part) -> dict[str, str]:
    """Return a part as an object with its media type, and text, bytes or URI."""
    found = {"mediaType": part.media_type}
    if part.name:
        found["name"] = part.name
    if URI in part.metadata:
        found["uri"] = part.metadata[URI]
    if isinstance(part.content, bytes):
        found["data"] = base64.b64encode(part.content).decode("ascii")
    else:
        found["uri" if part.kind is PartKind.URI else "text"] = str(part.content)
    return found


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
