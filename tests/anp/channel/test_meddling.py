"""Somebody between two daemons removes, edits and swaps fields of a handshake."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import NeedHelloAnswer
from anp.channel.core.limits import LinkConfig, LinksConfig
from anp.channel.links import Links, LinkTarget
from anp.errors import AnpError
from anp.identity.dids import Identities
from anp.identity.keys import PrivateKey
from anp.identity.resolver import ChainResolver
from anp.wire.frames import ProtocolType
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.outcome import HandshakeConfig
from tests.clauses import clause

HASH: Final = "ab" * 32
META: Final = MetaProtocol(
    used_protocol_hash=HASH,
    candidate_protocols=("https://example.com/protocol/1.0",),
    extensions=("close",),
)
ANSWER: Final = MetaProtocol(used_protocol_hash=HASH, extensions=("close",))
HANDSHAKE_TIMEOUT: Final = 3.0
AT_ONCE: Final = 16
"Handshakes at a time."

Path = tuple[str, ...]
Change = Callable[[int, str, str], str | list[str]]
"Gets place and sender of a frame and its text; returns what goes on."

FRAMES: Final = {
    "source hello": ("caller", 0),
    "destination hello": ("provider", 0),
    "destination finished": ("provider", 1),
    "source finished": ("caller", 1),
}


class Provider:
    """Accepts channels, and counts what it takes from them."""

    def __init__(self) -> None:
        self.identities = Identities.of_method(PrivateKey.generate(), "did:key")
        self.requests = 0

    async def answer_hello(self, hello: NeedHelloAnswer) -> MetaProtocol:
        return ANSWER

    async def serve_channel(self, channel: Channel) -> None:
        with contextlib.suppress(ChannelClosed):
            while True:
                event = await channel.receive()
                self.requests += 1
                await channel.send(ProtocolType.APPLICATION, event.frame.data)


def links_of(party: Provider) -> Links:
    config = LinksConfig(
        link=LinkConfig(handshake=HandshakeConfig(timeout=HANDSHAKE_TIMEOUT)),
        handshake_timeout=HANDSHAKE_TIMEOUT + 1,
    )
    return Links(
        config,
        identities=party.identities,
        resolver=ChainResolver(),
        acceptor=party,
    )


class Between:
    """A proxy that hands each frame to a function of its own connection."""

    def __init__(self, target: str) -> None:
        self.port = 0
        self.connections = 0
        self._target = target
        self._changes: dict[str, Change] = {}

    def meddle(self, change: Change) -> str:
        """Return the URL of a connection whose frames are changed."""
        path = f"/{len(self._changes)}"
        self._changes[path] = change
        return f"ws://127.0.0.1:{self.port}{path}"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Between]:
        async with serve(self._accept, "127.0.0.1", 0, compression=None) as server:
            self.port = next(iter(server.sockets)).getsockname()[1]
            yield self

    async def _accept(self, near: ServerConnection) -> None:
        self.connections += 1
        assert near.request is not None
        change = self._changes[near.request.path]
        async with connect(self._target, compression=None, proxy=None) as far:
            ways = (
                asyncio.create_task(_forward(near, far, "caller", change)),
                asyncio.create_task(_forward(far, near, "provider", change)),
            )
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)


async def _forward(
    source: Connection, target: Connection, side: str, change: Change
) -> None:
    with contextlib.suppress(ConnectionClosed):
        number = 0
        async for message in source:
            texts = change(number, side, str(message))
            for text in [texts] if isinstance(texts, str) else texts:
                await target.send(text)
            number += 1


@contextlib.asynccontextmanager
async def meddled() -> AsyncIterator[tuple[Provider, Between]]:
    """Run a provider behind a proxy."""
    provider = Provider()
    links = links_of(provider)
    port = await links.listen("127.0.0.1", 0, dict)
    between = Between(f"ws://127.0.0.1:{port}/")
    try:
        async with asyncio.timeout(240), between.running():
            yield provider, between
    finally:
        await links.close()


async def call(provider: Provider, url: str) -> bool:
    """Open a channel through the proxy and make one call; return whether it went."""
    caller = Provider()
    links = links_of(caller)
    try:
        target = LinkTarget(provider.identities.primary.did, url)
        channel = await links.open_channel(target, META)
        await channel.send(ProtocolType.APPLICATION, b"hello")
        async with asyncio.timeout(HANDSHAKE_TIMEOUT):
            return (await channel.receive()).frame.data == b"hello"
    except (AnpError, TimeoutError):
        return False
    finally:
        await links.close()


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each field, those of objects too."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*path, name)
            yield from leaves(inner, (*path, name))


def changed(text: str, path: Path, how: str, other: str) -> str:
    """Return a message with one field removed, edited or taken from another one."""
    message = json.loads(text)
    inner, donor = message, json.loads(other)
    for name in path[:-1]:
        inner, donor = inner[name], donor[name]
    name = path[-1]
    match how:
        case "removed":
            del inner[name]
        case "edited":
            inner[name] = _edited(inner[name])
        case _:
            inner[name] = donor[name]
    return json.dumps(message)


def _edited(value: Any) -> Any:
    match value:
        case str():
            middle = len(value) // 2
            other = "0" if value[middle : middle + 1] != "0" else "1"
            return value[:middle] + other + value[middle + 1 :]
        case bool():
            return not value
        case int():
            return value + 1
        case list():
            return [*value, value[0] if value else "x"]
        case dict():
            return {**value, "other": "x"}
    return "x"


IGNORED: Final = {("version",), ("timestamp",), ("messageId",)}
"""Fields round the encrypted part of `finished`, which it does not cover (WIRE.md).

Nothing is done with them, nor with a field that nobody knows.
"""


@pytest.mark.slow
@clause("ANP-21")
@pytest.mark.parametrize("frame", FRAMES)
async def test_no_field_of_a_handshake_can_be_removed_edited_or_swapped(
    frame: str,
) -> None:
    side, place = FRAMES[frame]
    async with meddled() as (provider, between):
        kept: list[str] = []

        def keep(number: int, sender: str, text: str) -> str:
            if (sender, number) == (side, place):
                kept.append(text)
            return text

        for _ in range(2):
            assert await call(provider, between.meddle(keep))
        first, other = kept
        good = provider.requests
        gate = asyncio.Semaphore(AT_ONCE)

        async def went(path: Path, how: str) -> bool:
            def change(number: int, sender: str, text: str) -> str:
                if (sender, number) != (side, place):
                    return text
                return changed(text, path, how, other)

            async with gate:
                return await call(provider, between.meddle(change))

        tried = [
            (path, how)
            for path in leaves(json.loads(first))
            for how in ("removed", "edited", "swapped")
            if not (frame.endswith("finished") and _ignored(first, path, how))
            # The same in every handshake: there is nothing to swap.
            and not (how == "swapped" and _same(first, other, path))
        ]
        assert len(tried) > 10
        results = await asyncio.gather(*(went(*one) for one in tried))
        through = [one for one, went_ in zip(tried, results, strict=True) if went_]
        assert not through, through
        assert provider.requests == good


def _ignored(text: str, path: Path, how: str) -> bool:
    value = json.loads(text)
    for name in path:
        value = value[name]
    return path in IGNORED or (how == "edited" and isinstance(value, dict))


def _same(one: str, other: str, path: Path) -> bool:
    first, second = json.loads(one), json.loads(other)
    for name in path:
        first, second = first[name], second[name]
    return bool(first == second)


@clause("ANP-21")
async def test_forged_outer_responses_end_no_call_and_cost_one_handshake_at_most() -> (
    None
):
    async with meddled() as (provider, between):
        hellos: list[str] = []
        named: list[str] = []

        def forge(number: int, sender: str, text: str) -> str | list[str]:
            message = json.loads(text)
            if sender == "caller":
                named.append(message["messageId"])
                hellos.extend([text] if message["type"] == "sourceHello" else [])
                return text
            if number < 2:
                return text
            forged = [
                json.dumps(
                    {
                        **{key: message.get(key) for key in ("version", "timestamp")},
                        "type": "response",
                        "messageId": "ff" * 16,
                        "code": code,
                        "detail": "go away",
                        "originalMessageId": one,
                        "originalType": "message",
                    }
                )
                # Fewer than the faults that a link may have.
                for code in (403, 4001, 4003, 4004, 5000)
                for one in named[-1:]
            ]
            return [*forged, text]

        caller = Provider()
        links = links_of(caller)
        try:
            target = LinkTarget(provider.identities.primary.did, between.meddle(forge))
            channel = await links.open_channel(target, META)
            for number in range(5):
                data = f"call {number}".encode()
                await channel.send(ProtocolType.APPLICATION, data)
                assert (await channel.receive()).frame.data == data
        finally:
            await links.close()
        assert len(hellos) <= 2
        assert provider.requests == 5
