"""The operations of peers about groups: taken at the hub, or as one of its members."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from anp.errors import CallError, ConflictError, UnknownError
from anp.identity.dids import Identities, agent_name, canonical_did
from anp.interaction.elements import Message, Party
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.elements import Group, GroupPolicy, GroupState
from anp.interaction.groups.member_state import MemberState, StoredMember
from anp.interaction.groups.membership import GroupMachine
from anp.interaction.groups.operations import (
    GroupAcknowledgement,
    GroupAct,
    GroupFetch,
    GroupPost,
    Membership,
    RefusedGroupOperation,
)
from anp.protocols.line import FurtherFrame
from anp.sidecar.config.groups import GroupsConfig
from anp.sidecar.groups.hub.holder import GroupHolder
from anp.sidecar.groups.hub.hub import GroupHub, StoredHub, new_ticket
from anp.sidecar.groups.hub.sisters import Sisters
from anp.sidecar.groups.member import DeskMaker, GroupMember
from anp.sidecar.groups.shelf import GroupShelf, read_head
from anp.sidecar.groups.signatures import Signatures
from anp.sidecar.groups.wires import GroupWires
from anp.sidecar.peers.finder import PeerFinder
from anp.sidecar.peers.policy import PeerPolicy
from anp.sidecar.tasks.delivery.line import Line
from anp.sidecar.tasks.delivery.lines import Lines
from cache.errors import RecordError
from sandbox.pool.shares import Rank, current_share

logger = logging.getLogger(__name__)

ANSWER_TIMEOUT: Final = 30.0
"Seconds for which a hub may take to answer."

MAX_INVITED: Final = 100
"Invitations of strangers that wait here at a time."

RECALLED: Final = 4096
"Newest events that a hub knows again after a restart."

GROUP_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"The form of an id, which is that of keys in the store."


class NoGroup(UnknownError):
    """There is no such group here."""


class GroupReception:
    """All groups of this agent, and what peers say about them."""

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
        self._holder = GroupHolder(shelf, take_over=self._read, lose=self._lose)
        self._sisters = Sisters(
            shelf, self._wires, self._holder, self._hubs, own=self._is_own
        )
        self.preset_problems: dict[str, tuple[str, ...]] = {}
        "Parts of a `[[group]]` that are not in effect, by the id of its group."

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

    # What peers say.

    async def _take(self, line: Line, frame: FurtherFrame) -> None:
        operation = frame.operation
        assert not isinstance(operation, tuple)
        name = operation.group  # type: ignore[union-attr]  # of a group, all of them
        if not self.is_here(name):
            content = operation.content if isinstance(operation, GroupPost) else None
            if isinstance(content, Message):
                self._check_sender(line, content)
            if await self._sisters.hear(name, line, frame):
                return
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
            case _ if content.act is GroupAct.APPLY or content.member is not None:
                await member.note_application(content)
            case GroupAct.INVITE if member.state is not MemberState.MEMBER:
                await self._note_invitation(member, line, content)
            case GroupAct.APPROVE if member.state is MemberState.APPLIED:
                await member.become(MemberState.MEMBER, content.group)
            case GroupAct.DENY if member.state is MemberState.APPLIED:
                await member.become(MemberState.DENIED)
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
        if not GROUP_ID.fullmatch(group.id) or group.id != post.group:
            raise InteractionError(InteractionFault.INVALID, "no id of a group")
        own = Party(id=self._identities.canonical, address=self._own_url())
        group = replace(
            group, hub=own, owner=line.peer, members=(), extra={}, last=0, epoch=1
        )
        await self._take_new(group.id)
        hub = self._created(group)
        self._add_hub(hub)
        answer = GroupAcknowledgement(group=group.id, ref=ref, state=hub.group)
        self._do(self._answer(hub, line, answer))

    async def _invited_by(self, line: Line, told: Membership, group: Group) -> None:
        if not GROUP_ID.fullmatch(group.id) or not told.ticket:
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
        await self._take_new(group.id)
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

    # In a fleet.

    def is_here(self, name: str) -> bool:
        """Return whether this daemon distributes a group, or knows it as a member."""
        return name in self._hubs or name in self._members

    async def is_a_sisters(self, name: str) -> bool:
        """Return whether a sister of the fleet has a group; it may take a while."""
        return not self.is_here(name) and await self._holder.is_a_sisters(name)

    # The settings' groups.

    async def put_preset(
        self,
        name: str,
        members: Sequence[str],
        policy: GroupPolicy,
        admins: Sequence[str],
    ) -> None:
        """Note what the settings say of a group; our own hub goes by it.

        Args:
            members: DIDs of all that are to be members.
            admins: DIDs that manage it besides its owner.
        """
        hub = self._hubs.get(name)
        if hub is None:
            await self._elsewhere(name).put_preset(tuple(members))
            return
        hub.put_preset(policy, admins, members)
        await hub.log.durable()

    def gone_from(self, name: str) -> set[str]:
        """Return the agents, by name, that left our group or declined to join it."""
        return {agent_name(one) for one in self._hubs[name].machine.gone}

    async def _take_new(self, name: str) -> None:
        """Have a new group in the fleet; InteractionError if there is one."""
        if not await self._holder.take([name]) or self.is_here(name):
            raise InteractionError(
                InteractionFault.CONFLICT, "there is a group of this id"
            )

    async def _load_all(self, stored: Mapping[str, bytes], names: set[str]) -> None:
        for name in names & stored.keys():
            try:
                await self._load(name, stored[name])
            except RecordError as exc:
                logger.error("group damaged group=%s reason=%s", name, exc)

    def _wake(self, names: Iterable[str]) -> None:
        for name in names:
            hub, member = self._hubs.get(name), self._members.get(name)
            if hub is not None:
                hub.wake()
            if member is not None and member.needs_hub():
                line = self._wires.find(member.head.hub)
                if line is not None:
                    # It was there before the group was.
                    member.opened(line)
                self._wires.want(member.head.hub, member.head.address)

    async def _read(self, names: set[str]) -> None:
        """Go on with groups that were a sister's."""
        stored = dict(await asyncio.to_thread(self._shelf.heads))
        await self._load_all(stored, names)
        self._wake(names)
        for name in names & self._members.keys():
            self._tell(self._members[name])

    async def _load(self, name: str, data: bytes) -> None:
        await self._sisters.end(name)
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
            branches=self._sisters.branches_of(name),
            acknowledged=hub.acknowledged,
            preset=hub.preset,
        )
        self._add_hub(made)

    async def _lose(self, name: str) -> None:
        hub, member = self._hubs.pop(name, None), self._members.pop(name, None)
        if hub is not None:
            await hub.lose()
        if member is not None:
            member.log.give_up()
        self.publish("group", {"group": name})

    # Small things.

    async def _join(self, member: GroupMember) -> None:
        content = Membership(act=GroupAct.ACCEPT, ticket=member.head.ticket)
        ack = await member.ask(
            GroupPost(group=member.group.id, content=content), timeout=ANSWER_TIMEOUT
        )
        await member.become(MemberState.MEMBER, ack.state)

    def _opened(self, line: Line) -> None:
        if not line.has_groups:
            return
        for hub in self._hubs.values():
            hub.opened(line)
        for member in self._members.values():
            if self._is_hub_of(line, member):
                member.opened(line)

    def _needs(self, agent: str) -> bool:
        hubs = (*self._hubs.values(), *self._sisters.branches)
        if any(hub.needs(agent) for hub in hubs):
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

    def _elsewhere(self, name: str) -> GroupMember:
        found = self._members.get(name)
        if found is None:
            where = "" if self._holder.is_alone else " at this daemon of the fleet"
            raise NoGroup(f"there is no group {name[:80]!r}{where}")
        return found

    def _invited(self, name: str) -> GroupMember:
        if name in self._hubs:
            raise ConflictError("you are not invited; the hub of this group is here")
        member = self._elsewhere(name)
        if member.state is not MemberState.INVITED:
            raise ConflictError(f"you are not invited; you are: {member.state}")
        return member

    def _created(self, group: Group, *, founder: str = "") -> GroupHub:
        return GroupHub.create(
            group,
            self._shelf,
            self._wires,
            own=self._is_own,
            branches=self._sisters.branches_of(group.id),
            founder=founder,
        )

    def _add_hub(self, hub: GroupHub) -> None:
        self._hubs[hub.group.id] = hub
        told = {"group": hub.group.id}
        hub.changed = lambda: self.publish("group", told)
        hub.changed()

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
