"""Verdicts in words that the peer may see, written by code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from negotiation.errors import DocumentError
from negotiation.llm.asking.prompts import one_line
from negotiation.llm.discretion import Discretion
from negotiation.mind import Counter, Offer, Reject, Side, Verdict
from negotiation.rules.rules import own_terms

__all__ = [
    "counter",
    "discreet",
    "listed",
    "missing_reason",
    "peer_reasons",
    "said_to_peer",
    "summary",
]

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
