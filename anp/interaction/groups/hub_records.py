"""The records of a group at its hub: tickets, events, and everything of one step."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from anp.interaction.groups.elements import Group
from anp.interaction.groups.offers import Offer
from anp.interaction.groups.operations import (
    GroupAcknowledgement,
    GroupPost,
    Membership,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """An invitation or an application: it counts once, for one agent."""

    id: str
    did: str
    applied: bool
    "True for an application."

    expires: datetime
    address: str = ""
    by: str = ""
    "The admin who invited."

    text: str = ""
    "The words of who invited or applied."

    ended: str = ""
    """`accept`, `decline`, `approve` or `deny`, once it was used; `leave` when its
    applicant took it back."""

    def is_open(self, wall_now: datetime) -> bool:
        """Return whether it counts still."""
        return not self.ended and wall_now < self.expires


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEvent:
    """Something that happened in a group: to be stored, then to be distributed."""

    number: int
    epoch: int
    at: datetime
    by: str
    ref: int
    "The number that its member gave it; 0 for what the hub made."

    post: GroupPost
    to: tuple[str, ...]
    "The members that get it."


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTell:
    """Something for one agent that is no event of the group."""

    to: str
    address: str
    content: Membership


@dataclass(slots=True)
class HubStep:
    """Everything that follows from one operation."""

    answer: GroupAcknowledgement
    events: list[GroupEvent] = field(default_factory=list)
    tells: list[GroupTell] = field(default_factory=list)
    changed: bool = False
    "The head is to be stored with the events."


@dataclass(frozen=True, slots=True, kw_only=True)
class HubHead:
    """The state of a group at its hub, to be stored."""

    group: Group
    tickets: tuple[Ticket, ...] = ()
    offers: tuple[Offer, ...] = ()
    leavers: tuple[tuple[str, int], ...] = ()
    "Agents that were members, with the number of the last event that they get."

    floors: tuple[tuple[str, int], ...] = ()
    "For each member, the number after which events are for it."


@dataclass(frozen=True, slots=True)
class Asked:
    """One operation of an agent, as the hub takes it."""

    post: GroupPost
    sender: str
    "Its DID, as the group knows it."

    ref: int
    size: int
    "Bytes of its frame."

    now: float
    "Monotonic seconds."

    wall_now: datetime
