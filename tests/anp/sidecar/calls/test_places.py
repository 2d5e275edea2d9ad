"""Negotiations of peers: listed ones always find a place, and silent ones give way."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from anp.channel.channel import Channel
from anp.channel.core.shares import ShareLimits
from anp.errors import BusyError
from anp.sidecar.calls.places import CHECK, NegotiationPlaces
from tests.waiting import until

LIMITS = ShareLimits(total=4, unlisted=3, each=2, patience=3.0)


class FakeChannel:
    """A channel whose peer is silent for as long as a test says."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.peer_did = "did:example:peer"
        self.open = True
        self.silent = 0.0
        self.reasons: list[str] = []

    def unheard_for(self, now: float) -> float:
        return self.silent

    async def close(self, reason: str, **_: Any) -> None:
        self.open = False
        self.reasons.append(reason)


class Desk:
    """Negotiations that end when a test lets them."""

    def __init__(self) -> None:
        self.places = NegotiationPlaces(
            lambda did: did.startswith("friend"), limits=LIMITS
        )
        self.channels: list[FakeChannel] = []
        self.tasks: list[asyncio.Task[str]] = []
        self.ends: list[asyncio.Event] = []

    def begin(
        self, did: str, address: str = "192.0.2.1", *, timeout: float = 20.0
    ) -> int:
        """Begin a negotiation and return its number."""
        channel, end = FakeChannel(address), asyncio.Event()

        async def work() -> str:
            await end.wait()
            return did

        self.channels.append(channel)
        self.ends.append(end)
        run = self.places.run(cast(Channel, channel), did, work, timeout=timeout)
        self.tasks.append(asyncio.create_task(run))
        return len(self.tasks) - 1

    async def running(self, number: int) -> None:
        """Wait until so many have a place."""
        await until(lambda: len(self.places.running) == number)


async def full_of_strangers() -> Desk:
    """Return a desk at which two addresses have all places of strangers."""
    desk = Desk()
    for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
        desk.begin("stranger", address)
    await desk.running(3)
    return desk


async def test_a_listed_peer_has_a_place_of_its_own() -> None:
    desk = await full_of_strangers()
    friend = desk.begin("friend")
    await desk.running(4)
    desk.ends[friend].set()
    assert await desk.tasks[friend] == "friend"
    assert not any(task.done() for task in desk.tasks[:3])


async def test_the_next_one_gets_the_place_of_one_that_ended() -> None:
    desk = await full_of_strangers()
    waiting = desk.begin("stranger", "192.0.2.2")
    await until(lambda: len(desk.places.waiting) == 1)
    desk.ends[2].set()
    assert await desk.tasks[2] == "stranger"
    await until(lambda: not desk.places.waiting)
    desk.ends[waiting].set()
    assert await desk.tasks[waiting] == "stranger"


async def test_a_silent_one_gives_way_and_its_peer_is_told() -> None:
    desk = await full_of_strangers()
    desk.begin("stranger", "192.0.2.2")
    await asyncio.sleep(2 * CHECK)
    assert len(desk.places.waiting) == 1
    desk.channels[2].silent = LIMITS.patience
    with pytest.raises(BusyError, match="silent"):
        await desk.tasks[2]
    assert desk.channels[2].reasons == [
        "others wait to negotiate, and you said nothing for long"
    ]
    assert not desk.tasks[0].done()


async def test_an_address_with_two_gives_one_to_an_address_with_none() -> None:
    desk = await full_of_strangers()
    new = desk.begin("stranger", "192.0.2.3")
    await until(lambda: any(task.done() for task in desk.tasks))
    desk.ends[new].set()
    assert await desk.tasks[new] == "stranger"
    assert sum(task.done() for task in desk.tasks[:2]) == 1


async def test_whoever_waits_too_long_is_told_to_come_again() -> None:
    desk = await full_of_strangers()
    late = desk.begin("stranger", "192.0.2.2", timeout=0.1)
    with pytest.raises(BusyError) as caught:
        await desk.tasks[late]
    assert caught.value.retry_after == 5.0
    assert not desk.places.waiting


async def test_a_link_that_ends_takes_its_negotiation_along() -> None:
    desk = await full_of_strangers()
    desk.tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await desk.tasks[0]
    assert len(desk.places.running) == 2
