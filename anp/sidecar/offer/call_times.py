"""The time that a call may take, by the settings of the owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anp.identity.dids import agent_name
from anp.sidecar.config.entries import PeerEntry
from anp.sidecar.config.interaction import InteractionConfig
from anp.sidecar.config.settings import CallConfig


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """A number of seconds, and the name of what sets it."""

    seconds: float

    name: str
    "For people, such as `call.max_timeout`."

    def __str__(self) -> str:
        return f"{self.seconds:g} s ({self.name})"


class CallTimes:
    """Knows the limits of calls in both directions; `put` changes them."""

    def __init__(
        self,
        call: CallConfig,
        peers: Sequence[PeerEntry] = (),
        tasks: InteractionConfig | None = None,
    ) -> None:
        self.put(call, peers, tasks or InteractionConfig())

    def put(
        self, call: CallConfig, peers: Sequence[PeerEntry], tasks: InteractionConfig
    ) -> None:
        """Take the owner's settings as they are now."""
        self._call = call
        self._tasks = tasks
        self._peers = {
            key: TimeLimit(peer.max_timeout, f"max_timeout of the peer {peer.name}")
            for peer in peers
            if peer.max_timeout is not None
            for key in (peer.name, peer.url, peer.did and agent_name(peer.did))
            if key
        }

    def of_ours(self, peer: str, did: str, *, lasts: bool = False) -> TimeLimit:
        """Return the most that a call of ours may be given.

        Args:
            peer: The peer as the caller named it.
            did: Its DID.
            lasts: It carries a task.
        """
        known = self._peers.get(peer) or self._peers.get(agent_name(did))
        if known is not None:
            return known
        if lasts:
            return TimeLimit(self._tasks.max_time, "interaction.max_time")
        return TimeLimit(self._call.max_timeout, "call.max_timeout")

    def of_peer(self, peer: str, *, listed: bool, lasts: bool = False) -> TimeLimit:
        """Return the most that a call of a peer may take.

        Args:
            peer: Its DID.
            listed: True if the owner listed it.
            lasts: It is a task, which may wait for answers.
        """
        known = self._peers.get(agent_name(peer))
        if known is not None:
            return known
        if lasts and listed:
            return TimeLimit(self._tasks.max_time, "interaction.max_time")
        if lasts:
            name = "interaction.max_time_unlisted"
            return TimeLimit(self._tasks.max_time_unlisted, name)
        if listed:
            return TimeLimit(self._call.max_timeout, "call.max_timeout")
        return TimeLimit(self._call.max_timeout_unlisted, "call.max_timeout_unlisted")

    def granted(
        self,
        asked: float | None,
        most: TimeLimit,
        of_tools: Mapping[str, float],
        tool: str,
    ) -> TimeLimit:
        """Return the time that a peer's call of a tool gets.

        Args:
            asked: Seconds for which the peer says that it waits; None if it says none.
            most: See `of_peer`.
            of_tools: `AttachmentSpec.max_timeout`.
            tool: Short name of the capability.
        """
        if asked is None:
            wanted = TimeLimit(self._call.timeout, "call.timeout")
        else:
            wanted = TimeLimit(max(asked, 0.001), "the deadline of the caller")
        least = wanted if wanted.seconds <= most.seconds else most
        seconds = of_tools.get(tool, of_tools.get("*"))
        if seconds is None or seconds >= least.seconds:
            return least
        return TimeLimit(seconds, f"max_timeout of {tool}")
