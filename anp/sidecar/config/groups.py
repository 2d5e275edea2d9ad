"""The settings of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from anp.errors import ConfigError
from anp.interaction.groups.elements import GroupPolicy
from anp.sidecar.config.setting_types import Count, Section

Peer = Annotated[str, Field(min_length=1, max_length=2048)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsConfig(Section):
    """Groups of agents, whose messages one of their daemons distributes."""

    accept: Literal["ask", "listed", "nobody"] = "ask"
    """Invitations that are accepted without asking: none with `ask`, those of listed
    peers with `listed`; `nobody` refuses all. A stranger's always waits for you."""

    agent: str = ""
    """Name of the capability that gets what others say in your groups and whose answer
    is posted, such as `weather.answer`; empty for none. It must be exposed to them."""

    hub_for: Literal["nobody", "listed"] = "nobody"
    "Peers for whom this daemon distributes the messages of groups that they make."

    sign: bool = True
    "Sign what you say in groups, so that no hub can put words into your mouth."

    max_groups: Count = 1_000
    "Groups that are open here at a time, your own and those of others."

    keep_events: Count = 100_000
    "Newest events of a group that are kept; who was away for more misses the others."

    keep_days: Count = 30
    "Days for which a group that has ended is kept."

    seal: bool = False
    """Seal the groups that you make at another's hub: the hub passes on what it cannot
    read, and keeps no history for those who join later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEntry(Section):
    """A `[[group]]` that this daemon makes when it starts (GBZ-13).

    Peers are written as everywhere: a name, a DID, a URL or `URL#DID`.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """Its name; the id follows from it and from your DID, so that another name is
    another group."""

    members: tuple[Peer, ...] = ()
    "Peers that are invited."

    admins: tuple[Peer, ...] = ()
    "Peers that are invited and manage the group besides you."

    owner: Peer | None = None
    """Peer on whose behalf you make it: it is invited and owns the group, you manage
    and distribute it, and are no member. Without it the group is yours."""

    hub: Peer | None = None
    "Peer that distributes its messages; without one you do."

    seal: bool = False
    "The hub, which has to be a peer, must not be able to read it."

    join: Literal["invite", "apply", "both", "closed"] = "invite"
    "The ways by which agents become members."

    history: Literal["none", "all"] | Annotated[int, Field(ge=0)] = "none"
    "Events from before that a new member gets: none, all, or the newest so many."

    max_members: Annotated[int, Field(ge=1, le=1024)] = 64
    "Most members."

    max_message: Annotated[int, Field(ge=1024, le=700_000)] = 65_536
    "Most bytes of one message."

    rate: Count = 600
    "Messages of one member in a minute; 0 for no limit."

    def __post_init__(self) -> None:
        if self.owner is not None and self.hub is not None:
            raise ConfigError(
                f"group {self.name}: a group for another owner has its hub here; write "
                "owner or hub"
            )
        if self.seal and self.hub is None:
            raise ConfigError(
                f"group {self.name}: a sealed group needs a hub that is no member of "
                "it; write hub"
            )

    @property
    def policy(self) -> GroupPolicy:
        """The rules of the group."""
        return GroupPolicy.of(
            join=self.join,
            history=self.history,
            max_members=self.max_members,
            max_message=self.max_message,
            rate=self.rate,
        )
