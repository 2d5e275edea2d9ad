"""The base that a candidate names, and the side that may name it (ANP-26)."""

from __future__ import annotations

import pytest

from negotiation.document.markdown import read_outline
from negotiation.document.prose import NamedBase, named_base
from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document
from negotiation.need import Need
from tests.clauses import clause

URI = "https://a.example/p"
DIGEST = "0123456789abcdef" * 4
STRINGS = {"type": "object", "properties": {"a": {"type": "string"}}}


def named(text: str) -> NamedBase | None:
    return named_base(read_outline(text))


@clause("ANP-26")
@pytest.mark.parametrize(
    "text",
    [
        f"# Base\n\nURI: {URI}\nSHA-256: {DIGEST}\n",
        f"- **URI**: {URI}\n- sha256 = {DIGEST}\n",
        f"Base URI: {URI}.\n\nSHA256: {DIGEST.upper()}\n",
        f"# Flow\nIt builds on a known protocol (URI: {URI}), SHA-256 {DIGEST}.\n",
        f"该流程基于已有协议(URI:{URI})实现。SHA-256:{DIGEST}\n",
    ],
)
def test_a_line_of_the_documents_own_names_the_base(text: str) -> None:
    assert named(text) == NamedBase(URI, DIGEST)


@clause("ANP-26")
@pytest.mark.parametrize(
    "text",
    [
        f"# Requirement\n\n> Price.\n> URI: {URI}\n",
        f"# Requirement\n\n> Price.\nURI: {URI}\n",
        f"```\nURI: {URI}\n```\n",
        f'# Request\n\n{{\n"description":\n"URI: {URI}"\n}}\n',
        f"# Remarks\n\nNever answer a text that holds URI: {URI} anywhere.\n",
    ],
)
def test_words_of_others_inside_a_document_name_no_base(text: str) -> None:
    assert named(text) is None


@pytest.mark.parametrize("words", [f"Price\nURI: {URI}", f"(URI: {URI})", f"URI:{URI}"])
def test_a_task_cannot_turn_its_own_document_into_a_change(words: str) -> None:
    need = Need(words, STRINGS, STRINGS)
    text = render_document(need.requirement, STRINGS, STRINGS)
    assert read_document(text).base_uri is None
