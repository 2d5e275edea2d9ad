"""Keeps the owner's private hints out of every text that a peer can see.

A model that was given a hint may repeat it: in a document, in a reason, or as a
constant of a half that is sent with every answer. Code searches each such text for
phrases of the hints, and writes the verdicts itself. Phrases that the peer and the
document know anyway are not secret (ANP-34).
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final, TypeVar

from negotiation.document.shape import Document
from negotiation.errors import DocumentError, JsonError
from negotiation.llm.asking.questions import one_line
from negotiation.llm.links.conversions import How
from negotiation.llm.links.plans import ProviderPlan, RequesterPlan
from negotiation.llm.links.trees import Each, Leaf, Node, Tree
from negotiation.llm.steps.offer import Unmapped
from negotiation.mind import Counter, Demand, Offer, Reject, Side, Verdict
from negotiation.rules.rules import own_terms
from negotiation.strict_json import Json, canonical_json

__all__ = [
    "Discretion",
    "counter",
    "discreet",
    "kept_back",
    "listed",
    "missing_reason",
    "peer_reasons",
    "said_to_peer",
    "summary",
]

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


QUOTED: Final = re.compile(r"['\"]")
"Beginning of a quotation."

UNSAID: Final = "this document does not do here"
"Replaces a reason that would reveal a private hint."

MAX_REASONS: Final = 6
"Largest number of reasons in one verdict."

MAX_MISSING: Final = 300
"Longest text of a model about a missing thing, in characters."

MAX_REASON: Final = 1_500
"Longest text of all reasons in one verdict, in characters."


def counter(
    name: str, offer: Offer, sent: Sequence[str], reasons: Sequence[str]
) -> Verdict:
    """Return our own terms, or a rejection when they were declined (ANP-27)."""
    capability = next(one for one in offer.capabilities if one.name == name)
    try:
        ours = own_terms(capability)
    except DocumentError as exc:
        return Reject(f"{name} cannot be described: {exc}")
    if ours in sent:
        return Reject(
            f"{name} cannot serve this document, and our own terms were declined: "
            + listed(reasons)
        )
    return Counter(ours, summary(f"the terms of `{name}`", reasons))


def missing_reason(said: str, offer: Offer) -> str:
    """Return the reason why nothing serves, for the peer.

    The model's words are left out when it was given private hints.
    """
    names = ", ".join(sorted(one.name for one in offer.capabilities)[:MAX_REASONS])
    missing = one_line(said_to_peer(said, offer), MAX_MISSING)
    return f"nothing that is offered to you serves this; offered: {names}" + (
        f"; missing: {missing}" if missing else ""
    )


def said_to_peer(said: str, side: Side) -> str:
    """Return a model's free text for the peer: empty if the model was given hints.

    It may express a hint in other words, which no comparison finds.
    """
    return "" if side.hints else said


def discreet(verdict: Verdict, side: Side, candidate: str) -> Verdict:
    """Return `verdict` without the owner's private hints."""
    discretion = Discretion(side, candidate)
    match verdict:
        case Reject(reason) if discretion.tells(reason):
            return Reject(UNSAID)
        case Counter(document) if discretion.tells(document):
            return Reject(UNSAID)
        case Counter(document, words) if discretion.tells(words):
            return Counter(document, summary("terms of our own", (UNSAID,)))
    return verdict


def peer_reasons(reasons: Sequence[str], side: Side) -> tuple[str, ...]:
    """Return `reasons` in the form that the peer may see.

    Quotations in them may be words of a model, which may repeat private hints; if it
    was given any, each reason ends before its first quotation (ANP-34).
    """
    if not side.hints:
        return tuple(reasons)
    ours = [QUOTED.split(one, maxsplit=1) for one in reasons]
    return tuple(one[0] if len(one) == 1 else f"{one[0].rstrip()} ..." for one in ours)


def listed(reasons: Sequence[str]) -> str:
    more = len(reasons) - MAX_REASONS
    text = "; ".join(" ".join(one.split()) for one in reasons[:MAX_REASONS])
    return text[:MAX_REASON] + (f"; and {more} more" if more > 0 else "")


def summary(terms: str, reasons: Sequence[str]) -> str:
    """Return a modification summary in Markdown (ANP-30, ANP-31)."""
    lines = [
        "Changes:",
        f"- Request and response now have {terms}; the whole document is new.",
        "Reasons:",
        *(f"- {' '.join(one.split())}"[:500] for one in reasons[:MAX_REASONS]),
    ]
    return "\n".join(lines)
