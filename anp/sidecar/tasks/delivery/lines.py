"""The channels over which GB/Z 185.6, or another protocol, carries sessions.

A line is one channel. What is to be told to a peer goes over the newest line with it,
whoever opened that; without a line it stays in the log of its session until there is
one. We dial a peer as long as it has something to do for us.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.link_core import FrameTooLarge
from anp.channel.stranger_work import counted
from anp.errors import CallError
from anp.identity.dids import canonical_did
from anp.interaction.errors import InteractionError
from anp.interaction.operations import Send
from anp.protocols.envelope import ENVELOPE_TASKS_URI
from anp.protocols.envelope.session_line import EnvelopeLine
from anp.protocols.gbz.line import GbzLine
from anp.protocols.gbz.side import session_of
from anp.protocols.line import OperationFrame, SessionLine
from anp.sidecar.calls.renewer import Renewer
from anp.sidecar.peers.policy import agent_name
from anp.wire.frames import ProtocolType
from negotiation.consensus.written import Parties, WrittenLimits
from negotiation.errors import JsonError

__all__ = ["Line", "LineWork", "Lines"]

logger = logging.getLogger(__name__)

MAX_UNSENT = 256
"Frames that wait to be sent before the peer is read no further."

MAX_UNSENT_BYTES = 4 * 1024 * 1024
"Bytes of such frames; what is over one of both waits in the log of its session."

PAGE = 64
"Operations that are read from a log at a time."

FIRST_WAIT = 1.0
"Seconds before a peer that could not be reached is dialled again; then it doubles."

MOST_WAIT = 60.0
"The longest such wait, in seconds."

UNDER_WAY = 2.0
"Seconds for which frames may be under way on a line that another has followed."

NEWS_SILENCE = 10.0
"Seconds without a word after which a peer that dials us has no more news for us."

IDLE_CHECK = 5.0
"Seconds between two looks at whether a line is still needed."


class LineWork(Protocol):
    """Everything that lines ask of those who know the sessions."""

    async def dial(self, peer: str, protocol: str) -> tuple[Channel, str] | None:
        """Open a channel to a peer; return it with its protocol's URI.

        None when the peer does not speak that protocol; "" stands for any for tasks.
        """

    async def take(self, line: Line, frame: OperationFrame) -> None:
        """Take an operation of a peer."""

    async def more(self, log: str, peer: str, after: int, limit: int) -> list[Send]:
        """Return what a peer has not acknowledged in a session; see `Sessions`."""

    def untold(self, peer: str, uri: str) -> list[str]:
        """Return the sessions to go on with over a line of a protocol."""

    def needs_line(self, peer: str, protocols: Container[str]) -> bool:
        """Return whether we have to dial a peer, to tell or to hear something.

        Args:
            protocols: Only for sessions that these carry; "" for those of any.
        """

    def brings_news(self, peer: str) -> bool:
        """Return whether a peer works for us, and dials us when it has news."""

    def in_use(self, peer: str) -> bool:
        """Return whether something is at work for a peer."""

    async def unspoken(self, peer: str, protocol: str) -> None:
        """Do without a protocol what a peer has to do for us."""

    def unsendable(self, log: str, send: Send, reason: str) -> None:
        """Take note of an operation that no frame can carry."""


@dataclass(slots=True)
class _Late:
    """A session whose operations come from its log."""

    after: int
    "Number of the newest event that was put on the line."

    newest: int = 0
    "Number of the newest event that is to follow, as far as it is known."


class Line:
    """One channel that speaks a protocol for tasks, in both directions.

    The operations of each session go out in the order of its log. When the peer reads
    too slowly, or does not know what came before, they wait there and not in memory.
    """

    def __init__(
        self, channel: Channel, uri: str, limits: WrittenLimits, work: LineWork
    ) -> None:
        self.channel = channel
        self.uri = uri
        self.peer = canonical_did(channel.peer_did, channel.peer_key)
        "The peer's DID in its canonical form."

        self.max_message = min(limits.max_message, channel.max_payload)
        "Most bytes of a frame."

        limits = replace(limits, max_message=self.max_message)
        if uri == ENVELOPE_TASKS_URI:
            parties = Parties(
                own_id=channel.local_did,
                peer_id=channel.peer_did,
                peer_aliases=frozenset({self.peer}),
            )
            self._line: SessionLine = EnvelopeLine(
                limits, parties, lambda: datetime.now(UTC)
            )
        else:
            self._line = GbzLine(limits)
        self.gives_files = isinstance(self._line, GbzLine)
        "Pieces of files can be asked for over it."

        self._work = work
        self._unsent: deque[bytes] = deque()
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._late: dict[str, _Late] = {}
        self._is_late = asyncio.Event()
        self.closed = False
        self.heard = time.monotonic()
        "When the peer said something last, on the monotonic clock."

    @property
    def names(self) -> frozenset[str]:
        """The ids by which the peer may appear in a session."""
        return frozenset({self.peer, self.channel.peer_did})

    @property
    def waiting(self) -> int:
        """Number of frames that wait to be sent."""
        return len(self._unsent)

    @property
    def busy(self) -> bool:
        """True while there is something to send."""
        return bool(self._unsent or self._pieces or self._late)

    def answer(self, send: Send) -> None:
        """Send an answer to an operation of the peer."""
        self._line.write(send)
        self._take()

    def give(self, send: Send) -> None:
        """Send a piece of a file, when nothing else waits to be sent."""
        self._take()
        self._line.write(send)
        self._take(self._pieces)

    def tell(self, log: str, send: Send) -> None:
        """Send an operation of a session, at once or when its turn comes."""
        late = self._late.get(log)
        if late is None and not self._full:
            self._write(log, send)
            return
        if late is None:
            late = self.put_off(log, after=send.ref - 1)
        late.newest = max(late.newest, send.ref)

    def put_off(self, log: str, *, after: int = 0) -> _Late:
        """Read from its log what the peer has not acknowledged in a session."""
        self._late[log] = late = _Late(after)
        self._is_late.set()
        return late

    def refuse(self, frame: OperationFrame, error: InteractionError) -> None:
        """Answer an operation that changed nothing."""
        self._line.refuse(
            error,
            ref=frame.ref,
            session=session_of(frame.operation),
            request=frame.request,
        )
        self._take()

    async def run(self) -> None:
        """Read and write until the channel ends."""
        beside = [
            asyncio.create_task(counted(self._send())),
            asyncio.create_task(counted(self._feed())),
        ]
        try:
            while True:
                event = await self.channel.receive()
                if event.frame.protocol_type is not ProtocolType.APPLICATION:
                    continue
                self.heard = time.monotonic()
                frame = self._line.read(event.frame.data)
                if frame is not None:
                    await self._work.take(self, frame)
                self._take()
                if self._line.broken:
                    await self.channel.close(self._line.broken)
                await self._has_room()
        except ChannelClosed as exc:
            logger.debug("line ended peer=%s reason=%s", self.peer, exc.detail)
        finally:
            self.closed = True
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

    @property
    def _full(self) -> bool:
        return len(self._unsent) >= MAX_UNSENT or self._size >= MAX_UNSENT_BYTES

    async def _has_room(self) -> None:
        while self._full and self.channel.open:
            self._room.clear()
            await self._room.wait()

    def _write(self, log: str, send: Send) -> None:
        try:
            self._line.write(send)
        except JsonError as exc:
            self._work.unsendable(log, send, str(exc))
        self._take()

    def _take(self, queue: deque[bytes] | None = None) -> None:
        """Put what is written on a queue; without one on that of operations."""
        for note in self._line.notes:
            level = logging.WARNING if note.fault else logging.DEBUG
            logger.log(level, "frame of peer=%s: %s", self.peer, note.reason)
        self._line.notes.clear()
        if self._line.outgoing:
            (self._unsent if queue is None else queue).extend(self._line.outgoing)
            self._size += sum(map(len, self._line.outgoing))
            self._line.outgoing.clear()
            self._wake.set()

    async def _feed(self) -> None:
        """Put on the line what waits in the logs, until it is cancelled."""
        try:
            await self._fill()
        except Exception:
            logger.exception("a peer was not told everything peer=%s", self.peer)
            await self.channel.close("an error of ours")

    async def _fill(self) -> None:
        """Put on the line what waits in the logs, each session in its turn."""
        while True:
            while not self._late:
                self._is_late.clear()
                await self._is_late.wait()
            await self._has_room()
            log, late = next(iter(self._late.items()))
            newest = late.newest
            sends = await self._work.more(log, self.peer, late.after, PAGE)
            for send in sends:
                await self._has_room()
                if self._late.get(log) is not late:
                    # It begins anew.
                    break
                self._write(log, send)
                late.after = send.ref
            if self._late.get(log) is late:
                del self._late[log]
                if sends or late.newest > newest:
                    self._late[log] = late

    async def _send(self) -> None:
        try:
            while True:
                while not (self._unsent or self._pieces):
                    self._wake.clear()
                    await self._wake.wait()
                data = (self._unsent or self._pieces).popleft()
                self._size -= len(data)
                self._room.set()
                await self.channel.send(ProtocolType.APPLICATION, data)
        except ChannelClosed:
            # The reader sees the same end.
            self._room.set()
        except FrameTooLarge:
            logger.exception("frame too large peer=%s", self.peer)
            self._room.set()
            await self.channel.close("an error of ours")


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
        self._keeping: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._renewer = Renewer()
        self._using: set[asyncio.Task[None]] = set()

    def find(self, peer: str, protocol: str = "") -> Line | None:
        """Return the newest open line to a peer, or None.

        Args:
            protocol: URI of the one that it has to speak; empty for any.
        """
        for line in reversed(self._lines.get(agent_name(peer), ())):
            fits = protocol in ("", line.uri)
            if fits and not line.closed and line.channel.open:
                return line
        return None

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

    async def serve(self, channel: Channel, uri: str) -> None:
        """Carry sessions over a channel until it ends.

        Args:
            uri: The protocol that it is bound to.
        """
        line = Line(channel, uri, self._limits, self._work)
        agent = agent_name(line.peer)
        channel.in_use = lambda: line.busy or self._work.in_use(line.peer)
        lines = self._lines.setdefault(agent, [])
        self._tell_all(line)
        lines.append(line)
        try:
            await line.run()
        finally:
            lines.remove(line)
            if not lines:
                self._lines.pop(agent, None)
            other = self.find(agent, uri) or self.find(agent)
            if other is not None:
                # What was under way on this one is lost.
                self._tell_all(other)

    async def close(self) -> None:
        """Dial nobody any more."""
        keeping = [*self._keeping.values(), *self._using]
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)

    def _tell_all(self, line: Line) -> None:
        for log in self._work.untold(line.peer, line.uri):
            line.put_off(log)

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
        if self.find(peer, protocol) is not None:
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
        serving = asyncio.create_task(self.serve(channel, uri))
        watching = asyncio.create_task(_until_idle(is_needed))
        try:
            await asyncio.wait({serving, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            if not serving.done():
                # What is not acknowledged is told again on the next line.
                await channel.close("no more work")
            await asyncio.gather(serving, watching, return_exceptions=True)

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
