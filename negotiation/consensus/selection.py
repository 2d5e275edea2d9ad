"""Which protocol of a peer's list serves a task: by name and schema, no model. Pure.

What is meant is decided as a provider with rules decides it (`choice`), over all that
the list describes, so that nothing with side effects is ever chosen by its shape. What
fits is decided as a requester with rules decides it (`fit`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from negotiation.consensus.listing import Listed, Listing
from negotiation.document.reader import read_document
from negotiation.errors import DocumentError, SchemaError
from negotiation.mind import Need
from negotiation.need import Capability
from negotiation.rules.choice import choose, names_one
from negotiation.rules.fit import fit_requester
from negotiation.rules.rules import own_terms, propose
from negotiation.schema.plan import Plan
from negotiation.schema.reasons import Mismatch

__all__ = ["Pick", "fits_document", "meant_capability", "pick_generic", "reaching"]


@dataclass(frozen=True, slots=True)
class Pick:
    """A capability that a generic protocol is to reach for a task."""

    capability: Capability
    "As the peer describes it; its name is the action."

    arguments: Plan
    "What becomes of the task's data."

    result: Plan
    "What becomes of the capability's output."


def meant_capability(listing: Listing, need: Need) -> Capability | None:
    """Return the one capability of a list that a task means, or None.

    One that is not read-only has to be named in the requirement (DESIGN.md,
    Negotiation).
    """
    capabilities = _all(listing.protocols)
    if not capabilities:
        return None
    try:
        chosen = choose(read_document(propose(need)), capabilities)
    except (DocumentError, SchemaError):
        return None
    # Several in a row have to be negotiated.
    return chosen if isinstance(chosen, Capability) else None


def reaching(listing: Listing, capability: Capability) -> list[Listed]:
    """Return the protocols of a list that reach a capability, in the list's order."""
    return [one for one in listing.protocols if capability in one.capabilities]


def fits_document(text: str, need: Need) -> bool:
    """Whether the task's data and result fit a document of one exchange."""
    try:
        return not isinstance(fit_requester(read_document(text), need), Mismatch)
    except DocumentError:
        return False


def pick_generic(capability: Capability, need: Need) -> Pick | None:
    """Return how a generic protocol serves a task, or None.

    Only when the task names the capability, and its schemas fit: a generic protocol
    takes whatever action one says, so a guess would be a call (DESIGN.md, How a call
    flows).
    """
    if not names_one(need.task.requirement, capability):
        return None
    try:
        fit = fit_requester(read_document(own_terms(capability)), need)
    except (DocumentError, SchemaError):
        return None
    if isinstance(fit, Mismatch):
        return None
    return Pick(capability, fit.request.plan, fit.response.plan)


def _all(protocols: Sequence[Listed]) -> list[Capability]:
    found: dict[str, Capability] = {}
    for one in protocols:
        for capability in one.capabilities:
            found.setdefault(capability.name, capability)
    return list(found.values())
