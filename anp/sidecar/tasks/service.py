"""Tasks that last, of this agent at peers and of peers at this agent."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from anp.channel.channel import Channel
from anp.errors import CallError, ConflictError, ErrorKind
from anp.identity.dids import Identities
from anp.interaction.conversation import Conversation
from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Part,
    PartKind,
    Party,
    PartyMode,
    SenderRole,
    Session,
    SessionEvent,
    Task,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.plan import is_plan
from anp.interaction.step import Step
from anp.interaction.stored import element_size
from anp.protocols.gbz.words import GBZ_GROUPS_URI
from anp.sidecar.calls.caller import Caller
from anp.sidecar.calls.requesters import Requesters
from anp.sidecar.config.interaction import InteractionConfig
from anp.sidecar.files.call_folder import CallFolders
from anp.sidecar.files.spool import Spool
from anp.sidecar.minds.minds import Think
from anp.sidecar.offer.capability_calls import CapabilityCalls
from anp.sidecar.peers.figures import Measures
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.peers.policy import PeerPolicy
from anp.sidecar.tasks.chronicle import created, results
from anp.sidecar.tasks.delivery.line import Line
from anp.sidecar.tasks.desk import TaskDesk
from anp.sidecar.tasks.exchange import SessionPeers
from anp.sidecar.tasks.known import KnownTask, Maker, NoTask, utc_now
from anp.sidecar.tasks.leases import Leases
from anp.sidecar.tasks.sealed_logs import SealedLogs
from anp.sidecar.tasks.sessions import Sessions
from anp.sidecar.tasks.skills import SkillChooser
from anp.sidecar.tasks.upkeep import Upkeep
from negotiation.consensus.written import WrittenLimits

logger = logging.getLogger(__name__)

ROOM_FOR_FIELDS = 64 * 1024
"Bytes of a frame for what is around a message or a task of ours."


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
        caller: Caller,
        policy: PeerPolicy,
        limits: WrittenLimits,
        config: InteractionConfig,
        spool: Spool,
        call_files: Path,
        order: Sequence[str],
        think: Think,
        measures: Measures,
        is_linked: Callable[[str], bool] = lambda peer: False,
    ) -> None:
        """Begin; `resume` goes on with what was interrupted.

        Args:
            call_files: Folder for the folders of calls, which hold files in clear.
            order: URIs of the protocols for tasks that we speak, best first.
        """
        self._identities = identities
        self._finder = finder
        self._requesters = requesters
        self._capabilities = capabilities
        self._policy = policy
        self._order = tuple(order)
        self._most = limits.max_message - ROOM_FOR_FIELDS
        self._use = caller.use
        self.sessions = Sessions(logs, self._follow, max_size=config.max_size)
        self.leases = Leases(
            logs, self._recover, refresh=lambda log: self.desk.refresh(log)
        )
        self.desk = TaskDesk(
            config=config,
            sessions=self.sessions,
            capabilities=capabilities,
            policy=policy,
            room=lambda log, peer: self._exchange.room(log, peer),
            folders=lambda: self.folders,
            leases=self.leases,
            skills=SkillChooser(capabilities.gate, think),
            is_own=lambda did: identities.for_did(did) is not None,
        )
        self._exchange = SessionPeers(
            identities=identities,
            finder=finder,
            requesters=requesters,
            sessions=self.sessions,
            desk=self.desk,
            caller=caller,
            spool=spool,
            max_wait=config.max_wait,
            limits=limits,
            measures=measures,
            is_linked=is_linked,
            is_listed=policy.is_listed,
            max_registered=config.max_registered,
            order=order,
        )
        self.files = self._exchange.files
        self.folders = CallFolders(call_files, self.files)
        self.outbox = self._exchange.outbox
        self.lines = self._exchange.lines
        self.own_url: Callable[[], str] = lambda: ""
        "Returns the URL at which peers reach this daemon."

        self.upkeep = Upkeep(self.sessions, self._exchange, config)
        self._sweeping: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None

    # The agent's commands.

    async def start_task(
        self,
        peer: str,
        *,
        capability: str = "",
        parts: Sequence[Part] = (),
        log: str | None = None,
        depends_on: Sequence[str] = (),
        needs: Sequence[str] = (),
        needs_any: bool = False,
        trust_first_use: bool = False,
        maker: Maker = Maker.AGENT,
        notify: bool = False,
        protocol: str = "",
    ) -> KnownTask:
        """Have a peer do something; return the task as soon as it is stored.

        Args:
            peer: Name, DID or address, as for a call; unused in a known session.
            parts: The arguments as a JSON object, a text, or more.
            log: Our own id of the session; None makes a new one.
            depends_on: Our own ids of tasks of that session that have to end before.
            needs: The final states that will do for each; any one, with `needs_any`.
            maker: The one of us who asks, for a new session.
            notify: Need no connection meanwhile: the peer dials us with its news.
            protocol: URI of the one that alone may carry it; empty for the best.

        Raises:
            CallError: The peer is not known, or the session does not take it.
            ConflictError: The session goes over another protocol.
        """
        if log is None:
            log = await self.open_session(
                peer, trust_first_use=trust_first_use, maker=maker, protocol=protocol
            )
        conversation = await self._conversation(log)
        if protocol not in ("", conversation.protocol):
            bound = conversation.protocol or "the best one"
            raise ConflictError(f"this session goes over {bound}; begin another")
        needed = [(await self.task(item)).task.id for item in depends_on]
        message = Message(
            id=str(uuid.uuid4()),
            session=conversation.session.id,
            task=str(uuid.uuid4()),
            sender=conversation.own,
            role=SenderRole.REQUESTER,
            purpose=MessagePurpose.COMMUNICATION,
            parts=tuple(parts) or (Part.value({}),),
        )
        task = Task(
            id=message.task,
            session=conversation.session.id,
            requester=conversation.own,
            executor=conversation.session.participants[0].id,
            capability=capability,
            messages=(message,),
            depends_on=tuple(needed),
            needs=tuple(needs),
            needs_any=needs_any,
        )
        await self.create(log, task)
        if notify:
            address = self.own_url()
            await self._apply(log, lambda c: c.register(address, wall_now=utc_now()))
        return await self.task(await self.sessions.item_of(log, task.id))

    async def create(self, log: str, task: Task) -> None:
        """Have a peer do a task of one message; its id must be new in the session."""
        self.check_size(task)
        parts = task.messages[0].parts
        words = [str(one.content) for one in parts if one.kind is PartKind.TEXT]
        name = task.capability or None
        await self._use(task.executor, name or "\n".join(words), name)
        async with self.files.giving(log, task.messages[0]):
            await self._apply(log, lambda c: c.create(task, wall_now=utc_now()))

    async def open_session(
        self,
        peer: str,
        *,
        trust_first_use: bool = False,
        maker: Maker = Maker.AGENT,
        name: str = "",
        owner: str = "",
        alias: str = "",
        protocol: str = "",
    ) -> str:
        """Open a session with a peer; return our own id of it.

        Args:
            name: Its id on the wire; empty for a new one.
            owner: Id of the local caller that it belongs to, if any.
            alias: Its id for that caller.
            protocol: URI of the one that alone may carry it; empty for the best.

        Raises:
            CallError: The peer is not known or blocked, or we lack the protocol.
        """
        # It is spoken beside the others, for what only it can say.
        if protocol not in ("", GBZ_GROUPS_URI, *self._order):
            known = ", ".join(self._order) or "none"
            raise CallError(
                ErrorKind.USAGE,
                f"the protocol {protocol[:200]!r} is not one of interaction.order: "
                + known,
            )
        target = await self._finder.find(peer, trust_first_use=trust_first_use)
        own = self._identities.speaking_to(target.did).did
        session = Session(
            id=name or str(uuid.uuid4()),
            requester=Party(id=own),
            participants=(
                Party(id=target.did, address=target.url or "", mode=PartyMode.P2P),
            ),
            owner=owner,
            alias=alias,
        )
        return await self.sessions.begin(session, maker=maker, protocol=protocol)

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
        await self.post(known.log, message)

    async def post(self, log: str, message: Message) -> None:
        """Send a message of a session to its other side."""
        self.check_size(message)
        async with self.files.giving(log, message):
            await self._apply(log, lambda c: c.post(message, wall_now=utc_now()))

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

    async def session_of(self, line: Line, wire_id: str) -> tuple[str, str]:
        """Return our own id of a session with a peer, and the peer's id in it.

        Raises:
            InteractionError: There is none.
        """
        return await self._exchange.session_of(line, wire_id)

    @property
    def working(self) -> int:
        """Number of tasks of peers that are offered or at work now."""
        return self.desk.working

    # The daemon's life.

    async def resume(self) -> None:
        """Go on with what a stop or a kill interrupted."""
        await self.sessions.room.measure()
        async for log in self.sessions.busy():
            try:
                await self._recover(log)
                await self._exchange.resume(log)
            except InteractionError as exc:
                logger.warning("session not resumed id=%s: %s", log, exc.text)
        self.files.resume()
        self._sweeping = asyncio.create_task(self.upkeep.run())
        self._renewing = asyncio.create_task(self.leases.run())

    async def _recover(self, log: str) -> None:
        """Decide about tasks of a session that nobody does any more."""
        held = await self.leases.elsewhere()
        conversation = await self.sessions.conversation(log)
        elsewhere = self.desk.at_work(log)
        for task in conversation.unfinished if held else ():
            if await self.sessions.item_of(log, task.id) in held:
                elsewhere.add(task.id)
        await self.sessions.apply(
            log,
            lambda c: c.recover(
                may_repeat=self._may_repeat, elsewhere=elsewhere, wall_now=utc_now()
            ),
        )

    async def close(self) -> None:
        """End the work on tasks; what was at work is settled at the next start."""
        for beside in (self._sweeping, self._renewing):
            if beside is not None:
                beside.cancel()
        await self._exchange.close()
        await self.desk.close()
        await self._exchange.settle()
        await self.sessions.settle()

    async def serve(self, channel: Channel, uri: str) -> None:
        """Carry sessions over a channel that a peer opened, until it ends."""
        await self._exchange.serve(channel, uri)

    async def recheck(self) -> None:
        """End the tasks that the owner's policy lets go on no more."""
        await self.desk.recheck()
        for peer in self.sessions.standing.working_for_us():
            if await asyncio.to_thread(self._policy.is_blocked, peer):
                for log in self.sessions.standing.ours(peer):
                    await self.upkeep.give_up(
                        log, "the owner blocked this peer", also_at_work=True
                    )

    async def delete(self, log: str) -> bool:
        """Delete a session with everything in it; False if there is none."""
        self.desk.drop(log)
        await self.files.forget_log(log)
        return await self.sessions.delete(log)

    # What follows from a step. Nothing here waits.

    def _follow(self, log: str, step: Step) -> None:
        self._exchange.follow(log, step)
        self.desk.follow(log, step)
        if step.tasks and self.desk.working:
            self._exchange.do(self.desk.end_finished(log, list(step.tasks)))
        for name in step.ready:
            self._exchange.do(self._release(log, name))
        for name in step.start:
            self._exchange.do(self._start_again(log, name))

    async def _start_again(self, log: str, name: str) -> None:
        task = await created(self.sessions, log, name)
        if task is not None:
            self.desk.begin(log, task)

    async def _release(self, log: str, name: str) -> None:
        """Send a held task, with the results of those that it depends on."""
        task = await created(self.sessions, log, name)
        if task is None:
            return
        inputs = tuple(
            [
                message
                for needed in task.depends_on
                for message in await results(self.sessions, log, needed)
            ]
        )
        await self.sessions.apply(
            log, lambda c: c.release(task, inputs=inputs, wall_now=utc_now())
        )

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

    def check_size(self, element: Message | Task) -> None:
        """Check that there is room for a message or task; CallError if not."""
        size = element_size(element)
        if size > self._most:
            raise CallError(
                ErrorKind.USAGE,
                f"too large: {size} bytes, at most {self._most} go in one message",
            )
        try:
            self.sessions.room.check()
        except InteractionError as exc:
            raise CallError(ErrorKind.USAGE, exc.text) from exc

    def _may_repeat(self, task: Task) -> bool:
        repeatable = self._capabilities.is_repeatable
        return is_plan(task) or repeatable(task.capability, task.requester)
