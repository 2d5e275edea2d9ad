"""Attacks with many or large messages, on WebSockets and on open channels."""

from __future__ import annotations

import asyncio
import json
import os
import zlib
from abc import abstractmethod
from typing import ClassVar

from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from anp.wire.frames import ProtocolType
from tests.attacks.kinds.base import Attack, open_channel, said
from tests.e2e.raw_peer import RawPeer


class PingFlood(Attack):
    """Ten WebSockets that send pings of both kinds as fast as they can."""

    name = "ping-flood"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(10, self._ping)

    async def _ping(self) -> None:
        heartbeat = {
            "version": "1.0",
            "type": "heartbeat",
            "message": "ping",
            "messageId": "1",
            "timestamp": "2026-11-21T12:00:00.000Z",
        }
        async with self.socket() as one:
            await one.upgrade()
            reading = asyncio.create_task(one.gone())
            try:
                while not reading.done():
                    await one.frame(b"x" * 100, opcode=9)
                    await one.frame(json.dumps(heartbeat).encode())
                    self.done["pings"] += 2
                    await asyncio.sleep(0)
            finally:
                reading.cancel()


class CompressionBomb(Attack):
    """Messages that would unpack to 64 MiB, although compression was declined."""

    name = "compression-bomb"

    async def prepare(self) -> None:
        """Pack the message."""
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        self._bomb = packer.compress(bytes(64 * 2**20)) + packer.flush(
            zlib.Z_SYNC_FLUSH
        )

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(20, self._throw)

    async def _throw(self) -> None:
        async with self.socket() as one:
            await one.upgrade(extensions="permessage-deflate")
            await one.frame(self._bomb[:-4], reserved=4)
            self.done["bombs"] += 1
            await one.gone()


class NoMessages(Attack):
    """Texts that are no message, each different, on connections that come again."""

    name = "no-messages"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(20, self._talk)

    async def _talk(self) -> None:
        async with self.link() as peer:
            while True:
                await peer.say(f"no JSON {os.urandom(90).hex()}\nERROR")
                self.done["texts"] += 1
                await asyncio.sleep(0)


class DeepDocuments(Attack):
    """First messages of 60 KiB that are nested as deep as that allows."""

    name = "deep-documents"

    async def run(self) -> None:
        """See `Attack`."""
        deep = "[" * 30_000 + "]" * 30_000
        wide = json.dumps({"type": "sourceHello", "x": [{}] * 14_000})
        texts = [f'{{"type": "sourceHello", "x": {deep}}}', wide]

        async def talk() -> None:
            async with self.link() as peer:
                while True:
                    for text in texts:
                        await peer.say(text)
                        self.done["documents"] += 1
                    await asyncio.sleep(0)

        await self.many(10, talk)


class OnChannels(Attack):
    """The base of attacks that do one thing on open channels, again and again."""

    places: ClassVar[int] = 10

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(self.places, self._place)

    async def _place(self) -> None:
        async with self.link() as peer:
            await open_channel(peer)
            self.done["channels"] += 1
            reading = asyncio.create_task(_drain(peer))
            try:
                while not reading.done():
                    await self.act(peer)
                    await asyncio.sleep(0)
            finally:
                reading.cancel()

    @abstractmethod
    async def act(self, peer: RawPeer) -> None:
        """Do it once."""


class OversizedFrames(OnChannels):
    """Frames of 2 MiB, larger than what was agreed."""

    name = "oversized-frames"

    async def act(self, peer: RawPeer) -> None:
        """See `OnChannels`."""
        await peer.send_frame(ProtocolType.APPLICATION, bytes(2 * 2**20))
        self.done["frames"] += 1


class LargeMeta(OnChannels):
    """Meta messages of 700 KiB: nested, wide, and with one long text."""

    name = "large-meta"

    async def act(self, peer: RawPeer) -> None:
        """See `OnChannels`."""
        for data in (
            b'{"action": ' + b"[" * 350_000 + b"]" * 350_000 + b"}",
            json.dumps({"action": "x", "list": list(range(120_000))}).encode(),
            said("protocolNegotiation", candidateProtocols="x" * 700_000),
        ):
            await peer.send_meta(data)
            self.done["messages"] += 1


class GarbageFrames(OnChannels):
    """Frames that cannot be decrypted, and frames under keys that nobody knows."""

    name = "garbage-frames"

    async def act(self, peer: RawPeer) -> None:
        """See `OnChannels`."""
        envelope = peer.sealed(os.urandom(900))
        envelope["encryptedData"]["ciphertext"] = "AAAA" * 300
        if os.urandom(1)[0] & 1:
            envelope["secretKeyId"] = os.urandom(8).hex()
        await peer.say(json.dumps(envelope))
        self.done["frames"] += 1


class ChannelChurn(Attack):
    """Ten peers that open a channel and close it again, as fast as they can."""

    name = "channel-churn"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(10, self._churn)

    async def _churn(self) -> None:
        async with self.link() as peer:
            while True:
                await open_channel(peer)
                await peer.send_meta(said("channelClose", code=200, reason="done"))
                self.done["channels"] += 1


class ManyChannels(Attack):
    """Thirty links of one peer with as many open channels each as there may be."""

    name = "many-channels"

    async def prepare(self) -> None:
        """Make its one identity."""
        key = PrivateKey.generate()
        self._identity = Identities.of_method(key, "did:key").primary

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(30, self._open)

    async def _open(self) -> None:
        async with self.link() as peer:
            peer.identity = self._identity
            for _ in range(64):
                await open_channel(peer)
                self.done["channels"] += 1
            while True:
                await peer.connection.recv()


async def _drain(peer: RawPeer) -> None:
    async for _ in peer.connection:
        pass


ATTACKS = (
    PingFlood,
    CompressionBomb,
    NoMessages,
    DeepDocuments,
    OversizedFrames,
    LargeMeta,
    GarbageFrames,
    ChannelChurn,
    ManyChannels,
)
