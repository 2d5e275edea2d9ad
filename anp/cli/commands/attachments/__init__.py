"""attach, attachments and capabilities: the abilities of the local agent.

* `attach`: tries a program once, writes its file, and tells the daemon.
* `options`: the options of `attach`, as they are typed, kept, and typed again.
* `attached`: the attached programs, listed and removed; the attached capabilities,
  listed, shown and tried.
"""

from __future__ import annotations

from anp.cli.commands.attachments.attach import attach_app
from anp.cli.commands.attachments.attached import attachments_app, capabilities_app
from anp.cli.grammar import Commands

__all__ = ["register"]


def register(app: Commands) -> None:
    """Add the commands of this room."""
    app.add(attach_app, "attach")
    app.add(attachments_app, "attachments")
    app.add(capabilities_app, "capabilities")
