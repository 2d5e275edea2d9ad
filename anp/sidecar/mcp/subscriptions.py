"""The tools of the MCP face for subscriptions: tasks that times and events start."""

from __future__ import annotations

from typing import Any, Final

import mcp_types as types

from anp.sidecar.mcp.local_api import LocalApi
from anp.sidecar.mcp.tasks import answer_of, segment_of, tools_of

RUNS: Final = "20"
"Newest runs that `get_subscription` shows."

SUBSCRIPTION_TOOLS: Final = tools_of(
    "subscribe", "get_subscription", "cancel_subscription", "tell_event"
)


class SubscriptionTools:
    """Answers calls of the tools for subscriptions."""

    def __init__(self, api: LocalApi) -> None:
        self._api = api

    async def call(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        """Carry out a call of one of `SUBSCRIPTION_TOOLS`, with arguments that fit it.

        Raises:
            ApiProblem: The daemon refused.
        """
        if name == "subscribe":
            return answer_of(await self._api.post("/v1/subscriptions", arguments))
        if name == "tell_event":
            return answer_of(await self._api.post("/v1/events", arguments))
        one = segment_of(str(arguments.get("subscription", "")))
        path = f"/v1/subscriptions/{one}"
        if name == "cancel_subscription":
            return answer_of(await self._api.post(f"{path}/cancel", {}))
        found = await self._api.get(path)
        runs = await self._api.get(f"{path}/runs", limit=RUNS)
        return answer_of({**found, "newest_runs": runs["runs"]})
