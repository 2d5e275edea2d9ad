"""The channels over which GB/Z 185.6 carries sessions to and from peers.

A line is one channel. What is to be told to a peer goes over the newest line with it,
whoever opened that; without a line it stays in the log of its session until there is
one. We dial a peer as long as it has something to do for us.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.link_core import FrameTooLarge
from anp.errors import CallError, PeerError
from anp.identity.dids import agent_of, canonical_did
from anp.interaction.errors import InteractionError
from anp.interaction.operations import Send
from anp.protocols.gbz.line import GbzLine
from anp.protocols.gbz.reader import GbzFrame
from anp.protocols.gbz.side import session_of
from anp.wire.frames import ProtocolType
from negotiation.consensus.written import WrittenLimits

__all__ = ["Line", "Lines", "same_peer"]

logger = logging.getLogger(__name__)

MAX_UNSENT = 256
"Frames that wait to be sent before the peer is read no further."

FIRST_WAIT = 1.0
"Seconds before a peer that could not be reached is dialled again; then it doubles."

MOST_WAIT = 60.0
"The longest such wait, in seconds."

IDLE_CHECK = 5.0
"Seconds between two looks at whether a line is still needed."


class Line:
    """One channel that speaks the protocol, in both directions."""

    def __init__(self, channel: Channel, limits: WrittenLimits) -> None:
        self.channel = channel
        self.peer = canonical_did(channel.peer_did, channel.peer_key)
        "The peer's DID in its canonical form."

        most = min(limits.max_message, channel.max_payload)
        self._line = GbzLine(replace(limits, max_message=most))
        self._unsent: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self.closed = False

    @property
    def names(self) -> frozenset[str]:
        """The ids by which the peer may appear in a session."""
        return frozenset({self.peer, self.channel.peer_did})

    def put(self, send: Send) -> None:
        """Send an operation or an answer."""
        self._line.write(send)
        self._take()

    def refuse(self, frame: GbzFrame, error: InteractionError) -> None:
        """Answer an operation that changed nothing."""
        self._line.refuse(error, ref=frame.ref, session=session_of(frame.operation))
        self._take()

    async def run(self, take: Callable[[Line, GbzFrame], Awaitable[None]]) -> None:
        """Read and write until the channel ends; `take` gets each operation."""
        sender = asyncio.create_task(self._send())
        try:
            while True:
                event = await self.channel.receive()
                if event.frame.protocol_type is not ProtocolType.APPLICATION:
                    continue
                frame = self._line.read(event.frame.data)
                if frame is not None:
                    await take(self, frame)
                self._take()
                if self._line.broken:
                    await self.channel.close(self._line.broken)
                while len(self._unsent) > MAX_UNSENT:
                    self._room.clear()
                    await self._room.wait()
        except ChannelClosed as exc:
            logger.debug("line ended peer=%s reason=%s", self.peer, exc.detail)
        finally:
            self.closed = True
            sender.cancel()
            await asyncio.wait({sender})

    def _take(self) -> None:
        for note in self._line.notes:
            level = logging.WARNING if note.fault else logging.DEBUG
            logger.log(level, "frame of peer=%s: %s", self.peer, note.reason)
        self._line.notes.clear()
        if self._line.outgoing:
            self._unsent += self._line.outgoing
            self._line.outgoing.clear()
            self._wake.set()

    async def _send(self) -> None:
        try:
            while True:
                while not self._unsent:
                    self._wake.clear()
                    await self._wake.wait()
                data = self._unsent.popleft()
                self._room.set()
                await self.channel.send(ProtocolType.APPLICATION, data)
        except ChannelClosed:
            # The reader sees the same end.
            self._room.set()
        except FrameTooLarge:
            logger.exception("frame too large peer=%s", self.peer)
            self._room.set()
            await self.channel.close("an error of ours")


class Lines:
    """Knows the lines to all peers, and dials those that work for us."""

    def __init__(
        self,
        *,
        dial: Callable[[str], Awaitable[Channel | None]],
        take: Callable[[Line, GbzFrame], Awaitable[None]],
        opened: Callable[[Line], Awaitable[None]],
        needs: Callable[[str], Awaitable[bool]],
        unspoken: Callable[[str], Awaitable[None]],
        limits: WrittenLimits,
    ) -> None:
        """Begin without lines.

        Args:
            dial: Opens a channel to the peer of an agent's id; None when the peer does
                not speak the protocol.
            take: Gets each operation of a peer.
            opened: Tells a peer on a new line what it does not know yet.
            needs: Tells whether a peer of an agent's id has something to do for us.
            unspoken: Does without the protocol what a peer has to do for us.
        """
        self._dial = dial
        self._take = take
        self._opened = opened
        self._needs = needs
        self._unspoken = unspoken
        self._limits = limits
        self._lines: dict[str, list[Line]] = {}
        self._keeping: dict[str, asyncio.Task[None]] = {}

    def find(self, peer: str) -> Line | None:
        """Return the newest open line to a peer, or None."""
        for line in reversed(self._lines.get(agent_of(peer), ())):
            if not line.closed and line.channel.open:
                return line
        return None

    def want(self, peer: str) -> None:
        """See to it that there is a line to a peer as long as it works for us."""
        agent = agent_of(peer)
        if agent not in self._keeping:
            task = asyncio.create_task(self._keep(peer))
            self._keeping[agent] = task
            task.add_done_callback(lambda _: self._keeping.pop(agent, None))

    async def serve(self, channel: Channel) -> None:
        """Carry sessions over a channel until it ends."""
        line = Line(channel, self._limits)
        lines = self._lines.setdefault(agent_of(line.peer), [])
        lines.append(line)
        telling = asyncio.create_task(self._tell(line))
        try:
            await line.run(self._take)
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            lines.remove(line)
            if not lines:
                self._lines.pop(agent_of(line.peer), None)

    async def close(self) -> None:
        """Dial nobody any more."""
        keeping = list(self._keeping.values())
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)

    async def _tell(self, line: Line) -> None:
        try:
            await self._opened(line)
        except Exception:
            logger.exception("a peer was not told everything peer=%s", line.peer)
            await line.channel.close("an error of ours")

    async def _keep(self, peer: str) -> None:
        """Have a line to a peer until it has nothing to do for us."""
        wait = FIRST_WAIT
        while await self._needs(peer):
            try:
                if self.find(peer) is None:
                    channel = await self._dial(peer)
                    if channel is None:
                        await self._unspoken(peer)
                        return
                    wait = FIRST_WAIT
                    await self._renewed(channel)
                    continue
            except CallError as exc:
                logger.info("peer not reached peer=%s reason=%s", peer, exc.detail)
            except Exception:
                logger.exception("a line failed peer=%s", peer)
            await asyncio.sleep(wait * random.uniform(0.8, 1.2))
            wait = min(2 * wait, MOST_WAIT)

    async def _renewed(self, channel: Channel) -> None:
        """Serve a channel until it ends or its key has to be renewed."""
        serving = asyncio.create_task(self.serve(channel))
        renewing = asyncio.create_task(channel.wait_renewal())
        watching = asyncio.create_task(self._until_idle(channel.peer_did))
        try:
            await asyncio.wait(
                {serving, renewing, watching}, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            renewing.cancel()
            watching.cancel()
            if not serving.done():
                # What is not acknowledged is told again on the next line.
                await channel.close("no more work, or another key")
            await asyncio.gather(serving, renewing, watching, return_exceptions=True)

    async def _until_idle(self, peer: str) -> None:
        # Work ends in many places; nobody waits for this line to close.
        while await self._needs(peer):  # noqa: ASYNC110
            await asyncio.sleep(IDLE_CHECK)


def same_peer(one: str, other: str) -> bool:
    """Return whether two ids are surely of one agent."""
    try:
        return agent_of(one) == agent_of(other)
    except PeerError:
        return one == other
