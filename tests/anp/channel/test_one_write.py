"""What is put on a link in one round of the loop goes out with one write."""

from __future__ import annotations

import asyncio
from typing import Any

from websockets.protocol import State

from anp.channel.pipe import Pipe


class Wire:
    """Stands for a connection, its protocol and its transport."""

    paused = False
    state = State.OPEN

    def __init__(self) -> None:
        self.protocol: Any = self
        self.transport: Any = self
        self._queued: list[bytes] = []
        self.written: list[bytes] = []

    def send_text(self, data: bytes) -> None:
        self._queued.append(data)

    send_binary = send_text

    def data_to_send(self) -> list[bytes]:
        queued, self._queued = self._queued, []
        return queued

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def send_data(self) -> None:
        for one in self.data_to_send():
            self.write(one)


async def test_what_is_put_in_one_round_goes_out_with_one_write() -> None:
    wire: Any = Wire()
    pipe = Pipe(wire)
    for text in (b"one,", "two,", b"three"):
        pipe.put(text)
    await asyncio.sleep(0)
    assert wire.written == [b"one,two,three"]
    pipe.put(b"four")
    await asyncio.sleep(0)
    assert wire.written == [b"one,two,three", b"four"]


async def test_what_was_put_before_an_end_goes_out_in_order() -> None:
    wire: Any = Wire()
    pipe = Pipe(wire)
    pipe.put(b"one")
    wire.state = State.CLOSING
    await asyncio.sleep(0)
    assert wire.written == [b"one"]
