"""The callers of the A2A face: who has a token, and what is exposed to each."""

from __future__ import annotations

from dataclasses import dataclass

from anp.interaction.elements import LOCAL
from anp.sidecar.tasks.choice import Reach
from sandbox.pool.shares import Rank, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class A2aCaller:
    """Somebody who calls over A2A; nobody sees the tasks of another."""

    name: str

    expose: tuple[str, ...] | None = None
    "Patterns of capabilities; None for what every peer may use."

    peer_share: Share | None = None
    "The share of a peer, whose name is its canonical DID; None for local callers."
    agent: str = ""
    "Attachment whose own address it called; empty for the daemon's."

    expires: float | None = None
    "Unix time after which its token counts no more; None for never."

    grant: str = ""
    "Hash of its token, with which its streams and addresses end; empty without one."

    @property
    def id(self) -> str:
        """Its id in sessions, in the policy, and in approvals."""
        return self.name if self.peer_share is not None else f"{LOCAL}{self.name}"

    @property
    def reach(self) -> Reach:
        """The capabilities that this request may use, of those exposed to it."""
        return Reach(agent=self.agent, expose=self.expose)

    @property
    def share(self) -> Share:
        """Its share of workers and places."""
        if self.peer_share is not None:
            return self.peer_share
        return Share(Rank.LISTED, self.id)
