"""A reader for the used part of Markdown: headings, quotes, fences and JSON.

The text comes from a peer. Every line is read once. Text that begins like JSON outside
a fence is followed to its closing brace, within a budget for the whole text, so that
the time is linear in the length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from negotiation.late_patterns import late_pattern

MAX_CANDIDATES: Final = 64
"Largest number of places in one text that are tried as JSON."

MAX_FENCES: Final = 256
"Largest number of fenced blocks in one text that are kept."

MAX_JSON_SIZE: Final = 160 * 1024
"Longest JSON text read, in characters: a schema of 64 KiB with indentation."

MAX_SCANNED: Final = 1024 * 1024
"Largest number of characters in one text that are searched for closing braces."

MAX_OPEN: Final = 64
"Largest number of braces and brackets open at one place."

HEADING: Final = late_pattern(r" {0,3}(#{1,6})(?:[ \t]+|(?=[^#\s!]))(.*)")
BOLD_HEADING: Final = late_pattern(
    r" {0,3}(?:\*\*|__)([^*_]{1,120})(?:\*\*|__)[:\uff1a]?\s*"
)
FENCE: Final = late_pattern(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*")
# Matches one token; possessive quantifiers prevent a string that is never closed from
# being tried again from every quote in it.
TOKEN: Final = late_pattern(r'"(?:[^"\\\n]++|\\.)*+"?+|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class JsonText:
    """A place in the text that looks like one JSON object."""

    text: str
    "The text from the opening brace to the closing one."

    headings: tuple[str, ...]
    "The headings above it, the nearest first."

    intro: str
    "The last line of prose above it, under the same heading."

    section: int = 0
    "Index of its section in the outline."

    position: int = 0
    "Its position in the text: that of its fence, or of its opening brace."


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block in any language."""

    language: str
    "The first word after the opening marks, in lower case; may be empty."

    text: str
    "Its lines without the fence's indentation, joined by LF."

    headings: tuple[str, ...]
    "The headings above it, the nearest first."

    intro: str
    "The last line of prose above it, under the same heading."

    section: int
    "Index of its section in the outline."

    position: int
    "Position of its opening marks in the text."


@dataclass(slots=True)
class MarkdownSection:
    """The text under one heading, up to the next heading of any level."""

    level: int
    "1 to 6, the number of `#` in the heading; 0 for text before the first heading."

    title: str

    lines: list[str] = field(default_factory=list)
    "Lines of prose, including quotes but not fences and JSON."


@dataclass(frozen=True, slots=True)
class Outline:
    """A text divided into its parts."""

    sections: tuple[MarkdownSection, ...]
    jsons: tuple[JsonText, ...]

    complete: bool
    "False when the budget was used up before the end of the text."

    fences: tuple[Fence, ...] = ()
    "The first `MAX_FENCES` fenced blocks, in order, those with JSON included."


def read_outline(text: str) -> Outline:
    """Return the sections of `text`, its fences and the parts that look like JSON."""
    reader = _Reader(text)
    reader.run()
    return Outline(
        tuple(reader.sections),
        tuple(reader.jsons),
        reader.complete,
        tuple(reader.fences),
    )


class _Reader:
    """Reads one text in a single pass."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._scanned = 0
        self._tried = 0
        self._path: list[tuple[int, str]] = []
        self._intro = ""
        self.sections: list[MarkdownSection] = [MarkdownSection(0, "")]
        self.jsons: list[JsonText] = []
        self.fences: list[Fence] = []
        self.complete = True

    def run(self) -> None:
        while self._position < len(self._text):
            start = self._position
            line = self._line()
            fence = FENCE.fullmatch(line)
            if fence:
                self._fenced(start, line, fence)
            elif line.lstrip().startswith("{"):
                self._position = start + line.index("{")
                self._bare(line)
            elif heading := HEADING.fullmatch(line):
                self._head(len(heading[1]), heading[2].strip().rstrip("#").strip())
            elif bold := BOLD_HEADING.fullmatch(line):
                self._head(6, bold[1].strip())
            else:
                self._prose(line)

    def _line(self) -> str:
        """Return the line at the position, without its end, and move past it."""
        end = self._text.find("\n", self._position)
        end = len(self._text) if end < 0 else end
        line = self._text[self._position : end]
        self._position = end + 1
        return line

    def _head(self, level: int, title: str) -> None:
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._path.append((level, title))
        self.sections.append(MarkdownSection(level, title))
        self._intro = ""

    def _prose(self, line: str) -> None:
        self.sections[-1].lines.append(line)
        if line.strip() and not line.lstrip().startswith(">"):
            self._intro = line.strip()

    def _fenced(self, start: int, first: str, opening: re.Match[str]) -> None:
        block = self._block(opening[1])
        if len(self.fences) < MAX_FENCES:
            indentation = len(first) - len(first.lstrip(" \t"))
            self.fences.append(
                Fence(
                    opening[2].lower(),
                    _content(block, indentation),
                    self._headings(),
                    self._intro,
                    len(self.sections) - 1,
                    start,
                )
            )
        body = block.strip()
        if body.startswith("{"):
            self._keep(body, start)

    def _block(self, mark: str) -> str:
        """Return the text up to the line that closes a fence, and move past that."""
        text, begin = self._text, self._position
        at = begin
        while (found := text.find(mark, at)) >= 0:
            # No line before this one has the mark.
            self._position = max(begin, text.rfind("\n", begin, found) + 1)
            end = self._position - 1
            closing = self._line().strip()
            if closing.startswith(mark) and not closing.strip(mark[0]):
                return text[begin : max(begin, end)]
            at = self._position
        self._position = len(text)
        return text[begin:].removesuffix("\n")

    def _bare(self, line: str) -> None:
        start = self._position
        end = self._closing(start)
        if end is None:
            self._position = start
            self._line()
            self._prose(line)
            return
        self._keep(self._text[start:end], start)
        self._position = end
        rest = self._line()
        if rest.strip():
            self._prose(rest)

    def _closing(self, start: int) -> int | None:
        """Return the place after the brace that closes the one at `start`, or None."""
        room = min(MAX_JSON_SIZE, MAX_SCANNED - self._scanned)
        if room <= 0 or self._tried >= MAX_CANDIDATES:
            self.complete = False
            return None
        self._tried += 1
        limit = min(len(self._text), start + room)
        opened = 0
        for token in TOKEN.finditer(self._text, start, limit):
            if token[0] in "{[":
                opened += 1
            elif token[0] in "}]":
                opened -= 1
            if opened > MAX_OPEN:
                self._scanned += token.end() - start
                return None
            if not opened:
                self._scanned += token.end() - start
                return token.end()
        self._scanned += limit - start
        return None

    def _keep(self, text: str, position: int) -> None:
        if len(text) > MAX_JSON_SIZE or len(self.jsons) >= MAX_CANDIDATES:
            self.complete = False
            return
        section = len(self.sections) - 1
        self.jsons.append(
            JsonText(text, self._headings(), self._intro, section, position)
        )

    def _headings(self) -> tuple[str, ...]:
        return tuple(title for _, title in reversed(self._path))


def _content(block: str, indentation: int) -> str:
    """Return what stands in a fenced block whose fence is indented."""
    if not indentation and "\r" not in block:
        return block
    return "\n".join(
        _unindented(line, indentation).removesuffix("\r") for line in block.split("\n")
    )


def _unindented(line: str, indentation: int) -> str:
    """Return `line` without indentation, up to that of its fence."""
    blanks = len(line) - len(line.lstrip(" \t"))
    return line[min(blanks, indentation) :]
