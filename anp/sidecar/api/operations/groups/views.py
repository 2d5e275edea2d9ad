"""Groups and their events, as the local API shows them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from anp.interaction.elements import Message, Part, PartKind
from anp.interaction.groups.elements import Group, GroupPolicy
from anp.interaction.groups.hub_records import Ticket
from anp.protocols.gbz.words import NOT_SIGNED
from anp.protocols.timestamps import read_timestamp
from anp.sidecar.calls.events import Event
from anp.sidecar.groups.frames import message_in
from anp.sidecar.groups.shelf import StoredEvent
from anp.sidecar.groups.standing import KnownGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMemberView:
    """A member of a group."""

    id: str
    "Its DID."

    since: int
    "Number of the event by which it joined."


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPolicyView:
    """The rules of a group."""

    join: Literal["invite", "apply", "both", "closed"]
    history: str | int
    "`none`, `all`, or the number of newest events that a new member gets."

    max_members: int
    max_message: int
    "Most bytes of one message."

    rate: int
    "Messages of one member in a minute; 0 for no limit."


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTicketView:
    """An invitation or an application that waits."""

    ticket: str
    kind: Literal["invitation", "application"]
    peer: str
    "DID of the agent that is to join."

    by: str
    "DID of who invited it; empty for an application."

    text: str
    expires: float
    "Seconds since 1970."


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInvitationView:
    """The invitation of this agent."""

    by: str
    "DID of who invited it."

    text: str
    expires: float | None
    "Seconds since 1970."

    stranger: bool
    "The hub is no listed peer, so that only the owner accepts."


@dataclass(frozen=True, slots=True)
class GroupAlarmView:
    """A sign that the hub of a sealed group, or a member, does what it should not."""

    at: float
    "When it was noticed, in seconds since 1970."

    code: str
    """`forged`, `invalid`, `gap`, `reordered`, `unseen`, `fork`, `ghost`, `unreadable`,
    `not_allowed`, `not_member` or `no_key`."""

    by: str
    "DID in whose name the thing came."

    text: str


@dataclass(frozen=True, slots=True)
class GroupSealingView:
    """The members of a sealed group by the word of its admins."""

    epoch: int
    "Grows with every change that an admin signed; 0 while none has come."

    members: Mapping[str, str]
    "`owner`, `admin` or `member` by DID."

    alarms: Sequence[GroupAlarmView]
    "The newest ones, at most 100; they outlive a restart."


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPresetView:
    """The `[[group]]` of the settings that a group was made for."""

    members: Sequence[str]
    "DIDs that it names as members, those included that declined or left."

    problems: Sequence[str]
    "Parts of it that are not in effect, with the reasons."


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group, as far as this daemon knows it."""

    id: str
    name: str
    state: Literal[
        "invited",
        "applied",
        "member",
        "left",
        "removed",
        "declined",
        "denied",
        "closed",
    ]
    "The way in which this agent takes part."

    own: str
    "The DID under which it does."

    owner: str
    "DID of the agent that made it."

    admins: Sequence[str]
    hub: str
    "DID of the daemon that distributes its messages."

    is_hub: bool
    "That daemon is this one."

    members: Sequence[GroupMemberView]
    epoch: int
    "Grows with every change of members."

    last: int
    "Number of the newest event that is here."

    policy: GroupPolicyView
    sealed: bool
    "The members encrypt what they say, so that the hub cannot read it."

    sealing: GroupSealingView | None
    "Members and alarms of a sealed group in which this agent is."

    waiting: Sequence[GroupTicketView]
    "Open invitations and applications, for those who manage the group."

    preset: GroupPresetView | None
    "The part of the settings that this group follows, if it was made for one."

    invitation: GroupInvitationView | None
    "The invitation of this agent, while it has not answered."


@dataclass(frozen=True, slots=True)
class GroupPage:
    """All groups of this agent."""

    groups: Sequence[GroupView]


@dataclass(frozen=True, slots=True)
class PostedMessage:
    """A message that a group gets."""

    id: str
    number: int | None
    "Its number in the group; null while the hub is away, which gets it later."


def group_view(known: KnownGroup) -> GroupView:
    """Return a group as it is shown."""
    group, about = known.group, known.invitation
    invitation = None
    if about is not None and known.state == "invited":
        invitation = GroupInvitationView(
            by=about.invited_by,
            text=about.text,
            expires=None if about.expires is None else about.expires.timestamp(),
            stranger=about.stranger,
        )
    return GroupView(
        id=group.id,
        name=group.name,
        state=known.state.value,
        own=known.own,
        owner=group.owner,
        admins=group.admins,
        hub=known.own if known.is_hub else _hub(group, known),
        is_hub=known.is_hub,
        members=[GroupMemberView(id=one.id, since=one.since) for one in group.members],
        epoch=group.epoch,
        last=known.last,
        policy=_policy(group.policy),
        sealed=group.sealed,
        sealing=_sealing(known.sealing),
        waiting=[_ticket(one) for one in known.tickets],
        preset=None
        if known.preset is None
        else GroupPresetView(members=known.preset, problems=known.preset_problems),
        invitation=invitation,
    )


def _sealing(view: dict[str, Any] | None) -> GroupSealingView | None:
    if view is None:
        return None
    return GroupSealingView(
        epoch=view["epoch"],
        members=view["members"],
        alarms=[GroupAlarmView(**one) for one in view["alarms"]],
    )


def event_of(stored: StoredEvent) -> Event:
    """Return an event of a group for a stream; its type is the operation's name."""
    frame = stored.frame()
    about = {
        "by": stored.by,
        "epoch": frame.get("epoch", 0),
        "proof": stored.mark or "hub",
        "replayed": bool(frame.get("replayed")),
    }
    said = {key: one for key, one in frame.items() if key not in NOT_SIGNED}
    kind = said.pop("op", "")
    if kind == "message.send":
        about["message"] = _message(stored.message or message_in(frame))
    else:
        about["content"] = said
    at = frame.get("at")
    return Event(
        number=stored.number,
        type=f"{kind}",
        at=read_timestamp(at).at.timestamp() if isinstance(at, str) else 0.0,
        data=about,
    )


def _message(message: Message | None) -> dict[str, Any]:
    if message is None:
        return {}
    return {
        "id": message.id,
        "sender": message.sender,
        "session": message.session,
        "task": message.task,
        "purpose": message.purpose,
        "final": message.final,
        "parts": [_part(one) for one in message.parts],
        "metadata": dict(message.metadata),
    }


def _part(part: Part) -> dict[str, Any]:
    content: Any = part.content
    match part.kind:
        case PartKind.BYTES:
            assert isinstance(part.content, bytes)
            name, content = "bytes", base64.b64encode(part.content).decode("ascii")
        case PartKind.JSON:
            name = "value"
        case PartKind.URI:
            name = "uri"
        case PartKind.TEXT:
            name = "text"
    found = {"kind": str(part.kind), "media_type": part.media_type, name: content}
    return found | ({"name": part.name} if part.name else {})


def _hub(group: Group, known: KnownGroup) -> str:
    return group.hub.id if known.invitation is None else known.invitation.hub


def _policy(policy: GroupPolicy) -> GroupPolicyView:
    history: str | int = "all" if policy.history is None else policy.history or "none"
    return GroupPolicyView(
        join=policy.join.value,
        history=history,
        max_members=policy.max_members,
        max_message=policy.max_message,
        rate=policy.rate,
    )


def _ticket(ticket: Ticket) -> GroupTicketView:
    return GroupTicketView(
        ticket=ticket.id,
        kind="application" if ticket.applied else "invitation",
        peer=ticket.did,
        by=ticket.by,
        text=ticket.text,
        expires=ticket.expires.timestamp(),
    )
