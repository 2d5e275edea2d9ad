"""The part of a member that seals what it says and opens what it hears.

Nothing is sent before the state that made it is stored, so that no counter of a key is
used twice, whenever the daemon is killed. Each event is stored together with the state
after it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from anp.interaction.elements import Message
from anp.interaction.errors import InteractionFault
from anp.interaction.groups.member_copy import CopyEvent
from anp.protocols.gbz.sealed_message import keys_of
from anp.protocols.gbz.writer import json_bytes, written_message
from anp.sidecar.groups.frames import own_post
from anp.sidecar.groups.log import GroupLog
from anp.sidecar.groups.sealing.sealed_desk import SealedDesk
from anp.sidecar.groups.shelf import StoredEvent

AGAIN: Final = 1.0
"Seconds after which keys that the hub refused for their number are sent again."


class MemberSeal:
    """Our desk in a sealed group, with the log and the way to the hub."""

    def __init__(
        self,
        desk: SealedDesk,
        log: GroupLog,
        *,
        queue: Callable[[Message], dict[str, Any]],
        send: Callable[[Sequence[dict[str, Any]]], None],
    ) -> None:
        """Go on with a desk.

        Args:
            queue: Makes the frame of a message, and keeps it until the hub took it.
            send: Sends frames if there is a line to the hub.
        """
        self.desk = desk
        self._log = log
        self._queue = queue
        self._send = send
        self._unsent: deque[dict[str, Any]] = deque()
        self._doing: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()

    @property
    def unstored(self) -> set[int]:
        """Numbers of our frames that may not be sent yet."""
        return {frame["ref"] for frame in self._unsent}

    async def found(self) -> None:
        """Say what founds the group."""
        await self.send(self._frames(self.desk.found()))

    def seal(self, message: Message, *, max_message: int) -> list[dict[str, Any]]:
        """Return the frames for a message, its own as the last, to be sent.

        Raises:
            InteractionError: See `SealedSeat.say`.
        """
        return self._frames(self.desk.seal(message, max_message=max_message))

    async def welcome(self, did: str) -> None:
        """Note that we let an agent in, before the hub hears of it."""
        self.desk.welcome(did)
        self._log.put((), rows=self.desk.rows())
        await self._log.durable()

    def put(self, events: Sequence[CopyEvent]) -> None:
        """Take events in order, and have them stored."""
        frames: list[dict[str, Any]] = []
        for event in events:
            taken, step = self.desk.take(event)
            mark = "repeated" if event.repeated else taken.mark
            stored = StoredEvent(event.number, event.post.by, 0, taken.data, mark)
            self._log.put([stored], rows=self.desk.rows())
            frames += self._frames(step.send)
            for number, message in step.opened:
                if number != event.number:
                    self._log.unlock(number, json_bytes(written_message(message)))
        self._send_soon(frames)

    def compare(self, members: Iterable[str]) -> None:
        """Compare the members by the admins' word with those that the hub names."""
        self._send_soon(self._frames(self.desk.compare(members)))

    def _frames(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        frames = [self._queue(one) for one in messages]
        self._unsent += frames
        return frames

    def _send_soon(self, frames: Sequence[dict[str, Any]]) -> None:
        if frames:
            task = asyncio.create_task(self.send(frames))
            self._doing.add(task)
            task.add_done_callback(self._doing.discard)

    def refused(self, frame: dict[str, Any], code: str) -> bool:
        """Take the hub's refusal of a frame; return whether it goes once more."""
        message = own_post(frame).content
        if not isinstance(message, Message):
            return False
        if keys_of(message) is None:
            self.desk.refused(message)
            self._log.put((), rows=self.desk.rows())
            return False
        if code != InteractionFault.TOO_MANY:
            return False

        # Without these keys the others could not read us.
        def again() -> None:
            self._timers.discard(timer)
            self._send([frame])

        timer = asyncio.get_running_loop().call_later(AGAIN, again)
        self._timers.add(timer)
        return True

    async def close(self) -> None:
        """Send nothing any more."""
        for timer in self._timers:
            timer.cancel()
        for task in self._doing:
            task.cancel()
        await asyncio.gather(*self._doing, return_exceptions=True)

    async def send(self, frames: Sequence[dict[str, Any]]) -> None:
        """Store the state after some frames, and send them after that."""
        last = frames[-1]
        self._log.put((), head=True, rows=self.desk.rows())
        await self._log.durable()
        # What was put before is stored, too, and goes first, whoever wakes first.
        while any(one is last for one in self._unsent):
            self._send([self._unsent.popleft()])
