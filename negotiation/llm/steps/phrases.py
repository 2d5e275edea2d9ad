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

MAX_TEXT: Final = 16_000
"Largest part of a document that a prompt shows, in characters."


SECTION: Final = re.compile(r"^(?=#{1,6}[ \t])", re.MULTILINE)
EMPTY_LINES: Final = re.compile(r"\n{3,}")
BLOCK: Final = frozenset({"```", "```json"})
"Lines that begin a block that may be a schema."


def document_words(document: Document, *, told: str) -> str:
    """Return what a document says beside its requirement and its fields, fenced.

    Sections that each document in our own shape has are left out. A document whose
    bytes are not JSON stands whole, since its codec needs every schema.

    Args:
        told: The requirement that the prompt has elsewhere.

    Returns:
        An empty text if nothing is left.
    """
    usual: set[str] = set()
    given, wanted = document.input_schema, document.output_schema
    if given is not None and wanted is not None:
        with contextlib.suppress(DocumentError):
            plain = render_document(document.requirement, given, wanted)
            usual = set(map(str.strip, SECTION.split(plain)))
    kept = []
    for section in SECTION.split(document.text):
        if section.strip() in usual and not section.startswith("# Requirement"):
            continue
        if section.startswith("# Requirement") and told == document.requirement:
            continue
        if document.is_json:
            section = _without_schemas(section)
        kept.append(section.strip())
    text = EMPTY_LINES.sub("\n\n", "\n\n".join(one for one in kept if one))
    return fenced(text, limit=MAX_TEXT) if text else ""


def _without_schemas(text: str) -> str:
    """Return a text without blocks that are schemas, whose fields are shown elsewhere.

    Line by line, since a search for whole blocks is slow in a hostile text.
    """
    kept: list[str] = []
    block: list[str] = []
    for line in text.split("\n"):
        if not block and line.rstrip() not in BLOCK:
            kept.append(line)
            continue
        block.append(line)
        if len(block) > 1 and line.rstrip() == "```":
            kept += [] if any('"properties"' in one for one in block) else block
            block = []
    return "\n".join([*kept, *block])


PYTHON_WORDS: Final = (
    "read_message raises ValueError for bytes that are cut, left over or not "
    "of this format, write_message for values that the format cannot hold. "
    "What was packed comes back as it was: texts of any length and script, "
    "numbers exactly. Pure functions of Python 3.11: no state, no clock, no "
    "id or hash, no files; imports only of json, struct, re, math, base64, "
    "binascii, datetime, decimal, zlib, html, io (BytesIO, StringIO), csv and "
    "xml.etree.ElementTree (fromstring, tostring, Element, SubElement, "
    "ParseError); no names that begin with an underscore, no async, no eval, "
    "no getattr."
)
"The rules for a codec, for a prompt."


def frame_words(form: FieldUseForm) -> str:
    """Return the part of a prompt about the fields of the messages."""
    parts = []
    if form.fields or form.codes:
        parts.append("The fields of the messages:")
    if form.fields:
        parts += [
            "`roles`: what each of these fields of the messages is for. `good`: the "
            "values of good_or_bad that say good, such as ok or 200.",
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
    return "\n".join(parts)


def codec_words(document: Document) -> str:
    """Return the part of a prompt about bytes that are not JSON."""
    if document.is_json:
        return ""
    return (
        "The bytes are not JSON. `codec` is Python source with two pure functions, "
        "`read_message(kind, data)`, which returns the values of the document's "
        "schemas as a dict, and `write_message(kind, values)`, which returns bytes; "
        "kind is 'request' or 'response'. They must give exactly the worked examples, "
        f"both ways. {PYTHON_WORDS}"
    )


def problem_words(
    problems: Sequence[str], previous: Mapping[str, Any] | None = None
) -> str:
    """Return the faults of the previous answer, for a prompt; empty without any.

    Args:
        previous: That answer, which the model needs to see to correct it.
    """
    if not problems:
        return ""
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
