"""One channel that speaks a protocol for tasks, in both directions."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.traffic import FrameTooLarge
from anp.channel.stranger_work import counted
from anp.errors import LocalError
from anp.identity.dids import canonical_did
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.operations import (
    GroupAcknowledgement,
    GroupOperation,
    RefusedGroupOperation,
)
from anp.interaction.operations import (
    Send,
    SubscribeCancel,
    SubscribeCreate,
    SubscriptionOperation,
)
from anp.protocols.envelope import ENVELOPE_TASKS_URI
from anp.protocols.envelope.session_line import EnvelopeLine
from anp.protocols.gbz.line import GbzLine, GroupLine
from anp.protocols.gbz.side import session_of
from anp.protocols.gbz.words import GBZ_GROUPS_URI
from anp.protocols.line import FurtherFrame, OperationFrame, SessionLine
from anp.wire.envelopes import EXTENSION_BINARY
from anp.wire.frames import ProtocolType
from negotiation.consensus.written import Parties, WrittenLimits
from negotiation.errors import JsonError

logger = logging.getLogger(__name__)

MAX_UNSENT = 256
"Frames that wait to be sent before the peer is read no further."

MAX_UNSENT_BYTES = 4 * 1024 * 1024
"Bytes of such frames; what is over one of both waits in the log of its session."

PAGE = 64
"Operations that are read from a log at a time."


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

    def untold(self, line: Line, *, is_ours: bool = False) -> list[str]:
        """Return the sessions to go on with over a new line.

        Args:
            is_ours: Those that we opened, over a line that the peer dialled.
        """

    def go_on(self, peer: str) -> None:
        """Tell a peer over the lines that are left what was under way on another."""

    def needs_line(self, peer: str, protocols: Container[str]) -> bool:
        """Return whether we have to dial a peer, to tell or to hear something.

        Args:
            protocols: Only for sessions that these carry; "" for those of any.
        """

    def brings_news(self, peer: str) -> bool:
        """Return whether a peer works for us, and dials us when it has news."""

    def in_use(self, peer: str) -> bool:
        """Return whether something is at work for a peer."""

    def sent(self, log: str, number: int) -> None:
        """Take note that a peer may know of a session up to an event."""

    async def unspoken(self, peer: str, protocol: str) -> None:
        """Do without a protocol what a peer has to do for us."""

    def unsendable(self, log: str, send: Send, reason: str) -> None:
        """Take note of an operation that no frame can carry."""


TakeFurther = Callable[["Line", FurtherFrame], Awaitable[None]]
"""Takes an operation about a group or a subscription; `InteractionError` refuses it."""


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
        self,
        channel: Channel,
        uri: str,
        limits: WrittenLimits,
        work: LineWork,
        further: Mapping[type, TakeFurther],
        *,
        number: int = 0,
        is_ours: bool = False,
    ) -> None:
        """Begin on a channel.

        Args:
            number: Higher than that of every line that opened before.
            is_ours: We dialled it for sessions or groups.
        """
        self.channel = channel
        self.uri = uri
        self.number = number
        self.takes_sessions = True
        """A session that we open may go over it. Where the peer dialled and opens one,
        it may be there for a call of one turn, and work on nothing of ours."""
        self.is_ours = is_ours
        self.peer = canonical_did(channel.peer_did, channel.peer_key)
        "The peer's DID in its canonical form."

        self.max_message = min(limits.max_message, channel.max_payload)
        "Most bytes of a frame."

        limits = replace(limits, max_message=self.max_message)
        raw = EXTENSION_BINARY in channel.extensions
        if uri == ENVELOPE_TASKS_URI:
            parties = Parties(
                own_id=channel.local_did,
                peer_id=channel.peer_did,
                peer_aliases=frozenset({self.peer}),
            )
            self._line: SessionLine = EnvelopeLine(
                limits, parties, lambda: datetime.now(UTC)
            )
        elif uri == GBZ_GROUPS_URI:
            self._line = GroupLine(limits, raw=raw)
        else:
            self._line = GbzLine(limits, raw=raw)
        self.has_groups = isinstance(self._line, GroupLine)
        "Groups and subscriptions can be talked of over it."

        self.gives_files = isinstance(self._line, GbzLine)
        "Pieces of files can be asked for over it."

        self._work = work
        self._further = further
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
    def stands(self) -> bool:
        """True while something can be said on it."""
        return not self.closed and self.channel.open

    @property
    def waiting(self) -> int:
        """Number of frames that wait to be sent."""
        return len(self._unsent)

    @property
    def busy(self) -> bool:
        """True while there is something to send."""
        return bool(self._unsent or self._pieces or self._late)

    def opens_session(self) -> bool:
        """Take note that the peer opens a session on it.

        Returns:
            True when sessions of ours went over it until now, and do so no more.
        """
        before, self.takes_sessions = self.takes_sessions, self.is_ours
        return before and not self.is_ours

    def answer(self, send: Send) -> None:
        """Send an answer to an operation of the peer."""
        self._line.write(send)
        self._take()

    def say(
        self, operation: GroupOperation | SubscriptionOperation, ref: int = 0
    ) -> None:
        """Send an operation about a group or a subscription, or an answer to one.

        Raises:
            JsonError: It cannot be written, or is over the limit of a frame.
            LocalError: The line knows no groups.
        """
        if not isinstance(self._line, GroupLine):
            raise LocalError("the line knows no groups")
        self._line.write_further(operation, ref)
        self._take()

    def pass_on(self, frames: Iterable[bytes]) -> None:
        """Send frames that are written, such as those that a hub distributes."""
        self._line.outgoing += frames
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
                while self._line.further:
                    await self._take_further(self._line.further.popleft())
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

    async def _take_further(self, frame: FurtherFrame) -> None:
        operation = frame.operation
        try:
            take = self._further.get(type(operation))
            if take is None:
                raise InteractionError(
                    InteractionFault.NOT_ALLOWED, "this agent takes no part in that"
                )
            await take(self, frame)
        except InteractionError as exc:
            if isinstance(operation, SubscribeCreate | SubscribeCancel):
                self._line.refuse(exc, ref=frame.ref, session=operation.session)
            else:
                answers = isinstance(
                    operation, GroupAcknowledgement | RefusedGroupOperation
                )
                self._line.refuse(
                    exc,
                    ref=frame.ref,
                    session="",
                    request=operation.group,
                    answer=not answers,
                )

    async def _has_room(self) -> None:
        while self._full and self.channel.open:
            self._room.clear()
            await self._room.wait()

    def _write(self, log: str, send: Send) -> None:
        self._work.sent(log, send.ref)
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
