"""Contents of other agents' answers as MCP has them: images as images, and so on.

An answer that has `parts`, as the daemon makes them of what is no text, gives one block
of content for each. So does each picture, sound or file anywhere in an answer: an
object with its media type and its bytes in base64, as many tools with an output schema
have it. What the model reads as JSON names them, without their bytes.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import mcp_types as types
from pydantic import ValidationError

IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"Formats of pictures that clients show; an SVG may hold scripts, so it is a resource."

PARTS: Final = "parts"
"Property of an output with what is no text."

TEXT: Final = "text"
"Property of an output with its texts, joined."

BINARY: Final = "application/octet-stream"
PLAIN: Final = "text/plain"
ANNOTATIONS: Final = "annotations"

FILE_KEYS: Final = frozenset(
    {"type", "mediaType", "mimeType", "name", "data", "size", "uri", ANNOTATIONS}
)
"Keys of an object that is a file; one with further keys says more than a block can."

MAX_DEPTH: Final = 16
"Objects and lists within each other in which files are looked for."


class _Shown(dict[str, Any]):
    """An object that names a file whose bytes stand in a block."""


def with_blocks(output: Any) -> tuple[Any, list[types.ContentBlock], bool]:
    """Return an output without the bytes in it, and those as blocks.

    Returns:
        The output, the blocks, and True if the blocks say everything in it, so that a
        client that reads the first block finds the picture there. An output whose
        `parts` are not what the daemon makes keeps them as they are.
    """
    blocks: list[types.ContentBlock] = []
    shown = _without_bytes(output, blocks, MAX_DEPTH)
    parts = output.get(PARTS) if isinstance(output, dict) else None
    rest = shown
    if isinstance(parts, list) and parts and all(map(_is_part, parts)):
        made = [_block(part, number) for number, part in enumerate(parts, 1)]
        of_parts = [block for block in made if block is not None]
        if len(of_parts) < len(parts):
            return output, [], False
        blocks = [*of_parts, *blocks]
        shown = {**shown, PARTS: [_named(part) for part in parts]}
        # Where texts are among the parts, all texts are.
        is_said = any(isinstance(block, types.TextContent) for block in of_parts)
        rest = {**shown, PARTS: [], **({TEXT: ""} if is_said else {})}
    return shown, blocks, bool(blocks) and _is_empty(rest)


def bytes_block(
    data: bytes, *, media_type: str, uri: str, annotations: Any = None
) -> types.ImageContent | types.AudioContent | types.EmbeddedResource:
    """Return bytes as an image, a sound, or a resource under a URI.

    Args:
        annotations: What the agent says of it in the words of MCP, if anything.
    """
    text = base64.b64encode(data).decode()
    told = _annotations(annotations)
    if media_type in IMAGES:
        return types.ImageContent(
            type="image", data=text, mime_type=media_type, annotations=told
        )
    if media_type.startswith("audio/"):
        return types.AudioContent(
            type="audio", data=text, mime_type=media_type, annotations=told
        )
    contents = types.BlobResourceContents(uri=uri, mime_type=media_type, blob=text)
    return types.EmbeddedResource(type="resource", resource=contents, annotations=told)


def _without_bytes(value: Any, blocks: list[types.ContentBlock], depth: int) -> Any:
    """Return a value without the bytes of its files, which are added to `blocks`."""
    if depth and isinstance(value, list):
        return [_without_bytes(one, blocks, depth - 1) for one in value]
    if not depth or not isinstance(value, dict):
        return value
    media_type = _file_type(value)
    data = _decoded(value.get("data"))
    if media_type and data and value.keys() <= FILE_KEYS:
        uri = f"anpd:part/{len(blocks) + 1}"
        told = value.get(ANNOTATIONS)
        blocks.append(
            bytes_block(data, media_type=media_type, uri=uri, annotations=told)
        )
        return _Shown(_named(value))
    return {
        key: one if key == PARTS else _without_bytes(one, blocks, depth - 1)
        for key, one in value.items()
    }


def _file_type(value: dict[str, Any]) -> str:
    """Return the media type that an object names, if its contents are no text."""
    found = value.get("mediaType", value.get("mimeType"))
    if not isinstance(found, str):
        return ""
    kind, _, name = found.partition("/")
    is_text = not name or kind == "text" or name.endswith(("json", "xml"))
    return "" if is_text else found


def _is_empty(value: Any) -> bool:
    """Return whether a value says nothing besides the files in it."""
    match value:
        case _Shown():
            return True
        case dict():
            return all(map(_is_empty, value.values()))
        case list():
            return all(map(_is_empty, value))
    return value in ("", None)


def _named(part: dict[str, Any]) -> dict[str, Any]:
    """Return what the JSON says of a part whose bytes stand in a block."""
    short = {name: value for name, value in part.items() if name != "data"}
    data = _decoded(part.get("data"))
    return short if data is None else {**short, "size": len(data)}


def _is_part(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    texts = {key: one for key, one in part.items() if key != ANNOTATIONS}
    return (
        all(isinstance(value, str) for value in texts.values())
        and "mediaType" in texts
        and bool({"data", "text", "uri"} & set(texts))
    )


def _decoded(data: Any) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) else None
    except (binascii.Error, ValueError):
        return None


def _annotations(said: Any) -> types.Annotations | None:
    """Return a peer's annotations, or None if they are not as MCP has them."""
    try:
        return None if said is None else types.Annotations.model_validate(said)
    except ValidationError:
        return None


def _block(part: dict[str, Any], number: int) -> types.ContentBlock | None:
    """Return one part as a block, or None if it is none after all."""
    media_type = part["mediaType"] or BINARY
    told = part.get(ANNOTATIONS)
    uri = part.get("uri") or f"anpd:part/{number}"
    if "data" in part:
        data = _decoded(part["data"])
        if data is None:
            return None
        return bytes_block(data, media_type=media_type, uri=uri, annotations=told)
    annotations = _annotations(told)
    if "text" in part and media_type == PLAIN and "uri" not in part:
        return types.TextContent(
            type="text", text=part["text"], annotations=annotations
        )
    if "text" in part:
        contents = types.TextResourceContents(
            uri=uri, mime_type=media_type, text=part["text"]
        )
        return types.EmbeddedResource(
            type="resource", resource=contents, annotations=annotations
        )
    return types.ResourceLink(
        type="resource_link",
        name=part.get("name") or uri,
        uri=uri,
        mime_type=media_type,
        annotations=annotations,
    )
