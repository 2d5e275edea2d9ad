"""An MCP server with content of all kinds, questions, prompts and resources.

Run as: python rich_mcp_server.py. It is written with the `mcp` package alone, for the
protocol of 2026-07-28, in which a question is an answer that has to be asked again.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

PICTURE = bytes.fromhex("89504e470d0a1a0a") + bytes(range(256)) * 40
"Begins as a PNG, and has every byte."

SOUND = b"RIFF" + bytes(64)
ANY: dict[str, Any] = {"type": "object"}
SIZE = {
    "type": "object",
    "properties": {"size": {"type": "string", "enum": ["small", "large"]}},
    "required": ["size"],
}


def coded(data: bytes) -> str:
    """Return bytes in base64."""
    return base64.b64encode(data).decode()


def text(words: str) -> types.TextContent:
    """Return a text."""
    return types.TextContent(type="text", text=words)


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """Return the tools."""
    names = ("draw", "steps", "order", "sign", "dream")
    return types.ListToolsResult(
        tools=[
            types.Tool(name=name, description=f"To {name}.", input_schema=ANY)
            for name in names
        ]
    )


async def call_tool(
    context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    """Answer a call."""
    if params.name == "draw":
        return types.CallToolResult(content=drawn())
    if params.name == "steps":
        for step in range(1, 4):
            await context.session.report_progress(step, 3, f"step {step}")
            await asyncio.sleep(0.1)
        return types.CallToolResult(content=[text("three steps")])
    if params.input_responses:
        given = params.input_responses["q"]
        assert isinstance(given, types.ElicitResult)
        found = f"{given.action} {given.content} {params.request_state}"
        return types.CallToolResult(content=[text(found)])
    return types.InputRequiredResult(
        input_requests={"q": wanted(params.name)}, request_state="half done"
    )


def drawn() -> list[types.ContentBlock]:
    """Return one block of each kind."""
    note = types.TextResourceContents(
        uri="rich://notes/a.md", mime_type="text/markdown", text="# A note"
    )
    return [
        text("a picture"),
        types.ImageContent(type="image", data=coded(PICTURE), mime_type="image/png"),
        types.AudioContent(type="audio", data=coded(SOUND), mime_type="audio/wav"),
        types.ResourceLink(
            type="resource_link", name="more", uri="rich://more", mime_type="text/csv"
        ),
        types.EmbeddedResource(type="resource", resource=note),
    ]


def wanted(name: str) -> types.InputRequest:
    """Return what a tool wants before it answers."""
    if name == "dream":
        return types.CreateMessageRequest(
            params=types.CreateMessageRequestParams(messages=[], max_tokens=1)
        )
    if name == "sign":
        page = types.ElicitRequestURLParams(
            message="Sign here", url="https://sign.example/1"
        )
        return types.ElicitRequest(params=page)
    form = types.ElicitRequestFormParams(message="How large?", requested_schema=SIZE)
    return types.ElicitRequest(params=form)


async def list_prompts(context: Any, params: Any) -> types.ListPromptsResult:
    """Return the one prompt."""
    who = types.PromptArgument(name="who", required=True)
    prompt = types.Prompt(name="greet", description="To greet.", arguments=[who])
    return types.ListPromptsResult(prompts=[prompt])


async def get_prompt(
    context: Any, params: types.GetPromptRequestParams
) -> types.GetPromptResult:
    """Return the prompt, filled in."""
    words = text(f"Greet {(params.arguments or {})['who']}.")
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=words)]
    )


async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
    """Return the one resource."""
    picture = types.Resource(
        name="picture", uri="rich://picture.png", mime_type="image/png"
    )
    return types.ListResourcesResult(resources=[picture])


async def read_resource(
    context: Any, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    """Return the picture."""
    blob = types.BlobResourceContents(
        uri=params.uri, mime_type="image/png", blob=coded(PICTURE)
    )
    return types.ReadResourceResult(contents=[blob])


async def main() -> None:
    """Serve on standard input and output."""
    server: Server[Any] = Server(
        "rich",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
