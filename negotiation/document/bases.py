"""The protocol that a candidate says it builds on: its URI and its hash (ANP-26)."""

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
"`URI: …` where a line begins, behind three words at most, or in brackets."

SHA256: Final = re.compile(r"sha-?256[^0-9a-f]{1,20}([0-9a-f]{64})\b", re.IGNORECASE)

MAX_LINE: Final = 2_000
"Longest line that is looked at, in characters."


@dataclass(frozen=True, slots=True)
class NamedBase:
    """What a candidate says about its base."""

    uri: str
    "The URI as it stands there."

    sha256: str | None
    "Hash that is said beside it, in small letters; None when there is none."


def named_base(outline: Outline) -> NamedBase | None:
    """Return the base that a text names in its own words, or None.

    A requirement that is quoted, a fence and a schema hold words of others: a task may
    say anything, and must not turn the document around it into a change of another.
    """
    lines = list(_own_lines(outline))
    uri = next((found for line in lines if (found := BASE_URI.search(line))), None)
    if uri is None:
        return None
    said = next((found for line in lines if (found := SHA256.search(line))), None)
    return NamedBase(uri[1].rstrip(".,;"), said[1].lower() if said else None)


def _own_lines(outline: Outline) -> Iterator[str]:
    """Give headings and lines that no quotation holds, each cut to a length."""
    for section in outline.sections:
        yield section.title[:MAX_LINE]
        quoted = False
        for line in section.lines:
            if line.lstrip().startswith(">"):
                quoted = True
            elif not line.strip():
                quoted = False
            elif not quoted:
                # What follows a quotation without a blank line belongs to it.
                yield line[:MAX_LINE]
