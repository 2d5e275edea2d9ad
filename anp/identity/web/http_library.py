"""Loads the HTTP library beside the event loop, when it is first needed.

That takes a fifth of a second, for which the calls of every peer would wait; and a
daemon that fetches nothing needs none of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from functools import cache


async def load_http() -> None:
    """Load the library with all that its first request would load."""
    await asyncio.to_thread(_load)


@cache
def _load() -> None:
    asyncio.run(_ask_nobody())


async def _ask_nobody() -> None:
    """Ask at a port that no server can have; much is loaded with a connection."""
    import httpx2

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    async with httpx2.AsyncClient(verify=tls, trust_env=False) as client:
        with contextlib.suppress(httpx2.HTTPError):
            await client.get("http://127.0.0.1:0/")
