"""What was spent on models, in the local API (SIDECAR.md, Local API)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from anp.sidecar.api.answers import ref
from anp.sidecar.api.table import Answer, Operation, Query, integer_of
from anp.sidecar.minds.models import budget_limits
from anp.sidecar.minds.spend import MAX_DAYS, first_day, spend_view
from negotiation.llm.asking.budget import utc_day

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["spend_operations"]

DAYS = Query(
    name="days",
    text="Days, today being the last.",
    schema={"type": "integer", "minimum": 1, "maximum": MAX_DAYS, "default": 7},
)


def spend_operations(daemon: Daemon) -> list[Operation]:
    """Return the operation `/v1/spend`."""

    async def spend(request: Request) -> Response:
        today = utc_day(time.time())
        since = first_day(today, integer_of(request, DAYS.name, 7))
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

    return [
        Operation(
            method="GET",
            path="/v1/spend",
            name="getSpend",
            summary="Tell what models cost, by day, account, peer and step.",
            handler=spend,
            answers=(Answer(text="The days.", schema=ref("Spend")),),
            query=(DAYS,),
        )
    ]
