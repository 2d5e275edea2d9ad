"""Calls over GB/Z 185.6 through the same shells, with the channels in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from anp.sidecar.attachments import ToolError
from anp.sidecar.consensus.written import InputRefused, NotServed
from negotiation.consensus.written import PeerEvent, WrittenLimits
from tests.anp.protocols.gbz.serving_side import PairCode
from tests.anp.sidecar.consensus.written.test_shells import talk
from tests.clauses import clause


@clause("GBZ-4", "GBZ-10", "GBZ-56")
async def test_a_call_runs_the_capability_as_a_task() -> None:
    async with talk(code=PairCode()) as one:
        for number in (21, 22):
            answer = await one.requester.call("shop.twice", {"n": number})
            assert (answer.result, answer.error) == ({"n": number * 2}, None)
        assert len(one.fake.calls) == 2
        assert one.requester.idle


async def test_many_calls_are_in_flight_on_one_channel() -> None:
    gates = [asyncio.Event() for _ in range(40)]

    async def wait(name: str, arguments: dict[str, Any]) -> Any:
        await gates[arguments["n"]].wait()
        return arguments

    limits = WrittenLimits(max_served=5)
    async with talk(run=wait, limits=limits, code=PairCode()) as one:
        calls = [
            asyncio.create_task(one.requester.call("shop.twice", {"n": number}))
            for number in range(40)
        ]
        await one.called(5)
        for gate in reversed(gates):
            gate.set()
        answers = await asyncio.gather(*calls)
        assert [answer.result for answer in answers] == [{"n": n} for n in range(40)]


async def test_failures_come_back_in_the_words_of_the_capability() -> None:
    async def fail(name: str, arguments: dict[str, Any]) -> Any:
        raise ToolError(404, "no such thing")

    async with talk(run=fail, code=PairCode()) as one:
        answer = await one.requester.call("shop.twice", {"n": 1})
        assert answer.error == ("404", "no such thing")
        with pytest.raises(InputRefused):
            await one.requester.call("shop.twice", {"n": "x"})
        assert len(one.fake.calls) == 1


async def test_what_is_not_exposed_is_not_served() -> None:
    async with talk(code=PairCode()) as one:
        for action in ("shop.hidden", "shop.nothing"):
            with pytest.raises(NotServed):
                await one.requester.call(action, {})
        assert one.fake.calls == []


async def test_events_reach_the_owner_of_the_other_side() -> None:
    async with talk(code=PairCode()) as one:
        await one.requester.call("shop.twice", {"n": 1})
        await one.served.tell("restocked", {"n": 1})
        await one.requester.call("shop.twice", {"n": 2})
        assert one.said == [PeerEvent("restocked", {"n": 1}, False, {})]
