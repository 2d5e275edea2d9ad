"""The base of every attack: connections from other addresses, bound in number."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import struct
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar
from urllib.parse import urlsplit

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from anp.errors import AnpError
from anp.wire.handshake import Initiator
from anp.wire.messages import parse_message
from anp.wire.meta_protocol import CAPABILITIES, MetaProtocol
from anp.wire.moment import Moment
from anp.wire.outcome import HandshakeCompleted, HandshakeConfig, NeedKeyCheck
from negotiation.mind import Demand
from negotiation.need import Need
from negotiation.rules.rules import propose
from tests.e2e.raw_peer import MAX_SIZE, RawPeer

FAILURES = (
    AnpError,
    AssertionError,
    # Raised by a transport that was aborted, on Python 3.11.
    AttributeError,
    EOFError,
    KeyError,
    OSError,
    TimeoutError,
    ValueError,
    WebSocketException,
)
"What an attacker gets when it is sent away; it tries again."

PAUSE = 0.5
"Seconds before an attacker that was sent away tries again."

BATCH = 40
"Connections of one attack that are being made at a time."


@dataclass(frozen=True, slots=True)
class Target:
    """The daemon under attack, as its attackers know it."""

    url: str
    "Its WebSocket URL."

    did: str
    "Its DID."

    api_url: str
    "URL of its local API on loopback; attackers have no token."

    @property
    def place(self) -> tuple[str, int]:
        """Host and port of the peers' port."""
        return _place(self.url)

    @property
    def api_place(self) -> tuple[str, int]:
        """Host and port of the local API."""
        return _place(self.api_url)


class Attack(ABC):
    """One attack; its docstring is its line in the list."""

    name: ClassVar[str]
    "The name in the table."

    settings: ClassVar[Mapping[str, object]] = {}
    "Settings of the daemon under attack, by dotted name."

    addresses: ClassVar[int] = 4
    "Addresses of 127/8 that the attack comes from; none is a good peer's."

    def __init__(self, target: Target) -> None:
        self.target = target
        self.done: Counter[str] = Counter()
        "Counts of what was done, for the table."

        self._sources = itertools.cycle(range(self.addresses))

    async def prepare(self) -> None:  # noqa: B027 - most attacks need nothing
        """Make ready what costs time; nobody is attacked yet."""

    @abstractmethod
    async def run(self) -> None:
        """Attack until cancelled."""

    def source(self) -> tuple[str, int]:
        """Return the next address to come from."""
        number = next(self._sources)
        return f"127.0.{1 + number // 200}.{2 + number % 200}", 0

    async def many(
        self, count: int, work: Callable[[], Awaitable[None]], *, batch: int = BATCH
    ) -> None:
        """Do `work` in `count` places at a time, again and again until cancelled.

        Args:
            batch: Places that begin at a time, so that opening does not fail here.
        """
        gate = asyncio.Semaphore(batch)

        async def place() -> None:
            while True:
                try:
                    async with gate:
                        pass
                    await work()
                except FAILURES as exc:
                    self.done[f"sent away: {type(exc).__name__}"] += 1
                await asyncio.sleep(PAUSE)

        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(place())
                if number % batch == batch - 1:
                    await asyncio.sleep(0.02)

    @contextlib.asynccontextmanager
    async def socket(
        self, place: tuple[str, int] | None = None
    ) -> AsyncIterator[Socket]:
        """Open a bare TCP connection, to the peers' port unless another is given."""
        host, port = place or self.target.place
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection(
                host, port, local_addr=self.source()
            )
        self.done["sockets"] += 1
        try:
            yield Socket(reader, writer)
        finally:
            writer.transport.abort()

    @contextlib.asynccontextmanager
    async def link(self) -> AsyncIterator[RawPeer]:
        """Open a WebSocket as a peer with a new identity."""
        connection = await connect(
            self.target.url,
            proxy=None,
            compression=None,
            max_size=MAX_SIZE,
            open_timeout=10,
            ping_interval=None,
            close_timeout=0.5,
            local_addr=self.source(),
        )
        self.done["links"] += 1
        try:
            yield RawPeer(connection, self.target.did)
        finally:
            connection.transport.abort()


class Socket:
    """A bare TCP connection that can speak as much WebSocket as it wants to."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)
        await self.writer.drain()

    async def upgrade(self, *, extensions: str = "") -> None:
        """Become a WebSocket.

        Raises:
            EOFError: The daemon refused.
        """
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            "GET / HTTP/1.1",
            "Host: 127.0.0.1",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
        ]
        if extensions:
            lines.append(f"Sec-WebSocket-Extensions: {extensions}")
        await self.send(("\r\n".join(lines) + "\r\n\r\n").encode())
        async with asyncio.timeout(10):
            head = await self.reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in head[:16]:
            raise EOFError(head[:40].decode("latin-1"))

    async def frame(
        self, data: bytes, *, opcode: int = 1, final: bool = True, reserved: int = 0
    ) -> None:
        """Send one WebSocket frame, masked with zeros."""
        first = (0x80 if final else 0) | reserved << 4 | opcode
        if len(data) < 126:
            head = struct.pack("!BB", first, 0x80 | len(data))
        elif len(data) < 65_536:
            head = struct.pack("!BBH", first, 0x80 | 126, len(data))
        else:
            head = struct.pack("!BBQ", first, 0x80 | 127, len(data))
        await self.send(head + bytes(4) + data)

    async def gone(self) -> None:
        """Wait until the daemon closes the connection."""
        while await self.reader.read(65_536):
            pass


def now(skew: float = 0.0) -> Moment:
    """Return this moment, on both clocks."""
    return Moment.at(time.monotonic(), datetime.fromtimestamp(time.time() + skew, UTC))


async def open_channel(
    peer: RawPeer,
    *,
    uris: tuple[str, ...] = (),
    capabilities: tuple[str, ...] = CAPABILITIES,
) -> None:
    """Open one more channel on a link; its keys become the peer's.

    Args:
        uris: Consensus protocols to offer.

    Raises:
        ConnectionError: The daemon refused.
    """
    initiator = Initiator(
        HandshakeConfig(),
        identity=peer.identity,
        peer_did=peer.peer_did,
        meta=MetaProtocol(
            supported_capabilities=capabilities,
            candidate_protocols=uris,
            extensions=("close",),
        ),
        now=now(),
        random_bytes=os.urandom,
    )
    async with asyncio.timeout(30):
        while True:
            await peer.say(*initiator.messages_to_send())
            match initiator.next_event():
                case NeedKeyCheck():
                    initiator.key_checked(None, now=now())
                case HandshakeCompleted(keys):
                    peer.keys = keys
                    await peer.say(*initiator.messages_to_send())
                    return
                case None:
                    text = await peer.connection.recv()
                    if '"type":"message"' not in str(text)[:2_000].replace(" ", ""):
                        message = parse_message(text, max_size=MAX_SIZE)
                        initiator.receive(message, now=now())
                case other:
                    raise ConnectionError(str(other))


def said(action: str, **fields: Any) -> bytes:
    """Return a meta message."""
    return json.dumps({"action": action, **fields}).encode()


def turn(number: int, status: str, text: str = "") -> bytes:
    """Return a `protocolNegotiation`."""
    return said(
        "protocolNegotiation",
        sequenceId=number,
        candidateProtocols=text,
        modificationSummary="changed" if number else "",
        status=status,
    )


def document(
    need: str, arguments: Mapping[str, Any], schema: dict[str, Any] | None = None
) -> str:
    """Return the document that rules make for a capability.

    Args:
        schema: The caller's schema of the arguments.
    """
    return propose(Demand(Need(need, input_schema=schema), dict(arguments)))


async def agree(
    peer: RawPeer, text: str, *, capabilities: tuple[str, ...] = CAPABILITIES
) -> None:
    """Open a channel and agree on a document.

    Raises:
        ConnectionError: The daemon did not accept it.
    """
    await open_channel(peer, capabilities=capabilities)
    async with asyncio.timeout(60):
        await peer.send_meta(turn(0, "negotiating", text))
        answers = [await peer.hear_meta()]
        if answers[0].get("status") != "accepted":
            raise ConnectionError(str(answers)[:300])
        answers.append(await peer.hear_meta())
        if answers[1].get("status") != "generated":
            raise ConnectionError(str(answers[1])[:300])
        await peer.send_meta(said("codeGeneration", status="generated"))


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 80
