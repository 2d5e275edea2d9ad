"""Groups of this agent: those that it distributes, and those of others."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from anp.errors import CallError, ConflictError, ErrorKind
from anp.identity.dids import agent_name
from anp.interaction.elements import Message, MessagePurpose, Part, Party, SenderRole
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.elements import Group, GroupPolicy, GroupState
from anp.interaction.groups.member_state import MemberState, StoredMember
from anp.interaction.groups.operations import (
    GroupAct,
    GroupContent,
    GroupPost,
    Membership,
)
from anp.interaction.states import is_terminal
from anp.protocols.gbz.group_writer import group_frame
from anp.sidecar.groups.reception import (
    ANSWER_TIMEOUT,
    GROUP_ID,
    GroupReception,
    NoGroup,
)
from anp.sidecar.groups.shelf import StoredEvent
from anp.sidecar.groups.signatures import SIGNED
from anp.sidecar.groups.standing import KnownGroup
from anp.sidecar.groups.wires import next_ref

logger = logging.getLogger(__name__)

_NO_GROUP: Final = (InteractionFault.UNKNOWN_GROUP, InteractionFault.CLOSED)

DAY: Final = 86_400.0
"Seconds."


class GroupService(GroupReception):
    """Makes groups, takes part in groups, and distributes; faces call its methods."""

    # The daemon's life.

    async def load(self) -> None:
        """Read the groups that are stored, before any peer can talk of them."""
        stored = dict(await asyncio.to_thread(self._shelf.heads))
        await self._load_all(stored, await self._holder.take(stored))

    async def resume(self) -> None:
        """Go on with the groups that were read."""
        self._holder.start()
        self._sisters.start()
        self._wake(self._hubs.keys() | self._members.keys())

    async def close(self) -> None:
        """Store what waits; nothing is distributed any more."""
        await self._holder.stop()
        await self._sisters.close()
        await self._wires.close()
        for hub in self._hubs.values():
            await hub.close()
        for member in self._members.values():
            await member.close()
        await self._holder.leave()
        await self._sisters.stop()
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
        owner: str = "",
    ) -> KnownGroup:
        """Make a group whose owner is this agent, or another.

        Args:
            sealed: The hub must not be able to read it; None as `groups.seal` says.
            hub: Peer that distributes its messages; empty for this daemon.
            group: Its id; empty for a new one.
            owner: DID of the agent on whose behalf this one makes it.
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
        if not GROUP_ID.fullmatch(group):
            raise InteractionError(InteractionFault.INVALID, "no id of a group")
        if self.is_here(group):
            raise ConflictError("there is a group of this id")
        self._check_places()
        await self._take_new(group)
        made = Group(
            id=group,
            name=name,
            hub=Party(id=self._identities.canonical, address=self._own_url()),
            owner=owner or self._identities.canonical,
            admins=tuple([await self._did_of(one) for one in admins]),
            policy=policy or GroupPolicy(),
            sealed=sealed,
        )
        if hub:
            return await self._create_at(made, hub)
        one = self._created(made, founder=self._identities.canonical if owner else "")
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

    async def decline(self, name: str) -> KnownGroup:
        """Refuse an invitation."""
        member = self._invited(name)
        content = Membership(act=GroupAct.DECLINE, ticket=member.head.ticket)
        await member.ask(GroupPost(group=name, content=content), timeout=ANSWER_TIMEOUT)
        await member.become(MemberState.DECLINED)
        return self.known(name)

    async def apply(self, hub: str, name: str, *, text: str = "") -> KnownGroup:
        """Ask the hub of a group to let this agent join."""
        if not GROUP_ID.fullmatch(name):
            raise InteractionError(InteractionFault.INVALID, "no id of a group")
        known = self._members.get(name)
        if name in self._hubs or (
            known is not None and known.state is MemberState.MEMBER
        ):
            raise ConflictError("this agent is a member")
        self._check_places()
        if known is None:
            await self._take_new(name)
        target = await self._finder.find(hub, trust_first_use=True)
        own = self._own_did(target.did)
        party = Party(id=target.did, address=target.url or "")
        is_new = known is None or agent_name(known.head.hub) != agent_name(target.did)
        if known is None or is_new:
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
            act=GroupAct.APPLY, member=Party(id=own, address=self._own_url()), text=text
        )
        try:
            ack = await known.ask(
                GroupPost(group=name, content=content), timeout=ANSWER_TIMEOUT
            )
        except (InteractionError, CallError):
            if is_new:
                del self._members[name]
            raise
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
        applied = None if known is None else known.applications.find(ticket)
        if approve and applied is not None:
            await self._welcome(name, applied.did)
        decided = Membership(act=act, ticket=ticket, text=text)
        await self._change(name, decided)
        if known is not None:
            await known.note_application(decided)
        return self.known(name)

    async def leave(self, name: str) -> KnownGroup:
        """Leave a group, or take back the application to join it."""
        member = self._members.get(name)
        is_applicant = member is not None and member.state is MemberState.APPLIED
        if member is not None and not is_applicant:
            member.check_state()
        try:
            await self._change(name, Membership(act=GroupAct.LEAVE))
        except InteractionError as exc:
            # The hub forgot the application, or closed the group.
            if not is_applicant or exc.code not in _NO_GROUP:
                raise
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
        problems = self.preset_problems.get(name, ())
        hub = self._hubs.get(name)
        if hub is None:
            return self._elsewhere(name).known(problems)
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
            preset=hub.preset,
            preset_problems=problems,
        )

    def all(self) -> list[KnownGroup]:
        """Return all groups."""
        return [self.known(name) for name in (*self._hubs, *self._members)]

    async def watch(
        self,
        name: str,
        *,
        after: int = 0,
        wanted: Callable[[StoredEvent], bool] | None = None,
    ) -> AsyncGenerator[StoredEvent, None]:
        """Yield the events of a group from a number on, and wait for new ones.

        Args:
            wanted: A part of the daemon follows, which counts as no watcher: the
                events that it has a use for. None for all.
        """
        found = self.watch_pages(name, after=after, wanted=wanted)
        async with contextlib.aclosing(found) as pages:
            async for page in pages:
                for one in page:
                    yield one

    async def watch_pages(
        self,
        name: str,
        *,
        after: int = 0,
        early: bool = False,
        wanted: Callable[[StoredEvent], bool] | None = None,
    ) -> AsyncGenerator[Sequence[StoredEvent], None]:
        """Yield events as `watch` does, all at once that are there.

        Args:
            early: Also those that only the hub has stored so far. After a kill they
                come again, with the same numbers.
        """
        hub, within = self._hubs.get(name), wanted is not None
        if hub is None:
            log = self._elsewhere(name).log
            pages = log.watch(after=after, early=early, within=within)
        else:
            pages = hub.log.watch(after=after, within=within)
        async with contextlib.aclosing(pages):
            async for page in pages:
                if wanted is not None:
                    page = [one for one in page if wanted(one)]
                yield page if hub is None else [await self._marked(x) for x in page]

    async def _marked(self, event: StoredEvent) -> StoredEvent:
        """Check the signature at the hub, which distributes without looking at it."""
        frame = event.frame()
        if "signature" not in frame:
            return event
        if self._is_own(event.by):
            # Only this daemon puts its own words here.
            return replace(event, mark=SIGNED)
        return replace(event, mark=await self._signatures.mark_bytes(event.data, frame))

    @property
    def watchers(self) -> int:
        """Number of those who follow groups now."""
        at_hubs = sum(one.log.watchers for one in self._hubs.values())
        return at_hubs + sum(one.log.watchers for one in self._members.values())

    # Tasks that were offered to a group, and that this agent accepted.

    def at_work(self, name: str) -> Sequence[str]:
        """Return the ids of the offers that were accepted here, and have not ended."""
        hub = self._hubs.get(name)
        if hub is None:
            return self._elsewhere(name).head.at_work
        own = self.known(name).own
        offers = hub.machine.offers.all
        return [x.id for x in offers if x.executor == own and not is_terminal(x.state)]

    async def note_at_work(self, name: str, task: str, *, is_begun: bool) -> None:
        """Note that an offer is about to be accepted here, or that it has ended."""
        if name not in self._hubs:
            await self._elsewhere(name).note_at_work(task, is_begun=is_begun)

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
        self._holder.forget(name)
        await asyncio.to_thread(self._shelf.drop, name)

    # Small things.

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


def _role(known: KnownGroup) -> SenderRole:
    is_owner = known.own == known.group.owner
    return SenderRole.REQUESTER if is_owner else SenderRole.SERVICE
