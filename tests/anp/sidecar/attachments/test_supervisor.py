"""The places of calls in one attachment, in fair shares."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from anp.sidecar.attachments import ToolError
from anp.sidecar.attachments.supervisor import MAX_WAITING, PLACE_WAIT, CallPlaces
from sandbox.pool.shares import OWNER, Rank, Share, current_share

TOTAL = 64

Leave = Callable[[object], None]


def listed(name: str) -> Share:
    return Share(Rank.LISTED, name)


def stranger(number: int) -> Share:
    return Share(Rank.COMMON, f"192.0.2.{number}")


async def take(places: CallPlaces, share: Share, timeout: float = 0.0) -> Leave:
    current_share.set(share)
    return await places.take(TOTAL, timeout=timeout)


async def fill(places: CallPlaces, share: Share) -> list[Leave]:
    """Take as many places as a share may have."""
    taken: list[Leave] = []

    async def take_all() -> None:
        while True:
            taken.append(await take(places, share))

    with pytest.raises(ToolError) as caught:
        await take_all()
    assert caught.value.code == 503
    assert not caught.value.may_have_run
    return taken


async def test_an_address_has_half_of_the_quarter_of_all_unlisted_peers() -> None:
    places = CallPlaces()
    assert len(await fill(places, stranger(1))) == TOTAL // 8
    assert len(await fill(places, stranger(2))) == TOTAL // 16
    for number in range(3, 30):
        await fill(places, stranger(number))
    assert places.held == TOTAL // 4


async def test_whoever_comes_next_finds_a_place() -> None:
    places = CallPlaces()
    for number in range(4):
        await fill(places, stranger(number))
    await take(places, stranger(9))


async def test_a_listed_peer_has_half_of_all_and_another_one_finds_places() -> None:
    places = CallPlaces()
    assert len(await fill(places, listed("a"))) == TOTAL // 2
    assert len(await fill(places, listed("b"))) == TOTAL // 4
    await take(places, stranger(1))


async def test_the_owner_may_have_all_that_is_left_and_does_not_wait() -> None:
    places = CallPlaces()
    assert len(await fill(places, OWNER)) == TOTAL
    async with asyncio.timeout(1):
        with pytest.raises(ToolError, match="64 calls are still running"):
            await take(places, OWNER, timeout=30.0)


async def test_calls_of_peers_wait_for_a_place_listed_ones_come_first() -> None:
    places = CallPlaces()
    taken = await fill(places, OWNER)
    order: list[Share] = []

    async def wait(share: Share) -> None:
        leave = await take(places, share, timeout=5.0)
        order.append(share)
        leave(None)

    shares = [stranger(1), stranger(1), stranger(2), listed("a")]
    waiting = [asyncio.create_task(wait(share)) for share in shares]
    await asyncio.sleep(0.01)
    assert order == []
    taken.pop()(None)
    await asyncio.gather(*waiting)
    assert order[0] == listed("a")
    assert sorted(order[1:3], key=lambda one: one.name) == [stranger(1), stranger(2)]
    assert order[3] == stranger(1)
    assert places.held == len(taken)


async def test_a_call_that_is_given_up_while_it_waits_holds_nothing() -> None:
    places = CallPlaces()
    taken = await fill(places, stranger(1))
    waiting = [
        asyncio.create_task(take(places, stranger(1), timeout=5.0)) for _ in range(3)
    ]
    await asyncio.sleep(0.01)
    waiting[0].cancel()
    # This one is given up in the moment in which it gets its place.
    taken.pop()(None)
    waiting[1].cancel()
    leave = await waiting[2]
    leave(None)
    for one in taken:
        one(None)
    assert places.held == 0


async def test_only_so_many_calls_of_one_share_wait() -> None:
    places = CallPlaces()
    await fill(places, stranger(1))
    waiting = [
        asyncio.create_task(take(places, stranger(1), timeout=PLACE_WAIT))
        for _ in range(MAX_WAITING)
    ]
    await asyncio.sleep(0.01)
    async with asyncio.timeout(1):
        with pytest.raises(ToolError):
            await take(places, stranger(1), timeout=PLACE_WAIT)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_the_least_number_of_places_serves_everybody_in_turn() -> None:
    places = CallPlaces()
    for share in (OWNER, listed("a"), stranger(1)):
        current_share.set(share)
        leave = await places.take(1, timeout=0.0)
        leave(None)
