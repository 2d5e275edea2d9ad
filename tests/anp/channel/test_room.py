"""A link that is full of channels makes room, or says that it has none."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from anp.channel.channel import Channel
from anp.channel.core.limits import LinkConfig
from anp.channel.links import Links
from anp.channel.room import ROOM_PATIENCE, LinkFull
from anp.errors import ErrorKind
from tests.anp.channel.two_links import META, Party, echo
from tests.waiting import until

FEW = LinkConfig(max_channels=2)


class Pair:
    """Alice, who opens channels, and Bob, who serves them."""

    def __init__(self, alice: Links, bob: Party, links: Links) -> None:
        self.alice = alice
        self.bob = bob
        self.links = links

    async def open(self, *, busy: bool = False) -> Channel:
        """Open a channel; it is idle for long already, or never."""
        channel = await self.alice.open_channel(self.bob.target, META)
        channel.in_use = lambda: busy
        channel._used_at = time.monotonic() - ROOM_PATIENCE - 1.0
        return channel

    @property
    def faults(self) -> int:
        return sum(link.faults for link in self.links._links)


@asynccontextmanager
async def pair(
    folder: Path, *, ours: LinkConfig, theirs: LinkConfig
) -> AsyncIterator[Pair]:
    alice = Party(folder / "alice", config=ours)
    bob = Party(folder / "bob", config=theirs)
    # A key that is kept, on the disk and in the background, would keep its channel.
    alice.enabled = bob.enabled = False
    async with bob.up() as links, alice.up() as own:
        own._config = replace(own._config, handshake_timeout=0.5)
        yield Pair(own, bob, links)


@pytest.mark.parametrize("theirs", [FEW, LinkConfig()])
@pytest.mark.parametrize("ours", [FEW, LinkConfig()])
async def test_the_channel_that_was_idle_for_longest_makes_room(
    tmp_path: Path, ours: LinkConfig, theirs: LinkConfig
) -> None:
    async with pair(tmp_path, ours=ours, theirs=theirs) as two:
        first, second = await two.open(), await two.open()
        await echo(first, b"x")
        third = await two.open()
        await echo(third, b"y")
        full = FEW in (ours, theirs)
        assert second.open is not full
        assert first.open
        assert two.faults == 0
        await until(lambda: two.links.open_channels == (2 if full else 3))


@pytest.mark.parametrize("ours", [FEW, LinkConfig()])
async def test_when_all_are_in_use_the_error_names_the_limit(
    tmp_path: Path, ours: LinkConfig
) -> None:
    async with pair(tmp_path, ours=ours, theirs=FEW) as two:
        channels = [await two.open(busy=True) for _ in range(2)]
        for _ in range(40):
            with pytest.raises(LinkFull, match="max_channels") as caught:
                await two.open()
            assert caught.value.kind is ErrorKind.LOCAL_RESOURCE
            assert not caught.value.may_have_run
            # The rest of the waiting is seen once.
            two.alice._config = replace(two.alice._config, handshake_timeout=0.01)
        # The link goes on, and the peer finds no fault with us.
        for channel in channels:
            await echo(channel, b"still here")
        assert two.faults == 0


async def test_a_call_that_ends_meanwhile_makes_room(tmp_path: Path) -> None:
    async with pair(tmp_path, ours=FEW, theirs=FEW) as two:
        two.alice._config = replace(two.alice._config, handshake_timeout=10.0)
        first, second = await two.open(busy=True), await two.open(busy=True)
        waiting = asyncio.create_task(two.open())
        await asyncio.sleep(0.2)
        assert not waiting.done()
        first.in_use = lambda: False
        await echo(await waiting, b"z")
        assert second.open
        assert not first.open


async def test_idle_channels_are_closed_by_their_requester(tmp_path: Path) -> None:
    async with pair(tmp_path, ours=FEW, theirs=FEW) as two:
        idle, busy = await two.open(), await two.open(busy=True)
        [link] = two.alice._links
        await link.room.close_idle(60.0)
        assert idle.open
        await link.room.close_idle(1.0)
        assert not idle.open
        assert busy.open
        await until(lambda: two.links.open_channels == 1)
