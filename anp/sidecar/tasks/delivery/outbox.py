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
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from anp.channel.channel import Channel
from anp.channel.stranger_work import counted
from anp.errors import CallError, ErrorKind
from anp.identity.address import parse_peer
from anp.interaction.errors import InteractionError
from anp.sidecar.peers.policy import agent_name
from anp.sidecar.tasks.delivery.lines import Lines
from anp.sidecar.tasks.sessions import Sessions, utc_now

__all__ = ["Letter", "Outbox"]

logger = logging.getLogger(__name__)

FIRST_WAIT = 1.0
"Seconds before an address that could not be reached is dialled again; then it doubles."

MOST_WAIT = 300.0
"The longest such wait, in seconds."

LIFETIME = 86_400.0
"Seconds for which news are brought; then they are a dead letter."

LINK_CHECK = 1.0
"Seconds between two looks at whether the peer has come by itself."


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """The news of one session that wait for its requester."""

    session: str
    "Our own id of the session."

    peer: str
    "The requester's DID."

    address: str
    "Where it wants them."

    waiting: int
    "Events that it has not acknowledged."

    since: float
    "When the oldest of them came, in seconds since 1970."

    attempts: int
    "Attempts to reach it since the daemon started, or since it was last reached."

    problem: str
    "The reason why the last attempt failed; empty before the first."

    dead: bool
    "True when nobody dials any more."


@dataclass(slots=True)
class _Attempts:
    count: int = 0
    problem: str = ""
    since: float = 0.0
    "When the owner wanted them again, in seconds since 1970."


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
    ) -> None:
        """Begin; nothing is looked for by itself.

        Args:
            dial: Opens a channel to a peer at an address, or over a link that is there.
            is_linked: Tells if a link to a peer is there.
        """
        self._sessions = sessions
        self._lines = lines
        self._dial = dial
        self._is_linked = is_linked
        self._bringing: dict[str, asyncio.Task[None]] = {}
        self._attempts: dict[str, _Attempts] = {}

    def look(self, peer: str) -> None:
        """Bring a peer what waits for it, as far as it registered an address."""
        agent = agent_name(peer)
        if agent in self._bringing or self._lines.find(agent) is not None:
            return
        if not self._sessions.standing.registered(agent):
            return
        self._bringing[agent] = asyncio.create_task(
            counted(self._bring(peer, agent)), context=contextvars.Context()
        )

    def retry(self) -> None:
        """Forget former attempts, so that dead letters have another day."""
        for attempts in self._attempts.values():
            attempts.since = time.time()
        for agent in self._sessions.standing.all_registered():
            self._attempts.setdefault(agent, _Attempts()).since = time.time()
            self.look(agent)

    async def letters(self) -> list[Letter]:
        """Return what waits for requesters that registered, the oldest first."""
        found = [one async for one in self._letters()]
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
        attempts = self._attempts.get(agent, _Attempts())
        return Letter(
            session=log,
            peer=peer,
            address=address,
            waiting=conversation.count_unacknowledged(peer),
            since=since,
            attempts=attempts.count,
            problem=attempts.problem,
            dead=max(since, attempts.since) < time.time() - LIFETIME,
        )

    async def _bring(self, peer: str, agent: str) -> None:
        """Dial a peer until nothing living waits for it, or it has a line."""
        wait = FIRST_WAIT
        attempts = self._attempts.setdefault(agent, _Attempts())
        try:
            # Nothing is awaited between the last look and the end of this.
            while self._lines.find(agent) is None:
                waiting = [one async for one in self._letters(agent)]
                letters = [one for one in waiting if not one.dead]
                if not waiting:
                    self._attempts.pop(agent, None)
                if not letters:
                    return
                try:
                    dialled = await self._dial(letters[-1].peer, letters[-1].address)
                except CallError as exc:
                    attempts.count += 1
                    attempts.problem = str(exc.detail)[:300]
                    logger.info("news not brought peer=%s reason=%s", peer, exc.detail)
                    await self._pause(peer, wait * random.uniform(0.8, 1.2))
                    wait = min(2 * wait, MOST_WAIT)
                    continue
                attempts.count, attempts.problem = 0, ""
                wait = FIRST_WAIT
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
