"""Brings news to requesters that registered an address, when no line to them is there.

Everything that waits is in the logs of the sessions; here stand only the attempts. A
peer that is linked in any way gets its news over that link; else its address is
dialled, again and again for a day. What is older than that is a dead letter: the owner
sees it, and the peer still gets it when it comes by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from anp.channel.channel import Channel
from anp.channel.stranger_work import counted
from anp.errors import CallError, ErrorKind
from anp.identity.address import parse_peer
from anp.identity.dids import agent_name
from anp.interaction.errors import InteractionError
from anp.sidecar.tasks.delivery.attempts import Attempts, Letter, Letters
from anp.sidecar.tasks.delivery.lines import Lines
from anp.sidecar.tasks.known import utc_now
from anp.sidecar.tasks.sessions import Sessions

logger = logging.getLogger(__name__)

LINK_CHECK = 1.0
"Seconds between two looks at whether the peer has come by itself."


Dial = Callable[[str, str], Awaitable[tuple[Channel, str]]]
"Opens a channel for news to a peer at an address; CallError if that fails."


class Outbox:
    """Brings what waits; `look` is told of everything new."""

    def __init__(
        self,
        sessions: Sessions,
        lines: Lines,
        *,
        dial: Dial,
        is_linked: Callable[[str], bool],
        carries: Callable[[str], bool],
    ) -> None:
        """Begin; nothing is looked for by itself.

        Args:
            dial: Opens a channel to a peer at an address, or over a link that is there.
            is_linked: Tells if a link to a peer is there.
            carries: Tells if a line to a peer carries what waits for it.
        """
        self._sessions = sessions
        self._lines = lines
        self._dial = dial
        self._is_linked = is_linked
        self._carries = carries
        self._bringing: dict[str, asyncio.Task[None]] = {}
        self._attempts: dict[str, Attempts] = {}
        self.beside: list[Letters] = []
        "Others who bring news, of which the owner sees the letters with ours."

    def look(self, peer: str) -> None:
        """Bring a peer what waits for it, as far as it registered an address."""
        agent = agent_name(peer)
        if agent in self._bringing or self._carries(agent):
            return
        if not self._sessions.standing.registered(agent):
            return
        self._bringing[agent] = asyncio.create_task(
            counted(self._bring(peer, agent)), context=contextvars.Context()
        )

    def retry(self) -> None:
        """Forget former attempts, so that dead letters have another day."""
        for attempts in self._attempts.values():
            attempts.again()
        for agent in self._sessions.standing.all_registered():
            self._attempts.setdefault(agent, Attempts()).again()
            self.look(agent)
        for other in self.beside:
            other.retry()

    async def letters(self) -> list[Letter]:
        """Return what waits for requesters that registered, the oldest first."""
        found = [one async for one in self._letters()]
        for other in self.beside:
            found += await other.letters()
        return sorted(found, key=lambda one: one.since)

    async def close(self) -> None:
        """Dial nobody any more."""
        bringing = list(self._bringing.values())
        for task in bringing:
            task.cancel()
        await asyncio.gather(*bringing, return_exceptions=True)

    async def _letters(self, agent: str | None = None) -> AsyncIterator[Letter]:
        standing = self._sessions.standing
        agents = [agent] if agent is not None else standing.all_registered()
        for one in agents:
            for log in standing.registered(one):
                with contextlib.suppress(InteractionError):
                    letter = await self._letter(log, one)
                    if letter is not None:
                        yield letter

    async def _letter(self, log: str, agent: str) -> Letter | None:
        conversation = await self._sessions.conversation(log)
        peer = conversation.session.requester.id
        numbers = conversation.unacknowledged(peer, limit=1)
        address = conversation.news_address(utc_now())
        if not numbers or not address:
            return None
        events = await self._sessions.events(log, after=numbers[0] - 1, limit=1)
        since = events[0].at.timestamp() if events else time.time()
        attempts = self._attempts.get(agent, Attempts())
        return Letter(
            session=log,
            peer=peer,
            address=address,
            waiting=conversation.count_unacknowledged(peer),
            since=since,
            attempts=attempts.count,
            problem=attempts.problem,
            dead=attempts.is_dead(since),
        )

    async def _bring(self, peer: str, agent: str) -> None:
        """Dial a peer until nothing living waits for it, or it has a line."""
        attempts = self._attempts.setdefault(agent, Attempts())
        attempts.begin()
        try:
            # Nothing is awaited between the last look and the end of this.
            while not self._carries(agent):
                waiting = [one async for one in self._letters(agent)]
                letters = [one for one in waiting if not one.dead]
                if not waiting:
                    self._attempts.pop(agent, None)
                if not letters:
                    return
                try:
                    dialled = await self._dial(letters[-1].peer, letters[-1].address)
                except CallError as exc:
                    logger.info("news not brought peer=%s reason=%s", peer, exc.detail)
                    await self._pause(peer, attempts.failed(str(exc.detail)))
                    continue
                attempts.reached()
                await self._lines.use(
                    *dialled, lambda: bool(self._sessions.standing.untold(agent))
                )
            # The peer has come by itself.
            self._attempts.pop(agent, None)
        except Exception:
            logger.exception("news not brought peer=%s", peer)
        finally:
            self._bringing.pop(agent, None)

    async def _pause(self, peer: str, seconds: float) -> None:
        """Wait, but no longer than until the peer comes by itself."""
        ends = time.monotonic() + seconds
        was_linked = self._is_linked(peer)
        while (left := ends - time.monotonic()) > 0:
            await asyncio.sleep(min(left, LINK_CHECK))
            is_linked = self._is_linked(peer)
            if is_linked and not was_linked:
                return
            was_linked = is_linked


def news_url(address: str, peer: str) -> str:
    """Return the URL of an address that a peer registered.

    Raises:
        CallError: It is no URL of a daemon, or names another agent.
    """
    found = parse_peer(address)
    if found.url is None:
        raise CallError(ErrorKind.USAGE, "the address is no WebSocket URL")
    if found.did is not None and not same_peer(found.did, peer):
        raise CallError(ErrorKind.USAGE, "the address is that of another agent")
    return found.url


def same_peer(one: str, other: str) -> bool:
    """Return whether two ids are of one agent, as far as their texts tell."""
    return agent_name(one) == agent_name(other)
