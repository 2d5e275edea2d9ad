"""The operations by which members and hub change a group, and the answers to them.

A request of a member and the event that the hub makes of it are one class: the event
has a number, an epoch and a time in addition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from anp.interaction.elements import Message, Party, Task
from anp.interaction.errors import InteractionFault
from anp.interaction.groups.elements import Group
from anp.interaction.operations import TaskCancel, TaskUpdate


class GroupAct(StrEnum):
    """The operations that change who is in a group."""

    CREATE = "create"
    "The hub is to make a group on behalf of the sender (GBZ-13)."

    INVITE = "invite"
    "To the hub: an admin invites an agent. From the hub: the agent is invited."

    ACCEPT = "accept"
    DECLINE = "decline"
    APPLY = "apply"
    "To the hub: an agent wants to join. From the hub, to admins: one wants that."

    APPROVE = "approve"
    "To the hub: an admin lets an applicant in. From the hub, to the applicant: it is."

    DENY = "deny"
    LEAVE = "leave"
    REMOVE = "remove"
    CLOSE = "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A change of who is in a group, wished for or made."""

    act: GroupAct

    member: Party | None = None
    "The agent that it is about; None for its sender."

    ticket: str = ""
    "Id of the invitation or application that it belongs to."

    by: str = ""
    "DID of the admin who invites, when the hub tells it."

    group: Group | None = None
    "The group, in `create`, and where the hub tells somebody of it."

    expires: datetime | None = None
    "Time after which an invitation or application counts no more, in UTC."

    text: str = ""
    "Words for people."


GroupContent = Membership | Message | Task | TaskUpdate | TaskCancel
"""The content of a group's log: changes of members, messages, offers (tasks without an
executor), and what becomes of them."""


@dataclass(frozen=True, slots=True)
class GroupSignature:
    """The signature of a member over what it said."""

    method: str
    "Id of the key in the DID document of the sender."

    key: str
    "The public key in multibase, to be checked against that document."

    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPost:
    """Something that a member says to a group, or that the hub passes on."""

    group: str
    content: GroupContent

    by: str = ""
    "DID of the member that said it; the hub tells it."

    number: int = 0
    "Its number in the group (`groupSeq`); 0 before the hub gave it one."

    epoch: int = 0
    "The epoch of the group in which the hub took it."

    at: datetime | None = None
    "When the hub took it, by its clock, in UTC."

    replayed: bool = False
    "It is from before the receiver became a member."

    signature: GroupSignature | None = None
    "None: only the hub vouches for it."

    frame: Mapping[str, Any] = field(default_factory=dict)
    "The JSON object as it was read, which is what is signed and passed on."


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFetch:
    """A member asks for the events after a number, and for the group."""

    group: str
    after: int = 0
    whole: bool = False
    "Also what it said itself, whose text it lost when it was killed."


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAcknowledgement:
    """An operation is stored; a member's says that everything up to a number is."""

    group: str

    ref: int
    "From a member: the newest event that it stored. From the hub: a `ref` of its own."

    posted: tuple[tuple[int, int], ...] = ()
    "Pairs of a member's `ref` and the number that its post has in the group."

    ticket: str = ""
    "Id of the invitation or application that was made."

    state: Group | None = None
    "The group, in answer to operations about members and to `fetch`."

    after: int | None = None
    "In answer to `fetch`: the number after which events come."


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedGroupOperation:
    """An operation was refused, and changed nothing."""

    group: str
    ref: int
    code: InteractionFault | str
    text: str


GroupOperation = GroupPost | GroupFetch | GroupAcknowledgement | RefusedGroupOperation
