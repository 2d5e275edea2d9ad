"""Requests without credentials: their pace, and how connections become known."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from starlette.types import Receive, Scope

from anp.channel.core.pace import Pace
from anp.sidecar.api.connections import CONNECTION

RATE: Final = 100.0
"Requests without credentials that are answered in a second, of all connections."

BURST: Final = 50
"""Those that are answered without a wait after a pause, such as the files of the
dashboard's page."""

LONGEST: Final = 1.0
"Seconds that such a request may have to wait for its turn."


class TokenlessPace:
    """Lets requests without credentials have their answers in turn."""

    def __init__(self) -> None:
        self._pace = Pace(RATE, BURST)

    async def wait(self, scope: Scope, receive: Receive) -> bool:
        """Wait for the turn of a request; False if its connection was ended instead."""
        seconds = self._pace.turn("", now=time.monotonic(), longest=LONGEST)
        connection = scope.get("state", {}).get(CONNECTION)
        if seconds is None and connection is not None:
            connection.end("too many requests without a token")
            # Until the server has seen the end, it would miss an answer.
            while (await receive())["type"] != "http.disconnect":
                continue
            return False
        await asyncio.sleep(seconds or 0.0)
        return True


async def admit(scope: Scope, *, is_owner: bool = False) -> bool:
    """Take the connection of a request out of the share of those without credentials.

    It waits while every place of the others is taken, and busy.

    Args:
        is_owner: The request has the scope `owner`.

    Returns:
        False if no place became free in time, or too many wait for one.
    """
    connection = scope.get("state", {}).get(CONNECTION)
    if connection is None or connection.known:
        return True
    admitted: bool = await connection.admit(is_owner=is_owner)
    return admitted
