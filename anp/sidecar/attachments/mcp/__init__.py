"""MCP servers as attachments, over stdio and over HTTP.

* `attachment`: one MCP server; its tools, prompts and resources become capabilities.
* `offers`: reads the server's lists.
* `operations`: what can be called, and its result.
* `exchange`: the requests of one call, with all that the server wants meanwhile.
* `questions`: whose requester a question of the server is put to.
* `content`: blocks of content as parts and as JSON.
* `stdio_transport`: the way of messages to a server that is a child process.
* `server_pipes`: that process, with its pipes.
* `http_transport`: the transport to a URL, with our limits and secrets.
* `watched_transport`: the way of messages to a URL, which notices its end.
"""
