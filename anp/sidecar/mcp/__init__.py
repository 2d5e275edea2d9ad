"""The MCP server through which any MCP client calls remote agents.

* `server`: the tools of the server and how each is answered.
* `http`: serves it at the local API, over streamable HTTP.
* `local_api`: the local API as the server uses it.
"""
