"""A small MCP server on stdio: an order with every kind of field, and two bad tools."""

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

server: Server[Any] = Server("shop")


@server.list_tools()  # type: ignore[no-untyped-call, untyped-decorator]  # the library's
async def list_tools() -> list[types.Tool]:
    """Return the tools; `odd` has the words that the test gives."""
    words = sys.argv[1] if len(sys.argv) > 1 else "odd"
    odd = {"type": "object", "properties": {words: {"type": "string"}}}
    return [
        types.Tool(name="order", description="Place an order.", inputSchema=ORDER),
        types.Tool(name="broken", description="Fails.", inputSchema={"type": "object"}),
        types.Tool(name="odd", description=words, inputSchema=odd),
    ]


@server.call_tool(validate_input=False)  # type: ignore[untyped-decorator]
async def call_tool(name: str, arguments: dict[str, Any]) -> list[types.TextContent]:
    """Give the arguments back, or fail."""
    if name == "broken":
        raise ValueError("the oven is cold")
    return [types.TextContent(type="text", text=f"{name} {json.dumps(arguments)}")]


async def main() -> None:
    """Serve on stdin and stdout until they close."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
