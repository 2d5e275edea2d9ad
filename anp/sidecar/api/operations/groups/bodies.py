"""The bodies of requests about groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from anp.interaction.groups.elements import GroupPolicy
from anp.sidecar.api.operations.task_bodies import ContentBody, GroupId
from anp.sidecar.api.requests import PeerName
from anp.sidecar.api.table import STRICT

Words = Annotated[str, Field(max_length=8192)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyBody:
    """The rules of a group; they stay as they are."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    join: Literal["invite", "apply", "both", "closed"] = "invite"
    "The ways by which agents become members."

    history: Literal["none", "all"] | Annotated[int, Field(ge=0)] = "none"
    "Events from before that a new member gets: none, all, or the newest so many."

    max_members: Annotated[int, Field(ge=1, le=1024)] = 64
    max_message: Annotated[int, Field(ge=1024, le=700_000)] = 65_536
    "Most bytes of one message."

    rate: Annotated[int, Field(ge=0)] = 600
    "Messages of one member in a minute; 0 for no limit."

    def policy(self) -> GroupPolicy:
        """Return what the body says."""
        return GroupPolicy.of(
            join=self.join,
            history=self.history,
            max_members=self.max_members,
            max_message=self.max_message,
            rate=self.rate,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateBody:
    """A new group, whose owner this agent is."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Annotated[str, Field(max_length=200)] = ""
    "Its name for people."

    policy: PolicyBody = field(default_factory=PolicyBody)
    invite: Annotated[list[PeerName], Field(max_length=64)] = field(
        default_factory=list
    )
    "Peers that are invited at once."

    admins: Annotated[list[PeerName], Field(max_length=64)] = field(
        default_factory=list
    )
    "Peers that manage it besides this agent: they may invite, approve and remove."

    hub: PeerName | None = None
    "Peer that distributes its messages; without one this daemon does."

    seal: bool | None = None
    """True: the hub, which has to be another daemon, must not be able to read it; null
    as the setting `groups.seal` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InviteBody:
    """An invitation."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: PeerName
    "Name, DID, URL or `URL#DID`."

    text: Words = ""
    "Words for the peer."


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyBody:
    """A wish to join a group of others."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    hub: PeerName
    "The peer that distributes its messages."

    group: GroupId
    "Its id."

    text: Words = ""
    "Words for those who decide."


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketBody:
    """An application that is decided."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    ticket: Annotated[str, Field(min_length=1, max_length=512)]
    "Its id, from `waiting` of the group."

    text: Words = ""
    "Words for the applicant."


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveBody:
    """A member that is removed."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    member: Annotated[str, Field(min_length=1, max_length=512)]
    "Its DID."

    text: Words = ""
    "The reason, for the group."


@dataclass(frozen=True, slots=True, kw_only=True)
class PostBody(ContentBody):
    """A message to a group."""

    wait: Annotated[float, Field(ge=0, le=60)] = 10.0
    "Seconds to wait for the hub; after that the message is sent when it is back."
