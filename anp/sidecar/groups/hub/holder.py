"""The groups of a fleet: each belongs to one daemon, as long as that one lives.

A lease in the store says whose a group is. Whatever is stored of it names the holder in
the same transaction, so that a daemon that was away, and does not know that a sister
took its group, stores nothing more and therefore distributes nothing more. A daemon
whose store nobody shares has all its groups, and stores no leases.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from anp.sidecar.groups.shelf import GroupShelf
from cache.errors import CacheError

logger = logging.getLogger(__name__)

LIFETIME: Final = 12.0
"Seconds for which a group belongs to a daemon that says nothing of it."

RENEWAL: Final = 3.0
"Seconds between two renewals, and two looks for leases that ended."

PATIENCE: Final = 5
"Seconds for which a peer's word about a sister's group waits, in whole ones."


Leases = dict[str, tuple[str, float]]
"Owner and end of each lease by its group."


async def _nothing(leases: Leases) -> None:
    pass


class GroupHolder:
    """Takes, renews and ends the leases of this run of the daemon."""

    def __init__(
        self,
        shelf: GroupShelf,
        *,
        take_over: Callable[[set[str]], Awaitable[None]],
        lose: Callable[[str], Awaitable[None]],
    ) -> None:
        """Begin without groups.

        Args:
            take_over: Goes on with groups that were a sister's.
            lose: Lets go a group that a sister has now.
        """
        self._shelf = shelf
        self._take_over = take_over
        self._lose = lose
        self._own: set[str] = set()
        self._changing = asyncio.Lock()
        self._renewing: asyncio.Task[None] | None = None
        self.looked: Callable[[Leases], Awaitable[None]] = _nothing
        "Told of all leases after each look."

    @property
    def is_alone(self) -> bool:
        """True when no other daemon may have one of our groups."""
        return not self._shelf.owner

    async def take(self, groups: Iterable[str]) -> set[str]:
        """Take groups; return those of them that are ours."""
        wanted = set(groups)
        if self.is_alone or not wanted:
            return wanted
        got = wanted - await asyncio.to_thread(
            self._shelf.lease, wanted, seconds=LIFETIME
        )
        self._own |= got
        return got

    def forget(self, group: str) -> None:
        """Note that there is no such group any more."""
        self._own.discard(group)

    def start(self) -> None:
        """Renew what is ours, and take over what nobody renews, from now on."""
        if not self.is_alone:
            self._renewing = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Renew nothing more; `leave` follows when everything is stored."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)

    async def leave(self) -> None:
        """Leave all groups as they are, for a sister or our next start."""
        if self._own:
            own, self._own = self._own, set()
            try:
                await asyncio.to_thread(self._shelf.lease, own, seconds=0.0)
            except CacheError as exc:
                logger.warning("groups not left reason=%s", exc)

    async def holder_of(self, group: str) -> str:
        """Return the id of the sister that has a group; empty if none of them has it.

        One whose lease has ended is taken over.
        """
        if self.is_alone:
            return ""
        lease = None
        if group not in self._own:
            lease = await asyncio.to_thread(self._shelf.lease_of, group)
            if lease is not None and lease[1] <= time.time():
                await self._take_ended({group: lease})
                lease = await asyncio.to_thread(self._shelf.lease_of, group)
        if group in self._own:
            async with self._changing:
                # Whoever took it has read it by now.
                return ""
        return "" if lease is None else lease[0]

    async def is_a_sisters(self, group: str) -> bool:
        """Wait a while for a group that a sister has; True if it keeps it."""
        for _ in range(PATIENCE):
            if not await self.holder_of(group):
                return False
            await asyncio.sleep(1.0)
        return True

    async def look(self) -> None:
        """Renew what is ours, and take over what nobody renews."""
        own = set(self._own)
        for group in own - await self.take(own):
            # We were away for so long that a sister took it.
            self._own.discard(group)
            await self._lose(group)
        leases = await asyncio.to_thread(self._shelf.leases)
        await self._take_ended(leases)
        await self.looked(leases)

    async def _take_ended(self, leases: Leases) -> None:
        async with self._changing:
            now = time.time()
            ended = {
                group
                for group, (owner, until) in leases.items()
                if until <= now and owner != self._shelf.owner
            }
            got = await self.take(ended - self._own)
            if got:
                logger.info("groups taken over count=%d", len(got))
                await self._take_over(got)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL)
            try:
                await self.look()
            except CacheError as exc:
                logger.warning("groups not renewed reason=%s", exc)
            except Exception:
                logger.exception("groups not renewed")
