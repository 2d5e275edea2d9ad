"""A group as its members see it: owner, admins, members and policy (GBZ-11 to GBZ-16).

A group is no session (GBZ-Q11): it says who hears what is said through its hub, and
any number of sessions may use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from anp.interaction.elements import Party


class JoinRule(StrEnum):
    """The ways by which an agent becomes a member."""

    INVITE = "invite"
    APPLY = "apply"
    BOTH = "both"

    CLOSED = "closed"
    "Nobody joins any more."


class GroupState(StrEnum):
    """The state of a group; a closed one takes nothing."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPolicy:
    """The rules of a group, which its owner fixes when it is created."""

    join: JoinRule = JoinRule.INVITE

    history: int | None = 0
    "Newest messages from before that a new member gets; None for all of them."

    max_members: int = 64

    max_message: int = 64 * 1024
    "Most bytes of a message's frame."

    rate: int = 600
    "Messages that one member may send in a minute; 0 for no limit."

    @classmethod
    def of(cls, *, join: str, history: str | int, **more: int) -> Self:
        """Return the policy that people wrote, with `none` and `all` as histories."""
        newest = {"none": 0, "all": None}
        kept = history if isinstance(history, int) else newest[history]
        return cls(join=JoinRule(join), history=kept, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An agent in a group."""

    id: str
    "Its DID."

    address: str = ""
    "URL at which its daemon can be reached; empty when it is not told."

    since: int = 0
    "Number of the event by which it became one."


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group at one moment."""

    id: str

    hub: Party
    "The daemon that distributes its messages."

    owner: str
    "DID of the agent on whose behalf it was created; always a member."

    admins: tuple[str, ...] = ()
    "DIDs that may invite, approve, deny, remove and close, besides the owner."

    members: tuple[Member, ...] = ()
    policy: GroupPolicy = field(default_factory=GroupPolicy)

    epoch: int = 1
    "Grows with every change of members."

    last: int = 0
    "Number of the newest event (`groupSeq`)."

    name: str = ""
    "Name for people."

    sealed: bool = False
    "The members encrypt what they say, so that the hub cannot read it."

    state: GroupState = GroupState.OPEN
    expires: datetime | None = None
    "Time after which it counts as closed, in UTC; None means never."

    extra: Mapping[str, Any] = field(default_factory=dict)

    def member(self, did: str) -> Member | None:
        """Return a member by its DID."""
        return next((one for one in self.members if one.id == did), None)

    def is_admin(self, did: str) -> bool:
        """Return whether an agent manages the group."""
        return did == self.owner or did in self.admins
