"""Renews channels before their keys end, so that calls go on (DESIGN.md)."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from anp.channel.channel import Channel
from anp.channel.core.kept_keys import bind_meta
from anp.channel.core.limits import next_wait
from anp.channel.core.traffic import EXTENSION_CLOSE
from anp.errors import CallError
from anp.wire.meta_protocol import MetaProtocol

logger = logging.getLogger(__name__)

MIN_WAIT = 1.0
"Longest wait before a renewal is tried again for the first time, in seconds."

MAX_WAIT = 60.0
"Longest wait between two tries, in seconds."


class Renewable(Protocol):
    """A user of one channel, which can be replaced between two calls."""

    @property
    def channel(self) -> Channel:
        """The channel that it uses now."""
        ...

    async def wait_idle(self) -> None:
        """Wait until every call in flight has ended, or the channel."""
        ...


class Renewer:
    """Watches channels, and replaces each by another before its key ends.

    Args:
        longest_call: Seconds that a call may be in flight. Within so long of its end a
            key takes no new calls, even if there is no other yet.
    """

    def __init__(self, *, longest_call: float = 0.0) -> None:
        self._longest_call = longest_call
        self._tasks: set[asyncio.Task[None]] = set()

    def watch(
        self, bound: Renewable, binding: str, succeed: Callable[[Channel], object]
    ) -> None:
        """Renew a bound channel when that is due.

        New calls use what `succeed` makes of the next channel; the old one is closed
        when its calls have ended. A peer without our extensions, which sends under
        its newest key only, gets the new channel with the next call (WIRE).

        Args:
            binding: Hash or URI of the protocol, to be offered again.
            succeed: Uses the next channel from now on; must not wait.
        """
        task = asyncio.create_task(self._watch(bound, binding, succeed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(
        self, bound: Renewable, binding: str, succeed: Callable[[Channel], object]
    ) -> None:
        channel = bound.channel
        if not await channel.wait_renewal():
            return
        if EXTENSION_CLOSE in channel.extensions:
            meta = bind_meta(channel.own_meta, binding, offer=True)
            renewed = await self._renewed(channel, meta)
            if renewed is None:
                return
            answer = renewed.peer_meta
            if binding in (answer.used_protocol_hash, answer.selected_protocol):
                logger.info("channel renewed peer=%s", channel.peer_did)
                succeed(renewed)
            else:
                # The next call offers it once more, and negotiates when declined.
                logger.info("renewal declined peer=%s", channel.peer_did)
                await renewed.close("the renewal was declined")
        channel.retire()
        await bound.wait_idle()
        await channel.close("renewed")

    async def _renewed(self, channel: Channel, meta: MetaProtocol) -> Channel | None:
        """Return the channel after this one; None when this one ended meanwhile."""
        tries = 0
        while True:
            try:
                return await channel.renew(meta)
            except CallError as exc:
                logger.info("renewal failed peer=%s reason=%s", channel.peer_did, exc)
            if channel.opened.expires_at - monotonic() < self._longest_call:
                channel.retire()
            wait = next_wait(tries, least=MIN_WAIT, most=MAX_WAIT, draw=random.random())
            tries += 1
            try:
                async with asyncio.timeout(wait):
                    await channel.wait_ended()
            except TimeoutError:
                continue
            return None
