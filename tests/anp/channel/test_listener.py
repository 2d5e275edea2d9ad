"""The port for peers answers anything that speaks HTTP, or nearly."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from contextvars import Context
from unittest.mock import Mock

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus
from websockets.server import ServerProtocol

from anp.channel.admission import Admission, DoorSocket
from anp.channel.listener import (
    ACCEPTED_AT_ONCE,
    PIECE,
    Page,
    _PeerPort,
    listen,
    websocket_logger,
)
from anp.channel.stranger_work import Meter, current_meter
from anp.errors import CallError, ErrorKind
from tests.clauses import clause
from tests.waiting import until

PAGE: Page = ("application/json", b'{"did": "did:example:bob"}')
LEFT = _PeerPort, ServerProtocol, InvalidMessage
LIMIT = 1000
DEADLINE = 20.0


async def echo(connection: ServerConnection) -> None:
    """Send back what comes."""
    async for message in connection:
        await connection.send(message)


OWN = "wss://agent.example/anp"


@asynccontextmanager
async def port(
    *, accepts: bool = True, open_timeout: float = 10.0
) -> AsyncIterator[int]:
    """Run a listener and return its port."""
    server = await listen(
        "127.0.0.1",
        0,
        on_connection=echo,
        pages=lambda: {"/.well-known/anp": PAGE},
        own_url=lambda: OWN,
        max_size=LIMIT,
        open_timeout=open_timeout,
        ping_interval=20.0,
        accepts=lambda: accepts,
        admission=Admission(256),
    )
    try:
        async with asyncio.timeout(DEADLINE):
            yield server.port
    finally:
        server.close()
        await server.wait_closed()


async def ask(number: int, *pieces: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes and return status, headers and body of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", number)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            # Let the piece arrive as one of its own.
            await asyncio.sleep(0)
        answer = await reader.read()
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    pairs = [line.partition(": ") for line in lines]
    headers = {name.lower(): value for name, _, value in pairs}
    return int(status.split()[1]), headers, body


def request(method: str, path: str, body: bytes = b"") -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: peer\r\n{length}\r\n"
    return head.encode() + body


@pytest.fixture(autouse=True)
def no_tracebacks(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No test of this file may leave a traceback or a record of two lines."""
    caplog.set_level(logging.DEBUG, logger="anp")
    yield
    for record in caplog.get_records("call"):
        if record.name.startswith("anp"):
            assert record.exc_info is None
            assert "\n" not in record.getMessage()


async def test_get_serves_the_page() -> None:
    async with port() as number:
        status, headers, body = await ask(number, request("GET", "/.well-known/anp"))
    assert (status, body) == (200, PAGE[1])
    assert headers["content-type"] == "application/json"
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


async def test_a_query_does_not_hide_the_page() -> None:
    async with port() as number:
        status, _, _ = await ask(number, request("GET", "/.well-known/anp?x=1"))
    assert status == 200


async def test_head_is_answered_without_a_body() -> None:
    async with port() as number:
        status, headers, body = await ask(number, request("HEAD", "/.well-known/anp"))
    assert (status, body) == (200, b"")
    assert headers["content-length"] == str(len(PAGE[1]))


async def test_an_unknown_path_is_404() -> None:
    async with port() as number:
        status, _, _ = await ask(number, request("GET", "/../etc/passwd"))
    assert status == 404


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "OPTIONS", "DELETE", "GETX", "G\x00T", "PRI"]
)
async def test_other_methods_are_405(method: str) -> None:
    async with port() as number:
        said = await ask(number, request(method, "/.well-known/anp", b"{}"))
        assert (said[0], said[1]["allow"], said[2]) == (405, "GET, HEAD", b"")
        # The port goes on serving others.
        assert (await ask(number, request("GET", "/.well-known/anp")))[0] == 200


async def test_a_method_may_arrive_in_pieces() -> None:
    async with port() as number:
        whole = request("GET", "/.well-known/anp")
        assert (await ask(number, whole[:1], whole[1:3], whole[3:]))[0] == 200
        whole = request("HEAD", "/.well-known/anp")
        assert (await ask(number, whole[:4], whole[4:]))[0] == 200
        assert (await ask(number, b"P", b"OST / HTTP/1.1\r\n\r\n"))[0] == 405


@pytest.mark.parametrize("sent", [b"", b"G", b"HEAD", b"GET / HTTP/1.1\r\n"])
async def test_a_request_that_never_ends_is_dropped(sent: bytes) -> None:
    async with port(open_timeout=0.2) as number:
        reader, writer = await asyncio.open_connection("127.0.0.1", number)
        writer.write(sent)
        await reader.read()
        writer.close()


async def test_a_full_daemon_says_503_to_links_and_still_serves_the_page() -> None:
    async with port(accepts=False) as number:
        with pytest.raises(InvalidStatus) as caught:
            await connect(f"ws://127.0.0.1:{number}/", proxy=None)
        assert caught.value.response.status_code == 503
        assert (await ask(number, request("GET", "/.well-known/anp")))[0] == 200


@pytest.mark.parametrize(
    ("origins", "status"),
    [
        ((), 101),
        (("https://agent.example",), 101),
        (("HTTPS://Agent.Example:443",), 101),
        (("https://evil.example",), 403),
        (("http://agent.example",), 403),
        (("https://agent.example:8443",), 403),
        (("https://agent.example.evil.example",), 403),
        (("null",), 403),
        (("",), 403),
        (("https://agent.example:port",), 403),
        (("https://agent.example", "https://evil.example"), 403),
    ],
)
async def test_a_page_of_another_site_gets_no_websocket(
    origins: tuple[str, ...], status: int
) -> None:
    """A browser's page could call what is exposed to everybody on this machine."""
    lines = "".join(f"Origin: {one}\r\n" for one in origins).encode()
    async with port() as number:
        reader, writer = await asyncio.open_connection("127.0.0.1", number)
        try:
            writer.write(UPGRADE.replace(b"Host: x\r\n", b"Host: x\r\n" + lines))
            said = await reader.readuntil(b"\r\n\r\n")
        finally:
            writer.transport.abort()
    assert int(said.split()[1]) == status


async def test_a_rebound_name_is_no_name_of_ours() -> None:
    """Its `Origin` is that of its `Host`, which says nothing about who we are."""
    lines = b"Host: evil.example:8765\r\nOrigin: http://evil.example:8765\r\n"
    async with port() as number:
        said = await ask(number, UPGRADE.replace(b"Host: x\r\n", lines))
    assert said[0] == 403


@clause("WIRE row 34")
async def test_a_message_at_the_limit_passes_and_one_past_it_closes_with_1009() -> None:
    async with (
        port() as number,
        connect(f"ws://127.0.0.1:{number}/", proxy=None) as peer,
    ):
        await peer.send("x" * LIMIT)
        assert await peer.recv() == "x" * LIMIT
        await peer.send("x" * (LIMIT + 1))
        with pytest.raises(ConnectionClosed) as caught:
            await peer.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1009


async def test_an_address_in_use_is_one_line_that_says_what_to_do() -> None:
    async with port() as number:
        with pytest.raises(CallError, match="--port chooses another port") as caught:
            await listen(
                "127.0.0.1",
                number,
                on_connection=echo,
                pages=dict,
                own_url=lambda: OWN,
                max_size=LIMIT,
                open_timeout=1.0,
                ping_interval=20.0,
                accepts=lambda: True,
                admission=Admission(256),
            )
    assert caught.value.kind is ErrorKind.LOCAL_RESOURCE
    assert "\n" not in str(caught.value)


def test_a_record_of_the_library_becomes_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    library = websocket_logger()
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        library.error("opening handshake %s", "failed", exc_info=True)
    [record] = caplog.records
    text = record.getMessage()
    assert text == "opening handshake failed: ValueError: first second"
    assert record.exc_info is None


def frame(opcode: int, data: bytes, *, final: bool = True) -> bytes:
    """Return a small WebSocket frame, masked with zeros."""
    return bytes([(0x80 if final else 0) | opcode, 0x80 | len(data)]) + bytes(4) + data


UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@asynccontextmanager
async def upgraded(
    number: int,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a bare socket that has become a WebSocket."""
    reader, writer = await asyncio.open_connection("127.0.0.1", number, limit=1024)
    try:
        writer.write(UPGRADE)
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        yield reader, writer
    finally:
        writer.transport.abort()


async def test_pings_of_a_stranger_are_read_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One read took 256 KiB: 2,400 pings were answered before anybody had a turn."""
    pieces: list[int] = []
    taken = ServerConnection.data_received

    def counted(self: ServerConnection, data: bytes) -> None:
        pieces.append(len(data))
        taken(self, data)

    monkeypatch.setattr(ServerConnection, "data_received", counted)
    async with port() as number, upgraded(number) as (reader, writer):
        writer.write(frame(9, b"x" * 100) * 2_000)
        # The pong has no mask, so it is 4 bytes shorter.
        await reader.readexactly(102 * 2_000)
    assert max(pieces) <= PIECE


async def test_nothing_is_read_of_a_stranger_that_reads_no_pongs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The library writes a pong for every ping, however many wait to be read."""
    opened: list[ServerConnection] = []
    made = ServerConnection.connection_made

    def noted(self: ServerConnection, transport: asyncio.BaseTransport) -> None:
        opened.append(self)
        made(self, transport)
        # The system would keep some MiB for us.
        accepted = self.transport.get_extra_info("socket")
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    monkeypatch.setattr(ServerConnection, "connection_made", noted)
    async with port() as number, upgraded(number) as (_, writer):
        client = writer.get_extra_info("socket")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        writer.write(frame(9, b"x" * 100) * 40_000)
        await until(lambda: opened[0].paused)
        await asyncio.sleep(0.2)
        waiting = opened[0].transport.get_write_buffer_size()
        assert waiting < 2**17, f"{waiting} bytes of pongs wait"
        assert not opened[0].transport.is_reading()


async def test_fragments_in_great_number_reach_a_message_all_the_same() -> None:
    async with port() as number, upgraded(number) as (reader, writer):
        writer.write(frame(1, b"a", final=False))
        writer.write(frame(0, b"a", final=False) * 500 + frame(0, b"."))
        head = await reader.readexactly(4)
        assert head == bytes([0x81, 126, 1, 246])
        assert await reader.readexactly(502) == b"a" * 501 + b"."


def test_what_is_written_while_a_piece_is_taken_does_not_begin_it_again() -> None:
    taken: list[bytes] = []

    class Written(_PeerPort):
        """Takes pieces, and meets a full buffer while it takes the first one."""

        def __init__(self) -> None:
            self._pending = bytearray(b"A" * PIECE + b"B" * PIECE)
            self._asked = self._full = False
            self._guest = Mock(stranger=False, do=lambda piece: piece())
            self.transport = Mock()

        def _take(self, data: bytes) -> None:
            taken.append(data)
            if len(taken) == 1:
                self._flow()

    Written()._flow()
    assert b"".join(taken) == b"A" * PIECE + b"B" * PIECE


@pytest.mark.parametrize("said", [b"", b"GET / HTT", b"G", b"POST / HTTP/1.1\r\n"])
async def test_a_request_that_never_came_leaves_nothing(said: bytes) -> None:
    """What holds itself stays until the garbage collector finds it."""
    gc.collect()
    gc.disable()
    try:
        async with port(open_timeout=0.01) as number:
            for _ in range(3):
                with contextlib.suppress(ConnectionError):
                    reader, writer = await asyncio.open_connection("127.0.0.1", number)
                    writer.write(said)
                    await reader.read()
                writer.transport.abort()
            await until(lambda: not any(type(one) in LEFT for one in gc.get_objects()))
    finally:
        gc.enable()


async def test_what_a_peer_sends_is_not_counted_for_who_wrote_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reading goes on when a write is done, in the task of whoever wrote."""
    made: list[_PeerPort] = []
    meters: list[Meter | None] = []
    begin, take = _PeerPort.connection_made, _PeerPort.data_received

    def noted(self: _PeerPort, transport: asyncio.BaseTransport) -> None:
        made.append(self)
        begin(self, transport)

    def metered(self: _PeerPort, data: bytes) -> None:
        meters.append(current_meter.get())
        take(self, data)

    monkeypatch.setattr(_PeerPort, "connection_made", noted)
    monkeypatch.setattr(_PeerPort, "data_received", metered)
    writer = Context()
    writer.run(current_meter.set, Mock())
    async with port() as number, connect(f"ws://127.0.0.1:{number}") as peer:
        await peer.send("first")
        assert await peer.recv() == "first"
        (connection,) = made
        connection.pause_writing()
        writer.run(connection.resume_writing)
        await peer.send("second")
        assert await peer.recv() == "second"
    assert meters
    assert not any(meters)


async def test_a_crowd_is_let_in_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accept, turns, taken = DoorSocket.accept, 0, Counter[int]()

    def noted(door: DoorSocket) -> tuple[socket.socket, object]:
        found = accept(door)
        taken[turns] += 1
        return found

    def turn() -> None:
        nonlocal turns
        turns += 1
        asyncio.get_running_loop().call_soon(turn)

    monkeypatch.setattr(DoorSocket, "accept", noted)
    async with port() as number:
        # They all wait at the door before the loop turns again.
        crowd = [socket.create_connection(("127.0.0.1", number)) for _ in range(24)]
        turn()
        await until(lambda: sum(taken.values()) == len(crowd))
        # Newer versions of Python take one more.
        assert max(taken.values()) <= ACCEPTED_AT_ONCE + 1
        for one in crowd:
            one.close()
