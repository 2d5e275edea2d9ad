"""Consensus protocols: known by URI, published in a list, chosen by need and schema."""

from negotiation.consensus.listing import (
    MAX_LIST,
    Listed,
    Listing,
    ListingError,
    read_listing,
    render_listing,
)
from negotiation.consensus.memory import Misfits
from negotiation.consensus.registry import (
    MAX_CANDIDATES,
    CodeKind,
    ConsensusProtocol,
    Registry,
    RegistryError,
    check_uri,
)
from negotiation.consensus.selection import (
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
    "Listing",
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
