"""Leads each link of a document to a page of the site.

The documents are written for readers of the repository, where a link leads to a file.
On the site a document has its own place, and a file of the code a page with its text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from tests.documents import ROOT

WALK = "five-minutes-with-two-agents"
"The anchor of the README's walk, which stands on the page of the five minutes."

FIVE_MINUTES = "five-minutes.md"

_PLACES = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "docs/decisions/README.md": "decisions/index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "examples/formats/README.md": "formats.md",
}
"Documents whose place on the site is not the one that they have below `docs`."

_LINK = re.compile(r"(!?\[(?:[^\[\]\n]|\[[^\]\n]*\])*\]\()([^)\s]+)(\))")
_CODE = re.compile(r"(`[^`\n]+`)")
_PICTURES = {".svg", ".png"}


def place_of(path: Path) -> str:
    """Return where a file or folder of the repository is on the site."""
    name = path.relative_to(ROOT).as_posix()
    if name in _PLACES:
        return _PLACES[name]
    if name.startswith("docs/") and path.suffix in {".md", *_PICTURES}:
        return name.removeprefix("docs/")
    return f"source/{name}/index.md" if path.is_dir() else f"source/{name}.md"


def relinked(
    text: str, origin: Path, place: str, wanted: Callable[[Path], None]
) -> str:
    """Return a document with its links as they have to be on the site.

    Args:
        origin: The document.
        place: Its place on the site.
        wanted: Told of each file and folder that a link leads to.
    """
    lines, fence = [], ""
    for line in text.splitlines():
        mark = re.match(r" *(`{3,})", line)
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark[1]
        elif not fence:
            line = _relinked_line(line, origin, place, wanted)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _relinked_line(
    line: str, origin: Path, place: str, wanted: Callable[[Path], None]
) -> str:
    def changed(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        file, _, anchor = target.partition("#")
        path = (origin.parent / file).resolve() if file else origin
        to = FIVE_MINUTES if anchor == WALK else place_of(path)
        if file:
            wanted(path)
        elif to == place:
            return f"{before}#{anchor}{after}"
        way = os.path.relpath(to, PurePosixPath(place).parent)
        return f"{before}{way}{'#' if anchor else ''}{anchor}{after}"

    # The text of a link may be code; code itself has no links.
    spots = [(m.start(), m.end()) for m in _CODE.finditer(line)]

    def outside(match: re.Match[str]) -> str:
        inside = any(a < match.start() and match.end() <= b for a, b in spots)
        return match[0] if inside else changed(match)

    return _LINK.sub(outside, line)
