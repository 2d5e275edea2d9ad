"""The protocol that a candidate builds on, by its URI and hash (ANP-26)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from negotiation.document.markdown import Outline

__all__ = ["NamedBase", "named_base"]

BASE_URI: Final = re.compile(
    r"(?:^[\s*_-]{0,8}(?:[^\W\d_]{1,20} ){0,3}|[(\uff08]\s{0,3})URI[*_]{0,2}\s{0,3}"
    r"[:\uff1a][*_]{0,2}\s{0,3}"
    r"([a-z][a-z0-9+.-]{0,20}:[^\s()\uff08\uff09<>`\"]{1,500})",
    re.IGNORECASE,
)
"`URI: …` at the beginning of a line, after at most three words, or in brackets."

SHA256: Final = re.compile(r"sha-?256[^0-9a-f]{1,20}([0-9a-f]{64})\b", re.IGNORECASE)

MAX_LINE: Final = 2_000
"Longest part of a line that is examined, in characters."


@dataclass(frozen=True, slots=True)
class NamedBase:
    """The base that a candidate names."""

    uri: str
    "The URI as written."

    sha256: str | None
    "The hash given with it, in lower case; None when there is none."


def named_base(outline: Outline) -> NamedBase | None:
    """Return the base that a text names outside of quotations, or None.

    Quoted requirements, fences and schemas are left out: a need may have any text, and
    must not turn the document around it into a modification of another.
    """
    lines = list(_own_lines(outline))
    uri = next((found for line in lines if (found := BASE_URI.search(line))), None)
    if uri is None:
        return None
    said = next((found for line in lines if (found := SHA256.search(line))), None)
    return NamedBase(uri[1].rstrip(".,;"), said[1].lower() if said else None)


def _own_lines(outline: Outline) -> Iterator[str]:
    """Yield headings and lines outside of quotations, each shortened to a limit."""
    for section in outline.sections:
        yield section.title[:MAX_LINE]
        quoted = False
        for line in section.lines:
            if line.lstrip().startswith(">"):
                quoted = True
            elif not line.strip():
                quoted = False
            elif not quoted:
                # A line directly after a quotation, without a blank line, belongs to
                # it.
                yield line[:MAX_LINE]
