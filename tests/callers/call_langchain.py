"""A LangChain tool user: calls the tools that it loads from our MCP face.

As an agent does once a model has chosen a tool: with a tool call by name. MODE is
`stdio` for a tool of each capability, or `http` for the general tool `call`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

# Not installed where types are checked.
from langchain_core.tools import BaseTool  # type: ignore[import-not-found]
from langchain_mcp_adapters.client import (  # type: ignore[import-not-found]
    MultiServerMCPClient,
)
from langchain_mcp_adapters.tools import (  # type: ignore[import-not-found]
    load_mcp_tools,
)


async def main(mode: str, request: dict[str, Any]) -> None:
    client = MultiServerMCPClient({"anpd": connection(mode, request)})
    outputs = []
    async with client.session("anpd") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        for call in request["calls"]:
            if mode == "stdio":
                tool = tool_for(tools, call["need"])
                arguments = call["input"]
            else:
                tool = tools["call"]
                arguments = {**call, "peer": request["peer"]}
            outputs.append(await use(tool, arguments))
    print(json.dumps(outputs))


def connection(mode: str, request: dict[str, Any]) -> Any:
    """Return what an owner writes into the configuration of a LangChain agent."""
    if mode == "stdio":
        command, *rest = request["anpd"]
        arguments = [*rest, "mcp", "--peer", request["peer"]]
        return {"transport": "stdio", "command": command, "args": arguments}
    api = json.loads((Path(request["home"]) / "api.json").read_text())
    token = Path(api["token_file"]).read_text().strip()
    return {
        "transport": "streamable_http",
        "url": f"{api['api_url'].rstrip('/')}/mcp",
        "headers": {"Authorization": f"Bearer {token}"},
    }


def tool_for(tools: dict[str, BaseTool], need: str) -> BaseTool:
    """Return the tool that was made of a peer's capability."""
    (name,) = [name for name in tools if name.endswith(need.replace(".", "_"))]
    return tools[name]


async def use(tool: BaseTool, arguments: dict[str, Any]) -> Any:
    """Carry out a tool call, and check that the model would see the same."""
    wanted = {"type": "tool_call", "id": "1", "name": tool.name, "args": arguments}
    message = await tool.ainvoke(wanted)
    assert message.status == "success", message.content
    output = message.artifact["structured_content"]["output"]
    (block,) = message.content
    assert json.loads(block["text"]) == output
    return output


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.load(sys.stdin)))
