"""The tools of the MCP face for tasks that last: started, followed, answered, ended."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit

import mcp_types as types
from mcp.server.context import ServerRequestContext

from anp.sidecar.mcp.contents import ANNOTATIONS, bytes_block
from anp.sidecar.mcp.local_api import ApiProblem, LocalApi
from jsonic.exact_numbers import write_json

MAX_WAIT: Final = 300.0
"Most seconds for which one call of `get_task` waits."

SILENCE: Final = 0.3
"Seconds without an event after which those that came are enough."

MAX_EVENTS: Final = 200
"Events in one answer; `after` brings the next ones."

MAX_BYTES: Final = 4 * 1024 * 1024
"Most bytes of contents in one answer; larger ones are named only."


@cache
def _texts() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (files(__package__) / "tools.json").read_text("utf-8")
    )
    return found


def tools_of(*names: str) -> tuple[types.Tool, ...]:
    """Return tools of the face; their words and arguments stand in `tools.json`."""
    return tuple(
        types.Tool(
            name=name,
            title=one["title"],
            description=one["description"],
            input_schema={
                "type": "object",
                "properties": one["properties"],
                "required": one["required"],
                "additionalProperties": False,
            },
            annotations=types.ToolAnnotations(
                read_only_hint=one["read_only"], open_world_hint=True
            ),
        )
        for name in names
        for one in [_texts()[name]]
    )


TASK_TOOLS: Final = tools_of("start_task", "get_task", "answer_task", "cancel_task")


class TaskTools:
    """Answers calls of the tools for tasks."""

    def __init__(self, api: LocalApi) -> None:
        self._api = api

    async def call(
        self,
        context: ServerRequestContext[Any, Any],
        name: str,
        arguments: dict[str, Any],
    ) -> types.CallToolResult:
        """Carry out a call of one of `TASK_TOOLS`, with arguments that fit it.

        Raises:
            ApiProblem: The daemon refused.
        """
        if name == "start_task":
            return answer_of(_brief(await self._api.post("/v1/tasks", arguments)))
        path = f"/v1/tasks/{segment_of(str(arguments.pop('task', '')))}"
        if name == "get_task":
            after = int(number_of(arguments, "after"))
            wait = min(number_of(arguments, "wait"), MAX_WAIT)
            return await self._get(context, path, after=after, wait=wait)
        if name == "answer_task":
            return answer_of(
                _brief(await self._api.post(f"{path}/messages", arguments))
            )
        return answer_of(_brief(await self._api.post(f"{path}/cancel", {})))

    async def _get(
        self,
        context: ServerRequestContext[Any, Any],
        path: str,
        *,
        after: int,
        wait: float,
    ) -> types.CallToolResult:
        found = await self._api.get(path)
        events: list[dict[str, Any]] = []
        told = 0.0
        stream = self._api.events(
            f"{path}/events", after=after, wait=wait, silence=SILENCE
        )
        async for event in stream:
            events.append(event)
            line = _line(event)
            if line:
                told += 1
                await context.session.report_progress(told, None, line)
            if len(events) >= MAX_EVENTS:
                break
        if events:
            # What it waits for may have changed meanwhile.
            found = await self._api.get(path)
        blocks = await self._blocks(path, events)
        shown = {
            **_brief(found),
            "question": _asked(found),
            "events": [_event(one) for one in events],
            "next": max([after, *(one["number"] for one in events)]),
        }
        return answer_of(shown, blocks)

    async def _blocks(
        self, path: str, events: list[dict[str, Any]]
    ) -> list[types.ContentBlock]:
        """Return the bytes that are complete with these events, as blocks."""
        blocks: list[types.ContentBlock] = []
        room = MAX_BYTES
        for event in events:
            for part in event["data"].get("message", {}).get("parts", ()):
                if "artifact" not in part or part.get("continued"):
                    continue
                place = f"{path}/artifacts/{segment_of(part['artifact'])}"
                data = None
                if part["size"] <= room:
                    data = await self._api.content(place, most=room)
                if data is None:
                    part["not_shown"] = "too large; `anpd tasks` saves it"
                    continue
                room -= len(data)
                media_type = part["media_type"]
                said = part.get("metadata", {}).get(ANNOTATIONS)
                block = bytes_block(
                    data, media_type=media_type, uri=f"anpd:{place}", annotations=said
                )
                blocks.append(block)
        return blocks


def number_of(arguments: dict[str, Any], name: str) -> float:
    """Return a number among the arguments, 0 without it.

    Raises:
        ApiProblem: It is none.
    """
    value = arguments.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ApiProblem({"kind": "usage", "detail": f"{name} has to be a number"})
    return value


def segment_of(text: str, kind: str = "task") -> str:
    """Return a value as one segment of a path.

    Args:
        kind: Name of the thing whose id it is.

    Raises:
        ApiProblem: It is no id.
    """
    if not text or not all(one.isalnum() or one in "-_." for one in text):
        raise ApiProblem({"kind": "usage", "detail": f"that is no id of a {kind}"})
    return text


def _brief(found: dict[str, Any]) -> dict[str, Any]:
    names = ("id", "session", "state", "ended", "capability", "executor")
    more = ("code", "reason", "may_have_run", "cancel_requested")
    brief = {name: found[name] for name in names}
    return brief | {name: found[name] for name in more if found.get(name)}


def _asked(found: dict[str, Any]) -> dict[str, Any] | None:
    """Return a task's question with the verified DID, and the host of its page."""
    question = found["question"]
    if question is None:
        return None
    told = {"asked_by": found["executor"], **question}
    if question["url"]:
        told["host"] = _host(question["url"])
    return told


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _event(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event with what a model has a use for."""
    data = event["data"]
    message = data.get("message")
    if message is not None:
        data = {name: message[name] for name in ("by", "purpose", "parts")}
    return {"number": event["number"], "type": event["type"], **data}


def _line(event: dict[str, Any]) -> str:
    data = event["data"]
    match event["type"]:
        case "task.progress":
            done = f"{data['progress']:g}" if data["progress"] is not None else ""
            whole = f"/{data['total']:g}" if data["total"] is not None else ""
            return f"{done}{whole} {data['text'] or ''}".strip()
        case "task.state":
            return str(data["state"])
        case "task.message":
            parts = data["message"]["parts"]
            return " ".join(str(part.get("text", part["kind"])) for part in parts)[:200]
    return ""


def answer_of(
    shown: dict[str, Any], blocks: list[types.ContentBlock] | None = None
) -> types.CallToolResult:
    """Return an answer as JSON, with contents besides."""
    text = types.TextContent(type="text", text=write_json(shown, ensure_ascii=False))
    return types.CallToolResult(
        content=[text, *(blocks or ())], structured_content=shown
    )
