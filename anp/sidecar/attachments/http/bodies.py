"""Bodies with files: bytes as they are, and forms of several parts. Pure.

A file among the arguments is an object as `FILE` has it. Names and media types come
from peers: none of them may become a line of a header.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from anp.sidecar.attachments.attachment import ToolError
from anp.sidecar.attachments.part_json import BINARY, FILE, bytes_of
from jsonic.exact_numbers import write_json

MULTIPART: Final = "multipart/form-data"

MEDIA_TYPE: Final = re.compile(
    r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9!#$&^_.+-]{1,63}"
)

_UNQUOTABLE: Final = {ord(c): f"%{ord(c):02X}" for c in '"\r\n\0'}
"Characters that browsers write so in the names of a form (HTML, 4.10.21.8)."


def form_schema(properties: Mapping[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the schemas of a form's fields as arguments, and which of them are files.

    OpenAPI 3.0 says `format: binary` of the bytes of a file, 3.1 a media type without
    an encoding.
    """
    found, files = {}, set()
    for name, schema in properties.items():
        found[name] = schema
        if _is_file(schema):
            found[name] = _file_schema(schema)
            files.add(name)
        elif isinstance(schema, dict) and _is_file(schema.get("items")):
            found[name] = {**schema, "items": _file_schema(schema["items"])}
            files.add(name)
    return found, frozenset(files)


def _is_file(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    branches = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(branches, list):
        return any(_is_file(one) for one in branches)
    kind = schema.get("type", "string")
    if "string" not in (kind if isinstance(kind, list) else [kind]):
        return False
    is_typed = "contentMediaType" in schema and "contentEncoding" not in schema
    return is_typed or schema.get("format") == "binary"


def _file_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: schema[key] for key in ("title", "description") if key in schema}
    return {**FILE, **kept}


def file_body(media_type: str, argument: str, file: Any) -> tuple[bytes, str]:
    """Return a body that is one file, and its content type.

    Args:
        media_type: The type that the service takes; `image/*` is any of them.

    Raises:
        ToolError: 400, it is no file, or of a type that is not taken.
    """
    data = _bytes(argument, file)
    if "*" not in media_type:
        return data, media_type
    given = _media_type(file)
    if not fnmatchcase(given, media_type):
        raise ToolError(400, f"{argument}: {given} is not {media_type}")
    return data, given


def multipart_body(
    fields: Mapping[str, Any], files: frozenset[str], types: Mapping[str, str]
) -> tuple[bytes, str]:
    """Return a form of several parts, and its content type with the boundary.

    Args:
        files: Fields that are files, or lists of them.
        types: Content types of the others, where the service says them.

    Raises:
        ToolError: 400, a field is no file where it has to be one.
    """
    parts = [
        part
        for name, value in fields.items()
        for one in (value if isinstance(value, list) else [value])
        if one is not None
        for part in _part(name, one, name in files, types.get(name, ""))
    ]
    # The hash of all contents cannot stand in any of them.
    boundary = f"anpd-{hashlib.sha256(b''.join(parts)).hexdigest()[:48]}"
    mark = f"--{boundary}".encode()
    body = b"".join(mark + b"\r\n" + part + b"\r\n" for part in parts)
    return body + mark + b"--\r\n", f"{MULTIPART}; boundary={boundary}"


def _part(name: str, value: Any, is_file: bool, media_type: str) -> Iterator[bytes]:
    head = f'Content-Disposition: form-data; name="{_quoted(name)}"'
    if is_file:
        data = _bytes(name, value)
        named = value.get("name")
        file_name = named if isinstance(named, str) and named else "file"
        head += f'; filename="{_quoted(file_name)}"'
        media_type = _media_type(value)
    elif isinstance(value, str):
        data = _encoded(value)
    else:
        data = _encoded(write_json(value, ensure_ascii=False))
        if isinstance(value, dict):
            media_type = media_type or "application/json"
    if media_type:
        head += f"\r\nContent-Type: {media_type}"
    yield _encoded(head) + b"\r\n\r\n" + data


def _quoted(name: str) -> str:
    return name.translate(_UNQUOTABLE)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError(400, "a lone surrogate is no text") from None


def _bytes(argument: str, file: Any) -> bytes:
    try:
        return bytes_of(file)
    except ValueError as exc:
        raise ToolError(400, f"{argument}: {exc}") from None


def _media_type(file: Mapping[str, Any]) -> str:
    given = str(file.get("mediaType", "")).lower()
    return given if MEDIA_TYPE.fullmatch(given) else BINARY
