"""Drops once a day what the store holds of peers that only passed by, and of old."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from anp.sidecar.config.settings import Config
from cache.errors import CacheError
from cache.store import Store

logger = logging.getLogger(__name__)

KEEP_PASSING: Final = 30 * 86_400.0
"Seconds for which a peer without agreement or decision of the owner is remembered."

INTERVAL: Final = 86_400.0
"Seconds between two rounds."

FIRST: Final = 300.0
"Seconds after the start until the first round, so that it disturbs no start."

MAX_JUMP: Final = 3_600.0
"Seconds by which the clock may have been set since the last round."


class Housekeeper:
    """Forgets passing peers; everything else about the store is the owner's to do."""

    def __init__(
        self,
        store: Store,
        keep: Callable[[], Collection[str]],
        *,
        also: Callable[[], Awaitable[None]] | None = None,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make it.

        Args:
            keep: Gives the DIDs that the configuration names.
            also: Drops what else is old.
        """
        self._store = store
        self._keep = keep
        self._also = also
        self._wall = wall
        self._monotonic = monotonic
        self._offset = wall() - monotonic()

    async def run(self) -> None:
        """Do a round every day, until cancelled."""
        await asyncio.sleep(FIRST)
        while True:
            await self.round()
            await asyncio.sleep(INTERVAL)

    async def round(self) -> None:
        """Do one round; a failure is logged, and the next round does the work."""
        before, self._offset = self._offset, self._wall() - self._monotonic()
        if abs(self._offset - before) > MAX_JUMP:
            # By a clock that is wrong, every peer would have been away for years.
            logger.warning(
                "clock was set, no peer is forgotten today by=%.0f",
                self._offset - before,
            )
            return
        try:
            gone = await asyncio.to_thread(
                self._store.forget_passing,
                unseen_since=self._wall() - KEEP_PASSING,
                keep=frozenset(self._keep()),
            )
            if self._also is not None:
                await self._also()
        except CacheError as exc:
            logger.warning("what is old was not dropped reason=%s", exc)
            return
        if gone:
            logger.info("passing peers forgotten peers=%d", len(gone))


def configured_dids(config: Config) -> frozenset[str]:
    """Return the DIDs that the owner's configuration names."""
    return frozenset(peer.did for peer in config.peer if peer.did)
