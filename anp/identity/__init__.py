"""DIDs: made, stored, resolved and verified; the address book."""

from anp.identity.address import PeerAddress, parse_peer
from anp.identity.book import AddressBook, Destination, PinStore
from anp.identity.dids import (
    Identities,
    LocalIdentity,
    canonical_did,
    did_all,
    did_key,
    same_agent,
)
from anp.identity.keys import PrivateKey
from anp.identity.resolver import ChainResolver, KeyResolver, Resolver
from anp.identity.well_known import (
    WellKnown,
    make_well_known,
    parse_well_known,
    well_known_url,
)

__all__ = [
    "AddressBook",
    "ChainResolver",
    "Destination",
    "Identities",
    "KeyResolver",
    "LocalIdentity",
    "PeerAddress",
    "PinStore",
    "PrivateKey",
    "Resolver",
    "WellKnown",
    "canonical_did",
    "did_all",
    "did_key",
    "make_well_known",
    "parse_peer",
    "parse_well_known",
    "same_agent",
    "well_known_url",
]
