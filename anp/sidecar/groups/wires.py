"""The lines of groups: found, and dialled as long as somebody is needed."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
import time
from collections.abc import Callable

from anp.errors import CallError, ErrorKind
from anp.identity.dids import agent_name
from anp.protocols.gbz import GBZ_GROUPS_URI
from anp.sidecar.calls.requesters import Requesters
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.tasks.delivery.line import Line
from anp.sidecar.tasks.delivery.lines import Lines

logger = logging.getLogger(__name__)

FIRST_WAIT = 0.5
"Seconds before a peer that could not be reached is dialled again; then it doubles."

MOST_WAIT = 60.0
"The longest such wait, in seconds."

CHECK = 1.0
"Seconds between two looks at whether a line is there still."

_last_ref = 0


def next_ref() -> int:
    """Return a number for an operation that is above all before, restarts included."""
    global _last_ref
    _last_ref = max(_last_ref + 1, time.time_ns() // 1000)
    return _last_ref


class GroupWires:
    """Knows the lines over which groups are talked of, and dials for new ones."""

    def __init__(
        self,
        lines: Lines,
        requesters: Requesters,
        finder: PeerFinder,
        needs: Callable[[str], bool],
    ) -> None:
        """Use the lines of sessions.

        Args:
            needs: Tells if a line to an agent is needed, by its name.
        """
        self._lines = lines
        self._requesters = requesters
        self._finder = finder
        self._needs = needs
        self._addresses: dict[str, str] = {}
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self._hurry: dict[str, asyncio.Event] = {}
        lines.users.append(lambda peer: needs(agent_name(peer)))

    def find(self, did: str) -> Line | None:
        """Return a line to an agent, or None."""
        return self._lines.find(did, groups=True)

    def want(self, did: str, address: str = "") -> None:
        """See to it that there is a line to an agent as long as it is needed.

        Args:
            address: URL of its daemon, if it is known.
        """
        agent = agent_name(did)
        if address:
            self._addresses[agent] = f"{address}#{did}"
        self._addresses.setdefault(agent, did)
        if agent in self._keeping:
            self._hurry[agent].set()
            return
        self._hurry[agent] = asyncio.Event()
        self._keeping[agent] = asyncio.create_task(
            self._keep(agent), context=contextvars.Context()
        )

    async def open(self, did: str, address: str = "") -> Line:
        """Return a line to an agent, dialled if there is none.

        Raises:
            CallError: It cannot be reached, or speaks no groups.
        """
        line = self.find(did)
        if line is None:
            agent = agent_name(did)
            self._addresses[agent] = f"{address}#{did}" if address else did
            line = await self._dial(agent)
        return line

    async def close(self) -> None:
        """Dial nobody any more."""
        keeping = list(self._keeping.values())
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)

    async def _keep(self, agent: str) -> None:
        wait = FIRST_WAIT
        try:
            while self._needs(agent):
                if self.find(agent) is not None:
                    wait = FIRST_WAIT
                    await asyncio.sleep(CHECK)
                    continue
                try:
                    await self._dial(agent)
                except CallError as exc:
                    logger.info(
                        "member not reached peer=%s reason=%s", agent, exc.detail
                    )
                except Exception:
                    logger.exception("a line of a group failed peer=%s", agent)
                else:
                    continue
                await self._pause(agent, wait)
                wait = min(2 * wait, MOST_WAIT)
        finally:
            self._keeping.pop(agent, None)
            self._hurry.pop(agent, None)

    async def _pause(self, agent: str, wait: float) -> None:
        hurry = self._hurry[agent]
        hurry.clear()
        try:
            async with asyncio.timeout(wait * random.uniform(0.8, 1.2)):
                await hurry.wait()
        except TimeoutError:
            return
        await asyncio.sleep(FIRST_WAIT)

    async def _dial(self, agent: str) -> Line:
        target = await self._finder.find(self._addresses[agent], trust_first_use=True)
        channel = await self._requesters.open(target, None, [GBZ_GROUPS_URI])
        if channel.peer_meta.selected_protocol != GBZ_GROUPS_URI:
            await channel.close("no protocol with groups is common")
            raise CallError(ErrorKind.POLICY, f"{agent} speaks no groups")
        return await self._lines.begin(
            channel, GBZ_GROUPS_URI, lambda: self._needs(agent)
        )
