"""Verdicts in words that the peer may see, made by code from what was found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from negotiation.errors import DocumentError
from negotiation.llm.prompting import one_line
from negotiation.mind import Counter, Offer, Reject, Side, Verdict
from negotiation.rules import own_terms

__all__ = ["counter", "listed", "missing_reason", "peer_reasons", "summary"]

QUOTED: Final = re.compile(r"['\"]")
"Where a quotation begins."

MAX_REASONS: Final = 6
"Most reasons in one verdict."

MAX_MISSING: Final = 300
"Most characters of what a model says is missing."

MAX_REASON: Final = 1_500
"Most characters of the reasons in one verdict."


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
    """Return why nothing serves, for the peer.

    The model's words are left out when it was told what is for our mind alone.
    """
    names = ", ".join(sorted(one.name for one in offer.capabilities)[:MAX_REASONS])
    missing = "" if offer.hints else one_line(said, MAX_MISSING)
    return f"nothing that is offered to you serves this; offered: {names}" + (
        f"; missing: {missing}" if missing else ""
    )


def peer_reasons(reasons: Sequence[str], side: Side) -> tuple[str, ...]:
    """Return `reasons` as the peer may see them.

    What they quote can be a model's words, and a model that was told what is for our
    mind alone may repeat it: then each ends before its first quotation (ANP-34).
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
