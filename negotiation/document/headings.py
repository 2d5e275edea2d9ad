"""Recognises from a heading or a line of prose what the block below it shows.

English and Chinese, in the wording of people and models (ANP-24, ANP-35).
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final

__all__ = ["ENCODING_WORDS", "NEED_WORDS", "DocumentPart", "part_said"]

REQUEST_WORDS: Final = re.compile(r"request|input|请求|請求|输入", re.IGNORECASE)
RESPONSE_WORDS: Final = re.compile(
    r"respon[sd]|reply|replies|answer|result|output|响应|響應|返回|回复|应答|结果|输出",
    re.IGNORECASE,
)
ERROR_WORDS: Final = re.compile(r"error|fail|exception|错误|异常|失败", re.IGNORECASE)
NEED_WORDS: Final = re.compile(
    r"\s*[\d.、)）]*\s*(?:(?:requirements?|needs?|purpose|goals?|tasks?)\b"
    r"|需求|目的|目标|任务).*",
    re.IGNORECASE,
)
ENCODING_WORDS: Final = re.compile(
    r".*(encoding|wire format|byte format|bytes on the wire|编码|編碼|字节格式).*",
    re.IGNORECASE,
)


class DocumentPart(Enum):
    """The message that a block of the text describes or shows."""

    REQUEST = auto()
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
