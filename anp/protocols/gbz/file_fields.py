"""Pieces of files in `task.get` and `ack`: fields that the text does not name."""

from __future__ import annotations

import base64
import binascii

from anp.interaction.operations import FilePiece, FileRange
from anp.protocols.fields import Fields, invalid

__all__ = ["read_piece", "read_range"]


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
    if value is None:
        return None
    fields = Fields(value, "file")
    data = fields.take("data")
    try:
        read = base64.b64decode(data if isinstance(data, str) else "?", validate=True)
    except (binascii.Error, ValueError):
        raise invalid("file: data is not base64") from None
    return FilePiece(offset=fields.integer("offset") or 0, data=read)
