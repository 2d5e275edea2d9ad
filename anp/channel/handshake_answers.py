"""The answers to what the core of a link asks during a handshake."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container
from dataclasses import replace
from functools import partial

from anp.channel.admission import Guest
from anp.channel.channel import Channel, ChannelAcceptor, nothing, read_clocks
from anp.channel.core.events import NeedHelloAnswer, NeedPeerKeyCheck
from anp.channel.core.link_core import LinkCore
from anp.channel.keeper import KeyKeeper
from anp.channel.refusals import unable
from anp.errors import PeerError
from anp.identity.resolver import Resolver
from cache.errors import CacheError

logger = logging.getLogger(__name__)


class HandshakeAnswers:
    """Checks the keys of peers, and answers their hellos, for one link."""

    def __init__(
        self,
        core: LinkCore,
        *,
        name: str,
        resolver: Resolver,
        acceptor: ChannelAcceptor,
        keeper: KeyKeeper | None,
        guest: Guest | None,
        ours: Container[str],
        turn: Callable[[Callable[[], None]], Awaitable[None]],
        pump: Callable[[], None],
        allow_long: Callable[[int | None], None],
    ) -> None:
        """Begin on a link.

        Args:
            name: Of the link, for the log.
            guest: The place of a connection that the peer opened.
            ours: Ids of the handshakes that we began.
            turn: Does a piece of work when it is its turn; see `Guest`.
            pump: Sends and tells what the core has to say.
            allow_long: Lets the peer send messages of the agreed size.
        """
        self._core = core
        self._name = name
        self._resolver = resolver
        self._acceptor = acceptor
        self._keeper = keeper
        self._guest = guest
        self._ours = ours
        self._turn = turn
        self._pump = pump
        self._allow_long = allow_long

    async def check_key(self, event: NeedPeerKeyCheck) -> None:
        """Answer `NeedPeerKeyCheck`."""
        error: PeerError | None = None
        if self._guest is not None and event.session_id not in self._ours:
            # The rest of the handshake is the most expensive that a stranger can ask.
            await asyncio.sleep(self._guest.handshake_wait())
        try:
            await self._resolver.check_key(event.did, event.key_id, event.public_key)
        except PeerError as exc:
            error = exc
        except CacheError as exc:
            error = unable(exc, self._name)

        def checked() -> None:
            self._core.key_checked(event.session_id, error, now=read_clocks())
            self._pump()

        await self._turn(checked)

    async def answer_hello(self, event: NeedHelloAnswer) -> None:
        """Answer `NeedHelloAnswer`."""
        try:
            meta = await self._acceptor.answer_hello(event)
        except (PeerError, CacheError) as exc:
            error = exc if isinstance(exc, PeerError) else unable(exc, self._name)
            logger.info(
                "hello refused connection=%s reason=%s", self._name, error.detail
            )
            self._core.refuse_hello(
                event.session_id, error.code, error.detail, now=read_clocks()
            )
        else:
            lost = event.meta.lost_key
            if lost is not None and self._keeper is not None:
                answered = await self._keeper.answer(event.peer_did, lost)
                meta = replace(meta, lost_key=answered)
            # Now: the first frame may be read together with `finished`.
            self._allow_long(meta.common_max_message(event.meta))
            answer = partial(self._core.answer_hello, event.session_id, meta)
            await self._turn(lambda: answer(now=read_clocks()))
        self._pump()

    def let_go(self) -> None:
        """Do nothing more for the link, which has ended."""
        self._pump, self._allow_long = nothing, lambda _: None

    async def accepted(self, channel: Channel) -> None:
        """Have the peer's key remembered: only now its handshake is complete."""
        opened = channel.opened
        try:
            await self._resolver.accepted(
                opened.peer_did, opened.key_id, opened.public_key
            )
        except PeerError as exc:
            logger.warning(
                "channel given up connection=%s reason=%s", self._name, exc.detail
            )
            await channel.close("the key is not the one we know", code=exc.code)
        except CacheError as exc:
            # The channel goes on; the next one has the key remembered.
            logger.warning(
                "a key was not remembered connection=%s reason=%s", self._name, exc
            )
        except Exception:
            # An error of ours; the channel goes on here as well.
            logger.exception("a key was not remembered connection=%s", self._name)
