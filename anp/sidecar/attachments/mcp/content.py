"""Content of MCP results: blocks become parts, and parts become JSON.

A call of one turn has one JSON object as its answer: the texts are joined, and every
other block is an entry of `parts`. A task gets each block as a part of its own.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from anp.interaction.elements import Part
from anp.sidecar.attachments.attachment import ToolError
from anp.sidecar.attachments.part_json import (
    ANNOTATIONS,
    BINARY,
    MAX_NAME,
    URI,
    is_plain,
    listed,
)

# `mcp` takes half a second to import.
if TYPE_CHECKING:
    from mcp.types import BlobResourceContents, ContentBlock, TextResourceContents

    from anp.sidecar.attachments.mcp.exchange import PlainText

# Not one property each: every property of an output is a line in every prompt.
TEXT_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "parts": {
            "type": "array",
            "items": {"type": "object"},
            "description": "What is no text, such as images: each with mediaType, and "
            "text, data (base64) or uri.",
        },
    },
    "required": ["text"],
}
'Output schema of a tool that gives none (DESIGN.md, "Needs and schemas").'


def block_part(block: ContentBlock | PlainText) -> Part:
    """Return a block of content as a part.

    Raises:
        ToolError: Its bytes are not base64.
    """
    told = getattr(block, "annotations", None)
    said = {} if told is None else told.model_dump(mode="json", exclude_none=True)
    part = _part_of(block)
    metadata = {**part.metadata, ANNOTATIONS: said} if said else part.metadata
    return replace(part, metadata=metadata)


def block_parts(blocks: Iterable[ContentBlock | PlainText]) -> tuple[Part, ...]:
    """Return blocks as parts, without empty texts beside others.

    Some servers put an empty text before a picture, which a reader of the first part
    alone would take for the whole result.
    """
    parts = [block_part(block) for block in blocks]
    said = [part for part in parts if not is_plain(part) or part.content]
    return tuple(said or parts[:1])


def _part_of(block: ContentBlock | PlainText) -> Part:
    match block.type:
        case "text":
            return Part.text(block.text)
        case "image" | "audio":
            return Part.data(_decoded(block.data), media_type=block.mime_type)
        case "resource_link":
            return Part.link(
                block.uri,
                media_type=block.mime_type or BINARY,
                name=(block.title or block.name)[:MAX_NAME],
                size=block.size,
            )
        case "resource":
            return resource_part(block.resource)


def resource_part(contents: TextResourceContents | BlobResourceContents) -> Part:
    """Return the content of a resource as a part; its URI stands in the metadata."""
    more = {"name": _name_of(contents.uri), "metadata": {URI: contents.uri}}
    text = getattr(contents, "text", None)
    if text is not None:
        media_type = contents.mime_type or "text/plain"
        return Part.text(text, media_type=media_type, **more)
    blob: str = getattr(contents, "blob", "")
    return Part.data(_decoded(blob), media_type=contents.mime_type or BINARY, **more)


def content_output(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the parts of a result as an object of `TEXT_OUTPUT`."""
    plain = [str(part.content) for part in parts if is_plain(part)]
    others = listed(parts)
    return {"text": "\n".join(plain), **({"parts": others} if others else {})}


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise ToolError(502, "the tool's bytes are not base64") from exc


def _name_of(uri: str) -> str:
    """Return the last word of a URI's path; the part's name is never a path."""
    try:
        path = unquote(urlsplit(uri).path)
    except ValueError:
        return ""
    return path.rstrip("/").rpartition("/")[2][:MAX_NAME]
