"""The owner's tools, each attached by a kind of its own.

* `kinds`: the table of kinds: which class serves which kind.
* `spec`: the owner's entry for one attachment, and the file that keeps it.
* `attachment`: the interface of every kind, and its limits.
* `supervised`: the common part of all kinds.
* `supervisor`: keeps one child alive: starts it, notices its end, starts it again.
* `listing`: turns the tools that a child lists into capabilities.
* `process`: the environment of child processes, and what they print.
* `secrets`: reads the secrets that an attachment authenticates with.
* `urls`: URLs of the owner: their form, and which are the same place.
* `errors`: an attachment that said no, or did not answer.
* `mcp`: MCP servers.
* `http`: services over HTTP, and callbacks.
* `a2a`: A2A agents.
* `python`: the owner's Python functions.
"""

from anp.sidecar.attachments.attachment import Attachment, AttachmentLimits
from anp.sidecar.attachments.errors import AttachmentError, ToolError
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
    "ToolError",
    "load_attachments",
    "open_attachment",
    "remove_attachment",
    "save_attachment",
]
