"""Test requests and what comes of them."""

from __future__ import annotations

from typing import cast

import pytest

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.core.events import FrameReceived
from anp.sidecar.bound.verification import MAX_WAITING, NoAnswer, Verification
from anp.wire.frames import Frame, ProtocolType
from tests.clauses import clause

TIMEOUT = 5.0
"Seconds that no test here waits for."


class FakeChannel:
    """A channel on which one thing happens as soon as something is sent."""

    def __init__(self) -> None:
        self.verification = Verification(cast(Channel, self))
        self.happens: list[FrameReceived | ChannelClosed | str] = []
        self.ended: ChannelClosed | None = None

    async def send(
        self,
        protocol_type: ProtocolType,
        data: bytes,
        message_id: str | None = None,
    ) -> str:
        assert protocol_type is ProtocolType.VERIFICATION
        if self.ended is not None:
            raise self.ended
        for one in self.happens:
            match one:
                case FrameReceived() | ChannelClosed():
                    self.verification.take(one)
                case _:
                    self.verification.refused(one, "no idea")
        return "envelope"

    async def ask(self) -> tuple[bytes, str] | NoAnswer:
        return await self.verification.ask(b"request", timeout=TIMEOUT)


def answer(data: bytes) -> FrameReceived:
    """Return an answer as it comes."""
    return FrameReceived("channel", Frame(ProtocolType.VERIFICATION, data), "id")


@clause("ANP-75")
async def test_an_answer_comes_with_its_envelope() -> None:
    channel = FakeChannel()
    channel.happens = [answer(b"yes")]
    assert await channel.ask() == (b"yes", "id")


async def test_what_came_before_the_request_is_no_answer_to_it() -> None:
    channel = FakeChannel()
    assert channel.verification.take(answer(b"old"))
    channel.happens = [answer(b"new")]
    assert await channel.ask() == (b"new", "id")


async def test_a_refusal_ends_the_wait_at_once() -> None:
    channel = FakeChannel()
    channel.happens = [answer(b"yes")]
    await channel.ask()
    channel.verification.refused("another", "not meant")
    channel.verification.refused("envelope", "no idea")
    found = await channel.verification.next_answer(timeout=TIMEOUT)
    assert found == NoAnswer("the peer cannot answer: no idea")


async def test_silence_has_an_end() -> None:
    found = await FakeChannel().verification.ask(b"request", timeout=0.01)
    assert found == NoAnswer("no answer in 0.01 s")


@pytest.mark.parametrize("before", [True, False])
async def test_a_peer_that_closes_over_a_test_has_failed_it(before: bool) -> None:
    channel, end = FakeChannel(), ChannelClosed("no more", by_peer=True)
    if before:
        channel.ended = end
    else:
        channel.happens = [end]
    assert await channel.ask() == NoAnswer("the peer closed the channel: no more")


@pytest.mark.parametrize(
    "reason", ["stale: shop.buy is not exposed", "revoked", "not allowed"]
)
async def test_what_an_owner_took_away_says_nothing_about_a_test(reason: str) -> None:
    channel = FakeChannel()
    channel.happens = [ChannelClosed(reason, by_peer=True)]
    with pytest.raises(ChannelClosed, match=reason):
        await channel.ask()


@pytest.mark.parametrize("before", [True, False])
async def test_a_lost_link_says_nothing_about_a_test(before: bool) -> None:
    channel, end = FakeChannel(), ChannelClosed("lost", by_peer=False)
    if before:
        channel.ended = end
    else:
        channel.happens = [end]
    with pytest.raises(ChannelClosed):
        await channel.ask()


async def test_only_so_many_answers_wait_to_be_read() -> None:
    verification = FakeChannel().verification
    taken = [verification.take(answer(b"")) for _ in range(MAX_WAITING + 1)]
    assert taken == [True] * MAX_WAITING + [False]
