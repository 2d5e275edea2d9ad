"""Pieces of files in `task.get` and `ack`: fields that the text does not name.

A piece is base64 in the JSON of its frame. On a channel with the extension `binary` the
JSON has its length in place of it, and its bytes follow behind a NUL, which no JSON
text contains. Neither form needs a look at each character of the piece.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final

from pybase64 import b64decode, b64encode

from anp.interaction.operations import FilePiece, FileRange
from anp.protocols.fields import Fields, invalid
from anp.protocols.gbz.words import FILE
from negotiation.errors import JsonError
from negotiation.strict_json import Json, parse_json

_ACK: Final = b'{"op":"ack",'
_BEGIN: Final = f',"{FILE}":{{"offset":'.encode()
_PLACE: Final = re.compile(rb'(0|[1-9][0-9]{0,14}),"data":"')
_END: Final = b'"}}'


def with_piece(data: bytes, piece: FilePiece, *, raw: bool) -> bytes:
    """Return a frame with a piece of a file in it.

    Args:
        raw: The peer reads the form of the extension `binary`.
    """
    begin = b"%b%b%d," % (data[:-1], _BEGIN, piece.offset)
    if raw:
        return b"".join((begin, b'"length":%d}}\0' % len(piece.data), piece.data))
    return b"".join((begin, b'"data":"', b64encode(piece.data), _END))


def parse_frame(data: bytes, *, max_size: int, raw: bool) -> Json:
    """Parse a frame; a piece of a file in it may be a `FilePiece` already.

    Raises:
        JsonError: It is no JSON, and no frame with a piece behind it.
        InteractionError: The piece behind it is not as long as the frame says.
    """
    if len(data) <= max_size and data.startswith(_ACK):
        found = _parse_usual(data, max_size)
        if found is not None:
            return found
        end = data.find(b"\0") if raw else -1
        if end >= 0:
            return _parse_raw(data[:end], memoryview(data)[end + 1 :], max_size)
    return parse_json(data, max_size=max_size)


def _parse_usual(data: bytes, max_size: int) -> dict[str, Any] | None:
    """Parse an answer with a piece at its end; None if it is not quite that.

    Inside a string the quotation mark of the beginning would be escaped, so that it is
    found between two fields only, of this object if what is before it ends one. No
    character of a strict base64 has a meaning in JSON.
    """
    begin = data.find(_BEGIN)
    place = _PLACE.match(data, begin + len(_BEGIN)) if begin >= 0 else None
    if place is None or not data.endswith(_END, place.end()):
        return None
    try:
        content = b64decode(memoryview(data)[place.end() : -len(_END)], validate=True)
        value = parse_json(data[:begin] + b"}", max_size=max_size)
    except (binascii.Error, ValueError, JsonError):
        return None
    if not isinstance(value, dict) or FILE in value or "groupId" in value:
        return None
    value[FILE] = FilePiece(offset=int(place[1]), data=content)
    return value


def _parse_raw(head: bytes, content: memoryview, max_size: int) -> Json:
    value = parse_json(head, max_size=max_size)
    place = value.get(FILE) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(place, dict):
        raise JsonError("bytes behind a frame that has no place for them")
    offset, length = place.get("offset"), place.get("length")
    if type(offset) is not int or offset < 0 or set(place) != {"offset", "length"}:
        raise invalid("file: no offset and length of the bytes behind the frame")
    if type(length) is not int or length != len(content):
        raise invalid("file: the bytes behind the frame are not as many as it says")
    value[FILE] = FilePiece(offset=offset, data=content)
    return value


def read_range(value: object) -> FileRange | None:
    """Read the piece of a file that is wanted; None if none is."""
    if value is None:
        return None
    fields = Fields(value, "file")
    return FileRange(
        id=fields.text("id"),
        offset=fields.integer("offset") or 0,
        length=fields.integer("length", least=1) or 1,
    )


def read_piece(value: object) -> FilePiece | None:
    """Read a piece of a file; None if there is none."""
    if value is None or isinstance(value, FilePiece):
        return value
    fields = Fields(value, "file")
    data = fields.take("data")
    try:
        read = base64.b64decode(data if isinstance(data, str) else "?", validate=True)
    except (binascii.Error, ValueError):
        raise invalid("file: data is not base64") from None
    return FilePiece(offset=fields.integer("offset") or 0, data=read)
