"""Peers as the local API shows them, and the bodies of requests about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from anp.sidecar.api.requests import LongText, PeerName
from anp.sidecar.api.table import STRICT
from anp.sidecar.broadcast.broadcaster import Receipt
from anp.sidecar.consensus.written.heard import HeardEntry
from anp.sidecar.library.state import view_of
from anp.sidecar.library.views import Agreement
from anp.sidecar.peers.contacts import Trouble
from anp.sidecar.peers.directory import KnownPeer
from cache.records.peers import PeerState
from cache.records.records import Count, Hash
from negotiation.need import Capability


@dataclass(frozen=True, slots=True, kw_only=True)
class AskBody:
    """A question about a peer's protocols, in words (ANP-64)."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: PeerName
    "Name, DID, URL or `URL#DID`."

    question: LongText
    "The question."


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A peer that proved its DID, that the owner named, or that was refused."""

    did: str
    "In its canonical form."

    state: PeerState
    "The owner's decision; `waiting` was refused and may be allowed."

    first_seen: float | None
    "Seconds since 1970; null before the first contact."

    last_seen: float | None
    "Time of the last contact in either direction, in seconds since 1970."

    names: Sequence[str] = ()
    "Names the owner gave it."

    urls: Sequence[str] = ()
    "Addresses at which it can be dialled, those of the owner first."

    aliases: Sequence[str] = ()
    "Its other DIDs of the same key."

    changed_keys: Sequence[str] = ()
    "New keys in its DID document that the owner has not trusted yet."

    connected: bool = False
    "True while a connection to it is open."

    problem: str | None = None
    "Reason why it could not be reached at the last try, if that failed."

    problem_at: float | None = None
    "Time of that try, in seconds since 1970."

    health: Literal["good", "failing", "away", "unknown"] = "unknown"
    """`away` was not reached at the last try; `failing` failed more than half of what
    we gave it of late; `unknown` was given nothing within ten minutes."""

    version: str | None = None
    "Version of its daemon, as it told last."

    answered: int = 0
    "Calls and tasks of ours that it answered since the daemon started."

    failed: int = 0
    "Those that failed by it or did not reach it, since then."

    failed_at: float | None = None
    "Time of the newest failure, in seconds since 1970."

    latency_ms: float | None = None
    "Recent mean of the milliseconds until its answer."

    at_work: int = 0
    "Our calls and tasks that it has not ended."

    @classmethod
    def of(cls, peer: KnownPeer) -> Peer:
        """Return what the daemon knows of a peer."""
        figures = peer.figures
        return view_of(
            cls,
            peer,
            **problem_fields(peer.trouble),
            answered=figures.answered,
            failed=figures.failed,
            failed_at=figures.failed_at,
            latency_ms=None if figures.latency is None else round(figures.latency, 1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPeer:
    """An allowed peer that publishes a capability."""

    did: str
    address: str
    "The peer as calls and tasks take it."

    capability: str
    "Full name of the capability there."

    health: Literal["good", "failing", "away", "unknown"]
    latency_ms: float | None
    "Recent mean of the milliseconds until an answer of this capability."

    at_work: int
    "Our calls and tasks that it has not ended."


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncedPeer:
    """A peer of which a registry tells, and which the owner did not decide about."""

    did: str
    url: str
    name: str
    "Name that it gives itself; nobody vouches for it."

    version: str
    capabilities: Mapping[str, str]
    "The hash of its schemas by the full name of each capability."

    expires: float
    "Time from which its announcement counts no more, in seconds since 1970."


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPeers:
    """Everybody who publishes a capability."""

    peers: Sequence[FoundPeer]
    "The allowed ones, in the order in which `find` of calls and tasks tries them."

    announced: Sequence[AnnouncedPeer]
    "Others of whom registries tell; none of them is used before it is allowed."


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedUrl:
    """A name for a URL at which nobody was met yet."""

    name: str
    url: str
    problem: str | None
    "Reason why nobody was reached there at the last try, if that failed."

    problem_at: float | None
    "Time of that try, in seconds since 1970."


@dataclass(frozen=True, slots=True)
class Peers:
    """A page of peers, the last seen one first."""

    peers: Sequence[Peer]
    next: str | None
    "`after` for the next page; null at the end."

    unmet: Sequence[NamedUrl]
    "Names of the address book whose DID is not known yet."


@dataclass(frozen=True, slots=True, kw_only=True)
class AddBody:
    """A name for a peer."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Annotated[str, Field(min_length=1, max_length=64)]
    "The name, which stands for the peer wherever one is asked for."

    peer: PeerName
    "DID, URL or `URL#DID`."


@dataclass(frozen=True, slots=True, kw_only=True)
class NameBody:
    """A name of the address book."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Annotated[str, Field(min_length=1, max_length=64)]
    "The name."


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPeer:
    """A name of the address book, and the peer that it stands for."""

    name: str
    did: str | None
    "Null when whoever answers at the URL first is taken."

    url: str | None
    "Null when the DID alone tells where it is."


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedName:
    """A name that was removed; the peer, its rights and agreements stay."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedProtocol:
    """A protocol that a peer publishes."""

    uri: str
    version: str
    hash: Hash
    summary: str
    capabilities: Sequence[Capability]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """The protocols that a peer publishes, and those that were agreed with it."""

    peer_did: str | None
    url: str | None
    publishes: bool
    "False when the peer has no list of protocols."

    capabilities: Sequence[Capability]
    "Every capability that its list describes to us."

    protocols: Sequence[OfferedProtocol]
    agreements: Sequence[Agreement]
    "Agreements in which we are the requester."


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedCapability(Capability):
    """A capability that a peer offers us, with data to start from."""

    example: dict[str, Any]
    "Data of the form that it takes, with all that is required."


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerDescription:
    """Everything that a peer offers us."""

    peer_did: str
    url: str | None
    publishes: bool
    "False when the peer does not tell its capabilities."

    capabilities: Sequence[DescribedCapability]
    protocols: Sequence[OfferedProtocol]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmittedEvent:
    """An event for peers that listen."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Annotated[str, Field(min_length=1, max_length=256)]
    data: dict[str, Any] = field(default_factory=dict)
    "The content."

    peers: Annotated[list[PeerName], Field(min_length=1, max_length=256)] | None = None
    "The peers that it goes to; without it every allowed peer."


@dataclass(frozen=True, slots=True)
class Receipts:
    """The fate of an event at each peer."""

    peers: Sequence[Receipt]


@dataclass(frozen=True, slots=True)
class HeardEntries:
    """Events, notices and announcements of peers, oldest first."""

    heard: Sequence[HeardEntry]


@dataclass(frozen=True, slots=True)
class RuledPeer:
    """A peer and the owner's decision about it."""

    did: str
    state: PeerState


@dataclass(frozen=True, slots=True)
class TrustedPeer:
    """A peer and the keys that are now trusted as its own."""

    did: str
    trusted: Sequence[str]


@dataclass(frozen=True, slots=True)
class ForgottenPeer:
    """A peer that was forgotten, and the number of its records."""

    did: str
    dropped: Count


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """The answer of a peer to a question."""

    peer: str
    question: str
    answer: str


def problem_fields(trouble: Trouble | None) -> dict[str, Any]:
    """Return the two fields that tell of the last try to reach a peer."""
    if trouble is None:
        return {"problem": None, "problem_at": None}
    return {"problem": trouble.detail, "problem_at": trouble.at}
