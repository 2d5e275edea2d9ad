"""The tools of the MCP face for tasks that last: started, followed, answered, ended."""

from __future__ import annotations

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

TASK: Final = {"type": "string", "description": "Its id, as `start_task` gave it."}


def tool_of(
    name: str,
    title: str,
    description: str,
    properties: dict[str, Any],
    required: list[str],
    *,
    read_only: bool = False,
) -> types.Tool:
    """Return a tool of the face."""
    return types.Tool(
        name=name,
        title=title,
        description=description,
        input_schema={
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        annotations=types.ToolAnnotations(
            read_only_hint=read_only, open_world_hint=True
        ),
    )


TASK_TOOLS: Final = (
    tool_of(
        "start_task",
        "Start a task",
        "Let a remote agent begin work that may last, stream and ask back. Returns at "
        "once; follow it with `get_task`.",
        {
            "peer": {"type": "string", "description": "The agent, as for `call`."},
            "session": {
                "type": "string",
                "description": "Id of a session of an earlier task, instead of `peer`.",
            },
            "capability": {
                "type": "string",
                "description": "Name of one of its capabilities.",
            },
            "find": {
                "type": "string",
                "description": "Name of a capability instead of `peer` and "
                "`capability`: one of the allowed agents that offer it is chosen.",
            },
            "candidates": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Agents in order, instead of `peer`: the next one gets "
                "the task when one hands it back.",
            },
            "group": {
                "type": "string",
                "description": "Id of a group, instead of `peer`: its members are "
                "offered the task, and the first that accepts does it.",
            },
            "proxy": {
                "type": "boolean",
                "description": "With `find`: the next agent gets it also later.",
            },
            "subtasks": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Parts of one task, each with `peer` (or `candidates` "
                "or `find`), `capability`, and `input` or `text`; nothing else is "
                "given then but the next three.",
            },
            "dispatch": {
                "enum": ["parallel", "serial"],
                "description": "Parts all at a time, or one after the other.",
            },
            "wait": {
                "enum": ["all", "any"],
                "description": "All parts have to be completed, or any one.",
            },
            "timeout": {
                "type": "number",
                "description": "Seconds for a task with parts or candidates.",
            },
            "parent": {
                "type": "string",
                "description": "The task for whose sake this is: its id, or the key "
                "with which you were given it.",
            },
            "input": {"type": "object", "description": "The data for it."},
            "text": {"type": "string", "description": "The wish in words."},
            "depends_on": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Tasks of the session that have to be completed before.",
            },
        },
        [],
    ),
    tool_of(
        "get_task",
        "Follow a task",
        "Return the state of a task and what happened since event number `after`; wait "
        "for something new for up to `wait` seconds. Its question, if it has one, is "
        "answered with `answer_task`.",
        {
            "task": TASK,
            "after": {
                "type": "integer",
                "minimum": 0,
                "description": "`next` of the answer before.",
            },
            "wait": {"type": "number", "minimum": 0, "maximum": MAX_WAIT},
        },
        ["task"],
        read_only=True,
    ),
    tool_of(
        "answer_task",
        "Answer a task's question",
        "Answer the question of a task, or tell it more. Ask the user before you give "
        "anything personal away; a page that the agent names is for the user to open.",
        {
            "task": TASK,
            "text": {"type": "string", "description": "The answer in words."},
            "value": {"description": "The answer as the question's schema wants it."},
            "action": {"enum": ["accept", "decline", "cancel"]},
        },
        ["task"],
    ),
    tool_of(
        "cancel_task",
        "Cancel a task",
        "Ask the agent to end a task; `get_task` tells how it ended.",
        {"task": TASK},
        ["task"],
    ),
)


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
