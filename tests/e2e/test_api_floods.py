"""Connections of the local API that finish nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from anp.sidecar.api.connections import CONNECTION, ConnectionLimits
from anp.sidecar.api.guard import load_token
from anp.sidecar.api.servers import LateApp, served, tcp_listener
from anp.sidecar.home.home import Home
from tests.e2e.daemons import Anpd
from tests.e2e.owner import owner_client
from tests.waiting import until

SHORT = ConnectionLimits(
    max_strangers=4,
    max_known=4,
    header_seconds=0.05,
    body_seconds=0.05,
    unread_seconds=0.05,
    look_seconds=0.02,
    max_header=1024,
)
LONG = ConnectionLimits(
    max_strangers=4, max_known=2, max_waiting=1, owner_places=1, wait_seconds=0.1
)

HALF = b"POST /v1/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "

WAITING: set[object] = set()
"Connections of requests that wait in `app`."


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Read a body and answer; `/known` admits, `/big` and `/wait` do what they say."""
    owner = scope["path"] == "/owner"
    if scope["path"] != "/stranger" and not await scope["state"][CONNECTION].admit(
        is_owner=owner
    ):
        await send({"type": "http.response.start", "status": 503})
        await send({"type": "http.response.body"})
        return
    while True:
        message = await receive()
        if message["type"] != "http.request" or not message.get("more_body"):
            break
    if scope["path"] == "/wait":
        WAITING.add(scope["state"][CONNECTION])
        await receive()
        return
    size = 32_000_000 if scope["path"] == "/big" else 2
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"." * size})


@contextlib.asynccontextmanager
async def door(limits: ConnectionLimits) -> AsyncIterator[int]:
    """Serve `app` at a port; return the port."""
    listener = tcp_listener("127.0.0.1", 0, "listen.api_port")
    async with served(listener, app, name="port", limits=limits):
        yield listener.getsockname()[1]


class Caller:
    """One connection."""

    def __init__(self, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]):
        self.reader, self.writer = streams
        self.gone = False
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def at(cls, port: int, data: bytes = b"") -> Caller:
        """Connect, and send something."""
        caller = cls(await asyncio.open_connection("127.0.0.1", port))
        caller.writer.write(data)
        return caller

    def watch(self) -> None:
        """Note when the server ends the connection."""
        self._reading = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65_536):
                pass
        self.gone = True

    async def ask(self, path: str) -> bytes:
        """Send a whole request and return the first line of the answer."""
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        await self.reader.read(65_536)
        return head.partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HALF,
        b"POST /known HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
        b"POST /stranger HTTP/1.1\r\nHost: x\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n1\r\n",
    ],
    ids=["silent", "headers", "body", "chunk"],
)
async def test_a_request_that_never_ends_is_ended(data: bytes) -> None:
    async with door(SHORT) as port:
        caller = await Caller.at(port, data)
        caller.watch()
        await until(lambda: caller.gone)


async def test_an_answer_that_nobody_reads_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with door(SHORT) as port:
        caller = await Caller.at(port, b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        # The reader stops by itself when it holds twice its limit of 64 KiB.
        await until(lambda: "an answer was not read" in caplog.text)
        caller.watch()
        await until(lambda: caller.gone)


async def test_more_bytes_buy_no_time() -> None:
    async with door(SHORT) as port:
        caller = await Caller.at(port, HALF)
        caller.watch()

        async def drip() -> None:
            with contextlib.suppress(ConnectionError):
                while not caller.gone:
                    caller.writer.write(b"x")
                    await asyncio.sleep(0.005)

        dripping = asyncio.create_task(drip())
        await until(lambda: caller.gone)
        await dripping


async def test_the_second_request_of_a_connection_has_its_limits_too() -> None:
    async with door(SHORT) as port:
        caller = await Caller.at(port)
        assert await caller.ask("/known") == b"HTTP/1.1 200 OK"
        caller.writer.write(HALF)
        caller.watch()
        await until(lambda: caller.gone)


async def test_headers_without_end_are_refused() -> None:
    async with door(LONG) as port:
        caller = await Caller.at(port, HALF + b"x" * (LONG.max_header + 1))
        caller.watch()
        await until(lambda: caller.gone)


async def test_a_full_share_ends_the_oldest_that_does_nothing() -> None:
    async with door(LONG) as port:
        known = await Caller.at(port)
        assert await known.ask("/known") == b"HTTP/1.1 200 OK"
        others = [await Caller.at(port, HALF) for _ in range(LONG.max_strangers + 3)]
        for one in others:
            one.watch()
        await until(lambda: sum(one.gone for one in others) == 3)
        assert [one.gone for one in others[-LONG.max_strangers :]] == [False] * 4
        # Who was let in before has lost nothing, and a new one still comes in.
        assert await known.ask("/known") == b"HTTP/1.1 200 OK"
        assert await (await Caller.at(port)).ask("/known") == b"HTTP/1.1 200 OK"


async def test_busy_connections_are_not_ended_for_new_ones() -> None:
    async with door(LONG) as port:
        busy = [await Caller.at(port) for _ in range(LONG.max_known)]
        for one in busy:
            one.writer.write(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
            one.watch()
        await until(lambda: len(WAITING) == LONG.max_known)
        new = await Caller.at(port)
        assert b"503" in await new.ask("/known")
        assert not any(one.gone for one in busy)
        # The owner is not shut out by programs, and a place that is free is given on.
        assert b"200" in await (await Caller.at(port)).ask("/owner")
        waiting = asyncio.create_task(new.ask("/known"))
        busy[0].writer.close()
        assert b"200" in await waiting


async def test_two_hundred_programs_at_once_all_get_an_answer() -> None:
    async def make() -> ASGIApp:
        # As long as the daemon takes to load its operations with the first request.
        await asyncio.sleep(0.2)
        return app

    listener = tcp_listener("127.0.0.1", 0, "listen.api_port")
    served_late = served(
        listener, LateApp(make), name="port", limits=ConnectionLimits()
    )
    async with served_late:
        port = listener.getsockname()[1]
        callers = [await Caller.at(port) for _ in range(200)]
        answers = await asyncio.gather(*(one.ask("/known") for one in callers))
    assert answers == [b"HTTP/1.1 200 OK"] * 200


async def test_a_connection_without_room_is_answered_when_to_come_again() -> None:
    async with door(LONG) as port:
        first = await Caller.at(port)
        others = [await Caller.at(port) for _ in range(LONG.max_strangers)]
        head = await first.reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 5\r\n" in head
    assert len(others) == LONG.max_strangers


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Anpd]:
    home = tmp_path_factory.mktemp("floods") / "home"
    settings = {"listen__api_port": "0", "limits__api_connections": "16"}
    with Anpd(home, **settings).up() as running:
        yield running


def is_open(one: socket.socket) -> bool:
    """Tell whether the daemon has not ended a connection."""
    try:
        return one.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


async def test_half_requests_stop_neither_owner_nor_agent(daemon: Anpd) -> None:
    address = Home(daemon.home).read_api()
    port = int(address.api_url.rpartition(":")[2])
    token = load_token(Path(address.token_file))
    headers = {"authorization": f"Bearer {token}"}
    held: list[socket.socket] = []
    try:
        for _ in range(400):
            one = socket.socket()
            await asyncio.to_thread(one.connect, ("127.0.0.1", port))
            one.setblocking(False)
            with contextlib.suppress(OSError):
                one.sendall(HALF)
            held.append(one)
        # The owner's commands, an agent on the socket, and one at the port itself.
        assert daemon.ok("peers", "list", "--json").json() is not None
        with owner_client(daemon.home) as owner:
            assert owner.get("/v1/spend").status_code == 200
        async with httpx.AsyncClient(base_url=address.api_url, headers=headers) as tcp:
            assert (await tcp.get("/v1/info")).status_code == 200
        most = ConnectionLimits.of(16).max_strangers
        await until(lambda: sum(is_open(one) for one in held) <= most)
    finally:
        for one in held:
            one.close()
    lines = daemon.log().splitlines()
    ended = [line for line in lines if "local connection ended" in line]
    assert "Traceback" not in daemon.log()
    # One line for its cause; the others are counted.
    told = [json.loads(line)["fields"]["reason"] for line in ended]
    assert told.count("the share of new connections is full") == 1


async def test_neither_scope_starves_the_other(daemon: Anpd) -> None:
    socket_path = Home(daemon.home).read_api().socket
    held = []
    try:
        for _ in range(300):
            _, writer = await asyncio.open_unix_connection(socket_path)
            writer.write(HALF)
            held.append(writer)
        with owner_client(daemon.home) as owner:
            assert owner.get("/v1/spend").status_code == 200
        transport = httpx.AsyncHTTPTransport(uds=socket_path)
        async with httpx.AsyncClient(transport=transport) as agent:
            assert (await agent.get("http://anpd/v1/info")).status_code == 200
    finally:
        for writer in held:
            writer.close()
