"""Updates before the answer of a negotiated protocol, between two daemons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anp.sidecar.calls.call import CallRequest
from negotiation.need import Need
from tests.e2e.talks import talks_in

PLAIN: dict[str, Any] = {"interaction__order": ()}
"Neither side speaks a protocol for tasks."


@pytest.mark.parametrize("published", [False, True])
async def test_a_task_over_an_agreement_streams(
    tmp_path: Path, published: bool
) -> None:
    async with talks_in(tmp_path, consensus__use=published, **PLAIN) as talks:
        task = await talks.start("poem", lines=5)
        seen = await talks.follow(task)
        assert seen.results == [f"line {number}\n" for number in range(5)]
        assert seen.states == ["accepted", "working", "completed"]
        seen = await talks.follow(await talks.start("ticks", number=3, pause=0.05))
        assert seen.results == [0, 1, 2]
        # One that does not stream gives its one result.
        seen = await talks.follow(await talks.start("double", number=21))
        assert seen.results == [{"number": 42}]


async def test_a_call_of_one_turn_gets_all_joined(tmp_path: Path) -> None:
    async with talks_in(tmp_path, consensus__use=False, **PLAIN) as talks:
        request = CallRequest(
            peer=talks.address, need=Need("agent.poem"), arguments={"lines": 3}
        )
        result = await talks.caller.caller.call(request)
        assert result.output == {"result": "line 0\nline 1\nline 2\n"}
