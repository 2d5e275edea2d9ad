"""Starts the A2A face of a daemon and the gateway, if its owner wants them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anp.sidecar.a2a.card import A2aCards, CardFacts, card_faults, facts_of, make_card
from anp.sidecar.a2a.door.admission import LOOK, A2aDoor
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.door.issuer import make_issuer
from anp.sidecar.a2a.door.tokens import token_book
from anp.sidecar.a2a.face import A2aFace, make_face
from anp.sidecar.a2a.gateway import PEERS, A2aGateway
from anp.sidecar.a2a.own_desk import OwnDesk
from anp.sidecar.a2a.peer_desk import PeerDesk, PeerSkills
from anp.sidecar.a2a.push import PURPOSE, PushDesk, PushSigner
from anp.sidecar.a2a.rpc import A2aRpc
from anp.sidecar.api.connections import ConnectionLimits
from anp.sidecar.api.guard import Door, check_page, single_headers
from anp.sidecar.api.problems import ApiError
from anp.sidecar.api.servers import served, tcp_listener
from anp.sidecar.api.tokenless import TokenlessPace, admit
from anp.sidecar.daemon import Daemon
from anp.sidecar.peers.web_identity import make_fetcher

# The guard of the A2A face: pages of others, the pace of callers without a token.


CARDS = "/.well-known/"
"Part of the paths of cards, which everybody may read."


class A2aGuard:
    """Stands before the face; who calls is found out behind it."""

    def __init__(self, app: ASGIApp, open_port: int | None) -> None:
        """Make the guard.

        Args:
            open_port: The port of a face that asks for no token; None for one that
                does. Pages in a browser can send requests to an open one, also under
                a name of theirs that leads to this machine.
        """
        self._app = app
        self._door = None if open_port is None else Door(port=open_port)
        self._tokenless = TokenlessPace()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        try:
            headers = single_headers(scope)
            if self._door is not None:
                check_page(self._door, headers)
        except ApiError as exc:
            told = JSONResponse({"error": exc.detail}, exc.status)
            if await self._tokenless.wait(scope, receive):
                await told(scope, receive, send)
            return
        if self._door is None and CARDS in scope["path"]:
            if await self._tokenless.wait(scope, receive):
                await self._app(scope, receive, send)
            return
        await self._app(scope, receive, self._in_turn(scope, receive, send))

    def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> Send:
        """Return `send`, with a wait before the answer to an unknown caller."""
        is_dropped = False

        async def sent(message: Message) -> None:
            nonlocal is_dropped
            if message["type"] == "http.response.start" and message["status"] == 401:
                is_dropped = not await self._tokenless.wait(scope, receive)
            if not is_dropped:
                await send(message)

        return sent


logger = logging.getLogger(__name__)


LIMITS = ConnectionLimits()
"Limits of the connections of the face and of the gateway."


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
        listener, A2aGateway(make, port=port), name="gateway", limits=LIMITS
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
