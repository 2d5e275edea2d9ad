"""What is put on a link in one round of the loop goes out with one write."""

from __future__ import annotations

import asyncio
from typing import Any

from websockets.frames import Frame, Opcode
from websockets.protocol import Side, State

from anp.channel.pipe import Pipe


def frame(data: bytes) -> bytes:
    """Return a text as the library sends it."""
    return Frame(Opcode.TEXT, data).serialize(mask=False)


class Wire:
    """Stands for a connection, its protocol and its transport."""

    paused = heard = False
    state = State.OPEN
    side = Side.SERVER

    def __init__(self) -> None:
        self.protocol: Any = self
        self.transport: Any = self
        self.loop = asyncio.get_running_loop()
        self.writes: list[bytes] = []
        self.written: list[bytes] = []

    def data_to_send(self) -> list[bytes]:
        queued, self.writes = self.writes, []
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
    assert wire.written == []
    await asyncio.sleep(0)
    together = frame(b"one,") + frame(b"two,") + frame(b"three")
    assert wire.written == [together]
    pipe.put(b"four")
    await asyncio.sleep(0)
    assert wire.written == [together, frame(b"four")]


async def test_the_first_after_a_message_that_came_goes_out_at_once() -> None:
    wire: Any = Wire()
    pipe = Pipe(wire)
    wire.heard = True
    pipe.put(b"answer")
    assert wire.written == [frame(b"answer")]
    pipe.put(b"more,")
    pipe.put(b"and more")
    await asyncio.sleep(0)
    assert wire.written[1:] == [frame(b"more,") + frame(b"and more")]


async def test_an_answer_goes_out_behind_what_was_put_before() -> None:
    wire: Any = Wire()
    pipe = Pipe(wire)
    pipe.put(b"before,")
    wire.heard = True
    pipe.put(b"answer")
    await asyncio.sleep(0)
    assert wire.written == [frame(b"before,") + frame(b"answer")]


async def test_what_was_put_before_an_end_goes_out_in_order() -> None:
    wire: Any = Wire()
    pipe = Pipe(wire)
    pipe.put(b"one")
    wire.state = State.CLOSING
    await asyncio.sleep(0)
    assert wire.written == [frame(b"one")]
