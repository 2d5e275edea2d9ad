"""How large messages may be, all from one figure (WIRE row 34). Pure."""

from __future__ import annotations

from typing import Final

__all__ = [
    "LEAST_MAX_MESSAGE",
    "MAX_PAYLOAD",
    "OTHERS_MAX_TEXT",
    "plaintext_size",
    "text_size",
]

OTHERS_MAX_TEXT: Final = 1024 * 1024
"Bytes of a text frame that every peer takes: the default of the WebSocket library."

_OVERHEAD: Final = 4096
"Bytes of a text frame beside the encrypted data, generously."

_HEADER: Final = 1
"Bytes of a frame in front of the protocol data (ANP-11)."


def text_size(plaintext: int) -> int:
    """Return how long the text frame for so many bytes of plaintext can get."""
    return 4 * -(-plaintext // 3) + _OVERHEAD


def plaintext_size(text: int) -> int:
    """Return how much plaintext fits a text frame of so many bytes for certain."""
    return (text - _OVERHEAD) // 4 * 3


MAX_PAYLOAD: Final = plaintext_size(OTHERS_MAX_TEXT) - _HEADER
"""Protocol data that fits a frame every peer takes: 765 KiB. With 768 KiB the text
would be over a MiB, and the peer would close the link with 1009."""

LEAST_MAX_MESSAGE: Final = 64 * 1024
"Least plaintext of a frame that a peer may agree to take; less is no offer."
