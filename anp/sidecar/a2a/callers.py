"""The callers of the A2A face: who has a token, and what is exposed to each."""

from __future__ import annotations

from dataclasses import dataclass

from anp.interaction.elements import LOCAL
from sandbox.pool.shares import Rank, Share

__all__ = ["A2aCaller"]


@dataclass(frozen=True, slots=True, kw_only=True)
class A2aCaller:
    """Somebody who calls over A2A; nobody sees the tasks of another."""

    name: str

    expose: tuple[str, ...] | None = None
    "Patterns of capabilities; None for what every peer may use."

    peer_share: Share | None = None
    "The share of a peer, whose name is its canonical DID; None for local callers."

    @property
    def id(self) -> str:
        """Its id in sessions, in the policy, and in approvals."""
        return self.name if self.peer_share is not None else f"{LOCAL}{self.name}"

    @property
    def share(self) -> Share:
        """Its share of workers and places."""
        if self.peer_share is not None:
            return self.peer_share
        return Share(Rank.LISTED, self.id)
