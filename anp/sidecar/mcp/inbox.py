"""The tools of the MCP face for an agent that gets tasks: taken, told of, finished."""

from __future__ import annotations

from typing import Any, Final

import mcp_types as types

from anp.sidecar.mcp.local_api import LocalApi
from anp.sidecar.mcp.tasks import answer_of, segment_of, tools_of

LEASE: Final = 600
"Seconds for which a model may think before it tells anything of a task."


SHOWN: Final = (
    *("id", "state", "capability", "caller", "lasts", "deadline"),
    *("redelivered", "asked"),
)
"Fields of a task for a model, which reads the peer's words in a fence only."

INBOX_TOOLS: Final = tools_of(
    "next_task", "update_task", "ask_requester", "finish_task"
)
PATHS: Final = {"progress": "progress", "message": "messages", "part": "parts"}
"Part of the API for each kind of update."


class InboxTools:
    """Answers calls of the tools for agents that get tasks."""

    def __init__(self, api: LocalApi) -> None:
        self._api = api
        self._shown: dict[str, int] = {}
        "Number of the newest message that was shown, by task."

    async def call(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        """Carry out a call of one of `INBOX_TOOLS`, with arguments that fit it.

        Raises:
            ApiProblem: The daemon refused.
        """
        if name == "next_task":
            body = {**arguments, "lease": LEASE}
            found = (await self._api.post("/v1/inbox/next", body))["task"]
            if found is None:
                return answer_of({"task": None})
            self._shown.pop(found["id"], None)
            return self._answer(found)
        path = f"/v1/inbox/{segment_of(str(arguments.pop('task', '')))}"
        if name == "update_task":
            kind = PATHS.get(str(arguments.pop("kind", "")), "messages")
            return await self._post(f"{path}/{kind}", arguments)
        if name == "ask_requester":
            wait = arguments.get("wait", 0)
            if "text" in arguments:
                return await self._post(f"{path}/ask", arguments)
            asked = await self._api.get(path)
            if asked["asked"] is not None and wait:
                asked = await self._api.get(path, wait=str(int(wait)))
            return self._answer(asked)
        if "failure" in arguments:
            return await self._post(
                f"{path}/failure", {"message": arguments["failure"]}
            )
        if "rejection" in arguments:
            return await self._post(
                f"{path}/reject", {"reason": arguments["rejection"]}
            )
        return await self._post(f"{path}/result", arguments)

    async def _post(self, path: str, body: dict[str, Any]) -> types.CallToolResult:
        return self._answer(await self._api.post(path, body))

    def _answer(self, found: dict[str, Any]) -> types.CallToolResult:
        """Show a task, and of its messages those that were not shown before."""
        shown, before = _shown(found), self._shown.get(found["id"], 0)
        new = [one for one in found["messages"] if one["number"] > before]
        if new:
            shown["messages"] = [one["fenced"] for one in new]
            self._shown[found["id"]] = new[-1]["number"]
        if found["state"] not in ("waiting", "leased", "acknowledged"):
            self._shown.pop(found["id"], None)
        return answer_of(shown)


def _shown(found: dict[str, Any]) -> dict[str, Any]:
    """Return a task as a model sees it: the peer's words in a fence, and once."""
    shown = {name: found[name] for name in SHOWN}
    answer = found["answer"]
    if answer is not None:
        shown["answer"] = {name: answer[name] for name in ("action", "fenced")}
    if found["state"] == "leased":
        shown["input"] = found["fenced"]
    return shown
