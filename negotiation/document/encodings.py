"""The encoding of a document's messages, if a section of the text names one.

Most documents name none and mean JSON. One with another encoding must show it in worked
examples (DESIGN.md, Negotiation; ANP-70).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from negotiation.document.headings import ENCODING_WORDS
from negotiation.document.markdown import Outline, Section

__all__ = ["JSON", "encoding_of"]

JSON: Final = "json"
"The encoding of a document that names no other."

MAX_SAID: Final = 2_000
"Largest number of characters of one section that are examined."

MAX_BELOW: Final = 8
"Largest number of its subsections that are examined with it."

MAX_NAME: Final = 200
"Longest name of an encoding that is kept, in characters; the text has the rest."

_OTHERS = (
    "xml|html|binary|protobuf|protocol buffers?|msgpack|messagepack|cbor|bson|avro"
    "|thrift|asn\\.?1|csv|tsv|yaml|toml|form-urlencoded|edifact|big[- ]endian"
    "|little[- ]endian|packed"
)
# A denied format is not the one in use, and any document may have JSON Schemas.
NOT_MEANT: Final = re.compile(
    rf"\b(?:not|no|non|never|rather than|instead of)[\s-]{{1,3}}(?:json|{_OTHERS})\b"
    r"|(?:不是|不用|而非|非)\s?(?:json|xml|二进制)|json[\s-]{0,2}(?:schema|模式)",
    re.IGNORECASE,
)
FORMAT: Final = re.compile(
    rf"(json)|\b(?:{_OTHERS})\b|xml|二进制|大端|小端", re.IGNORECASE
)
CHARACTERS: Final = re.compile(r"utf-?8|unicode|ascii", re.IGNORECASE)
PLAIN_TITLE: Final = re.compile(
    r"[\d.、)\s]{0,8}(?:message )?(?:encoding|wire format|byte format"
    r"|bytes on the wire|(?:消息)?编码|字节格式)[:\uff1a\s]{0,3}",
    re.IGNORECASE,
)


def encoding_of(outline: Outline) -> str:
    """Return `json`, or the document's own words about its encoding.

    The first section that names a format decides. A section with only a character set
    means JSON. A section without any known format means another encoding, since that
    error costs one round, while a wrong `json` costs a broken agreement.
    """
    unknown = ""
    sections = outline.sections
    for place, section in enumerate(sections):
        if not ENCODING_WORDS.fullmatch(section.title[:200]):
            continue
        words = _words(section, sections[place + 1 : place + 1 + MAX_BELOW])
        named = FORMAT.search(NOT_MEANT.sub(" ", words))
        if named is not None:
            return JSON if named[1] else _name(section, words)
        if not CHARACTERS.search(words):
            unknown = unknown or _name(section, words)
    return unknown or JSON


def _words(section: Section, following: Sequence[Section]) -> str:
    """Return the text of a section and of its subsections."""
    below = takewhile(lambda one: one.level > section.level, following)
    lines = [section.title, *section.lines]
    for one in below:
        lines += [one.title, *one.lines]
    return " ".join(lines)[:MAX_SAID]


def _name(section: Section, words: str) -> str:
    title = "" if PLAIN_TITLE.fullmatch(section.title[:200]) else section.title
    own = " ".join([title, *section.lines])[:MAX_SAID].strip()
    return " ".join((own or words).split())[:MAX_NAME]
