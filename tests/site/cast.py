"""A picture of a terminal, drawn from what commands really print.

`make cast` types the walk of the README into a terminal and draws
`docs/pictures/walk.svg`: each line appears when it came, waits shortened.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Sequence
from html import escape
from pathlib import Path

from tests.documents import ROOT, blocks
from tests.e2e.terminals import Terminal, reader_environ
from tests.site.links import WALK
from tests.site.pages import section_of

Line = tuple[float, str, bool]
"Seconds from the beginning, the text, and whether it was typed."

WIDTH, HEIGHT = 100, 18
"Columns of a line, and pixels from line to line."

LONGEST = 1.5
"Seconds of a wait that are shown, at most."

MADE_UP = re.compile(r"(did:key:z\w{6})\w+")


def record() -> list[Line]:
    """Type the walk, and return what was typed and printed, with times."""
    walk = section_of((ROOT / "README.md").read_text("utf-8"), WALK)
    typed = [one for block in blocks(walk) for one in block.typed]
    lines: list[Line] = []
    at = 0.0
    with tempfile.TemporaryDirectory() as folder:
        environ = reader_environ(Path(folder))
        environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
        terminal = Terminal(ROOT, environ)
        try:
            for one in typed:
                if not re.search(r"\banpd\b", one.command):
                    continue
                at += 0.6
                lines.append((at, f"$ {one.command}", True))
                began = time.monotonic()
                printed, _ = terminal.run(one.command)
                at += min(time.monotonic() - began, LONGEST)
                for text in printed:
                    if text.strip():
                        shown = MADE_UP.sub(r"\1…", text.replace(folder, "/home/me"))
                        lines.append((at, shown.rstrip(), False))
                        at += 0.05
        finally:
            for home in ("shop", "buyer"):
                terminal.run(f"anpd --home ~/{home} stop")
            terminal.close()
    return lines


def drawn_cast(lines: Sequence[Line], title: str) -> str:
    """Return lines of a terminal as an SVG in which they appear one after the other."""
    rows = [
        (at, text[begin : begin + WIDTH], typed)
        for at, text, typed in lines
        for begin in range(0, max(len(text), 1), WIDTH)
    ]
    width, height = WIDTH * 8 + 32, len(rows) * HEIGHT + 52
    shown = [
        f'<text x="16" y="{46 + number * HEIGHT}" class="{"in" if typed else "out"}" '
        f'style="animation-delay:{at:.2f}s" xml:space="preserve">{escape(text)}</text>'
        for number, (at, text, typed) in enumerate(rows)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{escape(title)}">\n'
        f"<title>{escape(title)}</title>\n<style>\n"
        "text { font: 13px ui-monospace, monospace; animation: come 0.1s both }\n"
        ".in { fill: #7ee787 } .out { fill: #e6edf3 }\n"
        "@keyframes come { from { opacity: 0 } to { opacity: 1 } }\n"
        "@media (prefers-reduced-motion: reduce) { text { animation: none } }\n"
        '</style>\n<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n'
        '<circle cx="20" cy="16" r="5" fill="#ff5f56"/>'
        '<circle cx="38" cy="16" r="5" fill="#ffbd2e"/>'
        '<circle cx="56" cy="16" r="5" fill="#27c93f"/>\n'
        + "\n".join(shown)
        + "\n</svg>\n"
    )
