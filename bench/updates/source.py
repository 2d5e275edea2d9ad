"""The generator that both kinds of agent stream; each update says when it was made."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator


async def updates(number: int, pause: float) -> AsyncIterator[str]:
    """Yield updates at a steady pace.

    Args:
        pause: Seconds between two.
    """
    began = time.monotonic()
    for one in range(number):
        await asyncio.sleep(max(0.0, began + one * pause - time.monotonic()))
        yield f"<<{one}|{time.monotonic_ns()}>> {'words of an update ' * 5}\n"
