"""Waiting in tests for what nobody announces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PATIENCE = 60.0
"Seconds after which a test fails whose own deadline is longer."


async def until(happened: Callable[[], bool]) -> None:
    """Wait until something is so; the test's deadline may be shorter.

    Raises:
        TimeoutError: It never came.
    """
    async with asyncio.timeout(PATIENCE):
        while not happened():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)
