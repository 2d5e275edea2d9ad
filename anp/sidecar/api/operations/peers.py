"""Peers in the local API: known, allowed, blocked, asked, and their offers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict
from starlette.requests import Request

from anp.errors import UnknownError
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
from anp.sidecar.consensus.written.heard import HeardEntry
from anp.sidecar.daemon import Daemon
from anp.sidecar.library.views import Agreement, Library, view_of
from cache.records.peers import PeerRecord, PeerState
from cache.records.records import AgreementRole, Count, Hash
from negotiation.need import Capability

__all__ = ["PeerOperations"]

PEER = peer_query("Name, DID, URL or `URL#DID`.", required=True)
AFTER = Query(
    name="after",
    text="Only entries with a higher number.",
    schema={"type": "integer", "minimum": 0, "maximum": 2**32, "default": 0},
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

    first_seen: float
    "Seconds since 1970."

    last_seen: float
    "Seconds since 1970."

    names: Sequence[str] = ()
    "Names the owner gave it."

    urls: Sequence[str] = ()
    "Addresses at which it was reached."

    aliases: Sequence[str] = ()
    "Its other DIDs of the same key."

    changed_keys: Sequence[str] = ()
    "New keys in its DID document that the owner has not trusted yet."


@dataclass(frozen=True, slots=True)
class Peers:
    """A page of peers, the last seen one first."""

    peers: Sequence[Peer]
    next: str | None
    "`after` for the next page; null at the end."


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
        found = await asyncio.to_thread(self._peers)
        return Peers(*page_of(request, found, lambda peer: peer.did))

    @get(
        "/v1/peers/show",
        PeerRecord,
        query=(PEER,),
        problems=(404,),
        scope=LocalScope.AGENT,
    )
    async def get_peer(self, request: Request) -> PeerRecord:
        """Show one peer."""
        did = await did_of(self._daemon, request.query_params["peer"])
        found = await asyncio.to_thread(self._daemon.store.peer, did)
        if found is None:
            raise UnknownError(f"the daemon knows no peer {did}")
        return found

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
        listing = await self._daemon.peer_lists.listing(target)
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

    def _peers(self) -> list[Peer]:
        """Return every peer, also one that was refused before it was ever seen."""
        changed = self._daemon.did_keys.changed()
        known = self._daemon.store.peers()
        found = [
            view_of(
                Peer,
                peer,
                changed_keys=changed[peer.did].waiting if peer.did in changed else (),
            )
            for peer in known
        ]
        unseen = changed.keys() - {peer.did for peer in known}
        return found + [
            Peer(
                did=did,
                state=PeerState.UNKNOWN,
                first_seen=record.seen,
                last_seen=record.changed or record.seen,
                changed_keys=record.waiting,
            )
            for did, record in changed.items()
            if did in unseen
        ]
