"""The places of the negotiations that peers begin with us, in fair shares."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from anp.channel.channel import Channel
from anp.channel.core.shares import NoPlace, Place, ShareLimits, Shares, address_key
from anp.channel.stranger_work import counted
from anp.errors import BusyError

logger = logging.getLogger(__name__)

T = TypeVar("T")

NEGOTIATIONS = ShareLimits(total=16, unlisted=8, each=4, patience=3.0)
"""Negotiations at once. The patience is with a peer that lets us wait, and counts only
while another negotiation waits for a place."""

WAITING = ShareLimits(total=128, unlisted=96, each=16, patience=float("inf"))
"Negotiations that wait for a place."

CHECK = 0.25
"Seconds between two looks for a place that a silent peer holds."


@dataclass(slots=True, eq=False)
class _Negotiation:
    """One negotiation that has a place or waits for one."""

    channel: Channel
    task: asyncio.Future[Any] | None = None
    displaced: bool = False

    def silence(self) -> float:
        """Return the seconds for which the peer has let us wait."""
        return self.channel.unheard_for(time.monotonic())


class NegotiationPlaces:
    """Lets some negotiations run, and others wait until one of them ends.

    Args:
        is_listed: Tells whether the owner listed a peer; it may block.
    """

    def __init__(
        self, is_listed: Callable[[str], bool], *, limits: ShareLimits = NEGOTIATIONS
    ) -> None:
        self._is_listed = is_listed
        self.running = Shares[_Negotiation](limits, silence=_Negotiation.silence)
        self.waiting = Shares[_Negotiation](WAITING, silence=_Negotiation.silence)
        self._freed = asyncio.Event()
        self._closing: set[asyncio.Task[None]] = set()

    async def run(
        self,
        channel: Channel,
        peer_did: str,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        timeout: float,
    ) -> T:
        """Run a negotiation as soon as there is a place, and return its result.

        Args:
            peer_did: The peer in its canonical form.
            timeout: Seconds to wait for a place.

        Raises:
            BusyError: There was no place, or another negotiation got it because the
                peer said nothing for long.
        """
        listed = await asyncio.to_thread(self._is_listed, peer_did)
        key = peer_did if listed else address_key(channel.address)
        one = _Negotiation(channel)
        place = await self._place(one, key, listed=listed, timeout=timeout)
        one.task = task = asyncio.create_task(counted(work()))
        try:
            return await task
        except asyncio.CancelledError:
            if one.displaced:
                raise _busy("this one was silent, and others wait") from None
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            self.running.leave(place)
            self._freed.set()
            # The task keeps the error that ended it, and with it all that it passed.
            one.task = None
            del task

    async def _place(
        self, one: _Negotiation, key: str, *, listed: bool, timeout: float
    ) -> Place[_Negotiation]:
        try:
            chair, gone = self.waiting.take(one, key, listed=listed)
        except NoPlace as exc:
            raise _busy(str(exc)) from exc
        if gone is not None:
            gone.displaced = True
        until = time.monotonic() + timeout
        try:
            while True:
                try:
                    place, gone = self.running.take(one, key, listed=listed)
                except NoPlace as exc:
                    over = one.displaced or time.monotonic() >= until
                    if over or not one.channel.open:
                        raise _busy(str(exc)) from exc
                else:
                    if gone is not None:
                        self._displace(gone)
                    return place
                self._freed.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(CHECK):
                        await self._freed.wait()
        finally:
            self.waiting.leave(chair)

    def _displace(self, one: _Negotiation) -> None:
        logger.info("negotiation gives way peer=%s", one.channel.peer_did)
        one.displaced = True
        task = asyncio.create_task(_end(one))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _end(one: _Negotiation) -> None:
    """End a negotiation, and tell its peer why."""
    await one.channel.close("others wait to negotiate, and you said nothing for long")
    if one.task is not None:
        one.task.cancel()


def _busy(why: str) -> BusyError:
    return BusyError(f"no place for another negotiation: {why}", retry_after=5.0)
