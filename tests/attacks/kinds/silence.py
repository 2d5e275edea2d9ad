"""Attacks that connect and then say nothing, or nearly nothing."""

from __future__ import annotations

import asyncio
import json
import os

from tests.attacks.kinds.base import Attack, open_channel

PLACES = 400
"Connections at a time; the daemon's own limit is 256."


class SilentSockets(Attack):
    """400 TCP connections that never send a byte, from four addresses."""

    name = "silent-sockets"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(PLACES, self._stay)

    async def _stay(self) -> None:
        async with self.socket() as one:
            await one.gone()


class SilentSocketsSpread(SilentSockets):
    """The same from 400 addresses, one connection each."""

    name = "silent-sockets-spread"
    addresses = PLACES


class SilentWebsockets(Attack):
    """400 WebSockets that never send a hello, from four addresses."""

    name = "silent-websockets"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(PLACES, self._stay)

    async def _stay(self) -> None:
        async with self.socket() as one:
            await one.upgrade()
            self.done["upgraded"] += 1
            await one.gone()


class SilentWebsocketsSpread(SilentWebsockets):
    """The same from 400 addresses, one WebSocket each."""

    name = "silent-websockets-spread"
    addresses = PLACES


class IdlePeers(Attack):
    """300 peers with fresh DIDs that complete their handshake and then say nothing."""

    name = "idle-peers"
    addresses = 30

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(300, self._stay, batch=16)

    async def _stay(self) -> None:
        async with self.link() as peer:
            await open_channel(peer)
            self.done["channels"] += 1
            while True:
                await peer.connection.recv()


class SlowHeaders(Attack):
    """300 HTTP requests on the peers' port, of which a byte comes every half second."""

    name = "slow-headers"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(300, self._drip)

    async def _drip(self) -> None:
        async with self.socket() as one:
            await one.send(b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ")
            while not one.reader.at_eof():
                await one.send(b"a")
                self.done["bytes"] += 1
                await asyncio.sleep(0.5)


class TinyFragments(Attack):
    """Forty messages in fragments of one byte that never end."""

    name = "tiny-fragments"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(40, self._drip)

    async def _drip(self) -> None:
        async with self.socket() as one:
            await one.upgrade()
            await one.frame(b"{", final=False)
            while not one.reader.at_eof():
                for _ in range(50):
                    await one.frame(b" ", opcode=0, final=False)
                self.done["fragments"] += 50
                await asyncio.sleep(0)


class UnreadAnswers(Attack):
    """Forty peers that ask for answers without end and never read one."""

    name = "unread-answers"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(40, self._ask)

    async def _ask(self) -> None:
        ping = {
            "version": "1.0",
            "type": "heartbeat",
            "message": "ping",
            "timestamp": "2026-11-21T12:00:00.000Z",
        }
        async with self.socket() as one:
            await one.upgrade()
            while not one.reader.at_eof():
                for _ in range(20):
                    said = {**ping, "messageId": os.urandom(500).hex()}
                    await one.frame(json.dumps(said).encode())
                self.done["pings"] += 20
                await asyncio.sleep(0)


ATTACKS = (
    SilentSockets,
    SilentSocketsSpread,
    SilentWebsockets,
    SilentWebsocketsSpread,
    IdlePeers,
    SlowHeaders,
    TinyFragments,
    UnreadAnswers,
)
