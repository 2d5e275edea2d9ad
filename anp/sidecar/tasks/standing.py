"""The peers with which something is unfinished, so that nobody has to look for them.

It is kept in memory beside the sessions in the store, and changed with every step.
"""

from __future__ import annotations

from collections.abc import Container

from anp.identity.dids import agent_name
from anp.interaction.conversation import Conversation
from anp.protocols.a2a.words import A2A_URIS


class Standing:
    """Knows for each peer the sessions with something unfinished."""

    def __init__(self) -> None:
        self._untold: dict[str, dict[str, int]] = {}
        self._ours: dict[str, dict[str, int]] = {}
        "The number of our unfinished tasks at a peer, by session."
        self._dialled: dict[str, dict[str, int]] = {}
        self._awaited: dict[str, dict[str, int]] = {}
        self._registered: dict[str, dict[str, int]] = {}
        self._protocols: dict[str, tuple[str, bool]] = {}
        self._sent: dict[str, int] = {}
        "Numbers of the newest events that went out on a line, by session."
        self._agents: dict[str, tuple[str, ...]] = {}
        "The peers of each session that is in one of them."

    def note(self, log: str, conversation: Conversation) -> None:
        """Take note of a session as it is now."""
        is_ours = conversation.is_requester and conversation.is_busy
        if not conversation.is_busy:
            self.drop(log)
            return
        agents, open_tasks = [], conversation.unfinished
        for peer in conversation.peers():
            agent = agent_name(peer)
            agents.append(agent)
            waiting = conversation.count_unacknowledged(peer) > 0
            _mark(self._untold, agent, log, waiting)
            count = sum(agent_name(one.executor) == agent for one in open_tasks)
            _mark(self._ours, agent, log, is_ours, count)
            # Where the peer brings news, we dial it only to tell it something.
            brings = bool(conversation.registered)
            # A2A has no such thing.
            brings = brings and conversation.protocol not in A2A_URIS
            dials = is_ours and (waiting or not brings)
            _mark(self._dialled, agent, log, dials)
            awaited = is_ours and brings
            _mark(self._awaited, agent, log, awaited)
            registered = bool(conversation.registered) and not conversation.is_requester
            _mark(self._registered, agent, log, registered)
        self._agents[log] = tuple(agents)
        self._protocols[log] = conversation.protocol, conversation.is_requester

    def drop(self, log: str) -> None:
        """Forget a session."""
        self._protocols.pop(log, None)
        self._sent.pop(log, None)
        for agent in self._agents.pop(log, ()):
            _mark(self._untold, agent, log, False)
            _mark(self._ours, agent, log, False)
            _mark(self._dialled, agent, log, False)
            _mark(self._awaited, agent, log, False)
            _mark(self._registered, agent, log, False)

    def untold(self, peer: str) -> list[str]:
        """Return the sessions of which a peer does not know everything."""
        return list(self._untold.get(agent_name(peer), ()))

    def ours(self, peer: str) -> list[str]:
        """Return the sessions of ours in which a peer has something to do."""
        return list(self._ours.get(agent_name(peer), ()))

    def working_for_us(self) -> list[str]:
        """Return the peers that have something to do for us."""
        return list(self._ours)

    def carrier(self, log: str) -> tuple[str, bool]:
        """Return the protocol of a session, and if it is ours.

        No other protocol may carry a session of ours that has one.
        """
        return self._protocols.get(log, ("", False))

    def sent(self, log: str, number: int) -> None:
        """Take note that an event of a session went out on a line, to its peer."""
        if log in self._protocols:
            self._sent[log] = max(number, self._sent.get(log, 0))

    def was_sent(self, log: str, number: int) -> bool:
        """Return whether an event went out on a line since the daemon started."""
        return number <= self._sent.get(log, 0)

    def bound_to(self, peer: str, protocol: str) -> list[str]:
        """Return those of `ours` that one protocol alone carries; "" for any."""
        return [log for log in self.ours(peer) if self._protocols[log][0] == protocol]

    def is_dialled(self, peer: str, protocols: Container[str]) -> bool:
        """Return whether we need a line to a peer.

        Args:
            protocols: Only for sessions that these carry; "" for those of any.
        """
        logs = self._dialled.get(agent_name(peer), ())
        return any(self._protocols[log][0] in protocols for log in logs)

    def is_awaited(self, peer: str) -> bool:
        """Return whether a peer is to bring us news of tasks."""
        return agent_name(peer) in self._awaited

    def registered(self, peer: str) -> list[str]:
        """Return the unfinished sessions of which a peer wants news brought to it."""
        return list(self._registered.get(agent_name(peer), ()))

    def all_registered(self) -> list[str]:
        """Return the peers that want news brought to them."""
        return list(self._registered)

    def at_work(self, peer: str) -> int:
        """Return how many of our tasks a peer has not ended."""
        return sum(self._ours.get(agent_name(peer), {}).values())


def _mark(
    marks: dict[str, dict[str, int]], agent: str, log: str, there: bool, count: int = 0
) -> None:
    if there:
        marks.setdefault(agent, {})[log] = count
    elif agent in marks:
        marks[agent].pop(log, None)
        if not marks[agent]:
            del marks[agent]
