"""Contents of other agents' answers as MCP has them: images as images, and so on.

An answer that has `parts`, as the daemon makes them of what is no text, gives one block
of content for each. What the model reads as JSON names them, without their bytes.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import mcp_types as types

IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"Formats of pictures that clients show; an SVG may hold scripts, so it is a resource."

PARTS: Final = "parts"
"Property of an output with what is no text."

BINARY: Final = "application/octet-stream"


def with_blocks(output: Any) -> tuple[Any, list[types.ContentBlock]]:
    """Return an output without the bytes in its parts, and those as blocks.

    An output whose `parts` are anything else is returned as it is.
    """
    parts = output.get(PARTS) if isinstance(output, dict) else None
    if not isinstance(parts, list) or not all(map(_is_part, parts)):
        return output, []
    shown: list[Any] = []
    blocks: list[types.ContentBlock] = []
    for number, part in enumerate(parts, 1):
        block = _block(part, number)
        if block is None:
            return output, []
        blocks.append(block)
        short = {name: value for name, value in part.items() if name != "data"}
        if "data" in part:
            short["size"] = len(base64.b64decode(part["data"]))
        shown.append(short)
    return {**output, PARTS: shown}, blocks


def bytes_block(
    data: bytes, *, media_type: str, uri: str
) -> types.ImageContent | types.AudioContent | types.EmbeddedResource:
    """Return bytes as an image, a sound, or a resource under a URI."""
    text = base64.b64encode(data).decode()
    if media_type in IMAGES:
        return types.ImageContent(type="image", data=text, mime_type=media_type)
    if media_type.startswith("audio/"):
        return types.AudioContent(type="audio", data=text, mime_type=media_type)
    contents = types.BlobResourceContents(uri=uri, mime_type=media_type, blob=text)
    return types.EmbeddedResource(type="resource", resource=contents)


def _is_part(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and all(isinstance(value, str) for value in part.values())
        and "mediaType" in part
        and bool({"data", "text", "uri"} & set(part))
    )


def _block(part: dict[str, str], number: int) -> types.ContentBlock | None:
    """Return one part as a block, or None if it is none after all."""
    media_type = part["mediaType"] or BINARY
    uri = part.get("uri") or f"anpd:part/{number}"
    if "data" in part:
        try:
            data = base64.b64decode(part["data"], validate=True)
        except (binascii.Error, ValueError):
            return None
        return bytes_block(data, media_type=media_type, uri=uri)
    if "text" in part:
        contents = types.TextResourceContents(
            uri=uri, mime_type=media_type, text=part["text"]
        )
        return types.EmbeddedResource(type="resource", resource=contents)
    return types.ResourceLink(
        type="resource_link",
        name=part.get("name") or uri,
        uri=uri,
        mime_type=media_type,
    )
