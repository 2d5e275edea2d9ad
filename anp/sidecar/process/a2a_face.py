"""Starts the A2A face of a daemon and the gateway, if its owner wants them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from starlette.types import ASGIApp

from anp.sidecar.a2a.card import CardFacts, card_faults, make_card
from anp.sidecar.a2a.cards import A2aCards, facts_of
from anp.sidecar.a2a.door.admission import LOOK, A2aDoor
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.door.key_source import make_issuer
from anp.sidecar.a2a.door.tokens import token_book
from anp.sidecar.a2a.face import A2aFace, make_face
from anp.sidecar.a2a.gateway import PEERS, A2aGateway
from anp.sidecar.a2a.own_desk import OwnDesk
from anp.sidecar.a2a.peer_desk import PeerDesk, PeerSkills
from anp.sidecar.a2a.push import PushDesk
from anp.sidecar.a2a.push_signature import PURPOSE, PushSigner
from anp.sidecar.a2a.rpc import A2aRpc
from anp.sidecar.api.connections import ConnectionLimits
from anp.sidecar.api.servers import served, tcp_listener
from anp.sidecar.api.tokenless import admit
from anp.sidecar.daemon import Daemon
from anp.sidecar.peers.web_identity import make_fetcher
from anp.sidecar.process.a2a_guard import A2aGuard

logger = logging.getLogger(__name__)

LIMITS = ConnectionLimits(max_strangers=128, max_known=256)
"""Many callers hold a stream open, or begin at once with a hundred connections of a
pool, so there are more places than for the owner's own programs.
"""


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
    door = A2aDoor(
        token_book(daemon.home),
        issuer=make_issuer(config, daemon.fetcher),
        is_open=config.open,
        rate=config.max_requests,
        on_change=daemon.exposure.set_callers,
    )
    facts = facts_of(config, own)
    cards = A2aCards(facts, daemon.capability_calls.gate)
    for fault in card_faults(await cards.card(None, "") or {}):
        logger.warning("fault of the card: %s", fault)
    signer = PushSigner(daemon.identities.key_for(PURPOSE), facts.url)
    # Its places are its own, so that slow receivers hold up no documents of peers.
    fetcher = make_fetcher(daemon.config.fetch)
    pushes = PushDesk(daemon.tasks.sessions, fetcher, signer, holds=door.holds)
    own_did = daemon.identities.canonical
    desk = OwnDesk(daemon.tasks, own_did, pushes=pushes, files=facts.url)
    rpc = A2aRpc(desk, cards.extended)
    face = A2aFace(
        rpc,
        door=door,
        place=lambda request: admit(request.scope),
        card=cards.card,
        max_body=config.max_body,
        keys=signer.keys,
    )
    port = listener.getsockname()[1]
    app = A2aGuard(make_face(face), port if config.open else None)
    await pushes.start()
    watch = asyncio.create_task(_watch(door, pushes))
    daemon.tasks.outbox.beside.append(pushes)
    try:
        async with served(listener, app, name="a2a", limits=LIMITS):
            logger.info("A2A face url=%s", own)
            yield own
    finally:
        daemon.tasks.outbox.beside.remove(pushes)
        watch.cancel()
        await pushes.close()


async def _watch(door: A2aDoor, pushes: PushDesk) -> None:
    """End what was begun with tokens that count no more."""
    while True:
        await asyncio.sleep(LOOK)
        door.look()
        pushes.recheck()


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

    async def make(name: str) -> ASGIApp | None:
        found = await asyncio.to_thread(daemon.book.named, name)
        return None if found is None else _peer_face(daemon, name, f"{own}{name}")

    async with served(
        listener, A2aGateway(make, port=port), name="gateway", limits=ConnectionLimits()
    ):
        logger.info("A2A gateway url=%s", own)
        yield own


def _peer_face(daemon: Daemon, peer: str, url: str) -> ASGIApp:
    """Return the face under which a peer is an A2A agent."""
    config = daemon.config.a2a
    door = _PeerDoor(
        token_book(daemon.home, gateway=True),
        rate=config.max_requests,
        on_change=lambda exposed: None,
    )
    door.peer = peer
    facts = CardFacts(name=peer, description=f"The agent {peer}, over anpd.", url=url)
    skills = PeerSkills(
        daemon.finder, daemon.binder.requesters, daemon.peer_lists, peer
    )

    async def card(caller: A2aCaller | None, agent: str) -> dict[str, Any] | None:
        return None if agent else make_card(facts, await skills())

    async def extended(caller: A2aCaller) -> dict[str, Any]:
        return make_card(facts, await skills())

    desk = PeerDesk(daemon.tasks, daemon.identities, peer, skills, files=url)
    rpc = A2aRpc(desk, extended)
    face = A2aFace(
        rpc,
        door=door,
        place=lambda request: admit(request.scope),
        card=card,
        max_body=config.max_body,
    )
    return make_face(face)


class _PeerDoor(A2aDoor):
    """Names callers by the peer, too: tasks at one are not those at another."""

    peer = ""

    async def find(self, headers: Mapping[str, str]) -> A2aCaller | None:
        """See `A2aDoor`."""
        found = await super().find(headers)
        return found and replace(found, name=f"gateway/{self.peer}/{found.name}")
