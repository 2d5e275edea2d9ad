"""Attacks with hellos: valid, wrong, repeated, unfinished, from addresses of others."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from tests.attacks.kinds.base import Attack, open_channel
from tests.e2e.raw_peer import RawPeer


class FreshPeers(Attack):
    """Handshakes of fresh DIDs, one a connection, as fast as they can."""

    name = "fresh-peers"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(20, self._shake)

    async def _shake(self) -> None:
        while True:
            async with self.link() as peer:
                await open_channel(peer)
                self.done["handshakes"] += 1


class FreshPeersOneLink(Attack):
    """The same over ten connections that stay, each DID with a channel of its own."""

    name = "fresh-peers-one-link"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(10, self._shake)

    async def _shake(self) -> None:
        async with self.link() as peer:
            while True:
                key = PrivateKey.generate()
                peer.identity = Identities.of_method(key, "did:key").primary
                await open_channel(peer)
                self.done["handshakes"] += 1


class BadHellos(Attack):
    """Hellos whose signature is wrong, as fast as they can."""

    name = "bad-hellos"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(20, self._say)

    async def _say(self) -> None:
        async with self.link() as peer:
            [hello] = peer.initiator().messages_to_send()
            value = json.loads(hello)
            while True:
                value["random"] = os.urandom(32).hex()
                await peer.say(json.dumps(value))
                await peer.hear()
                self.done["hellos"] += 1


class RepeatedHellos(Attack):
    """One good hello, recorded and sent again over other connections."""

    name = "repeated-hellos"

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(20, self._say)

    async def _say(self) -> None:
        async with self.link() as first, self.link() as second:
            [hello] = first.initiator().messages_to_send()
            await first.say(hello)
            await first.hear()
            while True:
                await second.say(hello)
                await second.hear()
                self.done["hellos"] += 1


class UnfinishedHandshakes(Attack):
    """200 connections with eight handshakes each that are begun and never finished."""

    name = "unfinished-handshakes"
    addresses = 20

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(200, self._begin)

    async def _begin(self) -> None:
        async with self.link() as peer:
            for _ in range(8):
                await peer.say(*peer.initiator().messages_to_send())
                self.done["hellos"] += 1
            while True:
                await peer.connection.recv()


class HeldFrames(Attack):
    """A hundred handshakes that send a MiB of frames in place of their last message."""

    name = "held-frames"
    addresses = 10

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(100, self._begin)

    async def _begin(self) -> None:
        async with self.link() as peer:
            initiator = peer.initiator()
            await peer.say(*initiator.messages_to_send())
            frame: dict[str, Any] = {
                "version": "1.0",
                "type": "message",
                "timestamp": "2026-11-21T12:00:00.000Z",
                "sourceDid": peer.identity.did,
                "destinationDid": peer.peer_did,
                "secretKeyId": "0" * 16,
                "encryptedData": {"iv": "A" * 16, "tag": "A" * 22 + "=="},
            }
            frame["encryptedData"]["ciphertext"] = "A" * 60_000
            while True:
                frame["messageId"] = os.urandom(16).hex()
                await peer.say(json.dumps(frame))
                self.done["frames"] += 1
                await asyncio.sleep(0.2)


class SlowResolvers(Attack):
    """Hellos of `did:wba` names whose documents are on a server that never answers."""

    name = "slow-resolvers"
    settings: ClassVar[Mapping[str, object]] = {
        "fetch.allow": ["127.0.0.0/8"],
        "fetch.allow_http_loopback": True,
    }

    async def prepare(self) -> None:
        """Open the server."""

        async def serve(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            self.done["documents asked for"] += 1
            await reader.read()
            writer.close()

        self._server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]

    async def run(self) -> None:
        """See `Attack`."""
        await self.many(100, self._begin)

    def name_of(self, number: str) -> str:
        """Return a DID whose document is on the server."""
        return f"did:wba:localhost%3A{self._port}:agents:{number}"

    async def _begin(self) -> None:
        async with self.link() as peer:
            key = PrivateKey.generate()
            while True:
                for _ in range(4):
                    _become(peer, self.name_of(os.urandom(8).hex()), key)
                    await peer.say(*peer.initiator().messages_to_send())
                    self.done["hellos"] += 1
                await peer.connection.recv()


class OddNames(SlowResolvers):
    """Hellos of DIDs in odd spellings: percent codes, capitals, long, unknown."""

    name = "odd-names"

    def name_of(self, number: str) -> str:
        """Return a name that is none."""
        names = (
            f"did:wba:LOCALHOST%3a{self._port}:%61gents:{number}",
            f"did:wba:localhost%3A{self._port}:..:..:{number}",
            f"did:wba:localhost%2F..%2F{number}",
            f"did:web:127.0.0.1%3A{self._port}:{number}",
            "did:wba:" + "a." * 110 + number,
            f"did:key:z{number}",
            f"did:all:{number}@localhost:{self._port}",
            f"did:wba:localhost%3A{self._port}:e1_{number}",
            "did:wba:localhost" + ":x" * 200,
        )
        return names[int(number, 16) % len(names)]


def _become(peer: RawPeer, did: str, key: PrivateKey) -> None:
    own = Identities.of_method(key, "did:key").primary
    peer.identity = replace(own, did=did)


ATTACKS = (
    FreshPeers,
    FreshPeersOneLink,
    BadHellos,
    RepeatedHellos,
    UnfinishedHandshakes,
    HeldFrames,
    SlowResolvers,
    OddNames,
)
