"""The ways in which an agent takes part in a group of others, and how that is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from anp.interaction.groups.elements import Group
from anp.interaction.groups.hub_records import Ticket


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

    preset: tuple[str, ...] | None = None
    "DIDs that our `[[group]]` names as members, if there is one."

    at_work: tuple[str, ...] = ()
    "Ids of the offers that we accepted, or are about to, and have not ended."

    applications: tuple[Ticket, ...] = ()
    "Applications of others that wait for the admins of whom we are one."


_WHY: Final[Mapping[MemberState, str]] = MappingProxyType(
    {
        MemberState.INVITED: "you are invited and no member yet: accept or decline",
        MemberState.APPLIED: "you are no member yet: your application waits",
        MemberState.LEFT: "you are no member: you left, or took your application back",
        MemberState.REMOVED: "you are no member any more: you were removed",
        MemberState.DECLINED: "you are no member: you declined the invitation",
        MemberState.DENIED: "you are no member: your application was denied",
        MemberState.CLOSED: "the group is closed",
    }
)


def why_no_member(state: MemberState) -> str | None:
    """Return in words why an agent in this state can do nothing, or None if it can."""
    return _WHY.get(state)
