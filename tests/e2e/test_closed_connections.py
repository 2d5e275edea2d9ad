"""A connection that has ended is freed at once, without the garbage collector.

Its rounds over what thousands of strangers' connections left would hold up the calls of
others.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from anp.channel.channel import Channel
from anp.channel.link import Link
from anp.channel.pipe import PromptConnection
from tests.attacks.kinds.base import document, open_channel, turn
from tests.e2e.house import House, house_in
from tests.e2e.raw_peer import RawPeer
from tests.waiting import until

UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    b"Sec-WebSocket-Version: 13\r\n\r\n"
)


@contextlib.contextmanager
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def held() -> dict[str, int]:
    """Return how many connections, links and channels there are, by their class."""
    kinds = PromptConnection, Link, Channel
    # Not `isinstance`: it asks a weak proxy for the class of what may be gone.
    found = [type(one) for one in gc.get_objects()]
    return {kind.__name__: sum(issubclass(t, kind) for t in found) for kind in kinds}


async def say(house: House, text: bytes, *, answered: bool) -> None:
    """Send bytes on a socket of its own and hang up, after the answer if one comes."""
    port = house.provider.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    await writer.drain()
    if answered:
        await reader.read(100)
    else:
        await until(lambda: bool(house.provider.links.admission.occupancy.at_door))
    writer.transport.abort()


async def nothing(house: House) -> None:
    await say(house, b"", answered=False)


async def half_a_request(house: House) -> None:
    await say(house, UPGRADE[:40], answered=False)


async def no_request(house: House) -> None:
    await say(house, b"POST / HTTP/1.1\r\n\r\n", answered=True)


async def a_page(house: House) -> None:
    await say(house, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", answered=True)


async def no_hello(house: House) -> None:
    await say(house, UPGRADE, answered=True)


async def nonsense(house: House) -> None:
    async with connect(house.provider.url, proxy=None) as connection:
        await connection.send("{")
        await connection.send(b"\xff" * 100)
        await connection.recv()


async def too_long(house: House) -> None:
    async with connect(house.provider.url, proxy=None) as connection:
        await connection.send("x" * 100_000)
        with contextlib.suppress(ConnectionClosed):
            await connection.recv()


async def a_channel(house: House) -> None:
    connection = await connect(house.provider.url, proxy=None)
    await open_channel(RawPeer(connection, house.provider.did))
    connection.transport.abort()


async def sent_away(house: House) -> None:
    """Lose the place to somebody else."""
    async with connect(house.provider.url, proxy=None) as connection:
        admission = house.provider.links.admission
        for guest in [*admission._guests.values()]:
            assert guest.place is not None
            admission._door.leave(guest.place)
            guest.place = None
            guest.hang_up()
        with contextlib.suppress(ConnectionClosed):
            await connection.recv()


async def a_rejected_proposal(house: House) -> None:
    async with house.peer() as peer:
        await open_channel(peer)
        await peer.send_meta(turn(0, "negotiating", document("absent", {"a": 1})))
        assert (await peer.hear_meta())["status"] == "rejected"


async def a_channel_that_is_closed(house: House) -> None:
    async with house.peer() as peer:
        await open_channel(peer)


@pytest.mark.parametrize(
    "come",
    [
        nothing,
        half_a_request,
        no_request,
        a_page,
        no_hello,
        nonsense,
        too_long,
        a_channel,
        a_channel_that_is_closed,
        a_rejected_proposal,
        sent_away,
    ],
)
async def test_nothing_is_left_for_the_collector(come: object, tmp_path: Path) -> None:
    assert callable(come)
    async with house_in(tmp_path) as house:
        # The first of a kind loads what others find.
        await come(house)
        with no_collector():
            for _ in range(3):
                await come(house)
            await until(lambda: not any(held().values()))
