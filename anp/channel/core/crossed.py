"""Frames of a peer that crossed with our word that a channel is closed."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

__all__ = ["Crossed"]

MAX_CHANNELS: Final = 64
"Channels that are remembered; the one closed longest ago goes first."

MAX_FRAMES: Final = 16
"Frames of one channel that are let go; more is no crossing."


class Crossed:
    """Channels that we closed lately: what still comes on them is no fault."""

    def __init__(self) -> None:
        self._left: OrderedDict[str, int] = OrderedDict()

    def closed(self, channel_id: str) -> None:
        """Remember a channel whose peer was told that it is closed."""
        self._left[channel_id] = MAX_FRAMES
        while len(self._left) > MAX_CHANNELS:
            self._left.popitem(last=False)

    def take(self, channel_id: str) -> bool:
        """Whether a frame on this channel may be let go; counts it."""
        left = self._left.get(channel_id, 0)
        if left:
            self._left[channel_id] = left - 1
        return left > 0
