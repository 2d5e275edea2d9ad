"""Test requests of ours to a peer, and the answers to them (PT=11)."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from typing import Final

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import FrameReceived
from anp.sidecar.bound.work import send_signal, works
from anp.wire.frames import ProtocolType
from negotiation.errors import NOT_RUN as NOTHING_RAN
from negotiation.errors import CasesError
from negotiation.messages import SignalKind

MAX_WAITING: Final = 16
"Answers that wait to be read."


OTHER_CAUSES: Final = (
    "stale:",
    "revoked",
    "not allowed",
    "the protocol cannot be served",
)
"Beginnings of a peer's reasons for closing a channel that no code of ours caused."


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """There is no answer to a test request."""

    reason: str
    "The reason, in words."

    busy: bool = False
    "The peer had no worker for it, which says nothing about its code."


class Verification:
    """Sends test requests one at a time, and waits for their answers (ANP-75)."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._came: asyncio.Queue[FrameReceived | NoAnswer | ChannelClosed] = (
            asyncio.Queue(MAX_WAITING)
        )
        # Envelope of the request that waits for its answer.
        self._asked: str | None = None

    async def ask(
        self, data: bytes, *, timeout: float, updates: bool = False
    ) -> tuple[bytes, str] | NoAnswer:
        """Send a test request and return the answer and its envelope's id.

        Args:
            updates: Updates are taken, too; they come as answers.

        Returns:
            `NoAnswer` when none came within `timeout` seconds, or the peer refused or
            closed the channel.

        Raises:
            ChannelClosed: The link was lost, or we closed the channel.
            CasesError: The peer has no worker for it now.
        """
        while not self._came.empty():
            self._came.get_nowait()
        try:
            announced = None
            if updates and works(self._channel):
                announced = secrets.token_hex(16)
                await send_signal(self._channel, announced, SignalKind.UPDATES)
            self._asked = await self._channel.send(
                ProtocolType.VERIFICATION, data, message_id=announced
            )
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
            if came.busy:
                raise CasesError(f"nothing was tested: {came.reason}")
            return came
        return came.frame.data, came.message_id

    def refused(self, reference: str, reason: str) -> None:
        """Take note that the peer does not answer the request in `reference`."""
        if reference == self._asked:
            busy = reason.startswith(f"{NOTHING_RAN}busy: ")
            self.take(NoAnswer(f"the peer cannot answer: {reason[:200]}", busy=busy))

    def take(self, came: FrameReceived | NoAnswer | ChannelClosed) -> bool:
        """Take an answer, or the reason why there is none.

        Returns:
            False when too many wait already; it is dropped then.
        """
        if self._came.full():
            return False
        self._came.put_nowait(came)
        return True


def _closed(exc: ChannelClosed) -> NoAnswer:
    """Return the end of a test by a closed channel.

    One that says nothing about the code is raised: the link was lost, or the peer's
    owner took something away meanwhile.
    """
    if not exc.by_peer or exc.detail.startswith(OTHER_CAUSES):
        raise exc
    return NoAnswer(f"the peer closed the channel: {exc.detail[:200]}")
