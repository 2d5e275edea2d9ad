"""Parts that several questions share, and codecs.

A codec converts between bytes that are not JSON and the values of a document's schemas.
It is the only part of a half that a model writes as Python source; it is never run
here, but in the sandbox, with the document's worked examples.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from negotiation.document.renderer import render_document
from negotiation.document.shape import Document
from negotiation.errors import DocumentError
from negotiation.llm.asking.questions import (
    TEXT,
    Question,
    ask_with,
    fenced,
    one_line,
    record,
)
from negotiation.llm.links.frames import FAILURE_WORDS, ROLE_WORDS, FieldUseForm
from negotiation.llm.links.pure_source import impurity
from negotiation.llm.links.spots import described

__all__ = [
    "MAX_TEXT",
    "codec_part",
    "codec_question",
    "codec_words",
    "document_words",
    "frame_words",
    "problem_words",
    "read_codec",
]

MAX_TEXT: Final = 16_000
"Largest part of a document that a prompt shows, in characters."


def document_words(document: Document) -> str:
    """Return a document for a prompt; one in our own shape is reduced to its fields."""
    given, wanted = document.input_schema, document.output_schema
    if given is not None and wanted is not None:
        with contextlib.suppress(DocumentError):
            if document.text == render_document(document.requirement, given, wanted):
                return (
                    "(JSON messages in the usual shape, with nothing in words beyond "
                    "the requirement; the fields are below)"
                )
    return fenced(document.text, limit=MAX_TEXT)


def frame_words(form: FieldUseForm) -> str:
    """Return the part of a prompt about the fields of the messages."""
    parts = []
    if form.fields:
        parts += [
            "`roles`: what each of these fields of the messages is for. `good`: the "
            "values of good_or_bad that say good.",
            fenced(described(form.fields), limit=MAX_TEXT),
            "The roles:",
            ROLE_WORDS,
        ]
    if form.codes:
        parts += [
            "`failures`: which code of the document stands for each kind of failure. "
            "Give 500 the code for anything else; kinds left out use that one too.",
            FAILURE_WORDS,
        ]
    return "\n".join(parts) or "(nothing is asked here)"


def codec_words(document: Document) -> str:
    """Return the part of a prompt about bytes that are not JSON."""
    if document.is_json:
        return "The messages are JSON; there is nothing to do for their bytes."
    return (
        "The bytes are not JSON. `codec` is Python source with two pure functions, "
        "`read_message(kind, data)`, which returns the values of the document's "
        "schemas as a dict, and `write_message(kind, values)`, which returns bytes; "
        "kind is 'request' or 'response'. See the rules for Python above. They must "
        "give exactly the worked examples, both ways, and read_message must raise "
        "ValueError for bytes that are cut, left over or not of this format."
    )


def problem_words(
    problems: Sequence[str], previous: Mapping[str, Any] | None = None
) -> str:
    """Return the faults of the previous answer, for a prompt.

    Args:
        previous: That answer, which the model needs to see to correct it.
    """
    if not problems:
        return "(this is the first answer)"
    lines = "\n".join(f"- {one_line(one, 500)}" for one in problems[:20])
    words = fenced(lines, limit=8_000)
    if previous is None:
        return words
    answer = json.dumps(previous, ensure_ascii=False)
    return f"Your answer:\n{fenced(answer, limit=MAX_TEXT)}\nWhat it lacks:\n{words}"


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
    if problem := impurity(text):
        return [f"the codec is not pure: {problem}"]
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
