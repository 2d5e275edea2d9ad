"""Records of peers: their DIDs, URLs and public keys, and our keys with them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from cache.records.records import AgreementRole, Did, Record, Seconds

MAX_DID_KEYS = 16
"Keys of one DID that are remembered."

MAX_KEY_COUNTER = 2**48
"Upper bound of stored counters; far above any counter that a key may reach."

# Parts of keys, so without the separator and anything invisible.
_Url = Annotated[str, Field(pattern=r"\A[!-~]+\z", max_length=2048)]
_Key = Annotated[str, Field(pattern=r"\Az[1-9A-HJ-NP-Za-km-z]+\z", max_length=256)]
_Keys = Annotated[tuple[_Key, ...], Field(max_length=MAX_DID_KEYS)]
_KeyId = Annotated[str, Field(pattern=r"\A[0-9a-f]{16}\z")]
_Counter = Annotated[int, Field(ge=-1, le=MAX_KEY_COUNTER)]


class PeerState(StrEnum):
    """The owner's decision about a peer."""

    UNKNOWN = "unknown"
    WAITING = "waiting"
    ALLOWED = "allowed"
    BLOCKED = "blocked"


@dataclass(frozen=True)
class PeerRecord(Record, kind="peer"):
    """A peer that proved its DID at least once, or that the owner named."""

    did: Did
    "The DID in its canonical form."

    state: PeerState
    "The owner's decision; a `waiting` peer was turned away until the owner decides."

    first_seen: Seconds
    "Seconds since 1970."

    last_seen: Seconds
    "Seconds since 1970."

    names: tuple[Annotated[str, Field(max_length=64)], ...] = ()
    "Names that the owner gave it."

    urls: tuple[_Url, ...] = ()
    "URLs at which it was reached."

    aliases: tuple[Did, ...] = ()
    "Its other DIDs with the same key."


@dataclass(frozen=True)
class AliasRecord(Record, kind="alias"):
    """Leads from another DID of a peer to its record, so that no call reads them all.

    There is one for each of `PeerRecord.aliases`.
    """

    alias: Did
    "The other DID."

    did: Did
    "The peer's, in its canonical form."


@dataclass(frozen=True)
class RulingRecord(Record, kind="ruling"):
    """Changes with each decision of the owner's about a peer; there is one.

    Peers are written with every channel, so daemons that share a store could not tell
    a decision by a change of those. Here they can: see `Store.changes`.
    """

    at: Seconds
    "Time of the last decision, in seconds since 1970."


@dataclass(frozen=True)
class PinRecord(Record, kind="pin"):
    """The DID that was first met at a URL."""

    url: _Url
    "Normalised WebSocket URL."

    did: Did
    "The DID that the peer showed."

    created: Seconds
    "Seconds since 1970."

    agent: Did
    "The one DID that stands for all that surely are of the same key."


@dataclass(frozen=True)
class NameRecord(Record, kind="name"):
    """A name in the address book that the owner gave while the daemon ran."""

    name: Annotated[str, Field(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\z")]
    "The owner's name for the peer."

    created: Seconds
    "Seconds since 1970."

    did: Did | None = None
    "The DID that the peer has to prove; None takes the one that is pinned at the URL."

    url: _Url | None = None
    "Normalised WebSocket URL, or None when the DID alone tells where it is."


@dataclass(frozen=True)
class AddressRecord(Record, kind="address"):
    """Leads from an agent to a URL that is pinned for it; there is one for each pin."""

    agent: Did
    "As in the pin."

    url: _Url
    "Normalised WebSocket URL."

    created: Seconds
    "Seconds since 1970."


@dataclass(frozen=True)
class DidKeysRecord(Record, kind="did_keys"):
    """The trusted keys of a DID, and new ones that wait for the owner's decision."""

    did: Did
    "The DID in its canonical form."

    trusted: _Keys
    "Keys that may sign for it, as multibase."

    seen: Seconds
    "When the trusted keys last changed, in seconds since 1970."

    waiting: _Keys = ()
    "Keys that its document lists since then and that the owner has not confirmed."

    changed: Seconds | None = None
    "When the waiting ones were first used, in seconds since 1970."


@dataclass(frozen=True)
class KeyRecord(Record, kind="key"):
    """A channel's key, encrypted, with the counters that are already used."""

    id: _KeyId
    "The `secretKeyId`."

    role: AgreementRole
    "Our side of the channel."

    peer_did: Did
    "The peer's DID as on the wire."

    binding: Annotated[str, Field(min_length=1, max_length=2048)]
    "Hash or URI of the protocol the channel is bound to."

    created: Seconds
    "When the record was stored, in seconds since 1970."

    expires: Seconds
    "When the key ends, in seconds since 1970."

    sealed: Annotated[str, Field(max_length=256 * 1024)]
    "State for resumption, encrypted, in base64; empty once the key has ended."

    reserved: _Counter
    "The first counter for sending that is not reserved."

    mark: _Counter
    "The highest received counter that is claimed; it and all below are refused."

    @property
    def ended(self) -> bool:
        """True when nothing may be sent or accepted under the key any more."""
        return not self.sealed
