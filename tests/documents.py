"""Reads our Markdown documents: fenced blocks, what is typed in them, links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"The top folder of the project."

_FOLDERS = ("docs", "deploy", "examples")
"Where Markdown files of ours are, besides the top folder."

_FENCE = re.compile(r"^ *(`{3,})(\w*)[^`]*$")
_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"\[[^\]\n]+\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Typed:
    """One command of a `console` block, and what stands below it."""

    command: str
    "What is typed, its continued lines joined."

    shown: tuple[str, ...]
    "The lines it prints, with `…` for what differs."


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    kind: str
    "The word behind the fence, such as `toml`; may be empty."

    text: str
    "What stands between the fences."

    line: int
    "Line of the opening fence, counted from 1."

    heading: str
    "The heading above it."

    @property
    def typed(self) -> list[Typed]:
        """The commands behind `$`, in order."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and found[-1][0].endswith("\\") and not found[-1][1]:
                command = found.pop()[0][:-1].rstrip()
                found.append((f"{command} {line.strip()}", []))
            elif found:
                found[-1][1].append(line)
        return [Typed(command, tuple(shown)) for command, shown in found]


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a document."""

    target: str
    "A path from the folder of the document, an anchor, both, or a URL."

    @property
    def is_local(self) -> bool:
        """True if it leads to a file of ours."""
        return "://" not in self.target and not self.target.startswith("mailto:")


def documents() -> list[Path]:
    """Return every Markdown document that is ours to keep right."""
    found = sorted(ROOT.glob("*.md"))
    for folder in _FOLDERS:
        found += sorted((ROOT / folder).rglob("*.md"))
    # Texts that two daemons agree on are data.
    return [path for path in found if path.name != "document.md"]


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a document."""
    found: list[Block] = []
    heading, fence, kind, start = "", "", "", 0
    inside: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _FENCE.match(line)
        if fence:
            if line.strip() == fence:
                found.append(Block(kind, "\n".join(inside) + "\n", start, heading))
                fence = ""
            else:
                inside.append(line)
        elif match:
            fence, kind, start, inside = match[1], match[2], number, []
        elif line.startswith("#"):
            heading = line.lstrip("#").strip()
    if fence:
        raise ValueError(f"the fence of line {start} is not closed")
    return found


def without_blocks(text: str) -> str:
    """Return a document without what stands in fences."""
    kept, fence = [], ""
    for line in text.splitlines():
        match = _FENCE.match(line)
        if not fence and match:
            fence = match[1]
        elif fence:
            fence = "" if line.strip() == fence else fence
        else:
            kept.append(line)
    return "\n".join(kept) + "\n"


def links(text: str) -> list[Link]:
    """Return the links of a document's running text."""
    plain = _CODE.sub("", without_blocks(text))
    return [Link(target) for target in _LINK.findall(plain)]


def headings(text: str) -> set[str]:
    """Return the anchors that a document has, as renderers of Markdown make them."""
    found = set()
    for line in without_blocks(text).splitlines():
        if line.startswith("#"):
            words = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            found.add(words.replace(" ", "-"))
    return found
