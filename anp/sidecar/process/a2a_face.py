"""Starts the A2A face of a daemon, if its owner wants one."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

from anp.sidecar.a2a.callers import A2aCaller
from anp.sidecar.a2a.card import CardFacts, make_card
from anp.sidecar.a2a.desk import A2aDesk
from anp.sidecar.a2a.face import A2aFace, make_face
from anp.sidecar.a2a.push import PushDesk
from anp.sidecar.a2a.rpc import A2aRpc
from anp.sidecar.a2a.tokens import token_book
from anp.sidecar.api.connections import ConnectionLimits
from anp.sidecar.api.servers import served, tcp_listener
from anp.sidecar.daemon import Daemon
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.peers.web_identity import make_fetcher

__all__ = ["serve_a2a"]

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

    def card(caller: A2aCaller | None) -> dict[str, Any]:
        peer = None if caller is None else caller.id
        return make_card(facts, gate.offered(WayIn.A2A, peer))

    # Its places are its own, so that slow receivers hold up no documents of peers.
    pushes = PushDesk(daemon.tasks.sessions, make_fetcher(daemon.config.fetch))
    desk = A2aDesk(daemon.tasks, daemon.identities.canonical, pushes=pushes)
    rpc = A2aRpc(desk, lambda caller, version: card(caller))
    app = make_face(A2aFace(rpc, find=find, card=card, max_body=config.max_body))
    await pushes.start()
    daemon.tasks.outbox.beside.append(pushes)
    try:
        async with served(listener, app, name="a2a", limits=ConnectionLimits()):
            logger.info("A2A face url=%s", own)
            yield own
    finally:
        daemon.tasks.outbox.beside.remove(pushes)
        await pushes.close()
