"""Test requests over PT=11 on a requester's channel, and the wait for their answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import FrameReceived
from anp.wire.frames import ProtocolType

__all__ = ["NoAnswer", "Verification"]

MAX_WAITING: Final = 16
"Answers that wait to be read."


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """There is no answer to a test request."""

    reason: str
    "Why, in words."


class Verification:
    """One test request at a time, and what comes of it (ANP-75)."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._came: asyncio.Queue[FrameReceived | NoAnswer | ChannelClosed] = (
            asyncio.Queue(MAX_WAITING)
        )
        # Envelope of the request that waits for its answer.
        self._asked: str | None = None

    async def ask(self, data: bytes, *, timeout: float) -> tuple[bytes, str] | NoAnswer:
        """Send a test request and return the answer and its envelope's id.

        Returns:
            Why there is none, when none came within `timeout` seconds, or the peer
            refused or closed the channel.

        Raises:
            ChannelClosed: The link was lost, or we closed the channel.
        """
        while not self._came.empty():
            self._came.get_nowait()
        try:
            self._asked = await self._channel.send(ProtocolType.VERIFICATION, data)
        except ChannelClosed as exc:
            return _closed(exc)
        return await self.next_answer(timeout=timeout)

    async def next_answer(self, *, timeout: float) -> tuple[bytes, str] | NoAnswer:
        """Wait for one more answer, as `ask` returns it."""
        try:
            async with asyncio.timeout(timeout):
                came = await self._came.get()
        except TimeoutError:
            return NoAnswer(f"no answer in {timeout:g} s")
        if isinstance(came, ChannelClosed):
            return _closed(came)
        if isinstance(came, NoAnswer):
            return came
        return came.frame.data, came.message_id

    # What comes on the channel.

    def take(self, event: FrameReceived) -> bool:
        """Take an answer; False when too many wait already."""
        return self._put(event)

    def refused(self, reference: str, reason: str) -> None:
        """Take note that the peer does not answer the request in `reference`."""
        if reference == self._asked:
            self._put(NoAnswer(f"the peer cannot answer: {reason[:200]}"))

    def ended(self, exc: ChannelClosed) -> None:
        """Take note that the channel ended."""
        self._put(exc)

    def _put(self, came: FrameReceived | NoAnswer | ChannelClosed) -> bool:
        if self._came.full():
            return False
        self._came.put_nowait(came)
        return True


def _closed(exc: ChannelClosed) -> NoAnswer:
    """Return what a closed channel says about a test; a lost link says nothing."""
    if not exc.by_peer:
        raise exc
    return NoAnswer(f"the peer closed the channel: {exc.detail[:200]}")
