"""Pictures of measured series, as SVG text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 64, 48, 44
COLOURS = ("#1f5fa8", "#b3541e")
STEPS = 4
"Parts into which each axis of values is cut."


@dataclass(frozen=True, slots=True)
class Line:
    """One series with an axis of its own: the first is at the left."""

    name: str
    values: Sequence[float]


def plot(title: str, axis: str, places: Sequence[int], lines: Sequence[Line]) -> str:
    """Return a picture of at most two lines over the same places, spaced evenly.

    Args:
        title: Stands above the picture.
        axis: Meaning of the places.
        places: How many there were of something, smallest first.
        lines: Their values at each place.
    """
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    across = [LEFT + wide * at / max(1, len(places) - 1) for at in range(len(places))]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14" fill="#222">{escape(title)}</text>',
        f'<text x="{LEFT + wide / 2}" y="{HEIGHT - 8}" text-anchor="middle" '
        f'fill="#222">{escape(axis)}</text>',
    ]
    for x, place in zip(across, places, strict=True):
        parts.append(
            f'<text x="{x:.0f}" y="{HEIGHT - 26}" text-anchor="middle" '
            f'fill="#222">{place:,}</text>'
        )
    for number, line in enumerate(lines):
        parts += _drawn(line, number, across, high)
    return "\n".join([*parts, "</svg>", ""])


def _drawn(line: Line, number: int, across: Sequence[float], high: int) -> list[str]:
    colour = COLOURS[number]
    top = _round_up(max(line.values))
    edge, anchor = (LEFT - 8, "end") if number == 0 else (WIDTH - RIGHT + 8, "start")
    parts = [
        f'<text x="{edge}" y="{TOP - 12}" text-anchor="{anchor}" '
        f'fill="{colour}">{escape(line.name)}</text>'
    ]
    for step in range(STEPS + 1):
        y = TOP + high * (1 - step / STEPS)
        parts.append(
            f'<text x="{edge}" y="{y + 4:.0f}" text-anchor="{anchor}" '
            f'fill="{colour}">{top * step / STEPS:g}</text>'
        )
        if number == 0:
            parts.append(
                f'<line x1="{LEFT}" y1="{y:.0f}" x2="{WIDTH - RIGHT}" y2="{y:.0f}" '
                f'stroke="#ddd"/>'
            )
    points = [
        (x, TOP + high * (1 - value / top))
        for x, value in zip(across, line.values, strict=True)
    ]
    told = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = ' stroke-dasharray="6 4"' if number else ""
    parts.append(
        f'<polyline points="{told}" fill="none" stroke="{colour}" '
        f'stroke-width="2"{dashes}/>'
    )
    return parts + [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points
    ]


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 4 and 8 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(power * one for one in (1, 2, 4, 8, 10) if power * one >= value)
