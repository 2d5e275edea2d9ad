"""Verdicts in words that the peer may see, made by code from what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from negotiation.errors import DocumentError
from negotiation.mind import Counter, Offer, Reject, Verdict
from negotiation.rules import own_terms

__all__ = ["counter", "listed", "missing_reason", "summary"]

MAX_REASONS: Final = 6
"Most reasons in one verdict."

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
    missing = "" if offer.hints else said
    return f"nothing that is offered to you serves this; offered: {names}" + (
        f"; missing: {missing}" if missing else ""
    )


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
