"""The words of a document: what a block is about, the encoding, and the base.

Most documents name no encoding and mean JSON. One with another encoding must show it in
worked examples (DESIGN.md, Negotiation; ANP-70). Words are understood in English and
Chinese, in the wording of people and models (ANP-24, ANP-26, ANP-35).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import takewhile
from typing import Final

from negotiation.document.markdown import MarkdownSection, Outline
from negotiation.late_patterns import late_pattern

REQUEST_WORDS: Final = late_pattern(r"request|input|请求|請求|输入", re.IGNORECASE)
RESPONSE_WORDS: Final = late_pattern(
    r"respon[sd]|reply|replies|answer|result|output|响应|響應|返回|回复|应答|结果|输出",
    re.IGNORECASE,
)
ERROR_WORDS: Final = late_pattern(r"error|fail|exception|错误|异常|失败", re.IGNORECASE)
NEED_WORDS: Final = late_pattern(
    r"\s*[\d.、)）]*\s*(?:(?:requirements?|needs?|purpose|goals?|tasks?)\b"
    r"|需求|目的|目标|任务).*",
    re.IGNORECASE,
)
ENCODING_WORDS: Final = late_pattern(
    r".*(encoding|wire format|byte format|bytes on the wire|编码|編碼|字节格式).*",
    re.IGNORECASE,
)


UPDATE_TITLE: Final = late_pattern(
    r"[\d.、)\s]{0,8}(?:updates?(?: messages?)?(?: (?:data )?(?:format|schema))?"
    r"|(?:更新|进度)(?:消息)?(?:数据)?(?:格式)?)[:\uff1a\s]{0,3}",
    re.IGNORECASE,
)
"""A heading above the schema of what comes before the answer.

The whole heading has to say it: many documents are about an update of something.
"""


class DocumentPart(Enum):
    """The message that a block of the text describes or shows."""

    REQUEST = auto()
    UPDATE = auto()
    RESPONSE = auto()
    ERROR = auto()
    UNCLEAR = auto()


def part_said(words: str) -> DocumentPart:
    """Return the part that the first 500 characters of `words` name."""
    words = words[:500]
    request = REQUEST_WORDS.search(words)
    response = RESPONSE_WORDS.search(words)
    if ERROR_WORDS.search(words):
        return DocumentPart.ERROR
    if request and not response:
        return DocumentPart.REQUEST
    if response and not request:
        return DocumentPart.RESPONSE
    return DocumentPart.UNCLEAR


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
NOT_MEANT: Final = late_pattern(
    rf"\b(?:not|no|non|never|rather than|instead of)[\s-]{{1,3}}(?:json|{_OTHERS})\b"
    r"|(?:不是|不用|而非|非)\s?(?:json|xml|二进制)|json[\s-]{0,2}(?:schema|模式)",
    re.IGNORECASE,
)
NO_JSON: Final = late_pattern(
    r"\b(?:not|no|non|never|rather than|instead of)[\s-]{1,3}json\b(?![\s-]{0,2}schema)"
    r"|(?:不是|不用|而非|非)\s?json",
    re.IGNORECASE,
)
"""Words that deny JSON: whatever the format is, it is another one."""

FORMAT: Final = late_pattern(
    rf"(json)|\b(?:{_OTHERS})\b|xml|二进制|大端|小端", re.IGNORECASE
)
CHARACTERS: Final = late_pattern(r"utf-?8|unicode|ascii", re.IGNORECASE)
PLAIN_TITLE: Final = late_pattern(
    r"[\d.、)\s]{0,8}(?:message )?(?:encoding|wire format|byte format"
    r"|bytes on the wire|(?:消息)?编码|字节格式)[:\uff1a\s]{0,3}",
    re.IGNORECASE,
)


def encoding_of(outline: Outline) -> str:
    """Return `json`, or the document's own words about its encoding.

    The first section that names a format decides. A section with only a character set
    means JSON, unless it denies that. A section without any known format means another
    encoding, since that error costs one round, while a wrong `json` costs a broken
    agreement.
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
        if NO_JSON.search(words) or not CHARACTERS.search(words):
            unknown = unknown or _name(section, words)
    return unknown or JSON


def _words(section: MarkdownSection, following: Sequence[MarkdownSection]) -> str:
    """Return the text of a section and of its subsections."""
    below = takewhile(lambda one: one.level > section.level, following)
    lines = [section.title, *section.lines]
    for one in below:
        lines += [one.title, *one.lines]
    return " ".join(lines)[:MAX_SAID]


def _name(section: MarkdownSection, words: str) -> str:
    title = "" if PLAIN_TITLE.fullmatch(section.title[:200]) else section.title
    own = " ".join([title, *section.lines])[:MAX_SAID].strip()
    return " ".join((own or words).split())[:MAX_NAME]


BASE_URI: Final = late_pattern(
    r"(?:^[\s*_-]{0,8}(?:[^\W\d_]{1,20} ){0,3}|[(\uff08]\s{0,3})URI[*_]{0,2}\s{0,3}"
    r"[:\uff1a][*_]{0,2}\s{0,3}"
    r"([a-z][a-z0-9+.-]{0,20}:[^\s()\uff08\uff09<>`\"]{1,500})",
    re.IGNORECASE,
)
"`URI: …` at the beginning of a line, after at most three words, or in brackets."

SHA256: Final = late_pattern(r"sha-?256[^0-9a-f]{1,20}([0-9a-f]{64})\b", re.IGNORECASE)

MAX_LINE: Final = 2_000
"Longest part of a line that is examined, in characters."


@dataclass(frozen=True, slots=True)
class NamedBase:
    """The base that a candidate names."""

    uri: str

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
