"""Capabilities and versions over real sockets: two sets of links, or a raw peer."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import NeedHelloAnswer
from anp.channel.core.limits import LinkConfig, LinksConfig
from anp.channel.core.traffic import EXTENSION_CLOSE
from anp.channel.links import Links, LinkTarget
from anp.errors import CallError, ErrorKind, LocalError
from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from anp.identity.resolver import ChainResolver
from anp.wire.frames import FORMAT_1_0, Frame, FrameFormat, ProtocolType, encode_frame
from anp.wire.meta_protocol import CAPABILITIES, MetaProtocol
from anp.wire.outcome import HandshakeConfig
from tests.clauses import clause
from tests.e2e.raw_peer import raw_peer

DEADLINE = 20.0
LATER = FrameFormat("2.0", header_size=2)
LIMIT = LinkConfig().max_unagreed_frames
FRAMES = [
    (ProtocolType.META, b"{}"),
    (ProtocolType.APPLICATION, b"\x00\xff"),
    (ProtocolType.NATURAL_LANGUAGE, "你好".encode()),
    (ProtocolType.VERIFICATION, b"[1]"),
]


def says(*capabilities: str) -> MetaProtocol:
    return MetaProtocol(
        supported_capabilities=capabilities, extensions=(EXTENSION_CLOSE,)
    )


class House:
    """The links of one daemon; what peers open on them is kept."""

    def __init__(
        self, meta: MetaProtocol, handshake: HandshakeConfig | None = None
    ) -> None:
        self.meta = meta
        self.served: asyncio.Queue[Channel] = asyncio.Queue()
        self.identities = Identities.of_method(PrivateKey.generate(), "did:key")
        self.links = Links(
            LinksConfig(link=LinkConfig(handshake=handshake or HandshakeConfig())),
            identities=self.identities,
            resolver=ChainResolver(),
            acceptor=self,
        )
        self.url = ""

    @property
    def did(self) -> str:
        return self.identities.primary.did

    async def answer_hello(self, hello: NeedHelloAnswer) -> MetaProtocol:
        return self.meta

    async def serve_channel(self, channel: Channel) -> None:
        await self.served.put(channel)
        await channel.wait_ended()

    async def call(self, other: House) -> tuple[Channel, Channel]:
        """Open a channel and return both ends of it."""
        target = LinkTarget(other.did, other.url)
        ours = await self.links.open_channel(target, self.meta)
        return ours, await other.served.get()


@asynccontextmanager
async def up(*houses: House) -> AsyncIterator[None]:
    """Let all of them listen."""
    async with asyncio.timeout(DEADLINE):
        try:
            for house in houses:
                port = await house.links.listen("127.0.0.1", 0, dict)
                house.url = f"ws://127.0.0.1:{port}/"
            yield
        finally:
            for house in houses:
                await house.links.close()


@clause("ANP-13", "ANP-76", "ANP-81")
async def test_what_both_listed_is_used_in_both_directions() -> None:
    alice, bob = House(says(*CAPABILITIES)), House(says(*CAPABILITIES))
    async with up(alice, bob):
        ours, theirs = await alice.call(bob)
        for sender, receiver in ((ours, theirs), (theirs, ours)):
            assert sender.capabilities == frozenset(CAPABILITIES)
            assert sender.opened.version == "1.0"
            for protocol_type, data in FRAMES:
                await sender.send(protocol_type, data)
                frame = (await receiver.receive()).frame
                assert (frame.protocol_type, frame.data) == (protocol_type, data)


@clause("ANP-77", "ANP-81")
async def test_what_one_side_did_not_list_is_our_error_before_any_byte() -> None:
    alice = House(says("verificationProtocol", "fixErrorNegotiation"))
    bob = House(says("naturalLanguageProtocol", "fixErrorNegotiation"))
    async with up(alice, bob):
        ours, theirs = await alice.call(bob)
        assert ours.capabilities == theirs.capabilities == {"fixErrorNegotiation"}
        for channel in (ours, theirs):
            for protocol_type, data in FRAMES[2:]:
                with pytest.raises(LocalError, match="both sides have to list"):
                    await channel.send(protocol_type, data)
        # The basic types pass, and nothing went ahead of them.
        for protocol_type, data in FRAMES[:2]:
            await ours.send(protocol_type, data)
            assert (await theirs.receive()).frame.protocol_type is protocol_type


@clause("ANP-81", "ANP-Q17")
async def test_unagreed_frames_of_a_peer_are_counted_and_end_its_channel_at_last(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="anp.channel")
    bob = House(says(*CAPABILITIES))
    async with up(bob), raw_peer(bob.url, bob.did) as peer:
        await peer.open()
        channel = await bob.served.get()
        assert channel.capabilities == frozenset()

        for number in range(1, LIMIT):
            protocol_type, data = FRAMES[2 + number % 2]
            plaintext = encode_frame(Frame(protocol_type, data))
            await peer.say(json.dumps(peer.sealed(plaintext)))
        await peer.send_meta(b"still here")
        assert (await channel.receive()).frame.data == b"still here"
        assert channel.open

        plaintext = encode_frame(Frame(ProtocolType.VERIFICATION, b"one more"))
        await peer.say(json.dumps(peer.sealed(plaintext)))
        with pytest.raises(ChannelClosed, match="verificationProtocol"):
            await channel.receive()
        assert (await peer.hear_meta())["action"] == "channelClose"

        # The link itself is sound: another channel opens on it.
        await peer.open()
        await peer.send_meta(b"again")
        assert (await (await bob.served.get()).receive()).frame.data == b"again"
    lines = [
        r.getMessage() for r in caplog.records if "frame ignored" in r.getMessage()
    ]
    assert len(lines) == 1
    assert "naturalLanguageProtocol" in lines[0] or "verification" in lines[0]
    assert not any("peer fault" in r.getMessage() for r in caplog.records)


@clause("ANP-15", "ANP-80")
@pytest.mark.parametrize("later_calls", [True, False])
async def test_a_later_daemon_and_one_of_today_speak_the_version_of_today(
    later_calls: bool,
) -> None:
    handshake = HandshakeConfig(versions=("1.0", "1.1"), formats=(FORMAT_1_0, LATER))
    later, today = House(says(*CAPABILITIES), handshake), House(says(*CAPABILITIES))
    one, two = (later, today) if later_calls else (today, later)
    async with up(one, two):
        ours, theirs = await one.call(two)
        assert ours.opened.version == theirs.opened.version == "1.0"
        for protocol_type, data in FRAMES:
            await ours.send(protocol_type, data)
            assert (await theirs.receive()).frame.data == data


@clause("ANP-15", "ANP-80")
async def test_two_later_daemons_use_the_later_version_and_its_header() -> None:
    handshake = HandshakeConfig(versions=("1.0", "1.1"), formats=(FORMAT_1_0, LATER))
    alice, bob = (House(says(*CAPABILITIES), handshake) for _ in range(2))
    async with up(alice, bob):
        ours, theirs = await alice.call(bob)
        assert ours.opened.version == theirs.opened.version == "1.1"
        for protocol_type, data in FRAMES:
            await ours.send(protocol_type, data)
            frame = (await theirs.receive()).frame
            assert (frame.protocol_type, frame.data) == (protocol_type, data)


@clause("ANP-15", "ANP-Q15")
@pytest.mark.parametrize(
    ("handshake", "words"),
    [
        (HandshakeConfig(formats=(LATER,)), "no common version: we have 1.0"),
        (HandshakeConfig(versions=("0.9",)), "metaProtocol.version is '0.9', we speak"),
    ],
    ids=["message", "meta-protocol"],
)
async def test_a_peer_without_a_common_version_is_refused_with_words(
    handshake: HandshakeConfig, words: str
) -> None:
    alice, bob = House(says(), handshake), House(says())
    async with up(alice, bob):
        with pytest.raises(CallError) as caught:
            await alice.call(bob)
        assert caught.value.kind is ErrorKind.IDENTITY_REFUSED
        assert f"4002 {words}" in caught.value.detail
        assert bob.served.empty()
