"""Tasks that last, of this agent at peers and of peers at this agent."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

from anp.channel.channel import Channel
from anp.errors import CallError, ConflictError, ErrorKind
from anp.identity.dids import Identities, agent_of
from anp.interaction.conversation import Conversation
from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Part,
    Party,
    PartyMode,
    SenderRole,
    Session,
    SessionEvent,
    Task,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import (
    Acknowledgement,
    NotifyRegister,
    NotifyUnregister,
    RefusedOperation,
    SessionOpen,
    SessionUpdate,
)
from anp.interaction.record import Step
from anp.interaction.states import is_terminal
from anp.protocols.gbz.reader import GbzFrame
from anp.protocols.gbz.side import session_of
from anp.protocols.gbz.words import GBZ_URI
from anp.sidecar.calls.requesters import Requesters
from anp.sidecar.offer.capability_calls import CapabilityCalls
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.tasks.lines import Line, Lines, same_peer
from anp.sidecar.tasks.sealed_logs import SealedLogs
from anp.sidecar.tasks.sessions import KnownTask, Maker, NoTask, Sessions, utc_now
from anp.sidecar.tasks.work import TaskAnswer, Worker
from negotiation.consensus.written import WrittenLimits

__all__ = ["TaskService"]

logger = logging.getLogger(__name__)


class TaskService:
    """Starts, serves and follows tasks; the faces of the daemon call its methods."""

    def __init__(
        self,
        *,
        logs: SealedLogs,
        identities: Identities,
        finder: PeerFinder,
        requesters: Requesters,
        capabilities: CapabilityCalls,
        limits: WrittenLimits,
    ) -> None:
        self._identities = identities
        self._finder = finder
        self._requesters = requesters
        self._capabilities = capabilities
        self.sessions = Sessions(logs, self._follow)
        self._lines = Lines(
            dial=self._dial,
            take=self._take,
            opened=self._tell,
            needs=self._needs,
            unspoken=self._unspoken,
            limits=limits,
        )
        self._workers: dict[tuple[str, str], tuple[Worker, asyncio.Task[None]]] = {}
        self._doing: set[asyncio.Task[None]] = set()
        self._addresses: dict[str, str] = {}

    # The agent's commands.

    async def start_task(
        self,
        peer: str,
        *,
        capability: str = "",
        parts: Sequence[Part] = (),
        log: str | None = None,
        depends_on: Sequence[str] = (),
        trust_first_use: bool = False,
        maker: Maker = Maker.AGENT,
    ) -> KnownTask:
        """Have a peer do something; return the task as soon as it is stored.

        Args:
            peer: Name, DID or address, as for a call; unused in a known session.
            parts: The arguments as a JSON object, a text, or more.
            log: Our own id of the session; None makes a new one.
            depends_on: Our own ids of tasks of that session to be completed before.
            maker: The one of us who asks, for a new session.

        Raises:
            CallError: The peer is not known, or the session does not take it.
        """
        if log is None:
            log = await self.open_session(
                peer, trust_first_use=trust_first_use, maker=maker
            )
        conversation = await self._conversation(log)
        executor = conversation.session.participants[0].id
        needed = [(await self.task(item)).task.id for item in depends_on]
        name = str(uuid.uuid4())
        message = Message(
            id=str(uuid.uuid4()),
            session=conversation.session.id,
            task=name,
            sender=conversation.own,
            role=SenderRole.REQUESTER,
            purpose=MessagePurpose.COMMUNICATION,
            parts=tuple(parts) or (Part.value({}),),
        )
        task = Task(
            id=name,
            session=conversation.session.id,
            requester=conversation.own,
            executor=executor,
            capability=capability,
            messages=(message,),
            depends_on=tuple(needed),
        )
        await self._apply(log, lambda c: c.create(task, wall_now=utc_now()))
        return await self.task(await self.sessions.item_of(log, name))

    async def open_session(
        self,
        peer: str,
        *,
        trust_first_use: bool = False,
        maker: Maker = Maker.AGENT,
    ) -> str:
        """Open a session with a peer; return our own id of it.

        Raises:
            CallError: The peer is not known or blocked.
        """
        target = await self._finder.find(peer, trust_first_use=trust_first_use)
        own = self._identities.speaking_to(target.did).did
        session = Session(
            id=str(uuid.uuid4()),
            requester=Party(id=own),
            participants=(
                Party(id=target.did, address=target.url or "", mode=PartyMode.P2P),
            ),
        )
        return await self.sessions.begin(session, maker=maker)

    async def send(
        self, item: str, parts: Sequence[Part], *, metadata: dict[str, Any]
    ) -> None:
        """Send a message about a task to its other side."""
        known = await self.task(item)
        message = Message(
            id=str(uuid.uuid4()),
            session=known.task.session,
            task=known.task.id,
            sender="",
            role=SenderRole.REQUESTER,
            purpose=MessagePurpose.COMMUNICATION,
            parts=tuple(parts),
            metadata=metadata,
        )
        await self._apply(known.log, lambda c: c.post(message, wall_now=utc_now()))

    async def cancel(self, item: str) -> None:
        """Ask for the end of a task of ours; how it ends is its executor's report."""
        known = await self.task(item)
        name = known.task.id
        await self._apply(known.log, lambda c: c.cancel(name, wall_now=utc_now()))

    async def close_session(self, log: str) -> None:
        """End a session of ours; its open tasks are asked to end."""
        await self._apply(log, lambda c: c.close(wall_now=utc_now()))

    async def task(self, item: str) -> KnownTask:
        """Return a task by our own id.

        Raises:
            NoTask: There is none.
        """
        found = await self.sessions.task(item)
        if found is None:
            raise NoTask(f"task {item[:80]}")
        return found

    async def watch(self, log: str, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        """Yield the events of a session from a number on, and wait for new ones."""
        await self._conversation(log)
        async for event in self.sessions.watch(log, after=after):
            yield event

    @property
    def working(self) -> int:
        """Number of tasks of peers that are offered or at work now."""
        return len(self._workers)

    # The daemon's life.

    async def resume(self) -> None:
        """Go on with what a stop or a kill interrupted."""
        async for log in self.sessions.busy():
            try:
                await self.sessions.apply(
                    log,
                    lambda c: c.recover(
                        may_repeat=self._may_repeat, wall_now=utc_now()
                    ),
                )
                await self._want(log)
            except InteractionError as exc:
                logger.warning("session not resumed id=%s: %s", log, exc.text)

    async def close(self) -> None:
        """End the work on tasks; what was at work is settled at the next start."""
        await self._lines.close()
        working = [task for _, task in self._workers.values()]
        for task in working:
            task.cancel()
        await asyncio.gather(*working, *self._doing, return_exceptions=True)

    async def serve(self, channel: Channel) -> None:
        """Carry sessions over a channel that a peer opened, until it ends."""
        await self._lines.serve(channel)

    # What follows from a step. Nothing here waits.

    def _follow(self, log: str, step: Step) -> None:
        for send in step.sends:
            line = self._lines.find(send.to)
            if line is not None:
                line.put(send)
            elif send.ref:
                self._do(self._want(log))
        for task in step.offered:
            self._begin(log, task)
        for message in step.whole:
            found = self._workers.get((log, message.task))
            if found is not None:
                found[0].answer(TaskAnswer(message))
        for name in step.stop:
            found = self._workers.get((log, name))
            if found is not None:
                worker, running = found
                worker.cancel(running)
        for name in step.ready:
            self._do(self._release(log, name))
        for name in step.start:
            self._do(self._start_again(log, name))
        for refused in step.refused:
            logger.warning(
                "operation refused session=%s code=%s reason=%r",
                log,
                refused.code,
                refused.text[:200],
            )
        if step.resend:
            self._do(self._resend(log, {peer for peer, _ in step.resend}))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        async def guarded() -> None:
            try:
                await work
            except (InteractionError, CallError) as exc:
                logger.info("a step of a session did not follow: %s", exc)
            except Exception:
                logger.exception("a step of a session failed")

        task = asyncio.create_task(guarded())
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    def _begin(self, log: str, task: Task) -> None:
        key = log, task.id
        if key in self._workers:
            return
        worker = Worker(
            log,
            task,
            sessions=self.sessions,
            capabilities=self._capabilities,
            peer=self._canonical(task.requester),
            peer_did=task.requester,
        )
        running = asyncio.create_task(worker.run())
        self._workers[key] = worker, running
        running.add_done_callback(lambda _: self._workers.pop(key, None))

    async def _start_again(self, log: str, name: str) -> None:
        task = await self._created(log, name)
        if task is not None:
            self._begin(log, task)

    async def _release(self, log: str, name: str) -> None:
        """Send a held task, with the results of those that it depends on."""
        task = await self._created(log, name)
        if task is None:
            return
        inputs = tuple(
            [
                message
                for needed in task.depends_on
                for message in await self._results(log, needed)
            ]
        )
        await self.sessions.apply(
            log, lambda c: c.release(task, inputs=inputs, wall_now=utc_now())
        )

    async def _created(self, log: str, name: str) -> Task | None:
        """Return a task as it was created, with its messages."""
        async for content in self._contents(log):
            if isinstance(content, Task) and content.id == name:
                return content
        return None

    async def _results(self, log: str, name: str) -> list[Message]:
        return [
            content
            async for content in self._contents(log)
            if isinstance(content, Message)
            and content.task == name
            and content.purpose is MessagePurpose.RESULT
        ]

    async def _contents(self, log: str) -> AsyncIterator[Any]:
        after = 0
        while events := await self.sessions.events(log, after=after):
            for event in events:
                yield event.content
            after = events[-1].number

    # Peers.

    async def _want(self, log: str) -> None:
        """Have lines to the peers that have something to do in a session of ours."""
        conversation = await self.sessions.conversation(log)
        for party in conversation.session.participants:
            if conversation.is_requester and party.id != conversation.own:
                self._addresses[agent_of(party.id)] = (
                    f"{party.address}#{party.id}" if party.address else party.id
                )
                self._lines.want(party.id)

    async def _needs(self, peer: str) -> bool:
        async for log in self.sessions.busy():
            conversation = await self.sessions.conversation(log)
            if not conversation.is_requester:
                continue
            if any(same_peer(one, peer) for one in conversation.peers()):
                return True
        return False

    async def _dial(self, peer: str) -> Channel | None:
        address = self._addresses.get(agent_of(peer), peer)
        target = await self._finder.find(address, trust_first_use=True)
        channel = await self._requesters.open(target, None, [GBZ_URI])
        if channel.peer_meta.selected_protocol != GBZ_URI:
            await channel.close("the protocol for tasks is not common")
            return None
        return channel

    async def _unspoken(self, peer: str) -> None:
        """Refuse the tasks for a peer that speaks no protocol for tasks."""
        logger.warning("peer speaks no protocol for tasks peer=%s", peer)
        async for log in self.sessions.busy():
            conversation = await self.sessions.conversation(log)
            names = [one for one in conversation.peers() if same_peer(one, peer)]
            if not conversation.is_requester or not names:
                continue
            for name, task in list(conversation.tasks.items()):
                if not is_terminal(task.state):
                    await self._give_up(log, name)
            for number in conversation.unacknowledged(names[0]):
                await self.sessions.acknowledge(log, sender=names[0], ref=number)

    async def _give_up(self, log: str, name: str) -> None:
        reason = "the peer speaks no protocol for tasks"
        await self.sessions.apply(
            log, lambda c: c.give_up(name, reason=reason, wall_now=utc_now())
        )

    async def _tell(self, line: Line) -> None:
        """Tell a peer on a new line what it has not acknowledged."""
        async for log in self.sessions.busy():
            await self._resend(log, line.names)

    async def _resend(self, log: str, peers: set[str] | frozenset[str]) -> None:
        conversation = await self.sessions.conversation(log)
        for peer in conversation.peers():
            if not any(same_peer(peer, one) for one in peers):
                continue
            for send in await self.sessions.unsent(log, peer):
                line = self._lines.find(peer)
                if line is not None:
                    line.put(send)

    async def _take(self, line: Line, frame: GbzFrame) -> None:
        """Take an operation of a peer."""
        operation = frame.operation
        try:
            await self._took(line, frame)
        except InteractionError as exc:
            if not isinstance(operation, Acknowledgement | RefusedOperation):
                line.refuse(frame, exc)

    async def _took(self, line: Line, frame: GbzFrame) -> None:
        operation, wire_id = frame.operation, session_of(frame.operation)
        if isinstance(operation, NotifyRegister | NotifyUnregister):
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "this agent keeps no registrations"
            )
        if isinstance(operation, SessionOpen | SessionUpdate) and any(
            one.mode is PartyMode.GROUP for one in operation.session.participants
        ):
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "groups are not in this version"
            )
        if isinstance(operation, SessionOpen):
            await self._joined(line, operation.session, frame.ref)
            return
        log = await self._log_of(line, wire_id)
        conversation = await self.sessions.conversation(log)
        sender = next(
            (one for one in conversation.peers() if one in line.names), line.peer
        )
        await self.sessions.apply(
            log,
            lambda c: c.receive(
                operation,
                sender=sender,
                ref=frame.ref,
                now=time.monotonic(),
                wall_now=utc_now(),
            ),
        )

    async def _joined(self, line: Line, session: Session, ref: int) -> None:
        if session.requester.id not in line.names:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "sender is not who speaks on this channel"
            )
        own = next(
            (
                one.id
                for one in session.participants
                if self._identities.for_did(one.id) is not None
            ),
            self._identities.canonical,
        )
        await self.sessions.join(session, own=own, sender=session.requester.id, ref=ref)

    async def _log_of(self, line: Line, session: str) -> str:
        """Return our own id of a session with a peer, whoever made it."""
        own = [one.did for one in (self._identities.primary,)]
        for requester in (*line.names, *own, self._identities.canonical):
            log = await self.sessions.find(requester, session)
            if log is not None:
                return log
        raise InteractionError(InteractionFault.UNKNOWN_SESSION, "no such session here")

    # Small things.

    async def _conversation(self, log: str) -> Conversation:
        try:
            return await self.sessions.conversation(log)
        except InteractionError as exc:
            raise NoTask(f"session {log[:80]}") from exc

    async def _apply(self, log: str, act: Callable[[Conversation], Step]) -> Step:
        try:
            return await self.sessions.apply(log, act)
        except InteractionError as exc:
            if exc.code in (InteractionFault.STATE, InteractionFault.CLOSED):
                raise ConflictError(exc.text) from exc
            raise CallError(ErrorKind.USAGE, exc.text) from exc

    def _may_repeat(self, task: Task) -> bool:
        name, peer = task.capability, self._canonical(task.requester)
        return self._capabilities.is_repeatable(name, peer)

    def _canonical(self, did: str) -> str:
        line = self._lines.find(did)
        return did if line is None else line.peer
