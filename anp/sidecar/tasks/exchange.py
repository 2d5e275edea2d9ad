"""The operations to and from the peers of sessions, over their lines."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Container, Coroutine, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any

from anp.channel.channel import Channel
from anp.channel.links import LinkTarget
from anp.channel.stranger_work import counted
from anp.errors import CallError, ErrorKind
from anp.identity.dids import Identities, agent_name
from anp.interaction.conversation import Conversation
from anp.interaction.elements import PartyMode, Session
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import (
    Acknowledgement,
    MessageSend,
    NotifyRegister,
    Operation,
    RefusedOperation,
    Send,
    SessionOpen,
    SessionUpdate,
    TaskCreate,
    TaskGet,
    TaskUpdate,
)
from anp.interaction.receiver import LOST
from anp.interaction.step import Step
from anp.protocols.a2a.words import A2A_URIS
from anp.protocols.gbz.side import session_of
from anp.protocols.line import OperationFrame
from anp.sidecar.calls.caller import Caller
from anp.sidecar.calls.requesters import Requesters
from anp.sidecar.files.spool import FileRole, KeptFile, Spool
from anp.sidecar.files.transfers import FileTransfers
from anp.sidecar.peers.figures import FirstAnswers, Measures
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.tasks.delivery.attempts import Pauses
from anp.sidecar.tasks.delivery.line import Line
from anp.sidecar.tasks.delivery.lines import Lines
from anp.sidecar.tasks.delivery.one_turn import OneTurn
from anp.sidecar.tasks.delivery.outbox import Outbox, news_url, same_peer
from anp.sidecar.tasks.delivery.without_lines import WithoutLines, is_elsewhere
from anp.sidecar.tasks.desk import StrangerPace, TaskDesk
from anp.sidecar.tasks.known import receive, utc_now
from anp.sidecar.tasks.sessions import Sessions
from negotiation.consensus.written import WrittenLimits
from sandbox.pool.shares import Rank, current_share

logger = logging.getLogger(__name__)

MAX_AHEAD = 512
"Events that a peer on a line may have to acknowledge before the work is held up."

MAX_AWAY = 20_000
"The same for a peer that is away."

ROOM_CHECK = 1.0
"Seconds between two looks at whether such a peer is there."

MAX_HELD = 256 * 1024 * 1024
"Bytes of incomplete messages of all sessions in memory."


_asked_on: ContextVar[Line | None] = ContextVar("asked_on", default=None)
"The line of the operation that is taken now; the answer goes back over it."


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
        spool: Spool,
        max_wait: float,
        limits: WrittenLimits,
        measures: Measures,
        is_linked: Callable[[str], bool],
        is_listed: Callable[[str], bool],
        max_registered: int,
        order: Sequence[str],
    ) -> None:
        """Begin without lines.

        Args:
            is_linked: Tells if there is a link to a peer.
            is_listed: Tells if the owner listed a peer; may block.
            max_registered: Sessions with news for an address that a peer may have.
            order: URIs of the protocols for tasks, best first.
        """
        self._order = tuple(order)
        self._pauses = Pauses()
        self._held: dict[str, dict[str, str]] = {}
        "Sessions, with their peers' ids, that wait for the end of an agent's pause."

        self._releasing: dict[str, asyncio.TimerHandle] = {}
        self._identities = identities
        self._finder = finder
        self._requesters = requesters
        self._sessions = sessions
        self._desk = desk
        self._plain = OneTurn(sessions, caller)
        self.lines = Lines(self, limits)
        self._others = WithoutLines(
            sessions,
            self._plain,
            has_line=self.lines.has,
            want=lambda peer, uri: self.lines.want(peer, protocol=uri),
        )
        self.lines.opened.append(self._others.opened)
        self._bound: set[str] = set()
        "Peers whose sessions were bound to A2A when they were dialled last."
        self.files = FileTransfers(
            spool, self._line_for, sessions.head, self.want, max_wait=max_wait
        )
        self.outbox = Outbox(
            sessions,
            self.lines,
            dial=self._bring,
            is_linked=is_linked,
            carries=self._carries_news,
        )
        self._is_listed = is_listed
        self._max_registered = max_registered
        self._pace = StrangerPace()
        self._doing: set[asyncio.Task[None]] = set()
        self._addresses: dict[str, str] = {}
        self._acked: dict[str, asyncio.Event] = {}
        self._answers = FirstAnswers(measures)

    async def close(self) -> None:
        """Dial nobody any more."""
        for releasing in self._releasing.values():
            releasing.cancel()
        await self.files.close()
        await self.outbox.close()
        await self.lines.close()
        await self._others.close()
        await self._plain.close()
        await self.settle()

    async def settle(self) -> None:
        """Wait for what follows from steps."""
        await asyncio.gather(*self._doing, return_exceptions=True)

    async def serve(self, channel: Channel, uri: str) -> None:
        """Carry sessions over a channel until it ends."""
        if self._sessions.is_shared:
            self.do(self._look_around(channel.peer_did))
        try:
            await self.lines.serve(channel, uri)
        finally:
            self.outbox.look(channel.peer_did)

    async def _look_around(self, peer: str) -> None:
        """Tell a peer also of the sessions that other daemons of the fleet began."""
        async for log in self._sessions.busy():
            conversation = await self._sessions.conversation(log)
            self._sessions.standing.note(log, conversation)
            line = self._line(log, peer)
            if line is not None and log in self._sessions.standing.untold(peer):
                line.put_off(log)

    def _line(self, log: str, peer: str) -> Line | None:
        """Return the line to a peer that is to carry a session."""
        protocol, is_ours = self._sessions.standing.carrier(log)
        return self.lines.carrying(log, peer, protocol=protocol, is_ours=is_ours)

    def _carries_news(self, peer: str) -> bool:
        """Return whether a line carries what waits for a peer with an address."""
        registered = self._sessions.standing.registered(peer)
        return any(self._line(log, peer) is not None for log in registered)

    def _line_for(self, kept: KeptFile) -> Line | None:
        """Return the line over which pieces of a file come.

        Raises:
            InteractionError: The peer knows nothing of its session.
        """
        protocol, is_ours = self._sessions.standing.carrier(kept.log)
        lines = self.lines.open(kept.peer, protocol if is_ours else "")
        giving = [one for one in lines if one.gives_files]
        choose = partial(self.lines.ways.choose, kept.log, is_ours=is_ours)
        line = choose(giving) or choose(lines)
        if line is None and (kept.log, kept.peer) in self._lost():
            raise InteractionError(InteractionFault.UNKNOWN_SESSION, LOST)
        return line

    def _lost(self) -> list[tuple[str, str]]:
        """Return the sessions that their peers do not know for sure, with the peers."""
        return self.lines.ways.lost(self.lines.open, now=time.monotonic())

    def is_there(self, peer: str) -> bool:
        """Return whether there is a line to a peer, or something in its place."""
        return self.lines.find(peer) is not None or self._others.is_there(peer)

    def follow(self, log: str, step: Step) -> None:
        """Tell the peers what a step says; it does not wait."""
        for send in step.sends:
            self._answers.sent(send.operation)
            if not send.ref:
                asked = _asked_on.get()
                if asked is not None:
                    asked.answer(send)
                continue
            if self._is_held(log, send):
                continue
            line = self._line(log, send.to)
            if line is not None:
                line.tell(log, send)
            else:
                self.do(self.want(log))
                self.outbox.look(send.to)
        for refused in step.refused:
            if refused.retry_after > 0:
                self._pauses.refused(agent_name(refused.peer), refused.retry_after)
            self._sessions.refused(log, refused.text)
            logger.warning(
                "operation refused session=%s code=%s reason=%r",
                log,
                refused.code,
                refused.text[:200],
            )
        for peer, number in step.resend:
            line = self._line(log, peer)
            if line is not None:
                line.put_off(log, after=number - 1)
            else:
                self._wait_for_line(log, peer)

    def _wait_for_line(self, log: str, peer: str) -> None:
        """Have a line made whose other side knows a session."""
        if self._sessions.standing.carrier(log)[1]:
            self.do(self.want(log))
        else:
            self.outbox.look(peer)

    def _is_held(self, log: str, send: Send) -> bool:
        """Tell whether a session is new to a peer that has no room for a while.

        It waits in its log, and is told when the pause is over.
        """
        agent = agent_name(send.to)
        is_new = isinstance(send.operation, SessionOpen)
        if is_new and self._pauses.left(agent) > 0:
            if agent not in self._held:
                self._held[agent] = {}
                self._release(agent)
            self._held[agent][log] = send.to
        return log in self._held.get(agent, ())

    def _release(self, agent: str) -> None:
        """Tell a peer of the sessions that waited for the end of its pause."""
        left = self._pauses.left(agent)
        if left > 0:
            loop = asyncio.get_running_loop()
            self._releasing[agent] = loop.call_later(left, self._release, agent)
            return
        self._releasing.pop(agent, None)
        for log, peer in self._held.pop(agent, {}).items():
            line = self._line(log, peer)
            if line is not None:
                line.put_off(log)
            else:
                self.do(self.want(log))

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what follows from a step; what fails is logged."""

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

    async def resume(self, log: str) -> None:
        """Go on with a session after a restart."""
        await self.want(log, once=True)
        conversation = await self._sessions.conversation(log)
        self.outbox.look(conversation.session.requester.id)

    async def _bring(self, peer: str, address: str) -> tuple[Channel, str]:
        """Open a channel for news to a peer that registered an address."""
        if not await asyncio.to_thread(self._is_listed, peer):
            raise CallError(ErrorKind.POLICY, f"{peer} is not on your list")
        url = news_url(address, peer)
        target = LinkTarget(peer, url, guarded=True)
        lines = [uri for uri in self._order if uri not in A2A_URIS]
        channel = await self._requesters.open(target, None, lines)
        selected = channel.peer_meta.selected_protocol
        if selected not in lines:
            await channel.close("no protocol for tasks is common")
            raise CallError(
                ErrorKind.PEER_UNREACHABLE, f"{peer} takes no tasks at {url}"
            )
        return channel, selected

    async def want(self, log: str, *, once: bool = False) -> None:
        """Have lines to the peers that have something to do in a session of ours."""
        conversation = await self._sessions.conversation(log)
        for party in conversation.session.participants:
            if conversation.is_requester and party.id != conversation.own:
                self._addresses[agent_name(party.id)] = (
                    f"{party.address}#{party.id}" if party.address else party.id
                )
                if once:
                    address = self._addresses[agent_name(party.id)]
                    await self._others.resume(log, party.id, address)
                self.lines.want(party.id, once=once, protocol=conversation.protocol)

    async def dial(self, peer: str, protocol: str) -> tuple[Channel, str] | None:
        """See `LineWork`."""
        # A peer that has no room for what is new is not dialled for it either.
        await asyncio.sleep(self._pauses.left(agent_name(peer)))
        if self._others.has_channel(peer, protocol):
            return None
        if not protocol and await self._others.join(peer):
            self._bound.add(agent_name(peer))
            return None
        address = self._addresses.get(agent_name(peer), peer)
        target = await self._finder.find(address, trust_first_use=True)
        orders: list[Sequence[str]] = [[protocol]]
        if not protocol:
            orders = await self._others.orders(peer, self._order)
        for wanted in filter(None, orders):
            channel = await self._requesters.open(target, None, wanted)
            selected = channel.peer_meta.selected_protocol
            if selected is None or selected not in wanted:
                await channel.close("no protocol for tasks is common")
            elif selected in A2A_URIS:
                # No line: requests go one way, and what it tells has no numbers.
                if protocol:
                    self._others.dialled(peer, protocol, channel)
                else:
                    await self._others.bind(peer, selected, channel)
                    self._bound.add(agent_name(peer))
                return None
            else:
                return channel, selected
        return None

    async def more(self, log: str, peer: str, after: int, limit: int) -> list[Send]:
        """See `LineWork`."""
        try:
            conversation = await self._sessions.conversation(log)
        except InteractionError:
            # Deleted meanwhile.
            return []
        for one in conversation.peers():
            if same_peer(one, peer):
                return [
                    send
                    for send in await self._sessions.untold(
                        log, one, after=after, limit=limit
                    )
                    if not is_elsewhere(conversation, send.operation)
                ]
        return []

    def untold(self, line: Line, *, is_ours: bool = False) -> list[str]:
        """See `LineWork`."""
        found = []
        held = self._held.get(agent_name(line.peer), ())
        for log in self._sessions.standing.untold(line.peer):
            if log in held:
                continue
            protocol, of_us = self._sessions.standing.carrier(log)
            if of_us:
                fits = (line.is_ours or is_ours) and protocol in ("", line.uri)
            elif is_ours:
                continue
            else:
                # It goes on where the peer spoke, as long as there is such a line.
                other = self.lines.find(line.peer, protocol)
                fits = protocol in ("", line.uri) or other is None
            if fits:
                found.append(log)
        return found

    def go_on(self, peer: str) -> None:
        """See `LineWork`."""
        standing = self._sessions.standing
        held = self._held.get(agent_name(peer), ())
        for log in [one for one in standing.untold(peer) if one not in held]:
            line = self._line(log, peer)
            if line is not None:
                line.put_off(log)
            else:
                self._wait_for_line(log, peer)
        # What the peer works on was perhaps told on a line that it had dialled.
        by_protocol = {standing.carrier(log)[0]: log for log in standing.ours(peer)}
        for log in by_protocol.values():
            self.do(self.want(log))

    def needs_line(self, peer: str, protocols: Container[str]) -> bool:
        """See `LineWork`."""
        comes = "" in protocols and self.files.comes_from(peer)
        return comes or self._sessions.standing.is_dialled(peer, protocols)

    def brings_news(self, peer: str) -> bool:
        """See `LineWork`."""
        return self._sessions.standing.is_awaited(peer)

    def in_use(self, peer: str) -> bool:
        """See `LineWork`."""
        return self._desk.works_for(peer) or self.needs_line(peer, ("", *self._order))

    async def unspoken(self, peer: str, protocol: str) -> None:
        """See `LineWork`."""
        agent = agent_name(peer)
        if not protocol and agent in self._bound:
            self._bound.discard(agent)
            return
        await self._others.carry(peer, protocol, self._addresses.get(agent, peer))

    def sent(self, log: str, number: int) -> None:
        """See `LineWork`."""
        self._sessions.standing.sent(log, number)

    def unsendable(self, log: str, send: Send, reason: str) -> None:
        """See `LineWork`; it counts as refused by the peer."""
        logger.warning("operation not sent session=%s reason=%s", log, reason)
        self.do(self._not_sent(log, send))

    async def _not_sent(self, log: str, send: Send) -> None:
        refused = RefusedOperation(
            session=session_of(send.operation),
            ref=send.ref,
            code=InteractionFault.TOO_LARGE,
            text="it fits no frame of the peer's",
        )
        await self._sessions.apply(log, receive(refused, sender=send.to, ref=0))

    async def take(self, line: Line, frame: OperationFrame) -> None:
        """See `LineWork`."""
        operation = frame.operation
        if isinstance(operation, RefusedOperation):
            await self._doubt(line, operation)
        if self.files.take(operation):
            return
        answers = isinstance(operation, Acknowledgement | RefusedOperation)
        # A piece of a file is stored by nobody, and the next ask waits for its line.
        is_ask = isinstance(operation, TaskGet) and operation.file is not None
        if not (answers or is_ask):
            await asyncio.sleep(self._pace.wait(current_share.get()))
        _asked_on.set(line)
        try:
            await self._took(line, frame)
        except InteractionError as exc:
            if not answers:
                line.refuse(frame, exc)

    async def _took(self, line: Line, frame: OperationFrame) -> None:
        operation, wire_id = frame.operation, session_of(frame.operation)
        if isinstance(operation, NotifyRegister):
            await self._check_registration(line, operation)
        if (
            isinstance(operation, SessionOpen | SessionUpdate)
            and not line.has_groups
            and any(
                one.mode is PartyMode.GROUP for one in operation.session.participants
            )
        ):
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "groups are not in this version"
            )
        if isinstance(operation, SessionOpen):
            await self._joined(line, operation.session, frame.ref)
            return
        log, sender = await self.session_of(line, wire_id)
        if not isinstance(operation, RefusedOperation):
            self.lines.ways.heard(log, line)
        conversation = await self._sessions.conversation(log)
        if isinstance(operation, TaskGet) and operation.file is not None:
            task = conversation.readable(operation.task, sender)
            await self.files.give(line, log, task, operation, frame.ref)
            return
        self._check_room(operation, conversation)
        files = await self._expect(log, conversation, operation, sender)
        try:
            act = receive(operation, sender=sender, ref=frame.ref, uri=line.uri)
            await self._sessions.apply(log, act)
        except InteractionError:
            await self.files.forget(files)
            raise
        self._answers.came(operation, sender)
        if isinstance(operation, Acknowledgement):
            acked = self._acked.pop(log, None)
            if acked is not None:
                acked.set()

    async def _doubt(self, line: Line, refused: RefusedOperation) -> None:
        """Take note that the other side of a line does not know a session."""
        if refused.code != InteractionFault.UNKNOWN_SESSION:
            return
        with contextlib.suppress(InteractionError):
            log, peer = await self.session_of(line, refused.session)
            now = time.monotonic()
            self.lines.ways.refused(log, line, peer=peer, now=now)

    async def give_up_lost(self) -> None:
        """End what peers have to do or to hear in sessions that they do not know."""
        for log, peer in self._lost():
            with contextlib.suppress(InteractionError):
                if (await self._sessions.conversation(log)).is_busy:
                    await self._sessions.apply(
                        log, partial(Conversation.lose, peer=peer, wall_now=utc_now())
                    )

    async def _expect(
        self, log: str, conversation: Conversation, operation: Operation, sender: str
    ) -> list[KeptFile]:
        """Make room for the files that an operation announces, before it counts.

        Raises:
            InteractionError: There is none.
        """
        match operation:
            case TaskCreate(task=task):
                messages = task.messages
            case TaskUpdate(messages=told):
                messages = told
            case MessageSend(message=message):
                messages = (message,)
            case _:
                return []
        found: list[KeptFile] = []
        role = FileRole.RESULT if conversation.is_requester else FileRole.INPUT
        for message in messages:
            found += await self.files.expect(
                log,
                message.parts,
                session=message.session,
                task=message.task,
                role=role,
                peer=sender,
                listed=current_share.get().rank is not Rank.COMMON,
            )
        return found

    async def _check_registration(self, line: Line, wanted: NotifyRegister) -> None:
        """Check that a peer may have news brought to an address.

        Raises:
            InteractionError: It is not on the owner's list, has too many, or the
                address is none.
        """
        if not await asyncio.to_thread(self._is_listed, line.peer):
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "only listed peers may register"
            )
        if len(self._sessions.standing.registered(line.peer)) >= self._max_registered:
            raise InteractionError(
                InteractionFault.TOO_MANY,
                f"at most {self._max_registered} sessions may be registered",
            )
        try:
            news_url(wanted.address, line.channel.peer_did)
        except CallError as exc:
            raise InteractionError(InteractionFault.INVALID, str(exc.detail)) from exc

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
        if line.opens_session():
            # What was told on it of our sessions is told where they are heard.
            self.go_on(line.peer)
        log = await self._sessions.join(
            session, own=own, sender=session.requester.id, ref=ref
        )
        self.lines.ways.heard(log, line)

    async def session_of(self, line: Line, session: str) -> tuple[str, str]:
        """See `TaskService`."""
        canonical = self._identities.canonical
        own = [self._identities.primary.did, canonical, agent_name(canonical)]
        for requester in dict.fromkeys((*line.names, *own)):
            log = await self._sessions.find(requester, session)
            if log is None:
                continue
            peers = (await self._sessions.conversation(log)).peers()
            sender = next((one for one in peers if one in line.names), None)
            # Not even that there is one of this id is a stranger's to know.
            if sender is not None:
                return log, sender
        raise InteractionError(InteractionFault.UNKNOWN_SESSION, "no such session here")
