"""Parts of a result as JSON, for the one answer of a call of one turn. Pure."""

from __future__ import annotations

import base64
from typing import Final

from anp.interaction.elements import Part, PartKind

__all__ = ["BINARY", "MAX_NAME", "URI", "part_json"]

BINARY: Final = "application/octet-stream"
"Media type of bytes about which nothing is said."

MAX_NAME: Final = 200
"Most characters of a part's name."

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
