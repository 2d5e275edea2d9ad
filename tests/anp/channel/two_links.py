"""Two daemons' links on real sockets, without agents: what is served is an echo."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import NeedHelloAnswer
from anp.channel.core.limits import LinkConfig, LinksConfig
from anp.channel.keeper import PURPOSE, KeyKeeper
from anp.channel.links import Links, LinkTarget
from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from anp.identity.resolver import ChainResolver
from anp.wire.frames import ProtocolType
from anp.wire.meta_protocol import MetaProtocol
from cache.records.records import AgreementRole
from cache.store import Store
from tests.waiting import until

HASH = "ab" * 32
META = MetaProtocol(
    used_protocol_hash=HASH,
    extensions=("close", "counter", "maxMessage", "resume"),
    max_message=16 * 1024 * 1024,
)


class Party:
    """One side: an identity and a store that last, and links that come and go."""

    def __init__(self, folder: Path, *, config: LinkConfig | None = None) -> None:
        self.folder = folder
        self.identities = Identities.of_method(PrivateKey.generate(), "did:key")
        self.secret = PrivateKey.generate().derive(PURPOSE)
        self.config = config or LinkConfig(resumption=True)
        self.meta = META
        self.enabled = True
        self.serves: set[str] = {HASH}
        self.hellos = 0
        self.requests: list[bytes] = []
        self.release: asyncio.Event | None = None
        self.port = 0
        self.wall_shift = 0.0

    @property
    def did(self) -> str:
        return self.identities.primary.did

    @property
    def target(self) -> LinkTarget:
        return LinkTarget(self.did, f"ws://127.0.0.1:{self.port}/")

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator[Links]:
        """Run this side; leaving and entering again is a restart."""
        with Store(self.folder) as store:
            self.store = store
            self.keeper = KeyKeeper(
                store,
                self.secret,
                enabled=self.enabled,
                wall=lambda: time.time() + self.wall_shift,
                margin=0.0,
            )
            links = Links(
                LinksConfig(link=self.config, min_backoff=0.05, max_backoff=0.2),
                identities=self.identities,
                resolver=ChainResolver(),
                acceptor=self,
                keeper=self.keeper,
            )
            self.port = await links.listen("127.0.0.1", self.port, dict)
            try:
                async with asyncio.timeout(60):
                    yield links
            finally:
                await links.close()

    async def answer_hello(self, hello: NeedHelloAnswer) -> MetaProtocol:
        self.hellos += 1
        offered = hello.meta.used_protocol_hash
        return replace(
            self.meta, used_protocol_hash=offered if offered in self.serves else None
        )

    async def serve_channel(self, channel: Channel) -> None:
        try:
            while True:
                event = await channel.receive()
                self.requests.append(event.frame.data)
                if self.release is not None:
                    await self.release.wait()
                await channel.send(ProtocolType.APPLICATION, event.frame.data)
        except ChannelClosed:
            return


async def echo(channel: Channel, data: bytes) -> None:
    """Make one call on a channel."""
    await channel.send(ProtocolType.APPLICATION, data)
    assert (await channel.receive()).frame.data == data


async def kept(party: Party, peer: Party) -> None:
    """Wait until a key with a peer is on disk, on both sides."""
    await until(
        lambda: bool(party.store.keys_with(AgreementRole.REQUESTER, peer.did, HASH))
    )
    await until(
        lambda: bool(peer.store.keys_with(AgreementRole.PROVIDER, party.did, HASH))
    )
