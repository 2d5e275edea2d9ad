"""Starts the A2A face of a daemon, if its owner wants one."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator

from anp.sidecar.a2a.admission import Admission
from anp.sidecar.a2a.card import card_faults
from anp.sidecar.a2a.cards import A2aCards, facts_of
from anp.sidecar.a2a.desk import A2aDesk
from anp.sidecar.a2a.face import A2aFace, make_face
from anp.sidecar.a2a.key_source import make_issuer
from anp.sidecar.a2a.rpc import A2aRpc
from anp.sidecar.a2a.tokens import token_book
from anp.sidecar.api.connections import ConnectionLimits
from anp.sidecar.api.servers import served, tcp_listener
from anp.sidecar.daemon import Daemon

__all__ = ["serve_a2a"]

logger = logging.getLogger(__name__)


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
    door = Admission(
        token_book(daemon.home),
        issuer=make_issuer(config, daemon.fetcher),
        is_open=config.open,
        rate=config.max_requests,
        on_change=daemon.exposure.set_callers,
    )
    cards = A2aCards(facts_of(config, own), daemon.capability_calls.gate)
    for fault in card_faults(await cards.card(None, "") or {}):
        logger.warning("fault of the card: %s", fault)
    desk = A2aDesk(daemon.tasks, daemon.identities.canonical)
    rpc = A2aRpc(desk, cards.extended)
    app = make_face(A2aFace(rpc, door=door, card=cards.card, max_body=config.max_body))
    async with served(listener, app, name="a2a", limits=ConnectionLimits()):
        logger.info("A2A face url=%s", own)
        yield own
