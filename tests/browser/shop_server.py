"""A small MCP server on stdio: one tool with every kind of field, three bad ones."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sku": {"type": "string", "description": "Number of the article."},
        "amount": {"type": "integer", "minimum": 1},
        "price": {"type": "number"},
        "tone": {"enum": ["warm", "dry"], "default": "warm"},
        "gift": {"type": "boolean", "default": False},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "address": {"$ref": "#/$defs/Address"},
    },
    "required": ["sku", "amount"],
    "$defs": {"Address": {"type": "object", "description": "Street and city."}},
}


async def list_tools(context: Any, request: Any) -> types.ListToolsResult:
    """Return the tools; `odd` has the words that the test gives."""
    words = sys.argv[1] if len(sys.argv) > 1 else "odd"
    any_object = {"type": "object"}
    odd = {"type": "object", "properties": {words: {"type": "string"}}}
    tools = [
        types.Tool(name="order", description="Place an order.", input_schema=ORDER),
        types.Tool(name="broken", description="Fails.", input_schema=any_object),
        types.Tool(name="slow", description="Waits.", input_schema=any_object),
        types.Tool(name="odd", description=words, input_schema=odd),
    ]
    return types.ListToolsResult(tools=tools)


async def call_tool(
    context: Any, request: types.CallToolRequestParams
) -> types.CallToolResult:
    """Give the arguments back, wait, or fail."""
    if request.name == "slow":
        await asyncio.sleep(60)
    broken = request.name == "broken"
    words = f"{request.name} {json.dumps(request.arguments)}"
    text = types.TextContent(type="text", text="the oven is cold" if broken else words)
    return types.CallToolResult(content=[text], is_error=broken)


async def main() -> None:
    """Serve on stdin and stdout until they close."""
    server: Server[Any] = Server(
        "shop", on_list_tools=list_tools, on_call_tool=call_tool
    )
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
