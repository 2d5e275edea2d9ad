"""The tasks at work in a fleet: each belongs to one daemon, as long as that one lives.

A daemon whose store nobody shares needs none of this, and stores nothing for it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Final

from anp.sidecar.tasks.sealed_logs import SealedLogs
from cache.errors import CacheError

logger = logging.getLogger(__name__)

LIFETIME: Final = 30.0
"Seconds for which a task belongs to a daemon that says nothing of it."

RENEWAL: Final = 5.0
"""Seconds between two renewals, two looks for those that ended, and for what a peer
told a sister about our work."""


class Leases:
    """Takes, renews and ends the leases of this run of the daemon."""

    def __init__(
        self,
        store: SealedLogs,
        take_over: Callable[[str], Awaitable[None]],
        refresh: Callable[[str], Awaitable[None]],
    ) -> None:
        """Begin without leases.

        Args:
            take_over: Decides about the tasks of a log whose daemon is gone.
            refresh: Looks at what sisters entered into a log with a task of ours.
        """
        self._refresh = refresh
        self._store = store
        self._take_over = take_over
        self._own: dict[str, str] = {}
        self.owner = secrets.token_hex(8)
        "Id of this run."

    async def take(self, item: str, log: str) -> bool:
        """Take a task; False if a sister works on it."""
        if not self._store.is_shared:
            return True
        if await self._lease({item: log}):
            return False
        self._own[item] = log
        return True

    async def end(self, item: str) -> None:
        """Leave a task that has ended."""
        if self._own.pop(item, None) is not None:
            await asyncio.to_thread(self._store.end_leases, [item], owner=self.owner)

    async def leave(self, item: str) -> None:
        """Leave a task as it is; a sister, or our next start, decides about it."""
        log = self._own.pop(item, None)
        if log is not None:
            await self._lease({item: log}, lifetime=0.0)

    async def elsewhere(self) -> set[str]:
        """Return the tasks on which sisters work."""
        if not self._store.is_shared:
            return set()
        now = time.time()
        leases = await asyncio.to_thread(self._store.leases)
        return {
            item
            for item, (_, owner, until) in leases.items()
            if owner != self.owner and until > now
        }

    async def run(self) -> None:
        """Renew what is ours, and take over what nobody renews, until cancelled."""
        while self._store.is_shared:
            await asyncio.sleep(RENEWAL)
            try:
                await self.look()
            except CacheError as exc:
                logger.warning("leases not renewed reason=%s", exc)
            except Exception:
                logger.exception("leases not renewed")

    async def look(self) -> None:
        """Renew what is ours, and take over what nobody renews."""
        if self._own:
            for item in await self._lease(self._own):
                # We were away for so long that a sister took it.
                self._own.pop(item, None)
            for log in dict.fromkeys(self._own.values()):
                await self._refresh(log)
        now = time.time()
        leases = await asyncio.to_thread(self._store.leases)
        ended = {
            item: log
            for item, (log, owner, until) in leases.items()
            if owner != self.owner and until <= now
        }
        for log in dict.fromkeys(ended.values()):
            await self._take_over(log)
        for item in ended.keys() - self._own.keys():
            # Decided about: whoever works on it again has a lease of its own.
            if not await self._lease({item: ended[item]}):
                await asyncio.to_thread(
                    self._store.end_leases, [item], owner=self.owner
                )

    async def _lease(
        self, items: dict[str, str], *, lifetime: float = LIFETIME
    ) -> set[str]:
        now = time.time()
        return await asyncio.to_thread(
            self._store.lease_items,
            dict(items),
            owner=self.owner,
            now=now,
            until=now + lifetime,
        )
