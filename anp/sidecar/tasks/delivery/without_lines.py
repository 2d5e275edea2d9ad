"""Tasks at peers to which there is no line: over A2A, or each made as a call.

A session that goes over A2A is bound to that protocol from then on. Where the peer has
no protocol for tasks, each task that it was not told of is made as a call for good.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from anp.channel.channel import Channel
from anp.identity.dids import agent_name
from anp.interaction.conversation import Conversation
from anp.interaction.elements import Task
from anp.interaction.errors import InteractionError
from anp.interaction.operations import Operation, TaskCreate
from anp.interaction.states import TaskState
from anp.interaction.step import Step
from anp.protocols.a2a.words import A2A_URIS
from anp.sidecar.tasks.delivery.a2a_carrier import A2aCarrier, is_over_a2a
from anp.sidecar.tasks.delivery.line import Line
from anp.sidecar.tasks.delivery.one_turn import OneTurn
from anp.sidecar.tasks.known import is_new
from anp.sidecar.tasks.sessions import Sessions

logger = logging.getLogger(__name__)

CARRY_CHECK: Final = 0.5
"Seconds between two looks at the tasks of a peer that gets them as calls."

FAILED_CHECK: Final = 60.0
"The same after an error of our own, such as a full disk."

CHOSEN: Final = "chosen protocol"
"""Name in `Conversation.threads` for a session whose protocol was chosen here; whoever
began it named none."""

PAGE: Final = 64
"Operations that are read from a log at a time."


def is_elsewhere(conversation: Conversation, operation: Operation) -> bool:
    """Return whether an operation is not for a line: its task goes another way."""
    if not conversation.is_requester:
        return False
    if conversation.protocol in A2A_URIS:
        return True
    match operation:
        case TaskCreate(task=Task(id=name)):
            task = conversation.tasks[name]
            return is_new(conversation, task) or is_over_a2a(conversation, task)
    return False


class WithoutLines:
    """Carries sessions of ours that no line carries; see `carry`."""

    def __init__(
        self,
        sessions: Sessions,
        plain: OneTurn,
        *,
        has_line: Callable[[str], bool],
        want: Callable[[str, str], None],
    ) -> None:
        """Begin with no session to carry.

        Args:
            has_line: Tells if there is a line to a peer.
            want: Has a peer dialled for a protocol; empty for any.
        """
        self._sessions = sessions
        self._plain = plain
        self._has_line = has_line
        self._want = want
        self._channels: dict[tuple[str, str], Channel] = {}
        "Channels over A2A that were dialled, by peer and protocol."
        self._carrying: set[tuple[str, str]] = set()
        "Peers and protocols for which `carry` runs."
        self._chosen: dict[str, str] = {}
        "The protocol of A2A that a peer chose last, by the peer's name."
        self._reached: set[str] = set()
        "Peers to which a line opened while calls were made for them."
        self._finishing: dict[str, asyncio.Task[None]] = {}

    async def close(self) -> None:
        """Begin no more calls."""
        finishing = [*self._finishing.values()]
        for task in finishing:
            task.cancel()
        await asyncio.gather(*finishing, return_exceptions=True)

    def opened(self, line: Line) -> None:
        """Take note of a line to a peer: it carries the tasks that are no calls yet."""
        agent = agent_name(line.peer)
        if (agent, "") in self._carrying:
            self._reached.add(agent)

    def is_there(self, peer: str) -> bool:
        """Return whether something carries the tasks of a peer now."""
        agent = agent_name(peer)
        return any(one == agent for one, _ in self._carrying)

    async def resume(self, log: str, peer: str, address: str) -> None:
        """Make the calls of a session that were to be made before a restart."""
        if await self._has_calls(log):
            self._finish(peer, address)

    async def orders(self, peer: str, order: Sequence[str]) -> list[Sequence[str]]:
        """Return the protocols to ask a peer for, one list after the other.

        Tasks that it has over a line go on over one, if it still speaks such a thing.
        """
        lines = [uri for uri in order if uri not in A2A_URIS]
        for log in self._sessions.standing.bound_to(peer, ""):
            # One may be deleted meanwhile.
            with contextlib.suppress(InteractionError):
                if await self._on_lines(log):
                    return [lines, order]
        return [order]

    async def join(self, peer: str) -> bool:
        """Have new sessions go over A2A, if others with the peer do; tell if so."""
        uri = self._chosen.get(agent_name(peer), "")
        if (agent_name(peer), uri) not in self._carrying:
            return False
        for log in self._sessions.standing.bound_to(peer, ""):
            with contextlib.suppress(InteractionError):
                if await self._on_lines(log):
                    return False
        await self.bind(peer, uri, None)
        return True

    async def bind(self, peer: str, uri: str, channel: Channel | None) -> None:
        """Have sessions with a peer go over A2A, which it prefers to a line.

        Args:
            uri: The protocol of A2A.
            channel: Speaks it, and is closed where there is another one; None if there
                is another one.
        """
        for log in self._sessions.standing.bound_to(peer, ""):
            try:
                for task in await self._on_lines(log):
                    if self._has_line(peer):
                        break
                    words = "the peer speaks only A2A now, and has it over another way"
                    await self._plain.lose(log, task, words)
                await self._sessions.apply(log, partial(self._bound, peer, uri))
            except InteractionError as exc:
                # It was deleted, or a task of it ended, meanwhile.
                logger.info("session not bound session=%s: %s", log, exc.text)
        key = agent_name(peer), uri
        self._chosen[agent_name(peer)] = uri
        if channel is None:
            pass
        elif key in self._carrying or key in self._channels:
            await channel.close("there is another one")
        else:
            self._channels[key] = channel
        self._want(peer, uri)

    def _bound(self, peer: str, uri: str, conversation: Conversation) -> Step:
        # A line may have opened meanwhile, and calls go on as calls.
        calls = any(is_new(conversation, one) for one in conversation.unfinished)
        if calls or conversation.protocol or self._has_line(peer):
            return Step()
        conversation.protocol = uri
        conversation.threads[CHOSEN] = "1"
        return Step(is_head_changed=True)

    def dialled(self, peer: str, uri: str, channel: Channel) -> None:
        """Carry sessions that are bound to A2A over a channel, at the next `carry`."""
        self._channels[agent_name(peer), uri] = channel

    def has_channel(self, peer: str, uri: str) -> bool:
        """Return whether a channel over A2A waits for `carry`."""
        found = self._channels.get((agent_name(peer), uri))
        return found is not None and found.open

    async def carry(self, peer: str, protocol: str, address: str) -> None:
        """Carry sessions with a peer until none is left, or there is another way.

        Args:
            protocol: URI of the one that they are bound to; empty for any.
            address: The peer's address for calls.
        """
        agent = agent_name(peer)
        bound = partial(self._sessions.standing.bound_to, peer, protocol)
        self._carrying.add((agent, protocol))
        self._reached.discard(agent)
        try:
            channel = self._channels.pop((agent, protocol), None)
            if channel is not None:
                version = A2A_URIS[protocol]
                await A2aCarrier(self._sessions, channel, version).run(bound)
                return
            while logs := bound():
                if not protocol and self._is_left(peer):
                    self._finish(peer, address)
                    return
                for log in logs:
                    await self._carry(log, peer, protocol, address)
                await asyncio.sleep(CARRY_CHECK)
        finally:
            self._carrying.discard((agent, protocol))
            if not protocol:
                self._reached.discard(agent)

    def _is_left(self, peer: str) -> bool:
        """Return whether tasks are told to a peer on a line by now."""
        return self._has_line(peer) or agent_name(peer) in self._reached

    async def _carry(self, log: str, peer: str, protocol: str, address: str) -> None:
        try:
            conversation = await self._sessions.conversation(log)
            if not protocol:
                is_left = partial(self._is_left, peer)
                await self._plain.carry(log, address, is_left)
            elif CHOSEN in conversation.threads:
                await self._unbind(log, conversation)
                self._want(peer, "")
            else:
                await self._plain.refuse(log, f"the peer does not know {protocol}")
        except InteractionError as exc:
            # It was deleted, or a task of it ended, meanwhile.
            logger.info("session not carried session=%s: %s", log, exc.text)

    async def _unbind(self, log: str, conversation: Conversation) -> None:
        """Have another way found for a session, as far as its tasks were not sent."""

        def free(conversation: Conversation) -> Step:
            conversation.protocol = ""
            conversation.threads.pop(CHOSEN, None)
            return Step(is_head_changed=True)

        for task in conversation.unfinished:
            if is_over_a2a(conversation, task):
                words = "the peer does not speak A2A now, over which it has the task"
                await self._plain.lose(log, task, words)
        await self._sessions.apply(log, free)

    async def _on_lines(self, log: str) -> list[Task]:
        """Return the tasks of a session of which its peer was told on a line."""
        conversation = await self._sessions.conversation(log)
        open_tasks, fresh, after = conversation.unfinished, set[str](), 0
        for peer in conversation.peers():
            while sends := await self._sessions.untold(
                log, peer, after=after, limit=PAGE
            ):
                after = sends[-1].ref
                fresh |= {
                    one.operation.task.id
                    for one in sends
                    if isinstance(one.operation, TaskCreate)
                    and not self._sessions.standing.was_sent(log, one.ref)
                }
        return [
            task
            for task in open_tasks
            if task.state != TaskState.HELD
            and not (task.state == TaskState.REQUESTED and task.id in fresh)
            and not is_new(conversation, task)
            and not is_over_a2a(conversation, task)
        ]

    def _finish(self, peer: str, address: str) -> None:
        """Make the calls that were to be made, whatever the peer speaks by now."""
        agent = agent_name(peer)
        if agent not in self._finishing:
            # Not the work of whoever dials it.
            self._finishing[agent] = asyncio.create_task(
                self._make_calls(agent, peer, address), context=contextvars.Context()
            )

    async def _make_calls(self, agent: str, peer: str, address: str) -> None:
        try:
            while logs := [
                log
                for log in self._sessions.standing.bound_to(peer, "")
                if await self._has_calls(log)
            ]:
                wait = CARRY_CHECK
                for log in logs:
                    try:
                        await self._plain.carry(log, address, lambda: True)
                    except InteractionError as exc:
                        logger.info("calls not made session=%s: %s", log, exc.text)
                    except Exception:
                        logger.exception("calls not made session=%s", log)
                        wait = FAILED_CHECK
                await asyncio.sleep(wait)
        finally:
            del self._finishing[agent]

    async def _has_calls(self, log: str) -> bool:
        try:
            conversation = await self._sessions.conversation(log)
        except InteractionError:
            # Deleted meanwhile.
            return False
        return any(is_new(conversation, one) for one in conversation.unfinished)
