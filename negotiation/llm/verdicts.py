"""The words of verdicts: rejections with their reasons, and our own terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from negotiation.errors import DocumentError
from negotiation.llm.asking.questions import one_line
from negotiation.mind import Counter, Demand, Offer, Reject, Verdict
from negotiation.rules.rules import own_terms

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


def declined(reason: str, demand: Demand) -> Reject:
    """Return a requester's rejection of a document.

    A model that was shown the data of the call may repeat them in its words, and a
    peer has those data only after an agreement. So the reason stays with the owner.
    """
    shown = demand.need.input_schema is None
    return Reject(reason, "the task cannot use this document" if shown else "")


def missing_reason(said: str, offer: Offer) -> str:
    """Return the reason why nothing serves, for the peer."""
    names = ", ".join(sorted(one.name for one in offer.capabilities)[:MAX_REASONS])
    missing = one_line(said, MAX_MISSING)
    return f"nothing that is offered to you serves this; offered: {names}" + (
        f"; missing: {missing}" if missing else ""
    )


def listed(reasons: Sequence[str]) -> str:
    """Return reasons as one text for the peer, cut to a limit."""
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
