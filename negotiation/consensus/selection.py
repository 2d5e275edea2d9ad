"""Chooses a protocol from a peer's list by name and schema, without a model. Pure.

The capability is chosen as by a provider with rules (`choice`), among all that the list
describes, so that its shape never selects one with side effects. Schemas are matched as
by a requester with rules (`fit`). Protocols that did not serve a need are remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final

from negotiation.consensus.listing import Listed, ProtocolListing
from negotiation.document.reader import read_document
from negotiation.errors import DocumentError, SchemaError
from negotiation.mind import Demand
from negotiation.need import Capability, Need
from negotiation.rules.choice import choose, choose_by_name
from negotiation.rules.claims import missed_by_document, missed_claim
from negotiation.rules.fit import fit_requester, given_schema
from negotiation.rules.formats import insisted_format
from negotiation.rules.names import is_named
from negotiation.rules.rules import own_terms, propose
from negotiation.schema.plan import Mismatch, Plan
from negotiation.transcript import empty_notes


@dataclass(frozen=True, slots=True)
class Pick:
    """A capability that a generic protocol should call for a need."""

    capability: Capability
    "The capability as the peer describes it; its name is the action."

    arguments: Plan
    "Conversion of the need's data to the capability's input."

    result: Plan
    "Conversion of the capability's output to the wanted result."

    notes: tuple[str, ...] = ()
    "Doubts that the caller is told with each call, one sentence each."


def meant_capability(listing: ProtocolListing, demand: Demand) -> Capability | None:
    """Return the only capability of a list that a need means, or None.

    One with side effects must be named in the requirement (DESIGN.md, Negotiation).
    None is meant whose answer would lose a unit, a format or a value of the words.
    """
    capabilities = listing.capabilities
    requirement = demand.need.requirement
    if not capabilities or insisted_format(requirement):
        return None
    try:
        chosen = choose(read_document(propose(demand)), capabilities)
    except (DocumentError, SchemaError):
        return None
    if not isinstance(chosen, Capability) or not _may_run(demand.need, chosen):
        # A chain of several capabilities requires a negotiation, and so does one with
        # side effects that is not named: its owner is asked.
        return None
    given, wanted = given_schema(demand), demand.need.output_schema or {}
    data = demand.arguments
    missed = missed_claim(requirement, chosen, given, wanted, data=data)
    return None if missed else chosen


@dataclass(frozen=True, slots=True)
class Published:
    """The document that a peer's rules made of the capability that a need names."""

    capability: Capability
    "The capability as the peer describes it."

    hash: str
    "Hash of its document."

    need: Need
    "The need under which an agreement on it is kept, however the caller wrote it."


def published_for(listing: ProtocolListing, demand: Demand) -> Published | None:
    """Return the published document of the capability that a need names, or None.

    Schemas of the caller's own stay part of the need; without them the capability's
    count, so that optional arguments need no agreement of their own.
    """
    need = demand.need
    capability = meant_capability(listing, demand)
    if capability is None or not _is_named(need, capability):
        return None
    digest = listing.documents.get(capability.name)
    if digest is None:
        return None
    return Published(capability, digest, replace(need, requirement=capability.name))


def published_demand(published: Published, demand: Demand) -> Demand:
    """Return the demand for which our half of a published document is made."""
    need, capability = published.need, published.capability
    given, wanted = need.input_schema, need.output_schema
    return Demand(
        replace(
            need,
            input_schema=capability.input_schema if given is None else given,
            output_schema=capability.output_schema if wanted is None else wanted,
        ),
        demand.arguments,
    )


def reaching(listing: ProtocolListing, capability: Capability) -> list[Listed]:
    """Return the protocols of a list that can call a capability, in its order."""
    return [one for one in listing.protocols if capability in one.capabilities]


def fits_document(text: str, demand: Demand) -> bool:
    """Return whether the need's data and result fit a document of one exchange."""
    try:
        document = read_document(text)
        fit = fit_requester(document, demand)
    except DocumentError:
        return False
    if isinstance(fit, Mismatch):
        return False
    return not missed_by_document(document, fit, demand)


def pick_generic(capability: Capability, demand: Demand) -> Pick | None:
    """Return how a generic protocol serves a need, or None.

    The need must name the capability, and the schemas must fit: a generic protocol
    calls any given action, so a wrong guess would be a real call (DESIGN.md, How a
    call flows).
    """
    if not _is_named(demand.need, capability):
        return None
    try:
        document = read_document(own_terms(capability))
        fit = fit_requester(document, demand)
    except (DocumentError, SchemaError):
        return None
    if isinstance(fit, Mismatch) or missed_by_document(document, fit, demand):
        return None
    notes = (*fit.notes, *empty_notes(fit.empty))
    return Pick(capability, fit.request.plan, fit.response.plan, notes)


def _is_named(need: Need, capability: Capability) -> bool:
    chosen = choose_by_name(need.requirement, [capability])
    return chosen == capability and _may_run(need, capability)


def _may_run(need: Need, capability: Capability) -> bool:
    return capability.read_only or is_named(
        need.requirement, capability.name, [capability], several=False
    )


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
