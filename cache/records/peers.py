"""What the store keeps of peers: their DIDs, where they are, and their keys. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from cache.records.records import Record

__all__ = [
    "MAX_DID_KEYS",
    "AddressRecord",
    "AliasRecord",
    "DidKeysRecord",
    "PeerRecord",
    "PeerState",
    "PinRecord",
]

MAX_DID_KEYS = 16
"Keys of one DID that are remembered."

# Parts of keys, so without the separator and anything invisible.
_Did = Annotated[str, Field(pattern=r"\Adid:[!-.0-~]+\z", max_length=1024)]
_Url = Annotated[str, Field(pattern=r"\A[!-~]+\z", max_length=2048)]
_Key = Annotated[str, Field(pattern=r"\Az[1-9A-HJ-NP-Za-km-z]+\z", max_length=256)]
_Keys = Annotated[tuple[_Key, ...], Field(max_length=MAX_DID_KEYS)]
_Seconds = Annotated[float, Field(ge=0, lt=1e11)]


class PeerState(StrEnum):
    """The owner's decision about a peer."""

    UNKNOWN = "unknown"
    WAITING = "waiting"
    ALLOWED = "allowed"
    BLOCKED = "blocked"


@dataclass(frozen=True)
class PeerRecord(Record):
    """A peer that proved its DID at least once, or that the owner named."""

    kind: ClassVar[str] = "peer"

    did: _Did
    "The DID in its canonical form."

    state: PeerState
    "The owner's decision; a `waiting` peer was turned away until the owner decides."

    first_seen: _Seconds
    "Seconds since 1970."

    last_seen: _Seconds
    "Seconds since 1970."

    names: tuple[Annotated[str, Field(max_length=64)], ...] = ()
    "Names that the owner gave it."

    urls: tuple[_Url, ...] = ()
    "URLs at which it was reached."

    aliases: tuple[_Did, ...] = ()
    "Its other DIDs with the same key."


@dataclass(frozen=True)
class AliasRecord(Record):
    """Leads from another DID of a peer to its record, so that no call reads them all.

    There is one for each of `PeerRecord.aliases`.
    """

    kind: ClassVar[str] = "alias"

    alias: _Did
    "The other DID."

    did: _Did
    "The peer's, in its canonical form."


@dataclass(frozen=True)
class PinRecord(Record):
    """The DID that was first met at a URL."""

    kind: ClassVar[str] = "pin"

    url: _Url
    "Normalised WebSocket URL."

    did: _Did
    "The DID that the peer showed."

    created: _Seconds
    "Seconds since 1970."

    agent: _Did
    "The one DID that stands for all that surely are of the same key."


@dataclass(frozen=True)
class AddressRecord(Record):
    """Leads from an agent to a URL that is pinned for it; there is one for each pin."""

    kind: ClassVar[str] = "address"

    agent: _Did
    "As in the pin."

    url: _Url
    "Normalised WebSocket URL."

    created: _Seconds
    "Seconds since 1970."


@dataclass(frozen=True)
class DidKeysRecord(Record):
    """The trusted keys of a DID, and new ones that wait for the owner's decision."""

    kind: ClassVar[str] = "did_keys"

    did: _Did
    "The DID in its canonical form."

    trusted: _Keys
    "Keys that may sign for it, as multibase."

    seen: _Seconds
    "When the trusted keys last changed, in seconds since 1970."

    waiting: _Keys = ()
    "Keys that its document lists since then and that the owner has not confirmed."

    changed: _Seconds | None = None
    "When the waiting ones were first used, in seconds since 1970."
