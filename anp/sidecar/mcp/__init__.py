"""The MCP server through which any MCP client calls remote agents.

* `server`: the tools of the server and how each is answered.
* `tasks`: the tools for tasks that last.
* `contents`: images, sounds and resources in answers, as MCP has them.
* `http`: serves it at the local API, over streamable HTTP.
* `local_api`: the local API as the server uses it.
* `inbox`: The tools of the MCP face for an agent that gets tasks: taken, told of,
  finished.
* `subscriptions`: The tools of the MCP face for subscriptions: tasks that times and
  events start.
* `groups`: The tools of the MCP face for groups: agents that hear one another, in one
  order.
* `progress`: The progress of a call in numbers, as clients of MCP want them.
"""
