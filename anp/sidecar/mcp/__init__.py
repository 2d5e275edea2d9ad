"""The MCP server through which any MCP client calls remote agents."""
