"""The drawings of the concepts, made from text.

`docs/pictures/NAME.txt` becomes `docs/pictures/NAME.svg` by `python -m tests.site
pictures`; a test compares the two. The first line of a text is its kind and its title.

A `row` has boxes beside each other, each a paragraph: its name, then its lines. A
paragraph of arrows (`->`, `<-`, `<->`), each with its words, stands between two boxes.

A `sequence` has its parties in the second line, between bars. Then each line is
`A -> B: words`, with the parties' numbers, or a `---` with the words of a new part.
"""

from __future__ import annotations

from html import escape
from itertools import pairwise
from pathlib import Path

from tests.documents import ROOT

FOLDER = ROOT / "docs" / "pictures"

HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
width="{width}" height="{height}" role="img" aria-label="{title}">
<title>{title}</title>
<style>
text {{ font: 14px system-ui, sans-serif; fill: #1f2328 }}
.name {{ font-weight: 600 }} .mid {{ text-anchor: middle }}
.part {{ font-size: 13px; fill: #57606a }}
.box {{ fill: #eef4fb; stroke: #3b6ea5; stroke-width: 1.5 }}
.line {{ stroke: #3b6ea5; stroke-width: 1.5; fill: none }}
.faint {{ stroke: #c3ccd5; stroke-dasharray: 3 4 }}
</style>
<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" \
markerHeight="8" orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" \
fill="#3b6ea5"/></marker></defs>
<rect width="100%" height="100%" rx="8" fill="#fff"/>
"""
"A card of its own colour, so that it is read in a light and in a dark page."

LETTER = 8.0
"Width of a letter, in pixels; a generous mean."

WAYS = {"->", "<-", "<->"}

LINE = 20


def drawn(text: str) -> str:
    """Return the picture that a text describes, as SVG."""
    head, _, rest = text.strip().partition("\n")
    kind, _, title = head.partition(": ")
    draw = {"row": _row, "sequence": _sequence}[kind]
    width, height, parts = draw(rest.strip())
    shown = HEAD.format(width=width, height=height, title=escape(title, quote=True))
    return shown + "\n".join(parts) + "\n</svg>\n"


def write_pictures() -> list[Path]:
    """Draw every text of the folder; return the pictures."""
    written = []
    for path in sorted(FOLDER.glob("*.txt")):
        target = path.with_suffix(".svg")
        target.write_text(drawn(path.read_text("utf-8")), "utf-8")
        written.append(target)
    return written


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}">{escape(words)}</text>'


def _arrow(x1: float, x2: float, y: float, *, both: bool = False) -> str:
    start = ' marker-start="url(#tip)"' if both else ""
    return (
        f'<path class="line" d="M{x1:.0f} {y:.0f}H{x2:.0f}" '
        f'marker-end="url(#tip)"{start}/>'
    )


def _row(text: str) -> tuple[int, int, list[str]]:
    paragraphs = [one.splitlines() for one in text.split("\n\n")]
    most = max(len(lines) for lines in paragraphs)
    height = (most + 1) * LINE + 24
    x, parts = 16.0, []
    for lines in paragraphs:
        arrows = lines[0].partition(" ")[0] in WAYS
        width = max(len(one) for one in lines) * LETTER + 28
        if not arrows:
            parts.append(
                f'<rect class="box" x="{x:.0f}" y="16" width="{width:.0f}" '
                f'height="{height - 32:.0f}" rx="8"/>'
            )
        for number, one in enumerate(lines):
            if arrows:
                way, _, words = one.partition(" ")
                y = 40 + number * 2 * LINE
                parts.append(_text(x + width / 2, y, words, "mid part"))
                left, right = x + 4, x + width - 4
                start, end = (right, left) if way == "<-" else (left, right)
                parts.append(_arrow(start, end, y + 8, both=way == "<->"))
            else:
                kind = "mid" if number else "mid name"
                parts.append(_text(x + width / 2, 40 + number * LINE, one, kind))
        x += width
    return int(x + 16), height, parts


def _sequence(text: str) -> tuple[int, int, list[str]]:
    head, *lines = text.splitlines()
    parties = [one.strip() for one in head.split("|")]
    steps = []
    gaps = [sum(map(len, pair)) * LETTER / 2 + 48 for pair in pairwise(parties)]
    for line in lines:
        way, _, words = line.partition(": ")
        if way.startswith("---"):
            steps.append((0, 0, line.removeprefix("---").strip()))
            continue
        a, _, b = way.partition(" -> ")
        first, last = sorted((int(a) - 1, int(b) - 1))
        steps.append((int(a), int(b), words))
        if first != last:
            wanted = (len(words) * LETTER + 30) / (last - first)
            for place in range(first, last):
                gaps[place] = max(gaps[place], wanted)
    places = [len(parties[0]) * LETTER / 2 + 30.0]
    for gap in gaps:
        places.append(places[-1] + gap)
    height = 70 + len(steps) * 36
    width = int(places[-1] + len(parties[-1]) * LETTER / 2 + 30)
    parts = []
    for x, name in zip(places, parties, strict=True):
        half = len(name) * LETTER / 2 + 14
        parts.append(f'<path class="line faint" d="M{x:.0f} 46V{height - 14}"/>')
        parts.append(
            f'<rect class="box" x="{x - half:.0f}" y="14" width="{2 * half:.0f}" '
            'height="32" rx="8"/>'
        )
        parts.append(_text(x, 35, name, "mid name"))
    for number, (start, end, words) in enumerate(steps):
        y = 84.0 + number * 36
        if not start:
            parts.append(_text(16, y, words, "part name"))
        elif start == end:
            x = places[start - 1]
            half = len(words) * LETTER / 2 + 8
            x = min(max(x, half + 8), width - half - 8)
            parts.append(
                f'<rect x="{x - half:.0f}" y="{y - 17:.0f}" width="{2 * half:.0f}" '
                'height="24" rx="4" fill="#fff8e1" stroke="#d9b85b"/>'
            )
            parts.append(_text(x, y, words, "mid"))
        else:
            x1, x2 = places[start - 1], places[end - 1]
            parts.append(_text((x1 + x2) / 2, y - 5, words, "mid"))
            parts.append(_arrow(x1, x2, y + 3))
    return width, height, parts
