"""The settings of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from anp.sidecar.config.setting_types import Count, Section

__all__ = ["GroupsConfig"]


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
