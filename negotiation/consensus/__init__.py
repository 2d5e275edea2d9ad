"""Consensus protocols: known by URI, published in a list, picked by need and schema.

* `registry`: the protocols that this agent knows, by URI.
* `listing`: the list that an agent publishes (ANP-95), written and read.
* `selection`: picks the protocol of a peer's list that serves a need, or recalls
  that it did not.
* `written`: the interface of protocols that are written by hand.
"""

from negotiation.consensus.listing import (
    MAX_LIST,
    Listed,
    ListingError,
    ProtocolListing,
    read_listing,
    render_listing,
)
from negotiation.consensus.registry import (
    MAX_CANDIDATES,
    CodeKind,
    ConsensusProtocol,
    Registry,
    RegistryError,
    check_uri,
)
from negotiation.consensus.selection import (
    Misfits,
    Pick,
    fits_document,
    meant_capability,
    pick_generic,
    reaching,
)

__all__ = [
    "MAX_CANDIDATES",
    "MAX_LIST",
    "CodeKind",
    "ConsensusProtocol",
    "Listed",
    "ProtocolListing",
    "ListingError",
    "Misfits",
    "Pick",
    "Registry",
    "RegistryError",
    "check_uri",
    "fits_document",
    "meant_capability",
    "pick_generic",
    "reaching",
    "read_listing",
    "render_listing",
]
