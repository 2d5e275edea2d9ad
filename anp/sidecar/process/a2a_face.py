"""Starts the A2A face of a daemon and the gateway, if its owner wants them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette

from anp.sidecar.a2a.callers import A2aCaller
from anp.sidecar.a2a.card import CardFacts, make_card
from anp.sidecar.a2a.face import A2aFace, make_face
from anp.sidecar.a2a.gateway import PEERS, A2aGateway
from anp.sidecar.a2a.own_desk import OwnDesk
from anp.sidecar.a2a.peer_desk import PeerDesk, PeerSkills
from anp.sidecar.a2a.rpc import A2aRpc
from anp.sidecar.a2a.tokens import token_book
from anp.sidecar.api.connections import ConnectionLimits
from anp.sidecar.api.servers import served, tcp_listener
from anp.sidecar.daemon import Daemon
from anp.sidecar.offer.ways import WayIn

__all__ = ["serve_a2a", "serve_gateway"]

logger = logging.getLogger(__name__)

EVERYBODY = A2aCaller(name="everybody")
"The caller of a face that asks for no token."


@contextlib.asynccontextmanager
async def serve_a2a(daemon: Daemon) -> AsyncIterator[str | None]:
    """Serve the face; yields its URL, None when there is none.

    Raises:
        CallError: `local_resource`, the address cannot be used.
    """
    config = daemon.config.a2a
    if config.address is None:
        yield None
        return
    host, port = config.address
    listener = tcp_listener(host, port, "a2a.listen")
    own = f"http://{host}:{listener.getsockname()[1]}"
    tokens = token_book(daemon.home, daemon.exposure.set_callers)
    tokens.callers()
    gate = daemon.capability_calls.gate

    async def find(headers: Mapping[str, str]) -> A2aCaller | None:
        return EVERYBODY if config.open else tokens.find(headers)

    facts = CardFacts(
        name=config.name,
        description=config.description,
        url=config.public_url or own,
        is_open=config.open,
    )

    async def card(caller: A2aCaller | None) -> dict[str, Any]:
        peer = None if caller is None else caller.id
        return make_card(facts, gate.offered(WayIn.A2A, peer))

    desk = OwnDesk(daemon.tasks, daemon.identities.canonical)
    rpc = A2aRpc(desk, lambda caller, version: card(caller))
    app = make_face(A2aFace(rpc, find=find, card=card, max_body=config.max_body))
    async with served(listener, app, name="a2a", limits=ConnectionLimits()):
        logger.info("A2A face url=%s", own)
        yield own


@contextlib.asynccontextmanager
async def serve_gateway(daemon: Daemon) -> AsyncIterator[str | None]:
    """Serve the gateway; yields the URL before the names of peers, or None.

    Raises:
        CallError: `local_resource`, the address cannot be used.
    """
    address = daemon.config.a2a.gateway_address
    if address is None:
        yield None
        return
    listener = tcp_listener(*address, "a2a.gateway")
    port = listener.getsockname()[1]
    own = f"http://{address[0]}:{port}{PEERS}"

    async def make(name: str) -> Starlette | None:
        found = await asyncio.to_thread(daemon.book.named, name)
        return None if found is None else _peer_face(daemon, name, f"{own}{name}")

    async with served(
        listener, A2aGateway(make, port=port), name="gateway", limits=ConnectionLimits()
    ):
        logger.info("A2A gateway url=%s", own)
        yield own


def _peer_face(daemon: Daemon, peer: str, url: str) -> Starlette:
    """Return the face under which a peer is an A2A agent."""
    tokens = token_book(daemon.home, gateway=True)
    facts = CardFacts(name=peer, description=f"The agent {peer}, over anpd.", url=url)
    skills = PeerSkills(
        daemon.finder, daemon.binder.requesters, daemon.peer_lists, peer
    )

    async def find(headers: Mapping[str, str]) -> A2aCaller | None:
        found = tokens.find(headers)
        # Its tasks are told apart from those at other peers, and of other callers.
        return found and replace(found, name=f"gateway/{peer}/{found.name}")

    async def card(caller: A2aCaller | None) -> dict[str, Any]:
        return make_card(facts, await skills())

    rpc = A2aRpc(
        PeerDesk(daemon.tasks, daemon.identities, peer, skills),
        lambda caller, version: card(caller),
    )
    max_body = daemon.config.a2a.max_body
    return make_face(A2aFace(rpc, find=find, card=card, max_body=max_body))
