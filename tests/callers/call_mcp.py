"""A plain MCP client; MODE is `stdio` or `http`.

It looks the capability up with `describe` first, as a model would.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def main(mode: str, request: dict[str, Any]) -> None:
    outputs = []
    async with AsyncExitStack() as stack:
        if mode == "stdio":
            command, *rest = request["anpd"]
            server = StdioServerParameters(command=command, args=[*rest, "mcp"])
            transport = stdio_client(server)
        else:
            url, headers = address(request["home"])
            http = httpx2.AsyncClient(headers=headers, timeout=60)
            await stack.enter_async_context(http)
            transport = streamable_http_client(url, http_client=http)
        client = await stack.enter_async_context(Client(transport))
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"find", "describe", "call"} <= names
        peer = request["peer"]
        offered = await use(client, "describe", {"peer": peer})
        known = {one["name"] for one in offered["capabilities"]}
        for call in request["calls"]:
            assert call["need"] in known
            found = await use(client, "call", {"peer": peer, **call})
            outputs.append(found["output"])
    print(json.dumps(outputs))


def address(home: str) -> tuple[str, dict[str, str]]:
    """Return where MCP is spoken over HTTP, and what opens the door."""
    api = json.loads((Path(home) / "api.json").read_text())
    token = Path(api["token_file"]).read_text().strip()
    url = f"{api['api_url'].rstrip('/')}/mcp"
    return url, {"Authorization": f"Bearer {token}"}


async def use(client: Client, name: str, arguments: dict[str, Any]) -> Any:
    """Call a tool that has to succeed."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    return result.structured_content


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.load(sys.stdin)))
