"""Messages that are taken as they arrive, and those that wait for their turn."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
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

    async def recv(self, decode: bool | None = None) -> Any:
        try:
            return await self.recv_messages.get(decode)
        except EOFError:
            raise ConnectionClosedOK(None, None) from None


@contextlib.asynccontextmanager
async def received() -> AsyncIterator[tuple[Wire, list[str | bytes]]]:
    """Give a connection whose messages are taken, and those that are received."""
    one, came = Wire(), []
    one.take = one.accept

    async def receive() -> None:
        with contextlib.suppress(ConnectionClosedOK):
            while True:
                came.append(await one.recv())

    task = asyncio.create_task(receive())
    await asyncio.sleep(0)
    yield one, came
    one.recv_messages.close()
    await task


async def test_whole_messages_are_taken_as_they_arrive() -> None:
    async with received() as (one, came):
        one.give(Frame(TEXT, bytearray(b"{}")), Frame(BINARY, b"\x01x"))
    assert one.taken == [b"{}", b"\x01x"]
    assert all(type(data) is bytes for data in one.taken)
    assert came == []


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
    async with received() as (one, came):
        one.give(*frames)
        await settled()
    assert (one.taken, len(came)) == ([], 1)


async def test_nothing_overtakes_what_was_not_taken() -> None:
    async with received() as (one, came):
        one.willing = False
        one.give(Frame(TEXT, b"1"))
        one.willing = True
        one.give(Frame(TEXT, b"2"))
        assert one.taken == []
        await settled()
        assert came == ["1", "2"]
        one.give(Frame(TEXT, b"3"))
        assert one.taken == [b"3"]


async def test_what_comes_while_nobody_receives_waits() -> None:
    one = Wire()
    one.take = one.accept
    one.give(Frame(TEXT, b"1"))
    assert one.taken == []
    assert await one.recv() == "1"


async def test_a_message_that_is_just_out_of_the_queue_is_not_overtaken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The library may read on in the moment in which it hands out a message."""
    async with received() as (one, came):
        one.willing = False
        one.give(Frame(TEXT, b"1"))
        one.willing = True
        more = [Frame(TEXT, b"2")]
        monkeypatch.setattr(
            one.recv_messages,
            "maybe_resume",
            lambda: one.give(more.pop()) if more else None,
        )
        await settled()
        assert (came, one.taken) == (["1", "2"], [])


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
        self.has_turn = False
        self.turns = 0
        self.admission = self
        self.work = self

    def read(self, size: int) -> None: ...

    def takes_turn(self) -> bool:
        had, self.has_turn = self.has_turn, False
        return had or not self.stranger

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


async def test_a_turn_of_a_stranger_is_for_one_message() -> None:
    guest = Guest(stranger=True)
    async with reading(guest) as (one, core, _):
        guest.has_turn = True
        one.give(Frame(TEXT, b"e1"), Frame(TEXT, b"e2"))
        assert core.given == [b"e1"]
        await settled()
        assert (core.given, guest.turns) == ([b"e1", "e2"], 1)
