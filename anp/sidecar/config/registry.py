"""The owner's settings of registries: to be one, to be in one, to ask one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from anp.sidecar.config.setting_types import Count, Section

Peers = tuple[Annotated[str, Field(min_length=1, max_length=2048)], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryConfig(Section):
    """Registries, in which daemons tell each other where they are and what they do."""

    serve: bool = False
    "Be a registry: keep what peers announce, and tell it to those who ask."

    max_entries: Count = 10_000
    "Announcements that a registry keeps, one of each peer."

    max_unlisted: Count = 1_000
    "Those among them of peers that are not on your list, at most 16 of one address."

    announce: Peers = ()
    "Peers that are registries; what you expose to every peer is announced there."

    name: Annotated[str, Field(max_length=64)] = ""
    "Name in your announcement, for people."

    lifetime: Annotated[int, Field(ge=30, le=86_400)] = 3_600
    "Seconds for which an announcement counts; it is renewed after a third of them."

    ask: Peers = ()
    "Peers that are registries, which are asked for peers that publish a capability."
