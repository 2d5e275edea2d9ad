"""Feeds a `WrittenProtocol` and carries its messages, timer and events."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.traffic import FrameTooLarge
from anp.channel.stranger_work import counted
from anp.wire.frames import ProtocolType
from negotiation.consensus.written import WrittenEvent, WrittenProtocol

logger = logging.getLogger(__name__)

MAX_UNSENT: Final = 32
"Messages that wait to be sent before the peer is read no further."

Feed = Callable[[float, datetime], None]
"Gives the protocol one input, with the time on both clocks."


@dataclass(slots=True)
class _Unsent:
    """A message that waits to be sent."""

    data: bytes

    message_id: str | None = None
    "Id of its envelope, if it was announced."

    before: bytes | None = None
    "A meta message that goes before it; None once it is sent."

    sent: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Driver:
    """Owns the timer and the sender of one channel.

    Inputs are taken one after the other, each with all that comes of it, and none of
    them waits: what cannot be sent at once goes into a queue that a task empties. So a
    side that cannot send still reads, and two sides never wait for each other.
    """

    def __init__(
        self,
        channel: Channel,
        machine: WrittenProtocol,
        act: Callable[[WrittenEvent], None],
    ) -> None:
        self._channel = channel
        self._machine = machine
        self._act = act
        self._unsent: deque[_Unsent] = deque()
        self._room = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for = math.inf
        "The moment for which the timer is set, which may be too early."
        self._work: set[asyncio.Task[None]] = set()
        self._sender: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._sending = False
        self._closed = False

    @property
    def busy(self) -> bool:
        """True while something is worked on or waits to be sent."""
        return bool(self._work or self._unsent)

    def start(self) -> None:
        """Start the protocol."""
        self.feed(lambda now, wall_now: self._machine.start(now=now, wall_now=wall_now))

    def feed(
        self,
        feed: Feed,
        *,
        announced: tuple[str, bytes | None] | None = None,
        into: list[bytes] | None = None,
    ) -> asyncio.Future[None] | None:
        """Give the protocol one input, and carry out the consequences.

        Args:
            announced: Id of the envelope for the last message, and a meta message about
                it that goes before, or None.
            into: Takes the messages as well, also when they cannot be sent any more.

        Returns:
            When its last message is sent, or None if it is sent or there is none.
            `ChannelClosed` means that it was not sent.
        """
        if self._closed:
            return None
        feed(time.monotonic(), datetime.now(UTC))
        sent = None
        messages = self._machine.messages_to_send()
        for place, data in enumerate(messages, start=1):
            if into is not None:
                into.append(data)
            is_last = place == len(messages)
            sent = self._put(data, announced if is_last else None)
        while (event := self._machine.next_event()) is not None:
            self._act(event)
        self._arm()
        self._room.set()
        return sent

    def receive(self, data: bytes) -> None:
        """Give the protocol a message of the peer."""
        self.feed(
            lambda now, wall_now: self._machine.receive_message(
                data, now=now, wall_now=wall_now
            )
        )

    @property
    def has_room(self) -> bool:
        """False while the peer should be read no further."""
        return not self._machine.full and len(self._unsent) < MAX_UNSENT

    async def wait_room(self) -> None:
        """Wait while the peer should be read no further.

        Raises:
            ChannelClosed: The channel has ended.
        """
        while not self.has_room:
            if self._channel.ended is not None:
                raise self._channel.ended
            self._room.clear()
            ended = asyncio.ensure_future(self._channel.wait_ended())
            room = asyncio.ensure_future(self._room.wait())
            try:
                await asyncio.wait((ended, room), return_when=asyncio.FIRST_COMPLETED)
            finally:
                ended.cancel()
                room.cancel()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` beside; it ends with the channel at the latest."""
        task = asyncio.create_task(counted(self._guarded(work)))
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    @property
    def working(self) -> bool:
        """True while something is worked on."""
        return bool(self._work)

    async def wait_work(self) -> None:
        """Wait until nothing is worked on."""
        while self._work:
            await asyncio.wait(self._work)

    async def close(self) -> None:
        """End everything; the channel has ended."""
        if self._closed:
            return
        self._machine.end()
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = [*self._work] + ([self._sender] if self._sender is not None else [])
        for task in tasks:
            task.cancel()
        if self._sending and not self._unsent[0].sent.done():
            # Nobody knows how far it got: who waits for it waits on, for an answer.
            self._unsent.popleft().sent.set_result(None)
        await asyncio.gather(*tasks, return_exceptions=True)
        self._not_sent(self._channel.ended or ChannelClosed("given up", by_peer=False))

    def _arm(self) -> None:
        """Set the timer, unless it comes early enough: it looks again by itself.

        Most of what has a deadline ends long before, and needs no timer of its own.
        """
        due = None if self._closed else self._machine.get_timer()
        if due is None or self._armed_for <= due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = due
        delay = max(0.0, due - time.monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def give_up(self) -> None:
        """End the channel after an error of ours; who caught it has logged it."""
        if self._ending is None:
            # Its own task: what this object runs ends with the channel.
            self._ending = asyncio.create_task(self._channel.close("an error of ours"))

    def _tick(self) -> None:
        self._timer, self._armed_for = None, math.inf
        due = self._machine.get_timer()
        if due is None or due > time.monotonic():
            self._arm()
            return
        try:
            self._due()
        except Exception:
            # Calls would wait for ever.
            logger.exception("timer failed peer=%s", self._channel.peer_did)
            self.give_up()

    def _due(self) -> None:
        self.feed(
            lambda now, wall_now: self._machine.handle_timer(now=now, wall_now=wall_now)
        )

    def _put(
        self, data: bytes, announced: tuple[str, bytes | None] | None
    ) -> asyncio.Future[None] | None:
        """Send a message, if nothing waits before it; see `feed`."""
        message_id, before = announced or (None, None)
        channel, has_room = self._channel, not self._unsent
        try:
            if channel.ended is not None:
                raise channel.ended
            if has_room and before is not None:
                has_room = channel.send_now(ProtocolType.META, before) is not None
                before = None if has_room else before
            if has_room and channel.send_now(
                ProtocolType.APPLICATION, data, message_id=message_id
            ):
                return None
        except ChannelClosed as exc:
            not_sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            not_sent.set_exception(exc)
            # Not everybody waits for it.
            not_sent.exception()
            return not_sent
        except FrameTooLarge:
            self._too_large()
        self._unsent.append(_Unsent(data, message_id, before))
        if len(self._unsent) == 1 and self._ending is None:
            self._sender = asyncio.create_task(counted(self._send()))
        return self._unsent[-1].sent

    def _too_large(self) -> None:
        # The limits of the protocol are to be below those of the channel.
        logger.exception("message too large peer=%s", self._channel.peer_did)
        self.give_up()

    async def _send(self) -> None:
        """Send what waits."""
        while self._unsent:
            first = self._unsent[0]
            try:
                if first.before is not None:
                    await self._channel.send(ProtocolType.META, first.before)
                self._sending = True
                await self._channel.send(
                    ProtocolType.APPLICATION, first.data, message_id=first.message_id
                )
            except ChannelClosed as exc:
                self._sending = False
                self._not_sent(exc)
                return
            except FrameTooLarge:
                self._sending = False
                self._too_large()
                return
            self._sending = False
            self._unsent.popleft()
            self._room.set()
            if not first.sent.done():
                first.sent.set_result(None)

    def _not_sent(self, reason: ChannelClosed) -> None:
        while self._unsent:
            sent = self._unsent.popleft().sent
            if not sent.done():
                sent.set_exception(reason)
                # Not everybody waits for it.
                sent.exception()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:
            logger.exception("channel task failed peer=%s", self._channel.peer_did)
            self.give_up()
