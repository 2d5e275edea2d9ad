"""Chooses a protocol from a peer's list by name and schema, without a model. Pure.

The capability is chosen as by a provider with rules (`choice`), among all that the list
describes, so that its shape never selects one with side effects. Schemas are matched as
by a requester with rules (`fit`). Protocols that did not serve a need are remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from negotiation.consensus.listing import Listed, ProtocolListing
from negotiation.document.reader import read_document
from negotiation.errors import DocumentError, SchemaError
from negotiation.mind import Demand
from negotiation.need import Capability
from negotiation.rules.choice import choose, names_one
from negotiation.rules.fit import fit_requester
from negotiation.rules.rules import own_terms, propose
from negotiation.schema.plan import Mismatch, Plan

__all__ = [
    "Misfits",
    "Pick",
    "fits_document",
    "meant_capability",
    "pick_generic",
    "reaching",
]


@dataclass(frozen=True, slots=True)
class Pick:
    """A capability that a generic protocol should call for a need."""

    capability: Capability
    "The capability as the peer describes it; its name is the action."

    arguments: Plan
    "Conversion of the need's data to the capability's input."

    result: Plan
    "Conversion of the capability's output to the wanted result."


def meant_capability(listing: ProtocolListing, demand: Demand) -> Capability | None:
    """Return the only capability of a list that a need means, or None.

    One with side effects must be named in the requirement (DESIGN.md,
    Negotiation).
    """
    capabilities = _all(listing.protocols)
    if not capabilities:
        return None
    try:
        chosen = choose(read_document(propose(demand)), capabilities)
    except (DocumentError, SchemaError):
        return None
    # A chain of several capabilities requires a negotiation.
    return chosen if isinstance(chosen, Capability) else None


def reaching(listing: ProtocolListing, capability: Capability) -> list[Listed]:
    """Return the protocols of a list that can call a capability, in its order."""
    return [one for one in listing.protocols if capability in one.capabilities]


def fits_document(text: str, demand: Demand) -> bool:
    """Return whether the need's data and result fit a document of one exchange."""
    try:
        return not isinstance(fit_requester(read_document(text), demand), Mismatch)
    except DocumentError:
        return False


def pick_generic(capability: Capability, demand: Demand) -> Pick | None:
    """Return how a generic protocol serves a need, or None.

    The need must name the capability, and the schemas must fit: a generic protocol
    calls any given action, so a wrong guess would be a real call (DESIGN.md, How a
    call flows).
    """
    if not names_one(demand.need.requirement, capability):
        return None
    try:
        fit = fit_requester(read_document(own_terms(capability)), demand)
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


MAX_MISFITS: Final = 10_000
"Largest number of entries; forgetting the oldest costs one more attempt."

MISFIT_LIFETIME: Final = 86_400.0
"Seconds after which a protocol is tried again, since peers get new capabilities."


class Misfits:
    """Remembers which protocols do not serve which needs of ours at which peer.

    A call whose protocol answers "unknown action" negotiates once (DESIGN.md, How a
    call flows). `now` is seconds on one clock.
    """

    def __init__(
        self, *, max_entries: int = MAX_MISFITS, lifetime: float = MISFIT_LIFETIME
    ) -> None:
        self._max_entries = max_entries
        self._lifetime = lifetime
        self._until: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    def note(self, peer_did: str, uri: str, need_key: str, *, now: float) -> None:
        """Remember that a protocol does not serve a need at a peer."""
        key = peer_did, uri, need_key
        self._until[key] = now + self._lifetime
        self._until.move_to_end(key)
        while len(self._until) > self._max_entries:
            self._until.popitem(last=False)

    def known(self, peer_did: str, uri: str, need_key: str, *, now: float) -> bool:
        """Return whether this is remembered and has not expired."""
        key = peer_did, uri, need_key
        until = self._until.get(key)
        if until is not None and now >= until:
            del self._until[key]
            until = None
        return until is not None

    def forget_peer(self, peer_did: str) -> None:
        """Forget all entries of a peer, because its list has changed."""
        for key in [key for key in self._until if key[0] == peer_did]:
            del self._until[key]
