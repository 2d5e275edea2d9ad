"""The process that carries out one attack: prepare, begin, end, each on an order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from typing import Any

from tests.attacks.children import give, orders, raise_file_limit
from tests.attacks.kinds.base import Target
from tests.attacks.kinds.catalogue import ATTACKS


async def _end(running: asyncio.Task[None]) -> str:
    """End an attack; return why it had ended before, if it had."""
    ended = ""
    if running.done() and not running.cancelled():
        failure = running.exception()
        ended = "it ended by itself" if failure is None else repr(failure)[:300]
        if failure is not None:
            traceback.print_exception(failure)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        async with asyncio.timeout(5):
            await running
    return ended


async def _main() -> None:
    attack = running = None
    async for order in orders():
        answer: dict[str, Any] = {}
        match order["do"]:
            case "prepare":
                attack = ATTACKS[order["attack"]](Target(**order["target"]))
                await attack.prepare()
            case "begin" if attack is not None:
                running = asyncio.create_task(attack.run())
            case "end" if attack is not None and running is not None:
                answer = {"ended": await _end(running), "done": attack.done}
        give(answer)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    raise_file_limit()
    asyncio.run(_main())
