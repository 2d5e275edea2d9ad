"""Long texts in JSON, read and written without a second copy of them. Pure.

A parser wants the whole JSON as one text before it makes a value of it, and a writer
makes one text of it before that becomes bytes. With a text of a megabyte in it, each of
these is another megabyte. So long texts go past both, piece by piece. What is accepted,
what is written and what is refused stay the same.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any, Final

from pydantic_core import from_json

LONG: Final = 64 * 1024
"Characters from which a text is long."

PIECE: Final = 64 * 1024
"Characters, or bytes, of a long text that are looked at or written at once."

SHORT: Final = 1000
"Characters below which a text is looked at one by one."

MOST_LOOKED_AT: Final = 64
"Texts, or values of one container, that are looked at before none is called long."

DEEPEST: Final = 8
"Levels of containers in which a long text is looked for when a value is written."

STAND_IN: Final = b"NaN"
"Stands in JSON in place of a text that was taken out; no JSON has it as a value."

BACKSLASH: Final = ord("\\")
CONTROLS: Final = bytes(range(0x20))
"Characters that a text of JSON may have in escapes only, beside two others."

ESCAPED: Final = CONTROLS + b'"\\'
"Characters of ASCII that every encoder writes in escapes."

DELETE: Final = "\x7f"
"A character of ASCII that an encoder which keeps to ASCII escapes, too."

LONGEST_ESCAPE: Final = len("\\u0000")


def take_out(data: bytes) -> tuple[bytes, list[str]] | None:
    """Return JSON without its long texts, and these in their order.

    Only texts that stand for themselves are taken out, and nothing is said about the
    rest: it is JSON with its texts put back exactly if `data` was.

    Returns:
        None: There is none, or `data` is not what it has to be.
    """
    parts: list[bytes] = []
    texts: list[str] = []
    view, begin, kept = memoryview(data), data.find(b'"'), 0
    for _ in range(MOST_LOOKED_AT):
        end = _end_of(data, begin)
        if end is None:
            break
        if end - begin > LONG and (text := _text_of(view[begin + 1 : end])) is not None:
            parts.append(data[kept:begin])
            texts.append(text)
            kept = end + 1
        begin = data.find(b'"', end + 1)
    if not texts:
        return None
    parts.append(data[kept:])
    rest = STAND_IN.join(parts)
    # Another one would be taken for a text.
    return (rest, texts) if rest.count(STAND_IN) == len(texts) else None


def _end_of(data: bytes, begin: int) -> int | None:
    """Return where the text that begins at `begin` ends; None if that is far off."""
    end = begin
    for _ in range(MOST_LOOKED_AT):
        end = data.find(b'"', end + 1) if begin >= 0 else -1
        if end < 0:
            return None
        if data[end - 1] != BACKSLASH or not _is_escaped(data, end):
            return end
    return None


def _is_escaped(data: bytes, at: int) -> bool:
    """Tell if an odd number of backslashes stands before a quotation mark of a text."""
    first = at
    while data[first - 1] == BACKSLASH:
        first -= 1
    return bool((at - first) % 2)


def _text_of(written: memoryview) -> str | None:
    """Return a text that stands for itself; None if it has escapes, or is none."""
    for at in range(0, len(written), PIECE):
        piece = bytes(written[at : at + PIECE])
        if not _is_plain(piece):
            return None
    try:
        return str(written, "utf-8")
    except UnicodeDecodeError:
        return None


def write_bytes(encoder: json.JSONEncoder, value: Any) -> bytes:
    """Return `encoder.encode(value).encode()`, with long texts written in pieces."""
    if not _is_long(value, DEEPEST):
        return encoder.encode(value).encode()
    made = BytesIO()
    _write(encoder, value, made, DEEPEST)
    # What was written becomes the bytes, without a copy.
    return made.getvalue()


def _is_long(value: Any, levels: int) -> bool:
    """Tell if a value is, or holds, a long text, as far as it is looked at."""
    level: list[Any] = [value]
    # One level after the other: a call for each value takes longer than the look at it.
    for _ in range(levels + 1):
        below: list[Any] = []
        for one in level:
            kind = type(one)
            if kind is str:
                if len(one) > LONG:
                    return True
            elif kind is dict and len(one) <= MOST_LOOKED_AT and is_named(one):
                below += one.values()
            elif kind is list and len(one) <= MOST_LOOKED_AT:
                below += one
        level = below
    return False


def is_named(value: dict[Any, Any]) -> bool:
    """Tell if all names are texts; the encoder writes others as what they mean."""
    for name in value:  # noqa: SIM110 - a generator costs more than what it looks at
        if type(name) is not str:
            return False
    return True


def _write(encoder: json.JSONEncoder, value: Any, made: BytesIO, levels: int) -> None:
    if not _is_long(value, levels):
        made.write(encoder.encode(value).encode())
    elif type(value) is str:
        made.write(b'"')
        for at in range(0, len(value), PIECE):
            made.write(_piece(encoder, value[at : at + PIECE]))
        made.write(b'"')
    elif type(value) is dict:
        made.write(b"{")
        names = sorted(value) if encoder.sort_keys else value
        for place, name in enumerate(names):
            before = encoder.item_separator if place else ""
            begin = f"{before}{encoder.encode(name)}{encoder.key_separator}"
            made.write(begin.encode())
            _write(encoder, value[name], made, levels - 1)
        made.write(b"}")
    else:
        made.write(b"[")
        for place, one in enumerate(value):
            made.write(encoder.item_separator.encode() if place else b"")
            _write(encoder, one, made, levels - 1)
        made.write(b"]")


def _piece(encoder: json.JSONEncoder, text: str) -> bytes:
    """Return a part of a text as it is written."""
    if text.isascii() and DELETE not in text and _is_plain(plain := text.encode()):
        # The encoder looks at each character, which takes many times as long.
        return plain
    return encoder.encode(text)[1:-1].encode()


def _is_plain(piece: bytes) -> bool:
    """Return whether a part of a text stands for itself in JSON."""
    if not piece.isascii():
        # Its first or last character may be cut.
        return b"\\" not in piece and not _escapes_in(piece, CONTROLS)
    try:
        # By a parser that looks at many bytes at once; its result is not used.
        return b"\\" not in piece and from_json(b'"%b"' % piece) is not None
    except ValueError:
        return False


def _escapes_in(piece: bytes, characters: bytes) -> int:
    """Return how many bytes of a piece are among some characters."""
    return len(piece) - len(piece.translate(None, characters))


def written_size(text: str) -> int:
    """Return a bound of the bytes that a text has as JSON; close if it is ASCII."""
    if len(text) < SHORT and text.isascii() and text.isprintable():
        # As below, without the parser, which takes longer to begin than to look.
        escapes = text.count('"') + text.count("\\")
        return 2 + len(text) + (LONGEST_ESCAPE - 1) * escapes
    if not text.isascii():
        # An emoji is two escapes.
        return 2 + 2 * LONGEST_ESCAPE * len(text)
    escapes = 0
    for at in range(0, len(text), PIECE):
        piece = text[at : at + PIECE].encode()
        if b"\x7f" in piece or not _is_plain(piece):
            escapes += _escapes_in(piece, ESCAPED + b"\x7f")
    return 2 + len(text) + (LONGEST_ESCAPE - 1) * escapes
