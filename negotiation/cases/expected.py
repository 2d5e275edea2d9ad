"""The expected result of a case: its words, and their interpretation (ANP-50)."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["FAILURES", "GOOD", "error_words", "failure_said", "kind_said", "words_for"]

GOOD: Final = "A good result."

FAILURES: Final[tuple[tuple[str, str], ...]] = (
    ("404", "not found"),
    ("999", "failed & said so"),
    ("503", "not available"),
)
"""Failures of capabilities in error cases: code and words.

One is a code that halves pass on, one is no HTTP status, and one is a server error.
"""

# The first words of our own texts are recognised before all others.
_OURS: Final = re.compile(r"(a good result|an error)\b", re.IGNORECASE)
_BAD: Final = re.compile(
    r"error|fail|not found|invalid|reject|refus|\b[45]\d\d\b"
    r"|错误|失败|不存在|异常|无效|拒绝|未找到",
    re.IGNORECASE,
)
_GOOD: Final = re.compile(r"good|succe|\bok\b|\b200\b|成功|正常", re.IGNORECASE)
_CODE: Final = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9]{2}(?![0-9A-Za-z])")


def kind_said(words: str) -> bool | None:
    """Return whether the words expect a good result; None if they leave it open."""
    ours = _OURS.match(words)
    if ours is not None:
        return ours[1].casefold() == "a good result"
    good, bad = bool(_GOOD.search(words)), bool(_BAD.search(words))
    return good if good != bad else None


def words_for(words: str, good: bool | None) -> str:
    """Return words that mean `good` to `kind_said`, as close to `words` as possible."""
    if good is None or kind_said(words) == good:
        return words
    begin = "A good result" if good else "An error"
    return f"{begin}: {words}" if words else f"{begin}."


def error_words(failure: tuple[str, str]) -> str:
    """Return the expected result of a case in which the capability fails."""
    code, text = failure
    return f"An error, as the capability fails with {code} ({text})."


def failure_said(words: str) -> tuple[str, str]:
    """Return the failure that a case with an expected error requires.

    The code is the first number of three digits that does not mean success; codes of
    HTTP errors come before others.
    """
    codes = [code for code in _CODE.findall(words) if not code.startswith("2")]
    codes.sort(key=lambda code: code[0] not in "45")
    if not codes:
        return FAILURES[0]
    return codes[0], dict(FAILURES).get(codes[0], "it failed")
