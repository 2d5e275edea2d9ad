"""MCP servers as attachments, over stdio and over HTTP.

* `attachment`: one MCP server; its tools become capabilities.
* `stdio_transport`: the transport to a child process.
* `http_transport`: the transport to a URL, with our limits and secrets.
"""
