"""A group at another daemon's hub as its member stores it: its head, and its events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from anp.interaction.errors import InteractionFault
from anp.interaction.groups.elements import Group
from anp.interaction.groups.member_copy import CopyEvent
from anp.protocols.gbz.group_writer import write_distributed
from anp.sidecar.groups.shelf import StoredEvent

__all__ = ["MemberState", "StoredMember", "fault_of", "stored_copy"]


class MemberState(StrEnum):
    """The way in which this daemon takes part in a group."""

    INVITED = "invited"
    "We are asked to join, and have not answered."

    APPLIED = "applied"
    "We asked to join, and have no answer."

    MEMBER = "member"
    LEFT = "left"
    REMOVED = "removed"
    DECLINED = "declined"
    DENIED = "denied"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMember:
    """The head of such a group, as it is stored."""

    group: Group
    own: str
    "The DID under which we take part."

    hub: str
    "DID of the hub."

    address: str
    state: MemberState
    ticket: str = ""
    invited_by: str = ""
    text: str = ""
    "The words of the invitation."

    expires: datetime | None = None
    stranger: bool = False
    "The hub is nobody that the owner listed, so that only the owner accepts."

    queued: tuple[str, ...] = ()
    "Frames of ours, as JSON, that the hub has not taken."


def stored_copy(event: CopyEvent, mark: str) -> StoredEvent:
    """Return an event of a member's copy as it is stored."""
    post = event.post
    data = write_distributed(
        post.frame,
        number=event.number,
        epoch=post.epoch,
        at=post.at or datetime.now(UTC),
        by=post.by,
        replayed=post.replayed,
    )
    mark = "repeated" if event.repeated else mark
    return StoredEvent(event.number, post.by, 0, data, mark)


def fault_of(code: str) -> InteractionFault:
    """Return the fault that a hub names; one that we do not know is of the state."""
    try:
        return InteractionFault(code)
    except ValueError:
        return InteractionFault.STATE
