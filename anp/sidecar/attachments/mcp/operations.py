"""Everything to call at an MCP server: tools, prompts, and its resources.

Each becomes one capability. Resources have two for all of them, since there may be any
number: `list_resources` and `read_resource`. A prompt is called `prompt_NAME`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from anp.interaction.elements import Part
from anp.sidecar.attachments.attachment import ToolError
from anp.sidecar.attachments.listing import Tool
from anp.sidecar.attachments.mcp.content import (
    TEXT_OUTPUT,
    block_part,
    block_parts,
    content_output,
    resource_part,
)
from anp.sidecar.attachments.mcp.exchange import CallTalk
from anp.sidecar.attachments.part_json import part_json, result_json
from anp.sidecar.attachments.tool_errors import tool_error

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.types import Prompt
    from mcp.types import Tool as McpTool

MAX_PAGES = 64
"Pages of a list that are read; a list that never ends must not hang us."

MAX_LISTED = 1_000
"Resources that are listed in one answer."


@dataclass(frozen=True, slots=True)
class McpOutcome:
    """The result of an operation."""

    output: dict[str, Any]
    "The output of a call of one turn."

    parts: tuple[Part, ...] = ()
    "The pieces that a task gets in its place; empty if a task gets the output, too."


class McpOperation(Protocol):
    """One thing that a server can do."""

    async def run(self, exchange: CallTalk, arguments: dict[str, Any]) -> McpOutcome:
        """Do it.

        Raises:
            ToolError: The server says that it failed, or its answer is no result.
            MCPError: The server answered with an error.
        """


@dataclass(frozen=True, slots=True)
class _ToolCall:
    name: str
    structured: bool
    as_task: bool

    async def run(self, exchange: CallTalk, arguments: dict[str, Any]) -> McpOutcome:
        result = await exchange.call_tool(self.name, arguments, as_task=self.as_task)
        if result.is_error:
            texts = [block.text for block in result.content if block.type == "text"]
            raise tool_error(result.structured_content, "\n".join(texts))
        if not self.structured:
            parts = block_parts(result.content)
            return McpOutcome(content_output(parts), parts)
        output = result.structured_content
        if not isinstance(output, dict):
            raise ToolError(
                502, "the tool has an output schema but gave no structured content"
            )
        # The texts say the same again, for clients that know no structured content.
        others = block_parts(one for one in result.content if one.type != "text")
        said = () if _repeats(output, result.content) else (Part.value(output),)
        return McpOutcome(output, (*said, *others) if others else ())


@dataclass(frozen=True, slots=True)
class _PromptGet:
    name: str

    async def run(self, exchange: CallTalk, arguments: dict[str, Any]) -> McpOutcome:
        filled = {name: str(value) for name, value in arguments.items()}
        result = await exchange.get_prompt(self.name, filled)
        messages = [
            {"role": one.role, **result_json(block_part(one.content))}
            for one in result.messages
        ]
        return McpOutcome({"messages": messages})


class _ResourceList:
    async def run(self, exchange: CallTalk, arguments: dict[str, Any]) -> McpOutcome:
        resources, templates = await listed_resources(exchange.session)
        return McpOutcome({"resources": resources, "templates": templates})


async def listed_resources(
    session: ClientSession,
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return the resources of a server, and the templates of their URIs.

    A server that knows one of the two lists only has nothing in the other.

    Raises:
        MCPError: The server does not list them.
    """
    from mcp.shared.exceptions import MCPError
    from mcp.types import METHOD_NOT_FOUND, PaginatedRequestParams

    resources: list[dict[str, str]] = []
    templates: list[dict[str, str]] = []
    try:
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            wanted = PaginatedRequestParams(cursor=cursor)
            page = await session.list_resources(params=wanted)
            resources += [_described(one, uri=one.uri) for one in page.resources]
            cursor = page.next_cursor
            if cursor is None or len(resources) >= MAX_LISTED:
                break
    except MCPError as exc:
        if exc.code != METHOD_NOT_FOUND:
            raise
    try:
        found = await session.list_resource_templates()
        templates = [
            _described(one, uriTemplate=one.uri_template)
            for one in found.resource_templates
        ]
    except MCPError as exc:
        if exc.code != METHOD_NOT_FOUND:
            raise
    return resources[:MAX_LISTED], templates[:MAX_LISTED]


class _ResourceRead:
    async def run(self, exchange: CallTalk, arguments: dict[str, Any]) -> McpOutcome:
        result = await exchange.read_resource(str(arguments.get("uri")))
        parts = tuple(resource_part(one) for one in result.contents)
        texts = [str(one.content) for one in parts if isinstance(one.content, str)]
        others = [part_json(one) for one in parts if isinstance(one.content, bytes)]
        output = {"text": "\n".join(texts), **({"parts": others} if others else {})}
        return McpOutcome(output, parts)


def _repeats(output: dict[str, Any], blocks: Sequence[Any]) -> bool:
    """Return whether structured content is nothing but the blocks once more.

    A task gets the bytes of a picture once, and as bytes.
    """
    items = output.get("content")
    if len(output) > 1 or not isinstance(items, list) or len(items) != len(blocks):
        return False
    return all(
        isinstance(item, dict)
        and item.get("data") is not None
        and item.get("data") == getattr(block, "data", None)
        for item, block in zip(items, blocks, strict=True)
    )


def of_tool(tool: McpTool) -> tuple[Tool, McpOperation]:
    """Return a tool and how it is called."""
    hints = tool.annotations
    structured = _gives_objects(tool)
    execution = tool.execution
    as_task = execution is not None and execution.task_support == "required"
    described = Tool(
        name=tool.name,
        description=tool.description or tool.title or "",
        input_schema=tool.input_schema,
        output_schema=tool.output_schema if structured else TEXT_OUTPUT,
        read_only=bool(hints and hints.read_only_hint),
        idempotent=bool(hints and hints.idempotent_hint),
        tags=_tags(tool.meta),
    )
    return described, _ToolCall(tool.name, structured, as_task)


def _tags(meta: dict[str, Any] | None) -> Any:
    """Return the tags of a tool, for which MCP has no place but its metadata."""
    for key in ("fastmcp", "_fastmcp"):
        found = (meta or {}).get(key)
        if isinstance(found, dict):
            return found.get("tags", ())
    return ()


def of_prompt(prompt: Prompt) -> tuple[Tool, McpOperation]:
    """Return a prompt as something to be called with its arguments."""
    arguments = prompt.arguments or []
    properties = {
        one.name: {"type": "string", "description": one.description or ""}
        for one in arguments
    }
    described = Tool(
        name=f"prompt_{prompt.name}",
        description=prompt.description or prompt.title or "",
        input_schema={
            "type": "object",
            "properties": properties,
            "required": [one.name for one in arguments if one.required],
        },
        output_schema={
            "type": "object",
            "properties": {"messages": _MESSAGES},
            "required": ["messages"],
        },
        read_only=True,
        idempotent=True,
    )
    return described, _PromptGet(prompt.name)


def of_resources() -> Sequence[tuple[Tool, McpOperation]]:
    """Return what can be done with the resources of a server that has any."""
    listed = Tool(
        name="list_resources",
        description="List the resources that can be read, and the templates of URIs.",
        input_schema={"type": "object", "properties": {}},
        output_schema={
            "type": "object",
            "properties": {
                "resources": {"type": "array", "items": _named("uri")},
                "templates": {"type": "array", "items": _named("uriTemplate")},
            },
            "required": ["resources", "templates"],
        },
        read_only=True,
        idempotent=True,
    )
    read = Tool(
        name="read_resource",
        description="Read the resource with a URI.",
        input_schema={
            "type": "object",
            "properties": {"uri": {"type": "string"}},
            "required": ["uri"],
        },
        output_schema=TEXT_OUTPUT,
        read_only=True,
        idempotent=True,
    )
    return (listed, _ResourceList()), (read, _ResourceRead())


_MESSAGES: dict[str, Any] = {
    "type": "array",
    "items": {"type": "object"},
    "description": "Each with role, mediaType, and text, data (base64) or uri.",
}


def _named(key: str) -> dict[str, Any]:
    names = (key, "name", "description", "mediaType")
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": [key, "name"],
    }


def _described(one: Any, **uri: str) -> dict[str, str]:
    found = {**uri, "name": one.name}
    if one.description:
        found["description"] = one.description
    if one.mime_type:
        found["mediaType"] = one.mime_type
    return found


def _gives_objects(tool: McpTool) -> bool:
    # The newest MCP allows any schema here; what is no object comes as text as well.
    schema = tool.output_schema
    return schema is not None and schema.get("type") == "object"
