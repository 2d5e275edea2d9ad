"""The owner's tools, each attached by a kind of its own.

* `kinds`: the table of kinds: which class serves which kind.
* `spec`: the owner's entry for one attachment, its file, and the secrets it names.
* `attachment`: the interface of every kind, its limits and its errors.
* `supervisor`: the base of every kind: starts a child again and again.
* `listing`: turns the tools that a child lists into capabilities.
* `urls`: URLs of the owner: their form, and which are the same place.
* `mcp`: MCP servers.
* `http`: services over HTTP, and callbacks.
* `a2a`: A2A agents.
* `python`: the owner's Python functions.
* `tool_errors`: the code and the words of a tool's error, wherever the tool put them.
* `requester`: the requester of a call at work, as the attachment sees it before its
  answer.
* `part_json`: parts of a result as JSON, for the one answer of a call of one turn.
  Pure.
* `declaration`: A capability that the owner describes, where nothing else does.
* `assignment`: A call that an agent answers later, by updates of its own instead of one
  answer.
* `inbox`: Agents that are no servers: they read the calls for them, and answer over the
  API.
"""

from anp.sidecar.attachments.attachment import (
    Attachment,
    AttachmentError,
    AttachmentLimits,
    HandedBack,
    ToolError,
)
from anp.sidecar.attachments.kinds import open_attachment
from anp.sidecar.attachments.spec import (
    AttachmentSpec,
    load_attachments,
    remove_attachment,
    save_attachment,
)

__all__ = [
    "Attachment",
    "AttachmentError",
    "AttachmentLimits",
    "AttachmentSpec",
    "HandedBack",
    "ToolError",
    "load_attachments",
    "open_attachment",
    "remove_attachment",
    "save_attachment",
]
