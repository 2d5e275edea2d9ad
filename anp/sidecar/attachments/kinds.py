"""The table of kinds of attachments: which class serves which kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from anp.sidecar.attachments.attachment import AttachmentLimits
from anp.sidecar.attachments.http.updates import UpdateDesk
from anp.sidecar.attachments.inbox.desk import Inbox
from anp.sidecar.attachments.spec import AttachmentSpec
from anp.sidecar.attachments.supervisor import SupervisedAttachment

if TYPE_CHECKING:
    from anp.sidecar.attachments.http.remote import Service

CANNOT: Final[Mapping[str, str]] = {
    "inbox": "its tasks wait until it reads the inbox, which takes a daemon that runs; "
    "a call of one turn waits until its deadline, and its questions are declined",
    "mcp": "its questions go to the requester of a task, and a call of one turn "
    "declines them; it gets no model and no folders of a client; peers get no log "
    "messages of it",
}
"The limits of each kind towards peers, in words for the owner who attaches one."


def open_attachment(
    spec: AttachmentSpec,
    *,
    limits: AttachmentLimits | None = None,
    on_change: Callable[[], None] | None = None,
    inbox: Inbox | None = None,
    updates: UpdateDesk | None = None,
) -> SupervisedAttachment:
    """Return the attachment of a spec, not yet started.

    Args:
        on_change: Called in the event loop whenever its capabilities or its health
            may have changed.
        inbox: Where the agents of kind `inbox` read; without it nobody does.
        updates: The open calls of callback agents.
    """
    limits = limits or AttachmentLimits()
    # Imported here, so that a daemon loads the libraries of its own kinds only.
    if spec.kind == "mcp":
        from anp.sidecar.attachments.mcp.attachment import McpAttachment

        return McpAttachment(spec, limits=limits, on_change=on_change)
    if spec.kind == "python":
        from anp.sidecar.attachments.python.child import PythonAttachment

        return PythonAttachment(spec, limits=limits, on_change=on_change)
    if spec.kind == "inbox":
        from anp.sidecar.attachments.inbox.desk import InboxAttachment

        return InboxAttachment(
            spec, inbox or Inbox(), limits=limits, on_change=on_change
        )
    from anp.sidecar.attachments.http.remote import RemoteAttachment

    make = partial(_service, spec, limits, updates or UpdateDesk())
    return RemoteAttachment(spec, make, limits=limits, on_change=on_change)


def _service(
    spec: AttachmentSpec, limits: AttachmentLimits, updates: UpdateDesk
) -> Service:
    if spec.kind == "http":
        from anp.sidecar.attachments.http.service import HttpService

        return HttpService(spec, limits)
    if spec.kind == "callback":
        from anp.sidecar.attachments.http.callback import CallbackService

        return CallbackService(spec, limits, updates)
    from anp.sidecar.attachments.a2a.agent import A2aService

    return A2aService(spec, limits)
