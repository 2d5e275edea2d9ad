"""Messages that are taken as they arrive, and those that wait for their turn."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from websockets.asyncio.messages import Assembler
from websockets.exceptions import ConnectionClosedOK
from websockets.frames import Frame, Opcode

from anp.channel.pipe import PromptConnection, Reader

TEXT, BINARY, CONT = Opcode.TEXT, Opcode.BINARY, Opcode.CONT


class Wire(PromptConnection):
    """A connection without a socket."""

    def __init__(self) -> None:
        self.recv_messages = Assembler()
        self.taken: list[bytes] = []
        self.willing = True

    def accept(self, data: bytes) -> bool:
        """Take a message, if wanted."""
        if self.willing:
            self.taken.append(data)
        return self.willing

    def give(self, *frames: Frame) -> None:
        """Have frames arrive."""
        for frame in frames:
            self.process_event(frame)

    @property
    def queued(self) -> int:
        """Frames that wait to be received."""
        return len(self.recv_messages.frames)

    async def recv(self, decode: bool | None = None) -> Any:
        try:
            return await self.recv_messages.get(decode)
        except EOFError:
            raise ConnectionClosedOK(None, None) from None


async def wire() -> Wire:
    made = Wire()
    made.take = made.accept
    return made


async def test_whole_messages_are_taken_as_they_arrive() -> None:
    one = await wire()
    one.give(Frame(TEXT, bytearray(b"{}")), Frame(BINARY, b"\x01x"))
    assert one.taken == [b"{}", b"\x01x"]
    assert all(type(data) is bytes for data in one.taken)
    assert one.queued == 0


@pytest.mark.parametrize(
    "frames",
    [
        [Frame(BINARY, b"{}")],
        [Frame(TEXT, b"\x01x")],
        [Frame(TEXT, b"{", fin=False), Frame(CONT, b"}")],
    ],
    ids=["text as binary", "binary as text", "fragments"],
)
async def test_other_messages_are_received_in_the_usual_way(
    frames: list[Frame],
) -> None:
    one = await wire()
    one.give(*frames)
    assert (one.taken, one.queued) == ([], len(frames))


async def test_nothing_overtakes_what_was_not_taken() -> None:
    one = await wire()
    one.willing = False
    one.give(Frame(TEXT, b"1"))
    one.willing = True
    one.give(Frame(TEXT, b"2"))
    assert (one.taken, one.queued) == ([], 2)
    assert [await one.recv(), await one.recv()] == ["1", "2"]
    one.give(Frame(TEXT, b"3"))
    assert one.taken == [b"3"]


class Core:
    """Notes what it is given; envelopes are the messages that begin with `e`."""

    def __init__(self) -> None:
        self.given: list[str | bytes] = []
        self.waits = False

    def receive_envelope(self, data: bytes, *, now: object) -> bool:
        if data.startswith(b"e"):
            self.given.append(data)
        return data.startswith(b"e")

    def receive_text(self, text: str | bytes, *, now: object) -> None:
        self.given.append(text)


class Guest:
    """A peer that opened the connection."""

    def __init__(self, *, stranger: bool) -> None:
        self.stranger = stranger
        self.turns = 0
        self.admission = self
        self.work = self

    def read(self, size: int) -> None: ...

    def give_way(self) -> None: ...

    async def done(self, piece: Any) -> None:
        self.turns += 1
        piece()


@contextlib.asynccontextmanager
async def reading(guest: Guest | None = None) -> Any:
    one, core, pumped = Wire(), Core(), []
    reader = Reader(
        one,
        core,  # type: ignore[arg-type]  # a fake
        channels={},
        pump=lambda: pumped.append(len(core.given)),
        guest=guest,  # type: ignore[arg-type]  # a fake
        strangers=None,
    )
    task = asyncio.create_task(reader.read())
    await asyncio.sleep(0)
    yield one, core, reader
    one.recv_messages.close()
    await task
    assert pumped == list(range(1, len(core.given) + 1))


async def settled() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


async def test_an_envelope_reaches_the_core_at_once_and_the_rest_in_its_order() -> None:
    async with reading() as (one, core, _):
        one.give(Frame(TEXT, b"e1"))
        assert core.given == [b"e1"]
        one.give(Frame(TEXT, b"hello"), Frame(TEXT, b"e2"))
        assert core.given == [b"e1"]
        await settled()
        assert core.given == [b"e1", "hello", "e2"]
        one.give(Frame(TEXT, b"e3"))
        assert core.given[-1] == b"e3"


async def test_nothing_is_taken_while_the_core_waits() -> None:
    async with reading() as (one, core, reader):
        reader.held = core.waits = True
        one.give(Frame(TEXT, b"e1"), Frame(TEXT, b"e2"))
        await settled()
        assert core.given == []
        core.waits = False
        reader.settle()
        await settled()
        assert core.given == ["e1", "e2"]
        one.give(Frame(TEXT, b"e3"))
        assert core.given == ["e1", "e2", b"e3"]


@pytest.mark.parametrize("stranger", [True, False])
async def test_what_a_stranger_sends_waits_for_its_turn(stranger: bool) -> None:
    guest = Guest(stranger=stranger)
    async with reading(guest) as (one, core, _):
        one.give(Frame(TEXT, b"e1"))
        assert core.given == ([] if stranger else [b"e1"])
        await settled()
        assert len(core.given) == 1
        assert guest.turns == int(stranger)
