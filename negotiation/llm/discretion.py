"""Keeps the owner's private hints out of every text that a peer can see.

A model that was given a hint may repeat it: in a document, in a reason, or as a
constant of a half that is sent with every answer. Code searches each such text for
phrases of the hints. Phrases that the peer and the document know anyway are not secret
(ANP-34).
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final, TypeVar

from negotiation.document.shape import Document
from negotiation.errors import JsonError
from negotiation.llm.links.conversions import How
from negotiation.llm.links.plans import ProviderPlan, RequesterPlan
from negotiation.llm.links.trees import Each, Leaf, Node, Tree
from negotiation.llm.steps.offer import Unmapped
from negotiation.mind import Demand, Side
from negotiation.strict_json import Json, canonical_json

__all__ = ["Discretion", "kept_back"]

Found = TypeVar("Found")

PRIVATE: Final = (
    "a constant, a table or an expression holds words of the owner's, which the peer "
    "must not see; make that value from what is listed, or leave it out"
)
"Told to the model about a plan that would reveal a hint."

MIN_PHRASE: Final = 12
"Weight of a phrase that cannot occur by chance; see `_weight`."

MIN_SHORT: Final = 6
"Weight of a whole hint that is shorter than such a phrase, but counts as one."

MIN_NUMBER: Final = 4
"Length of a word with digits that counts by itself, such as a number or code."

MAX_LOOKED_AT: Final = 512 * 1024
"Largest part of one text that is searched, in characters; our texts are shorter."

WORD: Final = re.compile(r"[^\W_]+")
WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class Discretion:
    """Finds a side's hints in texts.

    Args:
        side: The side whose hints are private; its need or capabilities are not.
        known: Texts that the peer has anyway, such as its own document.
    """

    def __init__(self, side: Side, *known: str) -> None:
        self._phrases: frozenset[str] = frozenset()
        if side.hints:
            public = _squeezed("\n".join([_public(side), *known]))
            self._phrases = frozenset(
                phrase
                for hint in side.hints
                for phrase in _phrases(hint)
                if phrase not in public
            )

    def tells(self, *texts: str) -> bool:
        """Return whether the texts contain a phrase of a hint.

        They are also searched joined, to find a phrase that is split over two texts.
        """
        if not self._phrases:
            return False
        squeezed = _squeezed("".join(texts)[:MAX_LOOKED_AT])
        return any(phrase in squeezed for phrase in self._phrases)

    def without(self, answer: Json) -> Any:
        """Return an answer of a model, with each text that reveals a hint emptied."""
        if isinstance(answer, str):
            return "" if self.tells(answer) else answer
        if isinstance(answer, list):
            # In a list an empty text would be a value that was never meant, so it goes.
            return [self.without(one) for one in answer if not self._is_telling(one)]
        if isinstance(answer, dict):
            return {name: self.without(value) for name, value in answer.items()}
        return answer

    def _is_telling(self, value: Json) -> bool:
        return isinstance(value, str) and self.tells(value)


def kept_back(found: Found, document: Document, side: Side) -> Found | Unmapped:
    """Return a plan, or the reason why its half would reveal a private hint.

    Values that a provider half passes to its own capabilities, and a requester half to
    its own caller, stay on this side, so they may contain hints.
    """
    if not isinstance(found, ProviderPlan | RequesterPlan):
        return found
    if not Discretion(side, document.text).tells(*_wire_texts(found)):
        return found
    calls = found.calls if isinstance(found, ProviderPlan) else ()
    return Unmapped((PRIVATE,), tuple(dict.fromkeys(one.capability for one in calls)))


def _wire_texts(plan: ProviderPlan | RequesterPlan) -> list[str]:
    """Return the texts that a half itself sends: constants, tables, its codec's."""
    sent = plan.result if isinstance(plan, ProviderPlan) else plan.request
    return [*_code_texts(plan.codec), *_constants(sent)]


def _constants(node: Node) -> Iterator[str]:
    match node:
        case Leaf(conversion) if conversion.how is How.PYTHON:
            for value in conversion.values:
                yield from _code_texts(str(value))
        case Leaf(conversion) if conversion.how in {
            How.CONSTANT,
            How.VALUES,
            How.JOIN,
        }:
            for value in conversion.values:
                yield _words_of(value)
        case Tree(fields):
            for one in fields:
                yield from _constants(one.node)
        case Each(_, inner):
            yield from _constants(inner)
        case _:
            return


def _code_texts(source: str) -> Iterator[str]:
    """Yield the texts in Python source; if it cannot be parsed, all of it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield source
        return
    match tree.body:
        case [ast.Expr(ast.Constant())]:
            # Numbers count only where the source does not calculate with them.
            yield source
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    # In the order of the source, so that concatenated texts follow each other.
    for node in sorted(constants, key=lambda one: (one.lineno, one.col_offset)):
        match node.value:
            case str(text):
                yield text
            case bytes(data):
                yield data.decode("utf-8", "replace")


def _public(side: Side) -> str:
    """Return the texts of a side that a peer may know: all but its hints."""
    if isinstance(side, Demand):
        given: Json = [asdict(side.need), side.arguments]
    else:
        given = [asdict(one) for one in side.capabilities]
    return _words_of(given)


def _words_of(value: Json) -> str:
    try:
        return value if isinstance(value, str) else canonical_json(value).decode()
    except JsonError:
        return json.dumps(value, ensure_ascii=False, default=str)


def _phrases(hint: str) -> Iterator[str]:
    """Yield the shortest runs of words of a hint that are revealing, squeezed."""
    words = [part for word in WORD.findall(_plain(hint)) for part in _parts(word)]
    if MIN_SHORT <= sum(map(_weight, words)) < MIN_PHRASE:
        yield "".join(words)
    for start, first in enumerate(words):
        if len(first) >= MIN_NUMBER and any(letter.isdigit() for letter in first):
            yield first
        weight = 0
        for end in range(start, len(words)):
            weight += _weight(words[end])
            if weight >= MIN_PHRASE:
                yield "".join(words[start : end + 1])
                break


def _parts(word: str) -> list[str]:
    """Return a word, or its single characters in scripts without blanks (Chinese)."""
    return list(word) if WIDE.search(word) else [word]


def _weight(word: str) -> int:
    return 2 if WIDE.fullmatch(word) else len(word)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _squeezed(text: str) -> str:
    return "".join(WORD.findall(_plain(text)))
