"""Keeps a connection to a peer open, so that one without an address can be called."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable

from anp.channel.core.limits import next_wait
from anp.channel.link import Link
from anp.errors import AnpError

logger = logging.getLogger(__name__)


async def keep_link(
    name: str, connect: Callable[[], Awaitable[Link]], *, least: float, most: float
) -> None:
    """Connect again whenever the link has ended, until cancelled.

    Args:
        name: The owner's name for the peer, for the log.
        connect: Returns the link that is there, or a new one.
        least: Seconds before the second try; the wait grows with each.
        most: Longest wait, in seconds.
    """
    tries = 0
    while True:
        began = time.monotonic()
        try:
            link = await connect()
            await link.wait_ended()
            logger.info("kept connection is down peer=%s", name)
        except AnpError as exc:
            logger.info("kept connection is down peer=%s reason=%s", name, exc)
        if time.monotonic() - began > most:
            tries = 0
        draw = random.random()
        await asyncio.sleep(next_wait(tries, least=least, most=most, draw=draw))
        tries += 1
