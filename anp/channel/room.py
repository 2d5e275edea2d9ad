"""The number of a link's channels, and the end of those on which nothing happens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sized

from anp.channel.channel import Channel
from anp.channel.core.traffic import EXTENSION_CLOSE, IDLE
from anp.errors import CallError, ErrorKind

ROOM_PATIENCE = 0.5
"Seconds without a call after which a channel of ours may make room for another."

PEERS_ROOM_PATIENCE = 5.0
"The same for a channel that the peer opened."

ROOM_CHECK = 0.05
"Seconds between two looks for a channel that makes room."


class LinkFull(CallError):
    """All channels that a link may have are in use; nothing was sent."""

    def __init__(self, channels: int) -> None:
        super().__init__(
            ErrorKind.LOCAL_RESOURCE,
            f"all {channels} channels of the connection to this peer are in use; "
            "call again when a call has ended (limits.max_channels of either side)",
            retry_after=1.0,
        )


class ChannelRoom:
    """Sees to it that a link has room for another channel, and closes idle ones.

    Args:
        channels: The open channels, by their ids; read anew each time.
        opening: The channels that are being opened.
        limit: Channels that the link may have.
    """

    def __init__(
        self, channels: Mapping[str, Channel], opening: Sized, *, limit: int
    ) -> None:
        self._channels = channels
        self._opening = opening
        self._used_at = time.monotonic()
        self.limit = limit

    def changed(self) -> None:
        """Take note that a channel has ended just now."""
        self._used_at = time.monotonic()

    def silence(self) -> float:
        """Return the seconds since the last call; 0 while one is under way."""
        now = time.monotonic()
        return min(
            [now - self._used_at, *(c.idle_for(now) for c in self._channels.values())]
        )

    def refused(self) -> LinkFull:
        """Take note that the peer allows no more channels than there are now."""
        self.limit = max(1, len(self._channels))
        return LinkFull(self.limit)

    async def make(self, *, until: float) -> None:
        """See to it that one more channel may be opened; close an idle one for it.

        The one that was idle for longest goes, of our own rather than of the peer's.

        Args:
            until: How long to wait for one, on `time.monotonic()`.

        Raises:
            LinkFull: All of them were in use until then.
        """
        while len(self._channels) + len(self._opening) >= self.limit:
            now = time.monotonic()
            found = self._idle(now, ours=ROOM_PATIENCE, others=PEERS_ROOM_PATIENCE)
            if found:
                await found[0].close(IDLE)
            elif now >= until:
                raise LinkFull(self.limit)
            else:
                await asyncio.sleep(ROOM_CHECK)

    async def close_idle(self, limit: float) -> None:
        """Close the channels on which nothing happened.

        The requester is the one to do so; the provider waits twice as long. One whose
        key is kept stays, as its calls are to need no handshake.

        Args:
            limit: Seconds without a call.
        """
        for channel in self._idle(time.monotonic(), ours=limit, others=2 * limit):
            if not channel.kept:
                await channel.close(IDLE)

    def _idle(self, now: float, *, ours: float, others: float) -> list[Channel]:
        """Return the channels that may be closed, the first to go first."""
        idle = [
            (channel.kept, not channel.ours, -channel.idle_for(now), channel)
            for channel in self._channels.values()
            # A peer without our extension might not learn of it.
            if channel.ours or EXTENSION_CLOSE in channel.extensions
            if channel.idle_for(now) >= (ours if channel.ours else others)
        ]
        return [channel for *_, channel in sorted(idle, key=lambda one: one[:3])]
