"""Words of a hub as a member keeps them: events to be stored, and faults."""

from __future__ import annotations

from anp.interaction.errors import InteractionFault
from anp.interaction.groups.member_copy import CopyEvent
from anp.sidecar.groups.shelf import StoredEvent, event_bytes

__all__ = ["fault_of", "stored_copy"]


def stored_copy(event: CopyEvent, mark: str) -> StoredEvent:
    """Return an event of a member's copy as it is stored."""
    mark = "repeated" if event.repeated else mark
    return StoredEvent(event.number, event.post.by, 0, event_bytes(event), mark)


def fault_of(code: str) -> InteractionFault:
    """Return the fault that a hub names; one that we do not know is of the state."""
    try:
        return InteractionFault(code)
    except ValueError:
        return InteractionFault.STATE
