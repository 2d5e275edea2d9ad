"""The tools of the MCP face for subscriptions: tasks that times and events start."""

from __future__ import annotations

from typing import Any, Final

import mcp_types as types

from anp.sidecar.mcp.local_api import LocalApi
from anp.sidecar.mcp.tasks import answer_of, segment_of, tool_of

RUNS: Final = "20"
"Newest runs that `get_subscription` shows."

SUBSCRIPTION: Final = {
    "type": "string",
    "description": "Its id, as `subscribe` gave it.",
}

SUBSCRIPTION_TOOLS: Final = (
    tool_of(
        "subscribe",
        "Subscribe",
        "Have times, events or places start a task of a remote agent, again and again. "
        "Returns at once; follow it with `get_subscription`, and each run's task with "
        "`get_task`.",
        {
            "peer": {"type": "string", "description": "The agent, as for `call`."},
            "capability": {
                "type": "string",
                "description": "Name of one of its capabilities.",
            },
            "input": {"type": "object", "description": "The arguments."},
            "text": {"type": "string", "description": "Words, instead of `input`."},
            "give": {
                "type": "string",
                "description": "Argument that gets the occasion: `at` and `event`.",
            },
            "triggers": {
                "type": "array",
                "items": {"type": "object"},
                "minItems": 1,
                "description": 'Such as {"type": "time", "every": 900}, {"type": '
                '"time", "cron": "0 8 * * *", "zone": "Europe/Berlin"} or {"type": '
                '"event", "event": "build.failed"}.',
            },
            "watcher": {
                "enum": ["here", "peer"],
                "description": "`peer`: the remote agent watches the triggers.",
            },
            "missed": {
                "enum": ["skip", "once", "all"],
                "description": "Times that pass while the daemon is away.",
            },
            "max_runs": {"type": "integer", "minimum": 1},
            "expires": {"type": "string", "description": "Date and time of its end."},
            "debounce": {
                "type": "number",
                "minimum": 0,
                "description": "Seconds after a run in which nothing starts it.",
            },
        },
        ["peer", "triggers"],
    ),
    tool_of(
        "get_subscription",
        "Look at a subscription",
        "Tell the state of a subscription, when it is due next, and its newest runs "
        "with their tasks.",
        {"subscription": SUBSCRIPTION},
        ["subscription"],
        read_only=True,
    ),
    tool_of(
        "cancel_subscription",
        "Cancel a subscription",
        "End a subscription; tasks that it started go on.",
        {"subscription": SUBSCRIPTION},
        ["subscription"],
    ),
    tool_of(
        "tell_event",
        "Tell of an event",
        "Tell the daemon that something happened; subscriptions to it start their "
        "tasks. The same `id` twice counts once.",
        {
            "type": {"type": "string", "description": "Such as build.failed."},
            "data": {"type": "object"},
            "id": {"type": "string"},
        },
        ["type"],
    ),
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
