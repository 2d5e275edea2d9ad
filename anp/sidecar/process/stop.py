"""Stops a daemon: refuses new calls, waits for those under way, closes the links."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from anp.errors import CallError, ErrorKind

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

logger = logging.getLogger(__name__)

LOOK = 0.1
"Seconds between two looks at channels that have nothing more to do."


async def finish(daemon: Daemon) -> None:
    """Take nothing new, and wait for calls in flight up to `operation.stop_timeout`.

    Raises:
        CallError: `timeout`, calls had to be cut off.
    """
    flights = daemon.observer.flights
    limit = daemon.config.operation.stop_timeout
    await daemon.announcer.close()
    flights.closed = True
    daemon.links.stop_listening()
    logger.info("stopping in_flight=%d limit_s=%g", flights.count, limit)
    try:
        async with asyncio.timeout(limit):
            while True:
                # A peer whose channel is closed asks again elsewhere or later; on a
                # busy one its answers go out first.
                daemon.provider.close_idle("the daemon stops")
                # A task that no agent has read yet waits for its reader in the log.
                if flights.count <= daemon.attaching.inbox.unread:
                    break
                try:
                    async with asyncio.timeout(LOOK):
                        await flights.landed()
                except TimeoutError:
                    continue
    except TimeoutError:
        raise CallError(
            ErrorKind.TIMEOUT,
            f"stopped with {flights.count} calls cut off after {limit:g} s; "
            "operation.stop_timeout gives them more",
            may_have_run=True,
        ) from None
    logger.info("stopped calls_cut=0")
