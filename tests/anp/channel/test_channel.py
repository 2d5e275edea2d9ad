"""Frames of a channel on their way to its reader."""

from __future__ import annotations

import asyncio

import pytest

from anp.channel.core.events import FrameReceived
from anp.wire.frames import Frame, ProtocolType
from tests.anp.sidecar.consensus.written.channels import channel_pair


def frame(number: int) -> FrameReceived:
    """Return the frame of this number."""
    return FrameReceived("k", Frame(ProtocolType.APPLICATION, b""), f"e{number}")


async def test_a_frame_is_taken_only_while_its_reader_waits_for_it() -> None:
    channel, _, _ = channel_pair()
    taken: list[str] = []

    def take(event: FrameReceived) -> bool:
        taken.append(event.message_id)
        return True

    channel.take = take
    channel.deliver(frame(1))
    assert taken == []
    assert (await channel.receive()).message_id == "e1"
    reading = asyncio.create_task(channel.receive())
    await asyncio.sleep(0)
    channel.deliver(frame(2))
    channel.deliver(frame(3))
    assert taken == ["e2", "e3"]
    channel.take = lambda event: False
    channel.deliver(frame(4))
    channel.take = take
    # Nothing overtakes the one that the reader is about to get.
    channel.deliver(frame(5))
    assert (await reading).message_id == "e4"
    assert (await channel.receive()).message_id == "e5"
    assert taken == ["e2", "e3"]


async def test_an_error_of_who_takes_frames_reaches_who_reads_them() -> None:
    channel, _, _ = channel_pair()

    def take(event: FrameReceived) -> bool:
        raise RuntimeError(event.message_id)

    channel.take = take
    reading = asyncio.create_task(channel.receive())
    await asyncio.sleep(0)
    assert channel.deliver(frame(1))
    with pytest.raises(RuntimeError, match="e1"):
        await reading
