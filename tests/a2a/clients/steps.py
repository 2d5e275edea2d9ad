"""The methods that a client tries, and what became of each."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

PUSH_URL = os.environ.get("A2A_PUSH", "")
"Address at which the program that runs the clients takes their notifications."

METHODS = (
    *("card", "send", "stream", "ask back", "get", "list", "cancel"),
    *("resubscribe", "own errors", "0.1", "2^53 + 1", "no token", "push"),
)
"""Columns of the table; programs for other languages use the same words.

The numbers are those that come through with every digit.
"""

PUSH_TOKEN = "of this receiver"
"Token that each client gives with its address."

PASS = "pass"

SECONDS = 60.0
"Longest time of one method."


class Steps:
    """What became of each method, in the order in which they were tried."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    async def take(self, method: str, tried: Callable[[], Awaitable[None]]) -> None:
        """Try a method; what it raises is the reason why it failed."""
        assert method in METHODS
        try:
            async with asyncio.timeout(SECONDS):
                await tried()
        except Exception as exc:  # noqa: BLE001  # it is the result
            traceback.print_exc()
            self.found[method] = f"{type(exc).__name__}: {exc}"[:200]
        else:
            self.found[method] = PASS

    def without(self, method: str, reason: str) -> None:
        """Note why a client cannot try a method."""
        assert method in METHODS
        self.found[method] = f"- {reason}"


async def is_refused(tried: Callable[[], Awaitable[None]], words: str) -> None:
    """Check that something fails, with some words in its error."""
    try:
        await tried()
    except Exception as exc:
        if words not in f"{type(exc).__name__}: {exc}":
            raise
    else:
        raise AssertionError("it was let in")


def main(client: Callable[[Steps, str, str, str], Coroutine[Any, Any, None]]) -> None:
    """Run a client with the arguments of the program, and print what it found."""
    url, token, form = sys.argv[1:4]
    steps = Steps()
    asyncio.run(client(steps, url, token, form))
    print(json.dumps(steps.found))
