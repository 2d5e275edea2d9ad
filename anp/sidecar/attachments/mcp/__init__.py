"""MCP servers as attachments, over stdio and over HTTP."""
