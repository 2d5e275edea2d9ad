"""Peers in the local API: known, allowed, blocked, asked, and their offers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field
from starlette.requests import Request

from anp.errors import UnknownError
from anp.identity.address import parse_peer
from anp.sidecar.api.requests import (
    PAGE_QUERY,
    LongText,
    PeerBody,
    PeerName,
    did_of,
    page_of,
    peer_query,
)
from anp.sidecar.api.table import STRICT, LocalScope, Query, get, integer_of, post
from anp.sidecar.calls.question import ask_list
from anp.sidecar.consensus.written.heard import HeardEntry
from anp.sidecar.daemon import Daemon
from anp.sidecar.library.views import Agreement, Library, view_of
from anp.sidecar.peers.contacts import Trouble
from anp.sidecar.peers.directory import KnownPeer
from cache.records.peers import PeerState
from cache.records.records import AgreementRole, Count, Hash
from negotiation.errors import SchemaError
from negotiation.need import Capability
from negotiation.schema.intake import inlined
from negotiation.schema.samples import example_of

__all__ = ["PeerOperations"]

PEER = peer_query("Name, DID, URL or `URL#DID`.", required=True)
AFTER = Query(
    name="after",
    text="Only entries with a higher number.",
    schema={"type": "integer", "minimum": 0, "maximum": 2**32, "default": 0},
)
CAPABILITY = Query(
    name="capability",
    text="Its full or short name.",
    schema={"type": "string", "minLength": 1, "maxLength": 300},
    required=True,
)
REACHING = (404, 409, 424)
"Problems of an operation that asks the peer itself."


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
            **_problem(peer.trouble),
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


class PeerOperations:
    """Operations on peers."""

    tag = "peers"

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    @get("/v1/peers", Peers, query=PAGE_QUERY, scope=LocalScope.AGENT)
    async def list_peers(self, request: Request) -> Peers:
        """List every peer that proved its DID, the last seen one first."""
        found = await asyncio.to_thread(self._daemon.directory.peers)
        page, following = page_of(request, found, lambda peer: peer.did)
        unmet = await asyncio.to_thread(self._daemon.directory.unmet)
        return Peers(
            [Peer.of(one) for one in page],
            following,
            [
                NamedUrl(name=str(one.name), url=str(one.url), **_problem(trouble))
                for one, trouble in unmet
            ],
        )

    @get(
        "/v1/peers/show",
        Peer,
        query=(PEER,),
        problems=(404,),
        scope=LocalScope.AGENT,
    )
    async def get_peer(self, request: Request) -> Peer:
        """Show one peer."""
        did = await did_of(self._daemon, request.query_params["peer"])
        found = await asyncio.to_thread(self._daemon.directory.find, did)
        if found is None:
            raise UnknownError(f"the daemon knows no peer {did}")
        return Peer.of(found)

    @get("/v1/peers/find", FoundPeers, query=(CAPABILITY,), scope=LocalScope.AGENT)
    async def find_peers(self, request: Request) -> FoundPeers:
        """List who publishes a capability, the best first; peers are asked for it."""
        wanted = request.query_params[CAPABILITY.name]
        candidates = self._daemon.dispatcher.candidates
        found = await candidates.find(wanted)
        known = await asyncio.to_thread(self._daemon.directory.peers)
        peers = {one.did: one for one in known}
        return FoundPeers(
            peers=[
                FoundPeer(
                    did=one.did,
                    address=one.address,
                    capability=one.capability,
                    health=peers[one.did].health,
                    latency_ms=candidates.latency(one),
                    at_work=peers[one.did].at_work,
                )
                for one in found
                if one.did in peers
            ],
            announced=[
                view_of(AnnouncedPeer, one) for one in await candidates.unlisted(wanted)
            ],
        )

    @post(
        "/v1/peers/add",
        NamedPeer,
        body=AddBody,
        problems=(403, 409, 507),
        scope=LocalScope.OWNER,
    )
    async def add_peer(self, request: Request, body: AddBody) -> NamedPeer:
        """Give a peer a name, which may stand for it in calls; it gets no rights."""
        book, address = self._daemon.book, parse_peer(body.peer)
        entry = await asyncio.to_thread(book.add, body.name, address)
        return NamedPeer(name=body.name, did=entry.did, url=entry.url)

    @post(
        "/v1/peers/remove",
        RemovedName,
        body=NameBody,
        problems=(404, 409),
        scope=LocalScope.OWNER,
    )
    async def remove_peer(self, request: Request, body: NameBody) -> RemovedName:
        """Remove a name from the address book; the peer and its rights stay."""
        await asyncio.to_thread(self._daemon.book.remove, body.name)
        return RemovedName(name=body.name)

    @get(
        "/v1/peers/offers",
        Offers,
        query=(PEER,),
        problems=REACHING,
        scope=LocalScope.AGENT,
    )
    async def get_offers(self, request: Request) -> Offers:
        """List the protocols that a peer publishes, and the agreements with it."""
        peer = request.query_params["peer"]
        target = await self._daemon.finder.find(peer, trust_first_use=False)
        listing, _ = await asyncio.gather(
            self._daemon.peer_lists.listing(target),
            self._daemon.finder.ask_version(target),
        )
        did = await did_of(self._daemon, target.did)
        library = Library(self._daemon.store, self._daemon.sandbox)
        agreements, _ = await asyncio.to_thread(
            library.page, peer=did, role=AgreementRole.REQUESTER
        )
        listed = () if listing is None else listing.protocols
        return Offers(
            peer_did=target.did,
            url=target.url,
            publishes=listing is not None,
            capabilities=() if listing is None else listing.capabilities,
            protocols=[view_of(OfferedProtocol, one) for one in listed],
            agreements=agreements,
        )

    @get(
        "/v1/peers/describe",
        PeerDescription,
        query=(PEER,),
        problems=REACHING,
        scope=LocalScope.AGENT,
    )
    async def describe_peer(self, request: Request) -> PeerDescription:
        """Ask a peer for its capabilities, and give each with its schemas."""
        peer = request.query_params["peer"]
        target = await self._daemon.finder.find(peer, trust_first_use=False)
        listing = await ask_list(
            self._daemon.binder.requesters, self._daemon.peer_lists, target
        )
        listed = () if listing is None else listing.protocols
        offered = () if listing is None else listing.capabilities
        return PeerDescription(
            peer_did=target.did,
            url=target.url,
            publishes=listing is not None,
            capabilities=[
                view_of(DescribedCapability, one, example=_example(one))
                for one in offered
            ],
            protocols=[view_of(OfferedProtocol, one) for one in listed],
        )

    @get("/v1/heard", HeardEntries, query=(AFTER,), scope=LocalScope.AGENT)
    async def list_heard(self, request: Request) -> HeardEntries:
        """List messages of peers that answer no call, such as events and notices."""
        after = integer_of(request, AFTER.name, 0)
        return HeardEntries(self._daemon.heard.entries(after=after))

    @post(
        "/v1/peers/allow",
        RuledPeer,
        body=PeerBody,
        problems=(404,),
        scope=LocalScope.OWNER,
    )
    async def allow_peer(self, request: Request, body: PeerBody) -> RuledPeer:
        """Let a peer call the exposed capabilities."""
        return await self._rule(body.peer, PeerState.ALLOWED)

    @post(
        "/v1/peers/block",
        RuledPeer,
        body=PeerBody,
        problems=(404,),
        scope=LocalScope.OWNER,
    )
    async def block_peer(self, request: Request, body: PeerBody) -> RuledPeer:
        """Refuse a peer, and end its connections and all calls from and to it."""
        return await self._rule(body.peer, PeerState.BLOCKED)

    @post(
        "/v1/peers/trust",
        TrustedPeer,
        body=PeerBody,
        problems=(404, 422),
        scope=LocalScope.OWNER,
    )
    async def trust_peer(self, request: Request, body: PeerBody) -> TrustedPeer:
        """Accept the changed key of a peer in place of its former keys."""
        did = await did_of(self._daemon, body.peer)
        keys = await asyncio.to_thread(self._daemon.did_keys.trust, did)
        self._daemon.web.forget(did)
        return TrustedPeer(did, keys)

    @post(
        "/v1/peers/forget",
        ForgottenPeer,
        body=PeerBody,
        problems=(404,),
        scope=LocalScope.OWNER,
    )
    async def forget_peer(self, request: Request, body: PeerBody) -> ForgottenPeer:
        """Delete a peer and its addresses; agreements stay."""
        did = await did_of(self._daemon, body.peer)
        dropped = await asyncio.to_thread(self._daemon.policy.forget, did)
        dropped += await asyncio.to_thread(self._daemon.did_keys.forget, did)
        self._daemon.web.forget(did)
        # Forgotten, it may be let in no longer.
        await self._daemon.enforcer.recheck()
        return ForgottenPeer(did, dropped)

    @post(
        "/v1/peers/ask",
        PeerAnswer,
        body=AskBody,
        problems=REACHING,
        scope=LocalScope.AGENT,
    )
    async def ask_peer(self, request: Request, body: AskBody) -> PeerAnswer:
        """Ask a peer a question in words about its protocols."""
        answer = await self._daemon.caller.ask(body.peer, body.question)
        return PeerAnswer(body.peer, body.question, answer)

    async def _rule(self, peer: str, state: PeerState) -> RuledPeer:
        did = await did_of(self._daemon, peer)
        await self._daemon.policy.rule(did, state)
        await self._daemon.enforcer.recheck()
        return RuledPeer(did, state)


def _problem(trouble: Trouble | None) -> dict[str, Any]:
    """Return the two fields that tell of the last try to reach a peer."""
    if trouble is None:
        return {"problem": None, "problem_at": None}
    return {"problem": trouble.detail, "problem_at": trouble.at}


def _example(capability: Capability) -> dict[str, Any]:
    """Return data to start from; nothing when the peer's schema cannot be read."""
    try:
        return example_of(inlined(capability.input_schema))
    except SchemaError:
        return {}
