"""One group at another daemon's hub, as this daemon takes part in it."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from anp.interaction.elements import Message
from anp.interaction.errors import InteractionError, InteractionFault, fault_of
from anp.interaction.groups.elements import Group, GroupState
from anp.interaction.groups.member_copy import CopyEvent
from anp.interaction.groups.member_state import MemberState, StoredMember
from anp.interaction.groups.operations import (
    GroupAcknowledgement,
    GroupFetch,
    GroupPost,
    Membership,
    RefusedGroupOperation,
)
from anp.protocols.gbz.group_writer import group_frame
from anp.protocols.gbz.writer import json_bytes
from anp.protocols.line import FurtherFrame
from anp.sidecar.groups.backlog import Backlog
from anp.sidecar.groups.frames import own_post
from anp.sidecar.groups.log import GATHERED, GroupLog
from anp.sidecar.groups.sealing.member_seal import MemberSeal
from anp.sidecar.groups.sealing.sealed_desk import SealedDesk
from anp.sidecar.groups.shelf import GroupShelf, StoredEvent, head_bytes, stored_copy
from anp.sidecar.groups.signatures import Signatures
from anp.sidecar.groups.standing import KnownGroup, MemberStanding
from anp.sidecar.groups.wires import GroupWires, next_ref
from anp.sidecar.tasks.delivery.line import Line

logger = logging.getLogger(__name__)

GAP_WAIT = 0.5
"Seconds for which an event may be missing before everything after it is fetched."

MAX_QUEUED = 1000
"Messages of ours that wait for a hub that is away."

MAX_ASKED = 64
"Operations about members that are known still when they become events."

DeskMaker = Callable[[Group, str, Mapping[str, bytes]], SealedDesk]
"Opens the desk in a sealed group under a DID of ours, with the rows that it stored."


class GroupMember(MemberStanding):
    """One group whose hub is another daemon."""

    def __init__(
        self,
        head: StoredMember,
        shelf: GroupShelf,
        wires: GroupWires,
        signatures: Signatures,
        *,
        last: int = 0,
        is_own: Callable[[str], bool],
        desk_of: DeskMaker,
        changed: Callable[[GroupMember], None] = lambda member: None,
    ) -> None:
        """Go on with a group.

        Args:
            desk_of: Opens our desk in a sealed group.
            is_own: Tells if a DID is one of this daemon's own.
            last: Number up to which everything is stored.
            changed: Told when its state changes.
        """
        super().__init__(head, last=last, is_own=is_own, changed=lambda: changed(self))
        self._wires = wires
        self._signatures = signatures
        self._desk_of = desk_of
        self.sealing: MemberSeal | None = None
        "Our part in a sealed group, as soon as we are a member."

        self._marks: dict[int, str] = {}
        "Findings about events that came, by number, those included that wait."

        self._queued: dict[int, dict[str, Any]] = {}
        self._answers: dict[int, asyncio.Future[GroupAcknowledgement]] = {}
        self._asked: dict[int, dict[str, Any]] = {}
        "Operations about members, which become events, too."

        self._taking = asyncio.Lock()
        self._acknowledged = 0
        self._gap: asyncio.TimerHandle | None = None
        self._lost = 0
        "Number of the newest message of ours whose text only the hub has."

        self._line: Line | None = None
        "The line on which events were asked for."

        self._backlog = Backlog(self._say_some)
        self._quiet_until = 0
        "Number of the event that has to be here before anything is said on this line."

        self.log = GroupLog(
            shelf,
            head.group.id,
            head=self._head,
            last=last,
            stored=self._stored,
            delay=GATHERED,
        )
        for text in head.queued:
            frame = json.loads(text)
            self._queued[frame["ref"]] = frame
        self._kept = frozenset(self._queued)
        "Numbers of what is queued in the stored head."

    def known(self, preset_problems: tuple[str, ...]) -> KnownGroup:
        """Return the group as this daemon's agent sees it."""
        return KnownGroup(
            group=self.group,
            own=self.own,
            is_hub=False,
            state=self.state,
            last=self.log.stored_last,
            tickets=self.applications.waiting,
            invitation=self.head,
            preset=self.head.preset,
            preset_problems=preset_problems,
            sealing=None if self.sealing is None else self.sealing.desk.view,
        )

    def needs_hub(self) -> bool:
        """Return whether there has to be a line to the hub."""
        waits = bool(self._queued) or bool(self._answers)
        return waits or self.state is MemberState.MEMBER

    def opened(self, line: Line) -> None:
        """Go on over a new line to the hub.

        What it did not answer is said again as soon as we have all that it took
        before: it knows repeats of what was said lately, and not of everything.
        """
        if self.state is not MemberState.MEMBER:
            return
        self._line = line
        self._quiet_until = sys.maxsize
        self._backlog.end()
        self._fetch()

    def _say_again(self) -> None:
        if self._copy.last < self._quiet_until:
            return
        self._quiet_until = 0
        unstored = self.sealing.unstored if self.sealing else frozenset()
        self._backlog.begin(self._queued.keys() - unstored, rate=self.group.policy.rate)

    def _say_some(self, refs: Sequence[int]) -> None:
        if self._line is not None and self.is_there:
            frames = [self._queued[ref] for ref in refs if ref in self._queued]
            self._line.pass_on([json_bytes(one) for one in frames])

    # What we do.

    async def ask(
        self, post: GroupPost | GroupFetch, *, timeout: float
    ) -> GroupAcknowledgement:
        """Have the hub do something; return its answer.

        Raises:
            InteractionError: It refused.
            CallError: It cannot be reached.
            TimeoutError: It did not answer.
        """
        ref = next_ref()
        # From now on the line is needed.
        answer = self._answer(ref)
        self._asked[ref] = group_frame(post, ref)
        while len(self._asked) > MAX_ASKED:
            del self._asked[next(iter(self._asked))]
        try:
            line = await self._wires.open(self.head.hub, self.head.address)
            line.say(post, ref)
            async with asyncio.timeout(timeout):
                return await answer
        finally:
            self._answers.pop(ref, None)

    async def say(self, post: GroupPost, *, timeout: float) -> int | None:
        """Say something to the group; return its number.

        None when the hub did not take it in time: it is stored here, and goes on.

        Raises:
            InteractionError: The hub refused it, or too much waits for it.
        """
        self.check_state()
        if len(self._queued) >= MAX_QUEUED:
            raise InteractionError(
                InteractionFault.TOO_MANY, "too many messages wait for the hub"
            )
        if self.sealing is None:
            frame = self._queue(post, signed=self._signatures.enabled)
            ref = frame["ref"]
            answer = self._answer(ref)
            self._pass_on([frame])
        else:
            frames = self._seal(self.sealing, post)
            ref = frames[-1]["ref"]
            answer = self._answer(ref)
            await self.sealing.send(frames)
        if not self.is_there:
            timeout = 0.0
        try:
            async with asyncio.timeout(timeout):
                return (await answer).posted[0][1]
        except TimeoutError:
            self.log.put((), head=True)
            await self.log.durable()
            return None
        finally:
            self._answers.pop(ref, None)

    def _seal(self, sealing: MemberSeal, post: GroupPost) -> list[dict[str, Any]]:
        if not isinstance(post.content, Message):
            raise InteractionError(
                InteractionFault.NOT_ALLOWED,
                "a sealed group has no offers, since its hub cannot read them; give "
                "the task to a member in a message",
            )
        return sealing.seal(post.content, max_message=self.group.policy.max_message)

    def _queue(self, post: GroupPost, *, signed: bool = False) -> dict[str, Any]:
        """Return the frame of a post, which is kept until the hub took it."""
        ref = next_ref()
        frame = group_frame(post, ref)
        if signed:
            frame = self._signatures.sign(frame, self.own)
        self._queued[ref] = frame
        return frame

    @property
    def is_there(self) -> bool:
        """True while the line on which we hear the hub stands."""
        return self._line is not None and self._line.stands

    def _pass_on(self, frames: Sequence[dict[str, Any]]) -> None:
        if self._line is not None and self.is_there:
            refs = [one["ref"] for one in frames]
            if not (self._quiet_until or self._backlog.takes(refs)):
                self._line.pass_on([json_bytes(one) for one in frames])
        else:
            self._wires.want(self.head.hub, self.head.address)

    def sit(self, rows: Mapping[str, bytes]) -> None:
        """Take our seat in a sealed group, as it was stored, if it is one."""
        if not self.group.sealed or self.sealing is not None:
            return
        self.sealing = MemberSeal(
            self._desk_of(self.group, self.own, rows),
            self.log,
            queue=lambda message: self._queue(
                # The seal has a signature in it.
                GroupPost(group=self.group.id, content=message)
            ),
            send=self._pass_on,
        )

    def _answer(self, ref: int) -> asyncio.Future[GroupAcknowledgement]:
        self._answers[ref] = asyncio.get_running_loop().create_future()
        return self._answers[ref]

    async def become(self, state: MemberState, group: Group | None = None) -> None:
        """Change the way in which we take part, and store that."""
        head = self.head if group is None else replace(self.head, group=group)
        self.head = replace(head, state=state)
        if group is not None:
            self._copy.group = group
        if state is MemberState.MEMBER:
            self.sit({})
        await self._store_head()
        if state is MemberState.MEMBER:
            line = self._wires.find(self.head.hub)
            if line is not None and self._line is not line:
                self._line = line
                self._fetch()
                # Something may have been said since we are a member.
                self._say_again()
            self._wires.want(self.head.hub, self.head.address)
        self._told()

    # What the hub says.

    async def take(self, line: Line, frame: FurtherFrame) -> None:
        """Take an operation of the hub."""
        await self._take(frame)
        if self._quiet_until:
            self._say_again()

    async def _take(self, frame: FurtherFrame) -> None:
        match frame.operation:
            case GroupPost() as post:
                async with self._taking:
                    if self.sealing is not None:
                        await self.sealing.desk.learn(post)
                    mark = await self._signatures.mark(post)
                    self._deliver([(post, mark)])
            case GroupAcknowledgement() as ack:
                await self._acknowledged_by(ack)
            case RefusedGroupOperation(ref=ref, code=code, text=text):
                refused = self._queued.pop(ref, None)
                if refused is not None and self._goes_again(ref, refused, code):
                    return
                self._forget([ref])
                waiting = self._answers.get(ref)
                if waiting is not None and not waiting.done():
                    waiting.set_exception(InteractionError(fault_of(code), text))
                else:
                    # Of something from before, for which nobody waits any more.
                    logger.warning(
                        "hub refused group=%s code=%s reason=%r",
                        self.group.id,
                        code,
                        text[:200],
                    )

    def _goes_again(self, ref: int, frame: dict[str, Any], code: str) -> bool:
        if self.sealing is not None:
            again = self.sealing.refused(frame, code)
        else:
            # Its author was told that it waits here, and asks for it no more.
            again = code == InteractionFault.TOO_MANY and ref not in self._answers
            if again:
                self._backlog.refused(ref, rate=self.group.policy.rate)
        if again:
            self._queued[ref] = frame
        return again

    async def close(self) -> None:
        """Store what waits."""
        if self.sealing is not None:
            await self.sealing.close()
        self._backlog.end()
        if self._gap is not None:
            self._gap.cancel()
        self.log.put((), head=True)
        await self.log.close()

    async def _acknowledged_by(self, ack: GroupAcknowledgement) -> None:
        waiting = self._answers.get(ack.ref)
        if ack.after is not None:
            if ack.state is not None:
                async with self._taking:
                    self._put(self._copy.fetched(ack.state, ack.after))
                    if self.sealing is not None:
                        self.sealing.compare(one.id for one in ack.state.members)
                if self._quiet_until:
                    self._quiet_until = ack.state.last
            elif waiting is None:
                # Only what came before we were removed.
                self._put(self._copy.fetched(self.group, ack.after))
        elif ack.state is not None and ack.state.last >= self.group.last:
            self._copy.group = ack.state
            self._follow()
        if ack.posted:
            async with self._taking:
                self._posted(ack.posted)
        if waiting is not None and not waiting.done():
            waiting.set_result(ack)

    def _posted(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Put what we said ourselves into the place that the hub gave it."""
        found = []
        self._forget([ref for ref, _ in pairs])
        for ref, number in pairs:
            frame = self._queued.pop(ref, None) or self._asked.pop(ref, None)
            if number > self._copy.last and frame is not None:
                epoch = self.group.epoch
                post = own_post(frame, number, by=self.own, epoch=epoch)
                found.append((post, "signed"))
            elif number > max(self._copy.last, self._lost):
                # Said before a kill; the hub has the whole of it.
                self._lost = number
                self._look_for_missing()
            waiting = self._answers.get(ref)
            if waiting is not None and not waiting.done():
                ack = GroupAcknowledgement(
                    group=self.group.id, ref=ref, posted=((ref, number),)
                )
                waiting.set_result(ack)
        self._deliver(found)

    def _forget(self, refs: Sequence[int]) -> None:
        """Store the head without these: what is in it is said again after a kill."""
        if not self._kept.isdisjoint(refs):
            self.log.put((), head=True)

    def _deliver(self, posts: Sequence[tuple[GroupPost, str]]) -> None:
        last = self._copy.last
        events = self._copy.deliver(post for post, _ in posts)
        for post, mark in posts:
            if post.number > last:
                self._marks.setdefault(post.number, mark)
        self._put(events)
        if self._copy.has_gap:
            self._look_for_missing()

    def _look_for_missing(self) -> None:
        if self._gap is None:
            loop = asyncio.get_running_loop()
            self._gap = loop.call_later(GAP_WAIT, self._missing)

    def _missing(self) -> None:
        self._gap = None
        if self._copy.has_gap or self._lost > self._copy.last:
            self._fetch()

    def _fetch(self) -> None:
        if self._line is not None and not self._line.closed:
            last = self._copy.last
            asked = GroupFetch(group=self.group.id, after=last, whole=self._lost > last)
            self._line.say(asked, next_ref())

    def _put(self, events: Sequence[CopyEvent]) -> None:
        if not events:
            return
        marks = {one.number: self._marks.pop(one.number, "") for one in events}
        changes = [
            one.post.content
            for one in events
            if isinstance(one.post.content, Membership)
        ]
        for change in changes:
            self.applications.take(change)
        changed = bool(changes)
        if self.sealing is not None:
            self.sealing.put(events)
        else:
            stored = [stored_copy(one, marks[one.number]) for one in events]
            self.log.put(stored, head=changed)
        if changed:
            self._follow()

    def _follow(self) -> None:
        """See what changes of members mean for ourselves."""
        state = self.state
        if state is not MemberState.MEMBER:
            return
        if not any(self._is_own(one.id) for one in self.group.members):
            state = MemberState.REMOVED
        elif self.group.state is GroupState.CLOSED:
            state = MemberState.CLOSED
        self.head = replace(self.head, state=state, group=self.group)
        if state is not MemberState.MEMBER:
            self._give_up()
        self._told()

    def _give_up(self) -> None:
        """Drop what the hub did not take, since it takes nothing of us any more."""
        gone = InteractionError(
            InteractionFault.NOT_ALLOWED, "you are no member any more"
        )
        queued, self._queued = self._queued, {}
        for ref in queued:
            waiting = self._answers.get(ref)
            if waiting is not None and not waiting.done():
                waiting.set_exception(gone)

    def _stored(self, events: Sequence[StoredEvent]) -> None:
        """Acknowledge what is stored; one answer counts for all before."""
        line, number = self._line, self.log.stored_last
        if line is None or line.closed or number <= self._acknowledged:
            return
        self._acknowledged = number
        line.say(GroupAcknowledgement(group=self.group.id, ref=number))

    def _head(self) -> tuple[bytes, bool]:
        self._kept = frozenset(self._queued)
        queued = tuple(
            json_bytes(frame).decode("utf-8") for frame in self._queued.values()
        )
        head = replace(
            self.head,
            group=self.group,
            queued=queued,
            applications=self.applications.waiting,
        )
        is_open = head.state in (
            MemberState.MEMBER,
            MemberState.INVITED,
            MemberState.APPLIED,
        )
        return head_bytes(StoredMember, head), is_open
