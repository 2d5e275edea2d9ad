"""A peer whose values take for ever to check, and the calls of others meanwhile."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from sandbox.pool.shares import Rank, Share, current_share
from tests.e2e.house import house_in

PATTERN = {"type": "string", "pattern": "^(a+)+$"}
SLOW = {"uniqueItems": True}
VALUES: list[tuple[dict[str, Any], Any]] = [
    (PATTERN, "a" * 60 + "!"),
    (SLOW, [{"n": number} for number in range(20_000)]),
]


async def test_a_call_goes_through_while_strangers_keep_the_workers_busy(
    tmp_path: Path,
) -> None:
    async with house_in(tmp_path) as house:
        await house.others_are_served()

        async def attack(address: str) -> None:
            current_share.set(Share(Rank.COMMON, address))
            while True:
                for schema, value in VALUES:
                    await house.provider.validator.validate(schema, value)

        attackers = [
            asyncio.create_task(attack(f"192.0.2.{number % 4}")) for number in range(24)
        ]
        await asyncio.sleep(1)
        took = []
        for _ in range(10):
            began = time.monotonic()
            await house.others_are_served()
            took.append(time.monotonic() - began)
        # It was over a minute for each; the caller is a stranger here, too.
        assert sorted(took)[5] < 2.0
        assert not any(task.done() for task in attackers)
        for task in attackers:
            task.cancel()
        await asyncio.gather(*attackers, return_exceptions=True)
