"""Channels in memory: what is sent takes time, and is lost when a channel ends."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from anp.channel.channel import ChannelClosed
from anp.wire.frames import ProtocolType

if TYPE_CHECKING:
    from tests.crossings.node import Node

__all__ = ["Pipe", "connect"]


class Pipe:
    """One end of a channel."""

    max_payload = 786_432

    def __init__(self, own: Node, peer: Node, uri: str, *, binary: bool) -> None:
        self.owner = own
        self.local_did, self.peer_did = own.did, peer.did
        self.peer_key = peer.key.public_bytes
        self.extensions = frozenset({"binary"} if binary else ())
        self.peer_meta = self.own_meta = SimpleNamespace(selected_protocol=uri)
        self.in_use: Callable[[], bool] = lambda: True
        self.other: Pipe = self
        self.open = True
        self.is_mute = False
        "What it sends arrives nowhere, and it does not know that yet."

        self._frames: deque[bytes] = deque()
        self._came = asyncio.Event()
        self._arrives = 0.0

    async def send(self, kind: ProtocolType, data: bytes) -> None:
        if not self.open:
            raise ChannelClosed("closed", by_peer=False)
        if self.is_mute:
            return
        loop = asyncio.get_running_loop()
        # Never two at one time, whose order the loop would choose.
        self._arrives = max(self._arrives + 1e-5, loop.time() + random.uniform(0, 0.05))
        loop.call_at(self._arrives, self.other._arrived, data)

    def _arrived(self, data: bytes) -> None:
        if self.open and not self.other.is_mute:
            self._frames.append(data)
            self._came.set()

    async def receive(self) -> Any:
        while not self._frames:
            if not self.open:
                raise ChannelClosed("closed", by_peer=False)
            self._came.clear()
            await self._came.wait()
        frame = SimpleNamespace(
            protocol_type=ProtocolType.APPLICATION, data=self._frames.popleft()
        )
        return SimpleNamespace(frame=frame)

    async def close(self, reason: str = "") -> None:
        self.cut()

    async def wait_renewal(self) -> bool:
        await asyncio.Event().wait()
        return False

    def cut(self, *, late: float = 0.0) -> None:
        """End the channel on both sides; what is under way is lost.

        Args:
            late: Seconds after which the other side notices.
        """
        self.is_mute = self.other.is_mute = True
        self._end()
        if late:
            asyncio.get_running_loop().call_later(late, self.other._end)
        else:
            self.other._end()

    def _end(self) -> None:
        self.open = False
        self._frames.clear()
        self._came.set()


def connect(one: Node, other: Node, uri: str) -> Pipe:
    """Return one side of a new channel, whose other side a daemon serves."""
    binary = random.random() < 0.5
    here = Pipe(one, other, uri, binary=binary)
    there = Pipe(other, one, uri, binary=binary)
    here.other, there.other = there, here
    one.pipes.append(here)
    other.pipes.append(there)
    other.serve(there, one, uri)
    return here
