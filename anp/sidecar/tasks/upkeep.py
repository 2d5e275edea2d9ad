"""Gives up the tasks that no peer answers, and drops sessions that are old."""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial

from anp.interaction.conversation import Conversation
from anp.interaction.errors import InteractionError
from anp.interaction.states import TaskState
from anp.sidecar.config.interaction import InteractionConfig
from anp.sidecar.tasks.exchange import SessionPeers
from anp.sidecar.tasks.known import utc_now
from anp.sidecar.tasks.sessions import Sessions

logger = logging.getLogger(__name__)

SWEEP = 60.0
"Seconds between two looks at the room for sessions, and for chunks that do not come."

LOOK = 600.0
"Seconds between two looks at what nobody answers."

MAX_JUMP = 600.0
"Seconds by which the clock may have been set since the last of them."

DAY = 86_400.0
"Seconds."


class Upkeep:
    """Looks from time to time at what waits, and at what is kept."""

    def __init__(
        self, sessions: Sessions, peers: SessionPeers, config: InteractionConfig
    ) -> None:
        """Use the sessions and their peers; `run` begins."""
        self._sessions = sessions
        self._files = peers.files
        self._give_up_lost = peers.give_up_lost
        self._is_there = peers.is_there
        self._config = config

    async def run(self) -> None:
        """Give up, from time to time, what nobody answers."""
        offset, looked = time.time() - time.monotonic(), time.monotonic()
        while True:
            await asyncio.sleep(SWEEP)
            before, offset = offset, time.time() - time.monotonic()
            try:
                self._sessions.expire()
                await self._give_up_lost()
                files = self._files.spool
                if self._sessions.room.is_nearly_full or files.is_nearly_full():
                    await self.prune()
                if time.monotonic() - looked >= LOOK:
                    looked = time.monotonic()
                    await self.sweep(was_set=abs(offset - before) > MAX_JUMP)
            except Exception:
                logger.exception("tasks not looked at")

    async def sweep(self, *, was_set: bool = False) -> None:
        """Give up what nobody answers.

        Args:
            was_set: The clock was set of late; nothing is old by it.
        """
        if was_set:
            logger.warning("clock was set, no task is given up now")
            return
        since = time.time() - self._config.max_wait
        async for log in self._sessions.busy():
            try:
                if (await self._sessions.head(log)).updated < since:
                    reason = f"the peer said nothing for {self._config.max_wait:g} s"
                    await self.give_up(log, reason, also_at_work=False)
            except InteractionError:
                # Deleted meanwhile.
                continue

    async def prune(self) -> None:
        """Drop the sessions and contents that are older than the owner wants."""
        before = time.time() - self._config.keep_content_days * DAY
        gone = await self._sessions.room.prune(
            older_than=time.time() - self._config.keep_days * DAY, content_before=before
        )
        await self._files.prune(before=before)
        if gone:
            logger.info("sessions dropped sessions=%d", gone)

    async def give_up(self, log: str, reason: str, *, also_at_work: bool) -> None:
        """End tasks of ours that get no answer, and tell absent peers nothing more.

        Args:
            also_at_work: Also those of which a peer on a line has said something.
        """
        conversation = await self._sessions.conversation(log)
        away = [p for p in conversation.peers() if not self._is_there(p)]
        for task in conversation.unfinished if conversation.is_requester else ():
            silent = task.executor in away or task.state == TaskState.REQUESTED
            if task.state != TaskState.HELD and (silent or also_at_work):
                logger.info("task given up session=%s reason=%s", log, reason)
                await self._sessions.apply(
                    log,
                    partial(
                        Conversation.give_up,
                        name=task.id,
                        reason=reason,
                        wall_now=utc_now(),
                    ),
                )
        if conversation.registered and not conversation.is_requester:
            # The owner sees what waits for it; it goes with the session.
            return
        for peer in conversation.peers() if also_at_work else away:
            await self._sessions.acknowledge_all(log, sender=peer)
