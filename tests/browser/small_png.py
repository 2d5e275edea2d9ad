"""Pictures for the documentation: the same pixels in fewer bytes.

A screenshot has thousands of colours, most of them at the edges of letters. With a
palette of 64 it takes a fraction of the bytes, and no eye sees the difference.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from functools import cache

COLORS = 64
"Colours of the palette."

FAR = 16 * 16
"Squared distance at which two colours are told apart."

HEAD = b"\x89PNG\r\n\x1a\n"

Color = tuple[int, int, int]


def small_png(data: bytes) -> bytes:
    """Return a PNG of eight bits and three or four channels with a small palette."""
    width, height, rows = _read(data)
    counts = Counter(color for row in rows for color in row)
    palette = _palette(counts)

    @cache
    def nearest(color: Color) -> int:
        return min(
            range(len(palette)),
            key=lambda at: sum(
                (a - b) ** 2 for a, b in zip(color, palette[at], strict=False)
            ),
        )

    lines = b"".join(b"\0" + bytes(map(nearest, row)) for row in rows)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return HEAD + b"".join(
        (
            _piece(b"IHDR", head),
            _piece(b"PLTE", b"".join(map(bytes, palette))),
            _piece(b"IDAT", zlib.compress(lines, 9)),
            _piece(b"IEND", b""),
        )
    )


def _distance(one: Color, other: Color) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _palette(counts: Counter[Color]) -> list[Color]:
    """Return the commonest colours, and of the others those far from all of them."""
    common = [color for color, _ in counts.most_common(4_000)]
    chosen = common[: COLORS // 2]
    for color in common[COLORS // 2 :]:
        if len(chosen) < COLORS and min(_distance(color, one) for one in chosen) > FAR:
            chosen.append(color)
    return chosen


def _read(data: bytes) -> tuple[int, int, list[list[Color]]]:
    assert data.startswith(HEAD)
    packed, at = b"", len(HEAD)
    width = height = channels = 0
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, form = struct.unpack_from(">IIBB", body)
            assert depth == 8
            channels = {2: 3, 6: 4}[form]
        elif kind == b"IDAT":
            packed += body
        at += 12 + size
    raw = zlib.decompress(packed)
    wide = width * channels
    before = bytearray(wide)
    rows = []
    for start in range(0, height * (wide + 1), wide + 1):
        line = bytearray(raw[start + 1 : start + 1 + wide])
        _unfilter(raw[start], line, before, channels)
        rows.append(
            list(
                zip(
                    line[0::channels],
                    line[1::channels],
                    line[2::channels],
                    strict=False,
                )
            )
        )
        before = line
    return width, height, rows


def _unfilter(kind: int, line: bytearray, before: bytearray, step: int) -> None:
    for at in range(len(line)) if kind else ():
        left = line[at - step] if at >= step else 0
        up = before[at]
        corner = before[at - step] if at >= step else 0
        guess = (0, left, up, (left + up) // 2, 0)[kind]
        if kind == 4:
            far = [abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)]
            guess = (left, up, corner)[far.index(min(far))]
        line[at] = (line[at] + guess) & 255


def _piece(kind: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check
