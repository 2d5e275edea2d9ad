"""The commands, one file for each group of them.

* `daemon`: `init`, `up`, `call`, `demo`.
* `attach`: `attach`: the kinds of attachments.
* `attachments`: `attachments`: those there are, and their health.
* `capabilities`: `capabilities`: those there are.
* `configuration`: `config`: settings, shown and checked.
* `identity`: `identity`: our DID and its document.
* `peers`: `peers`: known, allowed, blocked.
* `live`: `tap`, `negotiations watch`: live events as lines.
* `servers`: `mcp` and `run`: the daemon for MCP clients and beside a command.
* `spend`: `spend`: the cost of models.
* `dashboard`: `dashboard`: a link to the pages.
* `operation`: `reload` and `health`.
* `doctor`: `doctor`: checks this machine.
"""
