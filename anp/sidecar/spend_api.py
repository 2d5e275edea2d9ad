"""What was spent on models, in the local API (SIDECAR.md, Local API)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from anp.errors import CallError, ErrorKind
from anp.sidecar.modelling import budget_limits
from anp.sidecar.spend_view import MAX_DAYS, first_day, spend_view
from negotiation.llm.budget import utc_day

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["Handler", "spend_routes"]

Handler = Callable[[Request], Awaitable[Response]]
"Answers one request."


def spend_routes(
    daemon: Daemon, answering: Callable[[Handler], Handler]
) -> list[Route]:
    """Return the route `/v1/spend`.

    Args:
        answering: Turns the errors of a handler into problem documents.
    """

    async def spend(request: Request) -> Response:
        today = utc_day(time.time())
        since = first_day(today, _days(request.query_params.get("days", "7")))
        spends = await asyncio.to_thread(daemon.store.spends, since=since)
        calls = await asyncio.to_thread(daemon.store.model_calls, since=since)
        llm = daemon.config.llm
        view = spend_view(
            spends,
            calls,
            limits=budget_limits(daemon.config.budget),
            today=today,
            since=since,
            priced=llm.price_input is not None or llm.price_output is not None,
        )
        return JSONResponse({"model": llm.model, **view})

    return [Route("/v1/spend", answering(spend))]


def _days(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text[:5]) <= MAX_DAYS:
        return int(text)
    raise CallError(ErrorKind.USAGE, f"days has to be a number from 1 to {MAX_DAYS}")
