"""Tasks at peers to which there is no line: over A2A, or each made as a call.

A session goes one way at a time. Once one of these has taken it up, no line that opens
meanwhile tells the peer of it; what a line has told of is not taken up.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from anp.channel.channel import Channel
from anp.interaction.conversation import Conversation
from anp.interaction.elements import Task
from anp.interaction.errors import InteractionError
from anp.interaction.states import TaskState
from anp.protocols.a2a.words import A2A_URIS, A2aVersion
from anp.sidecar.peers.policy import agent_name
from anp.sidecar.tasks.delivery.a2a_carrier import A2aCarrier, is_over_a2a
from anp.sidecar.tasks.delivery.one_turn import OneTurn
from anp.sidecar.tasks.known import is_new
from anp.sidecar.tasks.sessions import Sessions

__all__ = ["WithoutLines"]

logger = logging.getLogger(__name__)

CARRY_CHECK: Final = 0.5
"Seconds between two looks at the tasks of a peer that gets them as calls."


class _Way(StrEnum):
    """The way that a task goes which its peer knows of."""

    A2A = "a2a"
    CALL = "call"
    LINE = "line"


class WithoutLines:
    """Carries sessions of ours that no line carries; see `carry`."""

    def __init__(
        self, sessions: Sessions, plain: OneTurn, has_line: Callable[[str], bool]
    ) -> None:
        """Begin without any.

        Args:
            has_line: Tells if there is a line to a peer.
        """
        self._sessions = sessions
        self._plain = plain
        self._has_line = has_line
        self._taken: dict[str, set[str]] = {}
        "Sessions that were taken up, by the peer's name."
        self._channels: dict[tuple[str, str], tuple[Channel, A2aVersion]] = {}
        "Channels over A2A that were dialled, by peer and the protocol wanted."
        self._carrying: set[tuple[str, str]] = set()
        "The same of those for which `carry` runs."
        self._finishing: dict[str, asyncio.Task[None]] = {}

    async def close(self) -> None:
        """Begin no more calls."""
        finishing = [*self._finishing.values()]
        for task in finishing:
            task.cancel()
        await asyncio.gather(*finishing, return_exceptions=True)

    def has(self, peer: str, log: str) -> bool:
        """Return whether a session with a peer was taken up."""
        return log in self._taken.get(agent_name(peer), ())

    def is_needed(self, peer: str) -> bool:
        """Return whether sessions that were taken up wait for a peer to be dialled."""
        agent = agent_name(peer)
        return bool(self._taken.get(agent)) and (agent, "") not in self._carrying

    def is_there(self, peer: str) -> bool:
        """Return whether something carries the tasks of a peer now."""
        agent = agent_name(peer)
        return any(one == agent for one, _ in self._carrying)

    async def resume(self, log: str) -> None:
        """Take up a session again that had been, before a restart."""
        conversation = await self._sessions.conversation(log)
        if conversation.is_requester and not conversation.protocol:
            for task in conversation.unfinished:
                if _way(conversation, task) in (_Way.A2A, _Way.CALL):
                    self._taken.setdefault(agent_name(task.executor), set()).add(log)

    async def orders(self, peer: str, order: Sequence[str]) -> list[Sequence[str]]:
        """Return the protocols to ask a peer for, one list after the other.

        Tasks that the peer has go on where they began, if it still speaks that.
        """
        ways = set()
        for log in self._sessions.standing.bound_to(peer, ""):
            conversation = await self._sessions.conversation(log)
            ways |= {_way(conversation, task) for task in conversation.unfinished}
        if _Way.LINE in ways:
            first = [uri for uri in order if uri not in A2A_URIS]
        elif _Way.A2A in ways:
            first = [uri for uri in order if uri in A2A_URIS]
        else:
            first = []
        return [first, order] if first and first != [*order] else [order]

    def dialled(
        self, peer: str, protocol: str, channel: Channel, version: A2aVersion
    ) -> None:
        """Carry tasks over a channel that speaks A2A, at the next `carry`."""
        self._channels[agent_name(peer), protocol] = channel, version

    async def leave_to_line(self, peer: str, address: str) -> None:
        """Have the line that opens next carry what it can."""
        for log in self._taken.pop(agent_name(peer), ()):
            conversation = await self._sessions.conversation(log)
            for task in conversation.unfinished:
                if _way(conversation, task) is _Way.A2A:
                    words = "the peer does not speak A2A now, over which it took it"
                    await self._plain.lose(log, task, words)
        self._finish(peer, address)

    async def carry(self, peer: str, protocol: str, address: str) -> None:
        """Carry sessions with a peer until none is left, or its channel ends.

        Args:
            protocol: URI of the one that they are bound to; empty for any.
            address: The peer's address for calls.
        """
        key = agent_name(peer), protocol
        self._carrying.add(key)
        try:
            over_a2a = self._channels.pop(key, None)
            if over_a2a is not None:
                self._finish(peer, address)
                carrier = A2aCarrier(self._sessions, *over_a2a)
                await carrier.run(lambda: self._take_up(peer, protocol))
                return
            while logs := self._take_up(peer, protocol):
                for log in logs:
                    await self._carry(log, protocol, address)
                await asyncio.sleep(CARRY_CHECK)
        finally:
            self._carrying.discard(key)

    async def _carry(self, log: str, protocol: str, address: str) -> None:
        try:
            if protocol:
                await self._plain.refuse(log, f"the peer does not know {protocol}")
            else:
                await self._plain.carry(log, address)
        except InteractionError as exc:
            # It was deleted, or its task ended, meanwhile.
            logger.info("session not carried session=%s: %s", log, exc.text)

    def _take_up(self, peer: str, protocol: str) -> list[str]:
        """Return the sessions to carry; nothing is awaited, so that no line is, too."""
        logs = self._sessions.standing.bound_to(peer, protocol)
        if protocol:
            return logs
        taken = self._taken.setdefault(agent_name(peer), set())
        taken &= {*logs}
        if not self._has_line(peer):
            taken |= {*logs}
        if not taken:
            del self._taken[agent_name(peer)]
        return [log for log in logs if log in taken]

    def _finish(self, peer: str, address: str) -> None:
        """Make the calls that were to be made, whatever the peer speaks by now."""
        agent = agent_name(peer)
        if agent not in self._finishing:
            # Not the work of whoever dials it.
            self._finishing[agent] = asyncio.create_task(
                self._make_calls(peer, address), context=contextvars.Context()
            )
            self._finishing[agent].add_done_callback(
                lambda _: self._finishing.pop(agent)
            )

    async def _make_calls(self, peer: str, address: str) -> None:
        try:
            while logs := [
                log
                for log in self._sessions.standing.bound_to(peer, "")
                if await self._has_calls(log)
            ]:
                for log in logs:
                    await self._plain.carry(log, address, only_new=True)
                await asyncio.sleep(CARRY_CHECK)
        except InteractionError as exc:
            logger.info("calls not made peer=%s: %s", peer, exc.text)
        except Exception:
            logger.exception("calls not made peer=%s", peer)

    async def _has_calls(self, log: str) -> bool:
        conversation = await self._sessions.conversation(log)
        return any(is_new(conversation, one) for one in conversation.unfinished)


def _way(conversation: Conversation, task: Task) -> _Way | None:
    """Return the way that a task goes; None while its peer knows nothing of it."""
    if is_over_a2a(conversation, task):
        return _Way.A2A
    if is_new(conversation, task):
        return _Way.CALL
    is_told = task.state not in (TaskState.HELD, TaskState.REQUESTED)
    return _Way.LINE if is_told else None
