"""Peers in the local API: known, allowed, blocked, asked, and their offers."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request

from anp.errors import CallError, ErrorKind, UnknownError
from anp.identity.address import parse_peer
from anp.sidecar.api.operations.peer_views import (
    AddBody,
    AnnouncedPeer,
    AskBody,
    DescribedCapability,
    EmittedEvent,
    ForgottenPeer,
    FoundPeer,
    FoundPeers,
    HeardEntries,
    NameBody,
    NamedPeer,
    NamedUrl,
    OfferedProtocol,
    Offers,
    Peer,
    PeerAnswer,
    PeerDescription,
    Peers,
    Receipts,
    RemovedName,
    RuledPeer,
    TrustedPeer,
    problem_fields,
)
from anp.sidecar.api.requests import (
    PAGE_QUERY,
    PeerBody,
    did_of,
    page_of,
    peer_query,
    switch,
)
from anp.sidecar.api.table import LocalScope, Query, get, integer_of, post
from anp.sidecar.calls.question import ask_list
from anp.sidecar.daemon import Daemon
from anp.sidecar.library.state import view_of
from anp.sidecar.library.views import Library
from cache.errors import StoreUnavailable
from cache.records.peers import PeerState
from cache.records.records import AgreementRole
from negotiation.errors import SchemaError
from negotiation.need import Capability
from negotiation.schema.intake import inlined
from negotiation.schema.samples import example_of

PEER = peer_query("Name, DID, URL or `URL#DID`.", required=True)
AFTER = Query(
    name="after",
    text="Only entries with a higher number.",
    schema={"type": "integer", "minimum": 0, "maximum": 2**32, "default": 0},
)
FRESH = switch("fresh", "1: ask the peer, also if its list was read a moment ago.")
CAPABILITY = Query(
    name="capability",
    text="Its full or short name.",
    schema={"type": "string", "minLength": 1, "maxLength": 300},
    required=True,
)
REACHING = (404, 409, 424)
"Problems of an operation that asks the peer itself."


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
                NamedUrl(
                    name=str(one.name), url=str(one.url), **problem_fields(trouble)
                )
                for one, trouble in unmet
            ],
        )

    @get("/v1/peers/show", Peer, query=(PEER,), problems=(404,), scope=LocalScope.AGENT)
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
        query=(PEER, FRESH),
        problems=REACHING,
        scope=LocalScope.AGENT,
    )
    async def get_offers(self, request: Request) -> Offers:
        """List the protocols that a peer publishes, and the agreements with it."""
        peer = request.query_params["peer"]
        target = await self._daemon.finder.find(peer, trust_first_use=False)
        if request.query_params.get(FRESH.name) == "1":
            self._daemon.peer_lists.forget(target)
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

    @post(
        "/v1/peers/tell",
        Receipts,
        body=EmittedEvent,
        problems=(403,),
        scope=LocalScope.AGENT,
    )
    async def tell_peers(self, request: Request, body: EmittedEvent) -> Receipts:
        """Send an event to all allowed peers that listen, or to some; none answers."""
        told = self._daemon.broadcaster.tell(body.name, body.data, peers=body.peers)
        return Receipts(await told)

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
        did = peer
        try:
            did = await did_of(self._daemon, peer)
            await self._daemon.policy.rule(did, state)
        except StoreUnavailable as exc:
            if state is not PeerState.BLOCKED or not did.startswith("did:"):
                raise
            self._daemon.policy.hold(did)
            # The owner's word holds here at once, also when it cannot be kept.
            ended = await self._daemon.enforcer.shut_out()
            raise CallError(
                ErrorKind.LOCAL_RESOURCE,
                f"{did} is blocked and {ended} channels with it are closed, but only "
                "until the daemon is started anew: block it again when the store takes "
                f"it. {exc}",
            ) from exc
        await self._daemon.enforcer.recheck()
        return RuledPeer(did, state)


def _example(capability: Capability) -> dict[str, Any]:
    """Return data to start from; nothing when the peer's schema cannot be read."""
    try:
        return example_of(inlined(capability.input_schema))
    except SchemaError:
        return {}
