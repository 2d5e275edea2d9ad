"""Codecs: the only part of a half that a model writes as Python source.

A codec converts between bytes that are not JSON and the values of a document's schemas.
It is never run here, but in the sandbox, with the document's worked examples.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from negotiation.document.shape import Document
from negotiation.llm.asking.forms import TEXT, record
from negotiation.llm.asking.prompts import ask_with, fenced
from negotiation.llm.asking.questions import Question

__all__ = ["codec_part", "codec_question", "read_codec"]

MAX_CODEC: Final = 40 * 1024
"Largest codec, in bytes of UTF-8; the rest of a half is added to it."

MAX_TOKENS: Final = 6_000

FENCE: Final = re.compile(r"```(?:python|py)?\n(.*?)\n?```\s*", re.DOTALL)
FUNCTIONS: Final = (
    re.compile(r"^def read_message\(", re.MULTILINE),
    re.compile(r"^def write_message\(", re.MULTILINE),
)


def codec_part(document: Document) -> dict[str, dict[str, Any]]:
    """Return the part of an answer's schema about the codec."""
    return {} if document.is_json else {"codec": TEXT}


def read_codec(document: Document, answer: Mapping[str, Any]) -> str | list[str]:
    """Return the codec of an answer (empty for JSON), or its faults."""
    if document.is_json:
        return ""
    text = str(answer.get("codec", "")).replace("\r\n", "\n").strip()
    fence = FENCE.fullmatch(text)
    if fence is not None:
        text = fence[1]
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        return ["the codec holds characters that cannot be written"]
    if size > MAX_CODEC:
        return [f"the codec has {size} bytes, at most {MAX_CODEC} are taken"]
    if "\0" in text or not all(one.search(text) for one in FUNCTIONS):
        return ["the codec does not define read_message and write_message"]
    return text


def codec_question(
    document: Document, previous: str, findings: Sequence[str]
) -> Question:
    """Return the question for a codec, after `previous` failed with `findings`."""
    lines = "\n".join(f"- {one}" for one in findings) or "- nothing yet"
    return ask_with(
        "codec",
        {
            "document": fenced(document.text, limit=24_000),
            "previous": fenced(previous, limit=MAX_CODEC),
            "findings": fenced(lines, limit=8_000),
        },
        schema=record(codec=TEXT),
        max_tokens=MAX_TOKENS,
    )
