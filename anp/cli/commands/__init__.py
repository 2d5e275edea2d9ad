"""The commands, one file for each group of them.

* `daemon`: `init`, `up`, `call`, `demo`.
* `attachments`: `attach`, `attachments` and `capabilities`: the agent's abilities.
* `exposure`: `expose` and `hide`: the capabilities that peers may call.
* `configuration`: `config`: settings, shown and checked.
* `identity`: `identity`: our DID and its document.
* `peers`: `peers`: known, allowed, blocked.
* `negotiations`: `negotiations` and `approvals`: the way to protocols.
* `protocols`: `protocols list`, `show`, `usage` and `published`.
* `protocol_actions`: `protocols revoke`, `test`, `export`, `publish` and the like.
* `calls`: `calls list` and `tap`: the calls made and served, past and live.
* `live`: `negotiations watch` and the progress of a call: live events as lines.
* `servers`: `mcp` and `run`: the daemon for MCP clients and beside a command.
* `spend`: `spend`: the cost of models.
* `running`: `status`, `decide`, `logs` and `stop`: the daemon that runs.
* `operation`: `reload`, `health`, `doctor` and `dashboard`.
* `tasks`: `tasks` and `sessions`: work of peers that lasts.
* `a2a`: a2a tokens: the callers of the A2A face.
* `groups`: groups: several agents that hear one another, in one order.
"""
