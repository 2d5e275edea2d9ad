"""How texts, times and bytes are written into messages."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Any

from anp.errors import ErrorCode, LocalError, PeerError

__all__ = ["decode_base64", "encode_base64", "format_timestamp", "render"]


def render(message: dict[str, Any]) -> str:
    """Return a message as the text of one WebSocket frame, ASCII only."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False)


def format_timestamp(moment: datetime) -> str:
    """Return `moment` in UTC with milliseconds and Z (WIRE row 13).

    Raises:
        LocalError: `moment` has no time zone.
    """
    if moment.tzinfo is None:
        raise LocalError("a timestamp needs a time zone")
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


def encode_base64(data: bytes) -> str:
    """Return standard base64 with padding (WIRE row 26)."""
    return base64.b64encode(data).decode("ascii")


def decode_base64(text: str) -> bytes:
    """Read standard base64 with padding, in its one canonical spelling.

    Raises:
        PeerError: `DECRYPTION_FAILED`: it is anything else.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    # Unused bits before the padding could be anything; one value, one spelling.
    if encode_base64(data) != text:
        raise PeerError(ErrorCode.DECRYPTION_FAILED, "not canonical padded base64")
    return data
