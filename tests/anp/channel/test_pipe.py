"""Messages that are taken as they arrive, and those that wait for their turn."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tracemalloc
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.messages import Assembler
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosedOK
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import Protocol, Side, State
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from anp.channel.pipe import Pipe, PromptConnection, Reader, framed

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


async def test_only_the_first_of_messages_that_came_together_is_answered_at_once() -> (
    None
):
    one, heard = PromptConnection(Protocol(Side.CLIENT)), list[bool]()
    one.connection_made(Transport())  # type: ignore[arg-type]  # a fake

    def answer(_: bytes) -> bool:
        heard.append(one.heard)
        one.heard = False
        return True

    one.take = answer
    task = asyncio.create_task(one.recv())
    await asyncio.sleep(0)
    for together in (3, 1):
        one.data_received(Frame(TEXT, b"{}").serialize(mask=False) * together)
    assert heard == [True, False, False, True]
    task.cancel()


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
        self.turns = self.ways = 0
        self.admission = self
        self.work = self

    def read(self, size: int) -> None: ...

    def takes_turn(self) -> bool:
        had, self.has_turn = self.has_turn, False
        return had or not self.stranger

    def give_way(self) -> None:
        self.ways += 1

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
        # To itself it gives no way: then strangers alone would be slowed down, too.
        assert guest.ways == 0


class Transport:
    """Takes what a connection writes, and is never full."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


CONTENTS: Final = [
    *(b"", b"{}", b"\x01x", b"\xff", b"no", b"x" * 125, b"{}" * 63, b"\x01" * 300),
    *(b"x" * 65_535, b"x" * 65_536, b"\x01" * 70_000),
]


@st.composite
def frame_bytes(draw: st.DrawFn, *, masked: bool) -> bytes:
    """Return one frame, which may be wrong where it stands."""
    data = draw(st.sampled_from(CONTENTS))
    if draw(st.integers(0, 4)) == 0:
        return Frame(Opcode.PING, data[:125]).serialize(mask=masked)
    kind = draw(st.sampled_from([TEXT, TEXT, BINARY, BINARY, CONT]))
    frame = Frame(kind, data, fin=draw(st.integers(0, 3)) > 0)
    made = bytearray(frame.serialize(mask=masked))
    if draw(st.integers(0, 9)) == 0:
        # A reserved bit, another kind, or the mask's bit where it may not be.
        made[draw(st.sampled_from([0, 0, 1]))] ^= draw(st.sampled_from([0x40, 4, 0x80]))
    return bytes(made)


async def through(
    protocol: Protocol, pieces: list[bytes], *, prompt: bool
) -> tuple[object, ...]:
    """Return the messages that a connection gives, in order, and how it ended."""
    one, came = PromptConnection(protocol), list[bytes]()
    one.connection_made(Transport())  # type: ignore[arg-type]  # a fake

    def take(message: bytes) -> bool:
        if b"no" in message:
            return False
        came.append(message)
        return True

    async def receive() -> None:
        while True:
            came.append(await one.recv(decode=False))

    if prompt:
        one.take = take
    task = asyncio.create_task(receive())
    for piece in pieces:
        await asyncio.sleep(0)
        one.data_received(piece)
    await settled()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return came, protocol.close_sent, protocol.state


@given(st.data(), st.booleans(), st.sampled_from([None, 200, 69_999, 70_000]))
def test_any_bytes_give_the_messages_that_the_library_finds_in_them(
    data: st.DataObject, masked: bool, most: int | None
) -> None:
    sent = b"".join(data.draw(st.lists(frame_bytes(masked=masked), max_size=6)))
    cuts = data.draw(st.lists(st.integers(0, len(sent)), max_size=6))
    pieces = [sent[a:b] for a, b in pairwise([0, *sorted(cuts), len(sent)]) if a < b]
    side = Side.SERVER if masked else Side.CLIENT
    plain, prompt = (
        asyncio.run(through(Protocol(side, max_size=most), pieces, prompt=prompt))
        for prompt in (False, True)
    )
    assert prompt == plain


async def test_whole_messages_do_not_go_through_the_parser_of_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = ServerProtocol()
    client = ClientProtocol(parse_uri("ws://peer/"))
    client.send_request(client.connect())
    server.receive_data(b"".join(client.data_to_send()))
    [request] = server.events_received()
    assert isinstance(request, Request)
    server.send_response(server.accept(request))
    client.receive_data(b"".join(server.data_to_send()))
    monkeypatch.setattr(Frame, "parse", None)
    for sender, receiver in ((server, client), (client, server)):
        one, came = PromptConnection(receiver), list[bytes]()
        one.connection_made(Transport())  # type: ignore[arg-type]  # a fake
        one.take = lambda message, came=came: came.append(message) is None
        task = asyncio.create_task(one.recv())
        await asyncio.sleep(0)
        sender.send_text(b"{}")
        sender.send_binary(b"\x01x")
        one.data_received(b"".join(sender.data_to_send()))
        assert came == [b"{}", b"\x01x"]
        task.cancel()


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("data", CONTENTS)
def test_a_message_is_framed_as_the_library_frames_it(
    data: bytes, masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.urandom", lambda size: bytes(range(size)))
    monkeypatch.setattr("secrets.token_bytes", lambda size: bytes(range(size)))
    kind = BINARY if data[:1] == b"\x01" else TEXT
    made = b"".join(framed(data, masked=masked))
    assert made == Frame(kind, data).serialize(mask=masked)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("size", [65_537, 131_072, 200_003])
async def test_a_long_message_is_sent_in_pieces_and_held_by_nobody(
    size: int, masked: bool
) -> None:
    sides = {True: Side.CLIENT, False: Side.SERVER}
    transport, data = Transport(), b"\x01" + os.urandom(size - 1)
    sender = PromptConnection(Protocol(sides[masked], state=State.OPEN))
    sender.connection_made(transport)  # type: ignore[arg-type]  # a fake
    Pipe(sender).put(data)
    library = Protocol(sides[not masked], state=State.OPEN, max_size=None)
    library.receive_data(transport.written)
    [event] = library.events_received()
    assert isinstance(event, Frame)
    assert bytes(event.data) == data
    one = PromptConnection(Protocol(sides[not masked], state=State.OPEN))
    one.connection_made(Transport())  # type: ignore[arg-type]  # a fake
    task = asyncio.create_task(one.recv())
    await asyncio.sleep(0)
    one.process_event(event)
    assert event.data == b""
    assert await task == data


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("willing", [True, False])
@pytest.mark.parametrize("step", [2, 65_536])
async def test_a_long_message_in_pieces_is_let_go_of_before_it_is_acted_on(
    masked: bool, willing: bool, step: int
) -> None:
    side = Side.SERVER if masked else Side.CLIENT
    one, sizes = PromptConnection(Protocol(side, max_size=None)), list[int]()
    one.protocol.max_message_size = 1 << 20
    one.connection_made(Transport())  # type: ignore[arg-type]  # a fake
    data = b"\x01" + os.urandom(200_000)
    head, content = framed(data, masked=masked)
    one.take = lambda message: willing and message == data
    one.act = lambda: sizes.append(tracemalloc.get_traced_memory()[0])
    task = asyncio.create_task(one.recv())
    await asyncio.sleep(0)
    tracemalloc.start()
    try:
        one.data_received(head)
        for at in range(0, len(content), step):
            one.data_received(content[at : at + step])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * len(data)
    if willing:
        assert sizes[0] < 0.5 * len(data)
        task.cancel()
    else:
        assert (await task, sizes) == (data, [])
