"""An MCP server whose tool works for as long as it is told, and notes how it ends."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

STEP = 0.5
"Seconds between two reports of progress."

NOTES = Path(sys.argv[1])
"File to which each begin and end of a piece of work is written, with its time."


def note(words: str) -> None:
    """Write down what happens, for the test."""
    with NOTES.open("a") as file:
        file.write(f"{time.time():.3f} {words}\n")


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """Return the one tool."""
    seconds = {"type": "number"}
    schema = {
        "type": "object",
        "properties": {"seconds": seconds},
        "required": ["seconds"],
    }
    tool = types.Tool(name="work", description="Work.", input_schema=schema)
    return types.ListToolsResult(tools=[tool])


async def call_tool(
    context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    """Work, and tell how far it is."""
    seconds = float((params.arguments or {})["seconds"])
    began = time.monotonic()
    note("begun")
    try:
        while (done := time.monotonic() - began) < seconds:
            told = round(done, 1)
            await context.session.report_progress(told, seconds, f"{told:g} s done")
            await asyncio.sleep(min(STEP, seconds - done))
    except asyncio.CancelledError:
        note("cancelled")
        raise
    note("done")
    text = types.TextContent(type="text", text=f"worked for {seconds:g} s")
    return types.CallToolResult(content=[text])


async def main() -> None:
    """Serve on standard input and output."""
    server: Server[Any] = Server(
        "patient", on_list_tools=list_tools, on_call_tool=call_tool
    )
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


asyncio.run(main())
