"""What goes to and comes from the peers of sessions, over their lines."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Coroutine
from typing import Any

from anp.channel.channel import Channel
from anp.channel.stranger_work import counted
from anp.errors import CallError
from anp.identity.dids import Identities
from anp.interaction.conversation import Conversation
from anp.interaction.elements import PartyMode, Session
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import (
    Acknowledgement,
    MessageSend,
    NotifyRegister,
    NotifyUnregister,
    Operation,
    RefusedOperation,
    Send,
    SessionOpen,
    SessionUpdate,
    TaskCreate,
    TaskUpdate,
)
from anp.interaction.record import Step
from anp.protocols.gbz.reader import GbzFrame
from anp.protocols.gbz.side import session_of
from anp.protocols.gbz.words import GBZ_URI
from anp.sidecar.calls.caller import Caller
from anp.sidecar.calls.requesters import Requesters
from anp.sidecar.peers.figures import Measures
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.peers.policy import agent_name
from anp.sidecar.tasks.desk import StrangerPace, TaskDesk
from anp.sidecar.tasks.lines import Line, Lines
from anp.sidecar.tasks.one_turn import OneTurn
from anp.sidecar.tasks.sessions import Sessions, utc_now
from negotiation.consensus.written import WrittenLimits
from sandbox.pool.shares import current_share

__all__ = ["SessionPeers"]

logger = logging.getLogger(__name__)

MAX_AHEAD = 512
"Events that a peer on a line may have to acknowledge before the work is held up."

MAX_AWAY = 20_000
"The same for a peer that is away."

ROOM_CHECK = 1.0
"Seconds between two looks at whether such a peer is there."

CARRY_CHECK = 0.5
"Seconds between two looks at the tasks of a peer that gets them as calls."

MAX_ASKED = 1_000
"Tasks for whose first answer the time is measured."

MAX_HELD = 256 * 1024 * 1024
"Bytes of incomplete messages of all sessions in memory."


class SessionPeers:
    """Takes what peers send for their sessions, and tells them what is new there."""

    def __init__(
        self,
        *,
        identities: Identities,
        finder: PeerFinder,
        requesters: Requesters,
        sessions: Sessions,
        desk: TaskDesk,
        caller: Caller,
        limits: WrittenLimits,
        measures: Measures,
    ) -> None:
        self._identities = identities
        self._finder = finder
        self._requesters = requesters
        self._sessions = sessions
        self._desk = desk
        self._plain = OneTurn(sessions, caller)
        self.lines = Lines(self, limits)
        self._pace = StrangerPace()
        self._doing: set[asyncio.Task[None]] = set()
        self._addresses: dict[str, str] = {}
        self._acked: dict[str, asyncio.Event] = {}
        self._measures = measures
        self._asked: OrderedDict[str, tuple[str, float]] = OrderedDict()
        "Capability, and when its peer was told, of tasks that nobody answered yet."

    async def close(self) -> None:
        """Dial nobody any more."""
        await self.lines.close()
        await self._plain.close()
        await asyncio.gather(*self._doing, return_exceptions=True)

    async def serve(self, channel: Channel) -> None:
        """Carry sessions over a channel until it ends."""
        if self._sessions.is_shared:
            self._do(self._look_around(channel.peer_did))
        await self.lines.serve(channel)

    async def _look_around(self, peer: str) -> None:
        """Tell a peer also of the sessions that other daemons of the fleet began."""
        async for log in self._sessions.busy():
            conversation = await self._sessions.conversation(log)
            self._sessions.standing.note(log, conversation)
            line = self.lines.find(peer)
            if line is not None and log in self.untold(peer):
                line.put_off(log)

    def is_there(self, peer: str) -> bool:
        """Return whether there is a line to a peer."""
        return self.lines.find(peer) is not None

    def follow(self, log: str, step: Step) -> None:
        """Tell the peers what a step says; it does not wait."""
        for send in step.sends:
            if isinstance(send.operation, TaskCreate):
                task = send.operation.task
                self._asked[task.id] = task.capability, time.monotonic()
                while len(self._asked) > MAX_ASKED:
                    self._asked.popitem(last=False)
            line = self.lines.find(send.to)
            if line is not None and send.ref:
                line.tell(log, send)
            elif line is not None:
                line.answer(send)
            elif send.ref:
                self._do(self.want(log))
        for refused in step.refused:
            logger.warning(
                "operation refused session=%s code=%s reason=%r",
                log,
                refused.code,
                refused.text[:200],
            )
        for peer, number in step.resend:
            line = self.lines.find(peer)
            if line is not None:
                line.put_off(log, after=number - 1)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        async def guarded() -> None:
            try:
                await work
            except (InteractionError, CallError) as exc:
                logger.info("a step of a session did not follow: %s", exc)
            except Exception:
                logger.exception("a step of a session failed")

        task = asyncio.create_task(counted(guarded()))
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    async def room(self, log: str, peer: str) -> None:
        """Wait until a peer has taken most of what it was told in a session.

        A peer that is away gets much more of it later, and then holds up the work too.

        Raises:
            InteractionError: The owner keeps no more of sessions.
        """
        while True:
            self._sessions.room.check()
            conversation = await self._sessions.conversation(log)
            there = self.lines.find(peer) is not None
            most = MAX_AHEAD if there else MAX_AWAY
            if conversation.count_unacknowledged(peer) < most:
                return
            acked = self._acked.setdefault(log, asyncio.Event())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ROOM_CHECK):
                    await acked.wait()

    async def want(self, log: str) -> None:
        """Have lines to the peers that have something to do in a session of ours."""
        conversation = await self._sessions.conversation(log)
        for party in conversation.session.participants:
            if conversation.is_requester and party.id != conversation.own:
                self._addresses[agent_name(party.id)] = (
                    f"{party.address}#{party.id}" if party.address else party.id
                )
                self.lines.want(party.id)

    async def reach(self, address: str) -> None:
        """Return when a peer is connected and lets us in.

        Raises:
            CallError: It is not known, cannot be reached, or refuses.
        """
        target = await self._finder.find(address, trust_first_use=False)
        if self.lines.find(target.did) is None:
            channel = await self._requesters.open(target, None)
            # Its connection stays for a while, and the line is opened over it.
            await channel.close("only to see that the peer is there")

    async def dial(self, peer: str) -> Channel | None:
        """See `LineWork`."""
        address = self._addresses.get(agent_name(peer), peer)
        target = await self._finder.find(address, trust_first_use=True)
        channel = await self._requesters.open(target, None, [GBZ_URI])
        if channel.peer_meta.selected_protocol != GBZ_URI:
            await channel.close("the protocol for tasks is not common")
            return None
        return channel

    async def more(self, log: str, peer: str, after: int, limit: int) -> list[Send]:
        """See `LineWork`."""
        try:
            conversation = await self._sessions.conversation(log)
        except InteractionError:
            # Deleted meanwhile.
            return []
        for one in conversation.peers():
            if same_peer(one, peer):
                return await self._sessions.untold(log, one, after=after, limit=limit)
        return []

    def untold(self, peer: str) -> list[str]:
        """See `LineWork`."""
        return self._sessions.standing.untold(peer)

    def works_for_us(self, peer: str) -> bool:
        """See `LineWork`."""
        return self._sessions.standing.works_for_us(peer)

    def in_use(self, peer: str) -> bool:
        """See `LineWork`."""
        return self._desk.works_for(peer) or self.works_for_us(peer)

    async def unspoken(self, peer: str) -> None:
        """See `LineWork`."""
        address = self._addresses.get(agent_name(peer), peer)
        while self.works_for_us(peer):
            for log in self._sessions.standing.ours(peer):
                await self._plain.carry(log, address)
            await asyncio.sleep(CARRY_CHECK)

    def unsendable(self, log: str, send: Send, reason: str) -> None:
        """See `LineWork`; it counts as refused by the peer."""
        logger.warning("operation not sent session=%s reason=%s", log, reason)
        self._do(self._not_sent(log, send))

    async def _not_sent(self, log: str, send: Send) -> None:
        refused = RefusedOperation(
            session=session_of(send.operation),
            ref=send.ref,
            code=InteractionFault.TOO_LARGE,
            text="it fits no frame of the peer's",
        )
        await self._receive(log, refused, sender=send.to, ref=0)

    async def take(self, line: Line, frame: GbzFrame) -> None:
        """See `LineWork`."""
        operation = frame.operation
        answers = isinstance(operation, Acknowledgement | RefusedOperation)
        if not answers:
            await asyncio.sleep(self._pace.wait(current_share.get()))
        try:
            await self._took(line, frame)
        except InteractionError as exc:
            if not answers:
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
        conversation = await self._sessions.conversation(log)
        sender = next((one for one in conversation.peers() if one in line.names), None)
        if sender is None:
            # Not even that there is one of this id is a stranger's to know.
            raise InteractionError(
                InteractionFault.UNKNOWN_SESSION, "no such session here"
            )
        self._check_room(operation, conversation)
        await self._receive(log, operation, sender=sender, ref=frame.ref)
        if isinstance(operation, TaskUpdate):
            capability, asked = self._asked.pop(operation.content.task, ("", None))
            if asked is not None:
                ms = (time.monotonic() - asked) * 1000
                self._measures.answered(sender, capability, ms)
        if isinstance(operation, Acknowledgement):
            acked = self._acked.pop(log, None)
            if acked is not None:
                acked.set()

    async def _receive(
        self, log: str, operation: Operation, *, sender: str, ref: int
    ) -> None:
        await self._sessions.apply(
            log,
            lambda c: c.receive(
                operation,
                sender=sender,
                ref=ref,
                now=time.monotonic(),
                wall_now=utc_now(),
            ),
        )

    def _check_room(self, operation: Operation, conversation: Conversation) -> None:
        """Check that there is room for what a peer wants.

        Raises:
            InteractionError: There is none.
        """
        match operation:
            case TaskCreate(task=task) if task.id not in conversation.tasks:
                self._sessions.room.check()
                self._desk.check_room(current_share.get())
            case MessageSend(message=message):
                if not conversation.is_requester:
                    self._sessions.room.check()
                if message.chunk is not None and self._sessions.held > MAX_HELD:
                    raise InteractionError(
                        InteractionFault.TOO_MANY, "too much is incomplete here"
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
        share = current_share.get()
        if await self._sessions.find(session.requester.id, session.id) is None:
            self._sessions.room.check()
            self._desk.check_sessions(share)
        await self._sessions.join(
            session, own=own, sender=session.requester.id, ref=ref
        )

    async def _log_of(self, line: Line, session: str) -> str:
        """Return our own id of a session with a peer, whoever made it."""
        canonical = self._identities.canonical
        own = [self._identities.primary.did, canonical, agent_name(canonical)]
        for requester in dict.fromkeys((*line.names, *own)):
            log = await self._sessions.find(requester, session)
            if log is not None:
                return log
        raise InteractionError(InteractionFault.UNKNOWN_SESSION, "no such session here")


def same_peer(one: str, other: str) -> bool:
    """Return whether two ids are of one agent, as far as their texts tell."""
    return agent_name(one) == agent_name(other)
