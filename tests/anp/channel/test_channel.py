"""A channel and the reader of its frames."""

from __future__ import annotations

import asyncio

from anp.channel.core.events import FrameReceived
from anp.wire.frames import Frame, ProtocolType
from tests.anp.sidecar.consensus.written.channels import channel_pair
from tests.waiting import until


def frame(number: int) -> FrameReceived:
    return FrameReceived("k", Frame(ProtocolType.APPLICATION, bytes([number])), "m")


async def test_a_frame_is_taken_at_once_only_when_nothing_came_before() -> None:
    channel, _, _ = channel_pair()
    read: list[str] = []
    slow = asyncio.Event()

    def take(event: FrameReceived) -> bool:
        number = event.frame.data[0]
        if number % 2:
            return False
        read.append(f"taken {number}")
        return True

    async def reader() -> None:
        while True:
            event = await channel.receive()
            await slow.wait()
            read.append(f"read {event.frame.data[0]}")

    channel.take = take
    channel.deliver(frame(0))
    reading = asyncio.create_task(reader())
    await until(lambda: not channel._frames)
    # The first is still being read, so that the second has to wait behind it.
    channel.deliver(frame(2))
    assert read == []
    slow.set()
    await until(lambda: len(read) == 2)
    channel.deliver(frame(4))
    channel.deliver(frame(5))
    channel.deliver(frame(6))
    await until(lambda: len(read) == 5)
    reading.cancel()
    assert read == ["read 0", "read 2", "taken 4", "read 5", "read 6"]
