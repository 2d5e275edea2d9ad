"""The channels over which GB/Z 185.6, or another protocol, carries sessions.

A line is one channel. What is to be told to a peer goes over the line on which its
session was heard last, whoever opened that; without a line it stays in the log of its
session until there is one. We dial a peer as long as it has something to do for us.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from anp.channel.channel import Channel
from anp.errors import CallError, ErrorKind
from anp.identity.dids import agent_name
from anp.sidecar.calls.renewer import Renewer
from anp.sidecar.tasks.delivery.line import Line, LineWork, TakeFurther
from anp.sidecar.tasks.delivery.ways import SessionWays
from negotiation.consensus.written import WrittenLimits

logger = logging.getLogger(__name__)

FIRST_WAIT = 1.0
"Seconds before a peer that could not be reached is dialled again; then it doubles."

MOST_WAIT = 60.0
"The longest such wait, in seconds."

UNDER_WAY = 2.0
"Seconds for which frames may be under way on a line that another has followed."

NEWS_SILENCE = 10.0
"Seconds without a word after which a peer that dials us has no more news for us."

SETTLED = 1.0
"""Seconds after which a peer that dialled us has said that it has a call of one turn,
if that is what it came for."""

IDLE_CHECK = 5.0
"Seconds between two looks at whether a line is still needed."


@dataclass(slots=True)
class _Renewable:
    """A line of ours that another follows."""

    channel: Channel

    async def wait_idle(self) -> None:
        """Wait until what is under way has arrived; what has not is told again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UNDER_WAY):
                await self.channel.wait_ended()


class Lines:
    """Knows the lines to all peers, and dials those that work for us."""

    def __init__(self, work: LineWork, limits: WrittenLimits) -> None:
        """Begin without lines."""
        self._work = work
        self._limits = limits
        self._lines: dict[str, list[Line]] = {}
        self.ways = SessionWays()
        self.further: dict[type, TakeFurther] = {}
        "Take the operations about groups and subscriptions, by their classes."

        self.opened: list[Callable[[Line], None]] = []
        """Are told of each new line, before anything is read from it, and of an older
        one that takes the place of one that ended."""

        self.users: list[Callable[[str], bool]] = []
        "Tell if something else than a session needs the lines with a peer."

        self._keeping: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._renewer = Renewer()
        self._using: set[asyncio.Task[None]] = set()

    def find(
        self, peer: str, protocol: str = "", *, groups: bool = False
    ) -> Line | None:
        """Return the newest open line to a peer, or None.

        Args:
            protocol: URI of the one that it has to speak; empty for any.
            groups: Only one over which groups can be talked of.
        """
        for line in reversed(self.open(peer, protocol)):
            if line.has_groups or not groups:
                return line
        return None

    def open(self, peer: str, protocol: str = "") -> list[Line]:
        """Return the open lines to a peer, the oldest first.

        Args:
            protocol: URI of the one that they have to speak; empty for any.
        """
        lines = self._lines.get(agent_name(peer), ())
        return [one for one in lines if one.stands and protocol in ("", one.uri)]

    def carrying(
        self, log: str, peer: str, *, protocol: str, is_ours: bool
    ) -> Line | None:
        """Return the line that is to carry a session, or None.

        Args:
            log: Our own id of the session.
            protocol: URI of the one that carried it last, and that alone carries it if
                we opened it; empty for any.
            is_ours: See `SessionWays.choose`.
        """
        lines = self.open(peer, protocol if is_ours else "")
        return self.ways.choose(log, lines, uri=protocol, is_ours=is_ours)

    def has(self, peer: str, protocol: str = "") -> bool:
        """Return whether there is an open line to a peer for sessions of ours."""
        return any(one.takes_sessions for one in self.open(peer, protocol))

    def want(self, peer: str, *, once: bool = False, protocol: str = "") -> None:
        """See to it that there is a line to a peer as long as we need one.

        Args:
            once: Dial it also when it would dial us, since it may not reach us.
            protocol: URI of the one that it has to speak; empty for any.
        """
        key = agent_name(peer), protocol
        if key not in self._keeping:
            # Not the work of whoever needs it first.
            self._keeping[key] = asyncio.create_task(
                self._keep(peer, key, once), context=contextvars.Context()
            )

    async def serve(self, channel: Channel, uri: str, *, is_ours: bool = False) -> None:
        """Carry sessions over a channel until it ends.

        Args:
            uri: The protocol that it is bound to.
            is_ours: See `Line`.
        """
        line = Line(
            channel,
            uri,
            self._limits,
            self._work,
            self.further,
            number=self.ways.number(),
            is_ours=is_ours,
        )
        agent = agent_name(line.peer)
        channel.in_use = lambda: (
            line.busy
            or self._work.in_use(line.peer)
            or any(uses(line.peer) for uses in self.users)
        )
        lines = self._lines.setdefault(agent, [])
        lines.append(line)
        self._tell(line, self._work.untold(line))
        if not is_ours:
            # What we dial for is told there, unless the peer came for all its purposes.
            later = partial(self._tell_ours, line)
            asyncio.get_running_loop().call_later(SETTLED, later)
        for told in self.opened:
            told(line)
        try:
            await line.run()
        finally:
            was_newest = lines[-1] is line
            lines.remove(line)
            if not lines:
                self._lines.pop(agent, None)
            # What was under way on this one is lost.
            self._work.go_on(agent)
            other = self.find(agent, uri) or self.find(agent)
            if other is not None and was_newest:
                for told in self.opened:
                    told(other)

    async def close(self) -> None:
        """Dial nobody any more."""
        keeping = [*self._keeping.values(), *self._using]
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)

    def _tell(self, line: Line, logs: Iterable[str]) -> None:
        for log in logs:
            line.put_off(log)

    def _tell_ours(self, line: Line) -> None:
        if line.stands and line.takes_sessions:
            self._tell(line, self._work.untold(line, is_ours=True))

    async def _keep(self, peer: str, key: tuple[str, str], once: bool) -> None:
        """Have a line to a peer until it has nothing to do for us."""
        wait, protocol = FIRST_WAIT, key[1]
        try:
            # Nothing is awaited between the last look and the end of this.
            while once or self._work.needs_line(peer, {protocol}):
                try:
                    kept, once = await self._kept(peer, protocol), False
                    if kept:
                        wait = FIRST_WAIT
                        continue
                except CallError as exc:
                    logger.info("peer not reached peer=%s reason=%s", peer, exc.detail)
                except Exception:
                    logger.exception("a line failed peer=%s", peer)
                await asyncio.sleep(wait * random.uniform(0.8, 1.2))
                wait = min(2 * wait, MOST_WAIT)
        finally:
            self._keeping.pop(key, None)

    async def _kept(self, peer: str, protocol: str) -> bool:
        """Have a line to a peer for a while; False if it speaks no such protocol."""
        if self.has(peer, protocol):
            await asyncio.sleep(FIRST_WAIT)
            return True
        dialled = await self._work.dial(peer, protocol)
        if dialled is None:
            await self._work.unspoken(peer, protocol)
            return False
        channel, uri = dialled
        await self.use(channel, uri, self._needed(channel.peer_did, uri))
        return True

    def _needed(self, peer: str, uri: str) -> Callable[[], bool]:
        """Return what tells whether a line of ours is needed."""

        def is_needed() -> bool:
            line = self.find(peer, uri)
            silence = 0.0 if line is None else time.monotonic() - line.heard
            # What waits for us comes at once, when we have come by ourselves.
            hears = silence < NEWS_SILENCE and self._work.brings_news(peer)
            return hears or self._work.needs_line(peer, {"", uri})

        return is_needed

    async def use(
        self, channel: Channel, uri: str, is_needed: Callable[[], bool]
    ) -> None:
        """Serve a channel of ours until it ends, or is not needed any more."""
        succeed = partial(self._succeed, uri=uri)
        self._renewer.watch(_Renewable(channel), uri, succeed)
        serving = asyncio.create_task(self.serve(channel, uri, is_ours=True))
        watching = asyncio.create_task(_until_idle(is_needed))
        try:
            await asyncio.wait({serving, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            if not serving.done():
                # What is not acknowledged is told again on the next line.
                await channel.close("no more work")
            await asyncio.gather(serving, watching, return_exceptions=True)

    async def begin(
        self, channel: Channel, uri: str, is_needed: Callable[[], bool]
    ) -> Line:
        """Serve a channel of ours beside until it ends or is not needed any more."""
        found: asyncio.Future[Line] = asyncio.get_running_loop().create_future()

        def note(line: Line) -> None:
            if line.channel is channel and not found.done():
                found.set_result(line)

        def failed() -> None:
            if not found.done():
                found.set_exception(
                    CallError(ErrorKind.PEER_UNREACHABLE, "the line did not begin")
                )

        self.opened.append(note)
        try:
            using = asyncio.create_task(
                self.use(channel, uri, is_needed), context=contextvars.Context()
            )
            self._using.add(using)
            using.add_done_callback(self._using.discard)
            using.add_done_callback(lambda _: failed())
            return await found
        finally:
            self.opened.remove(note)

    def _succeed(self, channel: Channel, uri: str) -> None:
        """Go on with the channel that follows another whose key ends."""
        needed = self._needed(channel.peer_did, uri)
        using = asyncio.create_task(self.use(channel, uri, needed))
        self._using.add(using)
        using.add_done_callback(self._using.discard)


async def _until_idle(is_needed: Callable[[], bool]) -> None:
    # Work ends in many places; nobody waits for this line to close.
    while is_needed():  # noqa: ASYNC110
        await asyncio.sleep(IDLE_CHECK)
