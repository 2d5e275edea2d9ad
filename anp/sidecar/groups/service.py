"""Groups of this agent: those that it distributes, and those of others."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from anp.errors import CallError, ConflictError, ErrorKind, UnknownError
from anp.identity.dids import Identities, canonical_did
from anp.interaction.elements import Message, MessagePurpose, Part, Party, SenderRole
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.elements import Group, GroupPolicy, GroupState
from anp.interaction.groups.hub_records import Ticket
from anp.interaction.groups.membership import GroupMachine
from anp.interaction.groups.operations import (
    GroupAcknowledgement,
    GroupAct,
    GroupContent,
    GroupFetch,
    GroupPost,
    Membership,
    RefusedGroupOperation,
)
from anp.protocols.gbz.group_writer import group_frame
from anp.protocols.line import FurtherFrame
from anp.sidecar.config.groups import GroupsConfig
from anp.sidecar.groups.hub import GroupHub, StoredHub, new_ticket
from anp.sidecar.groups.member import (
    DeskMaker,
    GroupMember,
    MemberState,
    StoredMember,
)
from anp.sidecar.groups.shelf import GroupShelf, StoredEvent, read_head
from anp.sidecar.groups.signatures import Signatures
from anp.sidecar.groups.wires import GroupWires, next_ref
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.peers.policy import PeerPolicy, agent_name
from anp.sidecar.tasks.delivery.line import Line
from anp.sidecar.tasks.delivery.lines import Lines
from cache.errors import RecordError
from sandbox.pool.shares import Rank, current_share

__all__ = ["GroupService", "KnownGroup", "NoGroup"]

logger = logging.getLogger(__name__)

ANSWER_TIMEOUT: Final = 30.0
"Seconds for which a hub may take to answer."

DAY: Final = 86_400.0
"Seconds."

RECALLED: Final = 4096
"Newest events that a hub knows again after a restart."

MAX_INVITED: Final = 100
"Invitations of strangers that wait here at a time."

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class NoGroup(UnknownError):
    """There is no such group here."""


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """A group as this daemon's agent sees it."""

    group: Group
    own: str
    "The DID under which the agent takes part."

    is_hub: bool
    "This daemon distributes its messages."

    state: MemberState
    last: int
    "Number of the newest event that is here."

    tickets: tuple[Ticket, ...] = ()
    "Open invitations and applications, for who may see them."

    invitation: StoredMember | None = None
    "About how we became, or may become, a member elsewhere."

    sealing: dict[str, Any] | None = None
    "Members and alarms of a sealed group; see `SealedDesk.view`."


class GroupService:
    """Makes groups, takes part in groups, and distributes; faces call its methods."""

    def __init__(
        self,
        *,
        shelf: GroupShelf,
        identities: Identities,
        policy: PeerPolicy,
        finder: PeerFinder,
        lines: Lines,
        wires: Callable[[Callable[[str], bool]], GroupWires],
        signatures: Signatures,
        desk_of: DeskMaker,
        config: GroupsConfig,
        own_url: Callable[[], str],
    ) -> None:
        """Begin; `load` and `resume` go on with the groups that are stored."""
        self._shelf = shelf
        self._identities = identities
        self._policy = policy
        self._finder = finder
        self._signatures = signatures
        self._desk_of = desk_of
        self._config = config
        self._own_url = own_url
        self._wires = wires(self._needs)
        self._hubs: dict[str, GroupHub] = {}
        self._members: dict[str, GroupMember] = {}
        self._doing: set[asyncio.Task[None]] = set()
        self.publish: Callable[[str, dict[str, Any]], object] = lambda kind, data: None
        "Told of changes that somebody may want to know."

        lines.opened.append(self._opened)
        for kind in (
            GroupPost,
            GroupFetch,
            GroupAcknowledgement,
            RefusedGroupOperation,
        ):
            lines.further[kind] = self._take

    # The daemon's life.

    async def load(self) -> None:
        """Read the groups that are stored, before any peer can talk of them."""
        for name, data in await asyncio.to_thread(self._shelf.heads):
            try:
                await self._load(name, data)
            except RecordError as exc:
                logger.error("group damaged group=%s reason=%s", name, exc)

    async def resume(self) -> None:
        """Go on with the groups that were read."""
        for hub in self._hubs.values():
            hub.wake()
        for member in self._members.values():
            if member.needs_hub():
                self._wires.want(member.head.hub, member.head.address)

    async def _load(self, name: str, data: bytes) -> None:
        newest = await asyncio.to_thread(self._shelf.last, name)
        last = newest[-1].number if newest else 0
        try:
            hub = read_head(StoredHub, data)
        except RecordError:
            head = read_head(StoredMember, data)
            self._members[name] = member = self._member(head, last=last)
            if head.group.sealed:
                member.sit(await asyncio.to_thread(self._shelf.rows, name))
            return
        machine = GroupMachine(hub.hub, new_ticket)
        recent = await asyncio.to_thread(
            self._shelf.events, name, after=max(0, last - RECALLED), limit=RECALLED
        )
        for one in recent:
            machine.recall(number=one.number, by=one.by, ref=one.ref)
        made = GroupHub(
            machine,
            self._shelf,
            self._wires,
            own=self._is_own,
            acknowledged=hub.acknowledged,
        )
        self._add_hub(made)

    async def close(self) -> None:
        """Store what waits; nothing is distributed any more."""
        await self._wires.close()
        for hub in self._hubs.values():
            await hub.close()
        for member in self._members.values():
            await member.close()
        for task in self._doing:
            task.cancel()
        await asyncio.gather(*self._doing, return_exceptions=True)

    async def prune(self) -> None:
        """Delete groups that ended long ago, and old events of the others."""
        before = time.time() - self._config.keep_days * DAY
        for name in await asyncio.to_thread(self._shelf.ended, older_than=before):
            try:
                await self.forget(name)
            except (CallError, NoGroup) as exc:
                logger.info("group not deleted group=%s: %s", name, exc)
        for name, hub in list(self._hubs.items()):
            hub.first = max(hub.first, hub.group.last + 1 - self._config.keep_events)
            await asyncio.to_thread(self._shelf.trim, name, before=hub.first)
        for name, member in list(self._members.items()):
            first = member.log.last + 1 - self._config.keep_events
            await asyncio.to_thread(self._shelf.trim, name, before=first)

    # Commands of the agent.

    async def create(
        self,
        *,
        name: str = "",
        policy: GroupPolicy | None = None,
        admins: Sequence[str] = (),
        sealed: bool | None = None,
        hub: str = "",
        group: str = "",
    ) -> KnownGroup:
        """Make a group whose owner is this agent.

        Args:
            sealed: The hub must not be able to read it; None as `groups.seal` says.
            hub: Peer that distributes its messages; empty for this daemon.
            group: Its id; empty for a new one.
        """
        if sealed is None:
            sealed = self._config.seal and bool(hub)
        if sealed and not hub:
            raise InteractionError(
                InteractionFault.INVALID,
                "a sealed group needs a hub that is no member of it: name another "
                "daemon as hub",
            )
        group = group or uuid.uuid4().hex
        if not _ID.fullmatch(group):
            raise InteractionError(InteractionFault.INVALID, "no id of a group")
        if group in self._hubs or group in self._members:
            raise ConflictError("there is a group of this id")
        self._check_places()
        made = Group(
            id=group,
            name=name,
            hub=Party(id=self._identities.canonical, address=self._own_url()),
            owner=self._identities.canonical,
            admins=tuple([await self._did_of(one) for one in admins]),
            policy=policy or GroupPolicy(),
            sealed=sealed,
        )
        if hub:
            return await self._create_at(made, hub)
        one = GroupHub.create(made, self._shelf, self._wires, own=self._is_own)
        self._add_hub(one)
        await one.log.durable()
        return self.known(group)

    async def _did_of(self, peer: str) -> str:
        if peer.startswith("did:"):
            return peer
        return (await self._finder.find(peer, trust_first_use=True)).did

    async def _create_at(self, group: Group, hub: str) -> KnownGroup:
        target = await self._finder.find(hub, trust_first_use=True)
        group = replace(
            group,
            hub=Party(id=target.did, address=target.url or ""),
            owner=self._own_did(target.did),
        )
        member = self._members[group.id] = self._member(
            StoredMember(
                group=group,
                own=group.owner,
                hub=target.did,
                address=target.url or "",
                state=MemberState.APPLIED,
            )
        )
        content = Membership(act=GroupAct.CREATE, group=group)
        try:
            ack = await member.ask(
                GroupPost(group=group.id, content=content), timeout=ANSWER_TIMEOUT
            )
        except BaseException:
            del self._members[group.id]
            raise
        await member.become(MemberState.MEMBER, ack.state)
        if member.sealing is not None:
            await member.sealing.found()
        return self.known(group.id)

    async def invite(self, name: str, peer: str, *, text: str = "") -> KnownGroup:
        """Invite a peer into a group that this agent manages."""
        target = await self._finder.find(peer, trust_first_use=True)
        member = Party(id=target.did, address=target.url or "")
        await self._welcome(name, target.did)
        await self._change(
            name, Membership(act=GroupAct.INVITE, member=member, text=text)
        )
        return self.known(name)

    async def accept(self, name: str, *, is_owner: bool = False) -> KnownGroup:
        """Join a group that this agent is invited into.

        Args:
            is_owner: The owner asks, who alone accepts for strangers.
        """
        member = self._invited(name)
        if member.head.stranger and not is_owner:
            raise CallError(
                ErrorKind.POLICY, "a stranger's invitation waits for the owner"
            )
        await self._join(member)
        return self.known(name)

    async def _join(self, member: GroupMember) -> None:
        content = Membership(act=GroupAct.ACCEPT, ticket=member.head.ticket)
        ack = await member.ask(
            GroupPost(group=member.group.id, content=content), timeout=ANSWER_TIMEOUT
        )
        await member.become(MemberState.MEMBER, ack.state)

    async def decline(self, name: str) -> KnownGroup:
        """Refuse an invitation."""
        member = self._invited(name)
        content = Membership(act=GroupAct.DECLINE, ticket=member.head.ticket)
        await member.ask(GroupPost(group=name, content=content), timeout=ANSWER_TIMEOUT)
        await member.become(MemberState.DECLINED)
        return self.known(name)

    async def apply(self, hub: str, name: str, *, text: str = "") -> KnownGroup:
        """Ask the hub of a group to let this agent join."""
        if not _ID.fullmatch(name):
            raise InteractionError(InteractionFault.INVALID, "no id of a group")
        known = self._members.get(name)
        if name in self._hubs or (
            known is not None and known.state is MemberState.MEMBER
        ):
            raise ConflictError("this agent is a member")
        self._check_places()
        target = await self._finder.find(hub, trust_first_use=True)
        own = self._own_did(target.did)
        party = Party(id=target.did, address=target.url or "")
        if known is None or agent_name(known.head.hub) != agent_name(target.did):
            known = self._members[name] = self._member(
                StoredMember(
                    group=Group(id=name, hub=party, owner=target.did),
                    own=own,
                    hub=target.did,
                    address=target.url or "",
                    state=MemberState.APPLIED,
                    text=text,
                )
            )
        content = Membership(
            act=GroupAct.APPLY,
            member=Party(id=own, address=self._own_url()),
            text=text,
        )
        ack = await known.ask(
            GroupPost(group=name, content=content), timeout=ANSWER_TIMEOUT
        )
        if ack.state is not None:
            await known.become(MemberState.MEMBER, ack.state)
        else:
            await known.become(MemberState.APPLIED)
        return self.known(name)

    async def answer(
        self, name: str, ticket: str, *, approve: bool, text: str = ""
    ) -> KnownGroup:
        """Approve or deny an application to a group that this agent manages."""
        act = GroupAct.APPROVE if approve else GroupAct.DENY
        known = self._members.get(name)
        if approve and known is not None and ticket in known.applications:
            await self._welcome(name, known.applications[ticket].did)
        await self._change(name, Membership(act=act, ticket=ticket, text=text))
        if name in self._members:
            self._members[name].applications.pop(ticket, None)
        return self.known(name)

    async def leave(self, name: str) -> KnownGroup:
        """Leave a group."""
        await self._change(name, Membership(act=GroupAct.LEAVE))
        member = self._members.get(name)
        if member is not None:
            await member.become(MemberState.LEFT)
        return self.known(name)

    async def remove(self, name: str, did: str, *, text: str = "") -> KnownGroup:
        """Remove a member of a group that this agent manages."""
        member = Party(id=did)
        await self._change(
            name, Membership(act=GroupAct.REMOVE, member=member, text=text)
        )
        return self.known(name)

    async def close_group(self, name: str) -> KnownGroup:
        """End a group that this agent manages."""
        await self._change(name, Membership(act=GroupAct.CLOSE))
        return self.known(name)

    async def post(
        self,
        name: str,
        parts: Sequence[Part],
        *,
        metadata: dict[str, Any] | None = None,
        session: str = "",
        task: str = "",
        timeout: float = 10.0,
    ) -> tuple[str, int | None]:
        """Say something to a group.

        Args:
            session: Id of the session that it is about; empty for the group itself.
            task: Id of the task in that session that it is about.
            timeout: Seconds to wait for the hub.

        Returns:
            The id of the message, and its number; None while the hub is away.
        """
        known = self.known(name)
        message = Message(
            id=uuid.uuid4().hex,
            session=session or name,
            task=task,
            sender=known.own,
            role=_role(known),
            purpose=MessagePurpose.COMMUNICATION,
            parts=tuple(parts),
            metadata=metadata or {},
        )
        return message.id, await self.say(name, message, timeout=timeout)

    async def say(
        self, name: str, content: GroupContent, *, timeout: float = 10.0
    ) -> int | None:
        """Say a message, an offer, or what becomes of one; return its number.

        Raises:
            InteractionError: The hub refuses it.
        """
        post = GroupPost(group=name, content=content)
        hub = self._hubs.get(name)
        if hub is None:
            return await self._elsewhere(name).say(post, timeout=timeout)
        own, ref = self.known(name).own, next_ref()
        frame = group_frame(post, ref)
        if self._signatures.enabled:
            frame = self._signatures.sign(frame, own)
        size = len(str(frame))
        ack = await hub.take(replace(post, frame=frame), sender=own, ref=ref, size=size)
        return ack.posted[0][1]

    # What the agent sees.

    def known(self, name: str) -> KnownGroup:
        """Return a group; NoGroup if there is none."""
        hub = self._hubs.get(name)
        if hub is not None:
            now = datetime.now(UTC)
            is_open = hub.group.state is GroupState.OPEN
            return KnownGroup(
                group=hub.group,
                own=next(
                    (one.id for one in hub.group.members if self._is_own(one.id)),
                    self._identities.canonical,
                ),
                is_hub=True,
                state=MemberState.MEMBER if is_open else MemberState.CLOSED,
                last=hub.log.stored_last,
                tickets=tuple(one for one in hub.machine.tickets if one.is_open(now)),
            )
        member = self._elsewhere(name)
        return KnownGroup(
            group=member.group,
            own=member.own,
            is_hub=False,
            state=member.state,
            last=member.log.stored_last,
            tickets=tuple(member.applications.values()),
            invitation=member.head,
            sealing=None if member.sealing is None else member.sealing.desk.view,
        )

    def all(self) -> list[KnownGroup]:
        """Return all groups."""
        return [self.known(name) for name in (*self._hubs, *self._members)]

    def watch(self, name: str, *, after: int = 0) -> AsyncGenerator[StoredEvent, None]:
        """Yield the events of a group from a number on, and wait for new ones."""
        hub = self._hubs.get(name)
        log = self._elsewhere(name).log if hub is None else hub.log
        return log.watch(after=after)

    @property
    def watchers(self) -> int:
        """Number of those who follow groups now."""
        logs = [one.log for one in self._hubs.values()]
        logs += [one.log for one in self._members.values()]
        return sum(one.watchers for one in logs)

    async def forget(self, name: str) -> None:
        """Delete what is kept here of a group that this agent is not in any more."""
        known = self.known(name)
        if known.state in (MemberState.MEMBER, MemberState.APPLIED):
            raise ConflictError("leave or close the group first")
        hub, member = self._hubs.pop(name, None), self._members.pop(name, None)
        if hub is not None:
            await hub.close()
        if member is not None:
            await member.close()
        await asyncio.to_thread(self._shelf.drop, name)

    # What peers say.

    async def _take(self, line: Line, frame: FurtherFrame) -> None:
        operation = frame.operation
        assert not isinstance(operation, tuple)
        name = operation.group  # type: ignore[union-attr]  # of a group, all of them
        hub = self._hubs.get(name)
        if hub is not None:
            self._take_at_hub(hub, line, frame)
            return
        member = self._members.get(name)
        if member is not None and self._is_hub_of(line, member):
            if isinstance(operation, GroupPost) and not operation.number:
                await self._told(member, line, operation, frame.ref)
            else:
                await member.take(line, frame)
            return
        if not isinstance(operation, GroupPost):
            raise InteractionError(InteractionFault.UNKNOWN_GROUP, "no such group here")
        await self._first_told(line, operation, frame.ref)

    def _take_at_hub(self, hub: GroupHub, line: Line, frame: FurtherFrame) -> None:
        match frame.operation:
            case GroupFetch() as asked:
                hub.fetch(line, asked, frame.ref)
            case GroupAcknowledgement() as ack:
                hub.acknowledge(line, ack)
            case GroupPost(number=0) as post:
                if isinstance(post.content, Message):
                    self._check_sender(line, post.content)
                step = hub.take_soon(
                    post, sender=line.peer, ref=frame.ref, size=frame.size
                )
                if not step.events or isinstance(post.content, Membership):
                    # What was said is answered when it is distributed.
                    self._do(self._answer(hub, line, step.answer))
            case GroupPost():
                raise InteractionError(
                    InteractionFault.NOT_ALLOWED, "the hub of this group is here"
                )

    async def _answer(
        self, hub: GroupHub, line: Line, answer: GroupAcknowledgement
    ) -> None:
        await hub.log.durable()
        if not line.closed:
            line.say(answer)

    def _check_sender(self, line: Line, message: Message) -> None:
        if agent_name(message.sender) != agent_name(line.peer):
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "sender is not who speaks on this channel"
            )

    async def _told(
        self, member: GroupMember, line: Line, post: GroupPost, ref: int
    ) -> None:
        """Take what a hub tells of a ticket of ours, or of others to an admin."""
        content = post.content
        if not isinstance(content, Membership):
            raise InteractionError(InteractionFault.NOT_ALLOWED, "it has no number")
        match content.act:
            case GroupAct.INVITE if member.state is not MemberState.MEMBER:
                await self._note_invitation(member, line, content)
            case GroupAct.APPROVE if member.state is MemberState.APPLIED:
                await member.become(MemberState.MEMBER, content.group)
            case GroupAct.DENY if member.state is MemberState.APPLIED:
                await member.become(MemberState.DENIED)
            case GroupAct.APPLY:
                member.note_application(content)
        self._acknowledge_ticket(line, post, ref)
        self._tell(member)

    async def _first_told(self, line: Line, post: GroupPost, ref: int) -> None:
        """Take an invitation into a group that we do not know, or a wish for one."""
        content = post.content
        if isinstance(content, Membership) and content.group is not None:
            if content.act is GroupAct.CREATE:
                await self._create_for(line, content.group, post, ref)
                return
            if content.act is GroupAct.INVITE:
                await self._invited_by(line, content, content.group)
                self._acknowledge_ticket(line, post, ref)
                return
        raise InteractionError(InteractionFault.UNKNOWN_GROUP, "no such group here")

    async def _create_for(
        self, line: Line, group: Group, post: GroupPost, ref: int
    ) -> None:
        """Distribute the messages of a group that a peer makes (GBZ-13)."""
        is_listed = await asyncio.to_thread(self._policy.is_listed, line.peer)
        if self._config.hub_for != "listed" or not is_listed:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "this daemon is no hub for others"
            )
        self._check_places()
        if not _ID.fullmatch(group.id) or group.id != post.group:
            raise InteractionError(InteractionFault.INVALID, "no id of a group")
        own = Party(id=self._identities.canonical, address=self._own_url())
        group = replace(
            group, hub=own, owner=line.peer, members=(), extra={}, last=0, epoch=1
        )
        hub = GroupHub.create(group, self._shelf, self._wires, own=self._is_own)
        self._add_hub(hub)
        answer = GroupAcknowledgement(group=group.id, ref=ref, state=hub.group)
        self._do(self._answer(hub, line, answer))

    async def _invited_by(self, line: Line, told: Membership, group: Group) -> None:
        if not _ID.fullmatch(group.id) or not told.ticket:
            raise InteractionError(InteractionFault.INVALID, "no id of a group")
        if self._config.accept == "nobody":
            raise InteractionError(InteractionFault.NOT_ALLOWED, "no invitations here")
        self._check_places()
        is_stranger = current_share.get().rank is Rank.COMMON
        waiting = [
            one
            for one in self._members.values()
            if one.state is MemberState.INVITED and one.head.stranger
        ]
        if is_stranger and len(waiting) >= MAX_INVITED:
            raise InteractionError(
                InteractionFault.TOO_MANY, "too many invitations wait here"
            )
        member = self._members[group.id] = self._member(
            StoredMember(
                group=group,
                own=self._own_did(line.peer),
                hub=line.peer,
                address=group.hub.address,
                state=MemberState.INVITED,
                stranger=is_stranger,
            )
        )
        await self._note_invitation(member, line, told)
        self._tell(member)

    async def _note_invitation(
        self, member: GroupMember, line: Line, told: Membership
    ) -> None:
        if member.state is MemberState.INVITED and member.head.ticket == told.ticket:
            return
        head = replace(
            member.head,
            group=told.group or member.group,
            state=MemberState.INVITED,
            ticket=told.ticket,
            invited_by=told.by,
            text=told.text,
            expires=told.expires,
            stranger=current_share.get().rank is Rank.COMMON,
        )
        await member.tell(head)
        if self._config.accept == "listed" and not head.stranger:
            self._do(self._join(member))

    def _acknowledge_ticket(self, line: Line, post: GroupPost, ref: int) -> None:
        assert isinstance(post.content, Membership), "the caller looked"
        line.say(
            GroupAcknowledgement(group=post.group, ref=ref, ticket=post.content.ticket)
        )

    # Small things.

    def _opened(self, line: Line) -> None:
        if not line.has_groups:
            return
        for hub in self._hubs.values():
            hub.opened(line)
        for member in self._members.values():
            if self._is_hub_of(line, member):
                member.opened(line)

    def _needs(self, agent: str) -> bool:
        if any(hub.needs(agent) for hub in self._hubs.values()):
            return True
        return any(
            agent_name(one.head.hub) == agent and one.needs_hub()
            for one in self._members.values()
        )

    def _member(self, head: StoredMember, *, last: int = 0) -> GroupMember:
        return GroupMember(
            head,
            self._shelf,
            self._wires,
            self._signatures,
            last=last,
            is_own=self._is_own,
            desk_of=self._desk_of,
            changed=self._tell,
        )

    async def _welcome(self, name: str, did: str) -> None:
        """Know that it was we who let an agent into a sealed group."""
        member = self._members.get(name)
        if member is not None and member.sealing is not None:
            await member.sealing.welcome(did)

    async def _change(self, name: str, content: Membership) -> None:
        post = GroupPost(group=name, content=content)
        hub = self._hubs.get(name)
        if hub is not None:
            own = self.known(name).own
            await hub.take(post, sender=own, ref=next_ref(), size=0)
            return
        await self._elsewhere(name).ask(post, timeout=ANSWER_TIMEOUT)

    def _elsewhere(self, name: str) -> GroupMember:
        found = self._members.get(name)
        if found is None:
            raise NoGroup(f"there is no group {name[:80]!r}")
        return found

    def _invited(self, name: str) -> GroupMember:
        member = self._elsewhere(name)
        if member.state is not MemberState.INVITED:
            raise ConflictError(f"you are not invited; you are: {member.state}")
        return member

    def _is_own(self, did: str) -> bool:
        return (
            did == self._identities.canonical
            or self._identities.for_did(did) is not None
        )

    def _own_did(self, peer: str) -> str:
        identity = self._identities.speaking_to(peer)
        return canonical_did(identity.did, identity.private_key.public_bytes)

    def _is_hub_of(self, line: Line, member: GroupMember) -> bool:
        return agent_name(line.peer) == agent_name(member.head.hub)

    def _check_places(self) -> None:
        is_open = sum(one.group.state is GroupState.OPEN for one in self._hubs.values())
        is_open += sum(one.needs_hub() for one in self._members.values())
        if is_open >= self._config.max_groups:
            raise InteractionError(
                InteractionFault.TOO_MANY, "too many groups are open here"
            )

    def _add_hub(self, hub: GroupHub) -> None:
        self._hubs[hub.group.id] = hub
        told = {"group": hub.group.id}
        hub.changed = lambda: self.publish("group", told)

    def _tell(self, member: GroupMember) -> None:
        told = {"group": member.group.id, "state": str(member.state)}
        self.publish("group", told)

    def _do(self, work: Any) -> None:
        async def guarded() -> None:
            try:
                await work
            except (InteractionError, CallError, TimeoutError) as exc:
                logger.info("a step of a group did not follow: %s", exc)
            except Exception:
                logger.exception("a step of a group failed")

        task = asyncio.create_task(guarded())
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)


def _role(known: KnownGroup) -> SenderRole:
    is_owner = known.own == known.group.owner
    return SenderRole.REQUESTER if is_owner else SenderRole.SERVICE
