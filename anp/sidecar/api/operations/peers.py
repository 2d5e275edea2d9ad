"""Peers in the local API: known, allowed, blocked, asked, and what they offer us."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from anp.errors import UnknownError
from anp.sidecar.api import views
from anp.sidecar.api.answers import COUNT, TEXT, answer_of, ref, some
from anp.sidecar.api.bodies import AskBody, PeerBody
from anp.sidecar.api.pages import PAGE_QUERY, page_of
from anp.sidecar.api.table import Answer, Handler, Operation, Query, body_of, integer_of
from anp.sidecar.config.meaning import canonical_peer
from cache.records.peers import PeerState
from cache.records.records import Role
from negotiation.consensus import Listing

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["peer_operations"]

PEER = Query(
    name="peer",
    text="Name, DID, URL or `URL#DID`.",
    schema={"type": "string", "minLength": 1, "maxLength": 2048},
    required=True,
)

AFTER = Query(
    name="after",
    text="Only entries with a higher number.",
    schema={"type": "integer", "minimum": 0, "maximum": 2**32, "default": 0},
)


def peer_operations(daemon: Daemon) -> list[Operation]:
    """Return the operations on peers."""
    api = _PeersApi(daemon)

    def of(
        method: Literal["GET", "POST"],
        path: str,
        name: str,
        summary: str,
        handler: Handler,
        answer: dict[str, Any],
        **more: Any,
    ) -> Operation:
        return Operation(
            method=method,
            path=path,
            name=name,
            summary=summary,
            handler=handler,
            answers=(Answer(text="Done.", schema=answer),),
            tag="peers",
            **more,
        )

    told = {"body": PeerBody, "problems": (404,)}
    reached = {"problems": (404, 409, 424)}
    return [
        of(
            "GET",
            "/v1/peers",
            "listPeers",
            "List every peer that proved its DID, the last seen one first.",
            api.peers,
            ref("Peers"),
            query=PAGE_QUERY,
        ),
        of(
            "GET",
            "/v1/peers/show",
            "getPeer",
            "Show one peer.",
            api.peer,
            ref("Peer"),
            query=(PEER,),
            problems=(404,),
        ),
        of(
            "GET",
            "/v1/peers/offers",
            "getOffers",
            "Ask a peer what it publishes, and tell what was agreed with it.",
            api.offers,
            ref("Offers"),
            query=(PEER,),
            **reached,
        ),
        of(
            "GET",
            "/v1/heard",
            "listHeard",
            "List what peers told unasked: events, notices, announcements.",
            api.heard,
            answer_of(heard=some(ref("Heard"))),
            query=(AFTER,),
        ),
        of(
            "POST",
            "/v1/peers/allow",
            "allowPeer",
            "Let a peer use what is exposed.",
            api.allow,
            ref("PeerState"),
            **told,
        ),
        of(
            "POST",
            "/v1/peers/block",
            "blockPeer",
            "Refuse a peer.",
            api.block,
            ref("PeerState"),
            **told,
        ),
        of(
            "POST",
            "/v1/peers/trust",
            "trustPeer",
            "Take the changed key of a peer as its own.",
            api.trust,
            answer_of(did=TEXT, trusted=some(TEXT)),
            **{**told, "problems": (404, 422)},
        ),
        of(
            "POST",
            "/v1/peers/forget",
            "forgetPeer",
            "Forget a peer and where it was met; agreements stay.",
            api.forget,
            answer_of(did=TEXT, dropped=COUNT),
            **told,
        ),
        of(
            "POST",
            "/v1/peers/ask",
            "askPeer",
            "Ask a peer about its protocols, in words.",
            api.ask,
            answer_of(peer=TEXT, question=TEXT, answer=TEXT),
            body=AskBody,
            **reached,
        ),
    ]


class _PeersApi:
    """The handlers, thin: they read the request, ask the daemon and show the answer."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    async def peers(self, request: Request) -> Response:
        found = await asyncio.to_thread(
            views.peers, self._daemon.store, self._daemon.did_keys
        )
        return JSONResponse(page_of(request, "peers", found, lambda peer: peer["did"]))

    async def peer(self, request: Request) -> Response:
        did = await self._did(request.query_params["peer"])
        found = await asyncio.to_thread(self._daemon.store.peer, did)
        if found is None:
            raise UnknownError(f"nothing is known of {did}")
        return JSONResponse(asdict(found))

    async def offers(self, request: Request) -> Response:
        peer = request.query_params["peer"]
        target = await self._daemon.finder.find(peer, trust_first_use=False)
        listing = await self._daemon.peer_lists.listing(target)
        did = await self._did(target.did)
        agreements = await asyncio.to_thread(self._agreements, did)
        return JSONResponse(
            {
                "peer_did": target.did,
                "url": target.url,
                "publishes": listing is not None,
                "protocols": _listed(listing),
                "agreements": agreements,
            }
        )

    async def heard(self, request: Request) -> Response:
        entries = self._daemon.heard.entries(after=integer_of(request, "after", 0))
        return JSONResponse({"heard": [asdict(entry) for entry in entries]})

    async def allow(self, request: Request) -> Response:
        return await self._set_state(request, PeerState.ALLOWED)

    async def block(self, request: Request) -> Response:
        return await self._set_state(request, PeerState.BLOCKED)

    async def forget(self, request: Request) -> Response:
        did = await self._did(body_of(request, PeerBody).peer)
        dropped = await asyncio.to_thread(self._daemon.store.forget_peer, did)
        dropped += await asyncio.to_thread(self._daemon.did_keys.forget, did)
        self._daemon.web.forget(did)
        return JSONResponse({"did": did, "dropped": dropped})

    async def trust(self, request: Request) -> Response:
        did = await self._did(body_of(request, PeerBody).peer)
        keys = await asyncio.to_thread(self._daemon.did_keys.trust, did)
        self._daemon.web.forget(did)
        return JSONResponse({"did": did, "trusted": list(keys)})

    async def ask(self, request: Request) -> Response:
        body: AskBody = body_of(request, AskBody)
        answer = await self._daemon.caller.ask(body.peer, body.question)
        return JSONResponse(
            {"peer": body.peer, "question": body.question, "answer": answer}
        )

    async def _set_state(self, request: Request, state: PeerState) -> Response:
        did = await self._did(body_of(request, PeerBody).peer)
        await self._daemon.policy.remember(did, shown_did=did, state=state)
        return JSONResponse({"did": did, "state": state.value})

    async def _did(self, text: str) -> str:
        return await asyncio.to_thread(
            canonical_peer, self._daemon.config, self._daemon.store, text
        )

    def _agreements(self, did: str) -> list[dict[str, Any]]:
        """Return what we agreed with a peer as its caller."""
        page = views.protocols(
            self._daemon.store,
            self._daemon.sandbox,
            peer=did,
            role=Role.REQUESTER.value,
        )
        found: list[dict[str, Any]] = page["protocols"]
        return found


def _listed(listing: Listing | None) -> list[dict[str, Any]]:
    return [
        {
            "uri": one.uri,
            "version": one.version,
            "hash": one.hash,
            "summary": one.summary,
            "capabilities": [asdict(capability) for capability in one.capabilities],
        }
        for one in (() if listing is None else listing.protocols)
    ]
