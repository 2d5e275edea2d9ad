"""The tools of the MCP face for groups: agents that hear one another, in one order."""

from __future__ import annotations

import base64
import secrets
from typing import Any, Final

import mcp_types as types

from anp.sidecar.attachments.inbox.desk import fenced
from anp.sidecar.mcp.contents import bytes_block
from anp.sidecar.mcp.local_api import LocalApi
from anp.sidecar.mcp.tasks import (
    MAX_BYTES,
    MAX_EVENTS,
    MAX_WAIT,
    SILENCE,
    answer_of,
    number_of,
    segment_of,
    tools_of,
)
from jsonic.exact_numbers import write_json

GROUP_TOOLS: Final = tools_of(
    "list_groups", "create_group", "answer_invitation", "post_to_group", "read_group"
)


class GroupTools:
    """Answers calls of the tools for groups."""

    def __init__(self, api: LocalApi) -> None:
        self._api = api

    async def call(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        """Carry out a call of one of `GROUP_TOOLS`, with arguments that fit it.

        Raises:
            ApiProblem: The daemon refused.
        """
        if name == "list_groups":
            found = await self._api.get("/v1/groups")
            return answer_of({"groups": [_group(one) for one in found["groups"]]})
        if name == "create_group":
            return answer_of(_group(await self._api.post("/v1/groups", arguments)))
        path = f"/v1/groups/{segment_of(str(arguments.pop('group', '')), 'group')}"
        if name == "post_to_group":
            return answer_of(await self._api.post(f"{path}/messages", arguments))
        if name == "answer_invitation":
            act = "accept" if arguments.get("accept") is True else "decline"
            return answer_of(_group(await self._api.post(f"{path}/{act}", {})))
        after = int(number_of(arguments, "after"))
        wait = min(number_of(arguments, "wait"), MAX_WAIT)
        return await self._read(path, after=after, wait=wait)

    async def _read(
        self, path: str, *, after: int, wait: float
    ) -> types.CallToolResult:
        found = await self._api.get(path)
        events: list[dict[str, Any]] = []
        blocks: list[types.ContentBlock] = []
        stream = self._api.events(
            f"{path}/events", after=after, wait=wait, silence=SILENCE
        )
        async for event in stream:
            events.append(_event(event, found["own"], blocks, path))
            after = event["number"]
            if len(events) >= MAX_EVENTS:
                break
        shown = {
            "group": found["id"],
            "state": found["state"],
            "events": events,
            "next": after,
            "more": len(events) >= MAX_EVENTS,
        }
        return answer_of(shown, blocks)


def _group(found: dict[str, Any]) -> dict[str, Any]:
    """Return a group as a model has a use for it."""
    names = ("id", "state", "own", "owner", "sealed", "last")
    shown = {name: found[name] for name in names}
    shown["members"] = [one["id"] for one in found["members"]]
    if found["name"]:
        shown["name"] = _of_peer(found["name"], found["owner"], found["own"])
    if found["waiting"]:
        shown["waiting"] = [
            {name: one[name] for name in ("kind", "peer", "expires")}
            for one in found["waiting"]
        ]
    invitation = found["invitation"]
    if invitation is not None:
        shown["invited_by"] = invitation["by"]
        shown["by_a_stranger"] = invitation["stranger"]
        if invitation["text"]:
            shown["invitation"] = _of_peer(invitation["text"], invitation["by"], "")
    return shown


def _event(
    event: dict[str, Any], own: str, blocks: list[types.ContentBlock], path: str
) -> dict[str, Any]:
    """Return an event; bytes that it carries are added to the blocks."""
    data = event["data"]
    shown = {"number": event["number"], "type": event["type"], "by": data["by"]}
    if data["proof"] != "signed":
        # The hub alone, or nobody, vouches for it.
        shown["proof"] = data["proof"]
    if data["replayed"]:
        shown["replayed"] = True
    message = data.get("message")
    if message is None:
        member = data["content"].get("member")
        return shown | ({} if member is None else {"member": member})
    said: list[str] = []
    for part in message.get("parts", ()):
        said.append(_words_of(part))
        room = MAX_BYTES - sum(len(one.model_dump_json()) for one in blocks)
        if "bytes" in part and len(part["bytes"]) <= room:
            uri = f"anpd:{path}/events/{event['number']}"
            content = base64.b64decode(part["bytes"])
            blocks.append(bytes_block(content, media_type=part["media_type"], uri=uri))
    return shown | {"message": _of_peer("\n".join(said), data["by"], own)}


def _words_of(part: dict[str, Any]) -> str:
    if "text" in part:
        return str(part["text"])
    if "value" in part:
        return write_json(part["value"], ensure_ascii=False)
    if "uri" in part:
        return f"content elsewhere: {part['uri']}"
    name = part.get("name") or "content"
    return f"{name} ({part['media_type']}, {len(part['bytes']) * 3 // 4} bytes)"


def _of_peer(text: str, by: str, own: str) -> str:
    """Return a text fenced as its writer's, or as it is where we wrote it."""
    if by == own:
        return text
    return fenced(text, peer=by, mark=secrets.token_hex(6))
