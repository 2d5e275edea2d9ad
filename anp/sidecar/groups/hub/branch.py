"""A group whose hub a sister of the fleet is, as we serve its members on our lines.

What members say goes to the sister. What they hear comes from the store, where all of
the fleet find the events and the head. Whatever goes wrong ends in closed lines: the
members dial again, ask for what they lack, and say again what was not answered.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.membership import GroupMachine
from anp.interaction.groups.operations import (
    GroupAcknowledgement,
    GroupFetch,
    GroupPost,
    Membership,
)
from anp.protocols.gbz.writer import json_bytes
from anp.protocols.line import FurtherFrame
from anp.sidecar.groups.hub.branches import PATIENCE as DIALLING
from anp.sidecar.groups.hub.branches import Branches
from anp.sidecar.groups.hub.hub import FEED, GroupHub, StoredHub, new_ticket
from anp.sidecar.groups.hub.mail import GroupLetter, GroupMail, LetterKind
from anp.sidecar.groups.hub.tickets import TicketNews
from anp.sidecar.groups.shelf import GroupShelf, read_head
from anp.sidecar.groups.wires import GroupWires
from anp.sidecar.tasks.delivery.line import Line
from cache.errors import RecordError

logger = logging.getLogger(__name__)

MOVED: Final = "another daemon has the group"

MAX_ASKED: Final = 1024
"Operations that wait for the hub, before agents are read no further."

MAX_ASKED_BYTES: Final = 64 * 1024 * 1024
"Most bytes of them, if all are as large as the group allows, but for a few."

MIN_ASKED: Final = 64

PATIENCE: Final = 20.0
"Seconds for which the hub may take to answer; a sister takes it over in less."


MAX_IDLE: Final = 3
"Looks that find nobody to be served, before all is forgotten."


class _Elsewhere(Branches):
    """The hub dials the members, and we nobody."""

    def serves(self, did: str) -> bool:
        """Return True."""
        return True


class GroupBranch(GroupHub):
    """One group of the fleet whose hub is at a sister."""

    def __init__(
        self,
        group: str,
        shelf: GroupShelf,
        wires: GroupWires,
        *,
        own: Callable[[str], bool],
        mail: GroupMail,
        holder: str,
        head: StoredHub,
        last: int,
    ) -> None:
        """Begin to serve; `open` reads what that needs.

        Args:
            holder: Id of the daemon that has the hub.
            last: Number of the newest event that is stored.
        """
        self._shelf = shelf
        self._mail = mail
        self.holder = holder
        super().__init__(
            _machine(head, last), shelf, wires, own=own, branches=_Elsewhere(group)
        )
        # The hub tells agents of their tickets, by letters to us.
        self._news = TicketNews(group, wires, self.branches)
        self._asked: dict[tuple[str, int], tuple[Line, float]] = {}
        "Line and time of each word of an agent that the hub has not answered yet."

        self._room = asyncio.Event()

        self._reading_on = asyncio.Lock()
        self._is_behind = False
        self._idle = 0
        self._dialled: dict[str, float] = {}
        "Members that the hub wants us to dial, each with the time when it said so."

        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(
        cls,
        group: str,
        shelf: GroupShelf,
        wires: GroupWires,
        *,
        own: Callable[[str], bool],
        mail: GroupMail,
        holder: str,
    ) -> GroupBranch | None:
        """Begin to serve members; None if the fleet is only a member of the group."""
        newest = await asyncio.to_thread(shelf.last, group)
        # Read after the events, the head knows who may not get them any more.
        head = await asyncio.to_thread(_head_of, shelf, group)
        if head is None:
            return None
        last = newest[-1].number if newest else 0
        return cls(
            *(group, shelf, wires),
            own=own,
            mail=mail,
            holder=holder,
            head=head,
            last=last,
        )

    async def hear(self, line: Line, frame: FurtherFrame) -> None:
        """Take what an agent says on a line of ours.

        Raises:
            InteractionError: It is refused.
        """
        if self.log.ended:
            await line.channel.close(MOVED)
            return
        match frame.operation:
            case GroupFetch() as asked:
                # What it said before is answered with its number now, not said again.
                await self.read_on()
                if self.log.ended:
                    await line.channel.close(MOVED)
                    return
                self.fetch(line, asked, frame.ref)
                self._dialled.pop(self.name_of(line.peer), None)
                self.report(came=self.name_of(line.peer))
            case GroupAcknowledgement() as ack if ack.ticket:
                self._write(LetterKind.KNOWN, did=line.peer, frame=ack.ticket)
            case GroupAcknowledgement() as ack:
                self.acknowledge(line, ack)
                did = self.name_of(line.peer)
                if did in self.machine.leavers and did not in self._cursors:
                    # The hub need not tell it any more.
                    self.report(gone={did: ack.ref})
            case GroupPost(number=0) as post:
                await self._pass_on(line, post, frame)
            case GroupPost():
                raise InteractionError(
                    InteractionFault.NOT_ALLOWED, "the hub of this group is here"
                )

    async def _pass_on(self, line: Line, post: GroupPost, frame: FurtherFrame) -> None:
        did = self.name_of(line.peer)
        if not (isinstance(post.content, Membership) or self.machine.hears(did)):
            # A stranger's words cost the fleet nothing.
            raise InteractionError(InteractionFault.UNKNOWN_GROUP, "no such group here")
        if not await self._has_room():
            await line.channel.close(MOVED)
            return
        text = json_bytes(dict(post.frame)).decode("utf-8")
        self._write(LetterKind.SAID, did=line.peer, ref=frame.ref, frame=text)
        self._asked[did, frame.ref] = line, time.monotonic()

    async def _has_room(self) -> bool:
        """Wait, and read no more of who speaks, while much waits for the hub."""
        most = MAX_ASKED_BYTES // self.group.policy.max_message
        while len(self._asked) >= max(MIN_ASKED, min(most, MAX_ASKED)):
            self._room.clear()
            await self._room.wait()
        return not self.log.ended

    def _answered(self, key: tuple[str, int]) -> Line | None:
        line, _ = self._asked.pop(key, (None, 0.0))
        self._room.set()
        return line

    async def take_letter(self, letter: GroupLetter) -> None:
        """Take what the sister with the hub tells."""
        if letter.kind is LetterKind.ANSWER:
            did = self.name_of(letter.did)
            line = self._answered((did, letter.ref))
            if line is None or not line.stands:
                line = self._wires.find(did)
            if line is not None:
                line.pass_on([letter.frame.encode("utf-8")])
        elif letter.kind is LetterKind.DIAL:
            self._dialled[letter.did] = time.monotonic()
            self._wires.want(letter.did, letter.frame)
        elif letter.kind is LetterKind.STORED and not self._is_behind:
            self._is_behind = True
            task = asyncio.create_task(self._catch_up())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _catch_up(self) -> None:
        try:
            await self.read_on()
        except Exception:
            logger.exception("events not read group=%s", self.group.id)

    async def look(self) -> bool:
        """Tell the hub whom we serve; False when nobody is left to be served."""
        await self.read_on(whole=True)
        now = time.monotonic()
        late = {
            line
            for line, since in self._asked.values()
            if now - since > PATIENCE and line.stands
        }
        for key, (line, _) in list(self._asked.items()):
            if line in late or not line.stands:
                self._answered(key)
        for line in late:
            await line.channel.close("the hub does not answer")
        self.report()
        is_idle = not (self._served() or self._asked)
        self._idle = self._idle + 1 if is_idle else 0
        return self._idle < MAX_IDLE

    async def read_on(self, *, whole: bool = False) -> None:
        """Read what was stored since, and send it to the members.

        Args:
            whole: Read the head in any case.
        """
        async with self._reading_on:
            group = self.group.id
            self._is_behind = False
            while True:
                events = await asyncio.to_thread(
                    self._shelf.events, group, after=self.log.last, limit=FEED
                )
                if self.log.ended:
                    return
                is_other = bool(events) and (
                    events[-1].frame().get("epoch") != self.group.epoch
                )
                if whole or is_other:
                    # After the events: nobody gets what came after its removal.
                    head = await asyncio.to_thread(_head_of, self._shelf, group)
                    if head is not None:
                        self.machine = _machine(head, self.log.last)
                        self._follow_members()
                        self.changed()
                    whole = False
                for one in events:
                    self._answered((one.by, one.ref))
                if events:
                    self.machine.recall(number=events[-1].number, by="", ref=0)
                    self.log.follow(events)
                if len(events) < FEED:
                    return

    def report(self, *, came: str = "", gone: Mapping[str, int] | None = None) -> None:
        """Tell the hub whom we serve, and how far they are.

        Args:
            came: The one that came just now.
            gone: One that knows that it was removed.
        """
        members = {**self._served(), **(gone or {})}
        self._write(LetterKind.PRESENT, did=came, members=members)

    def needs(self, agent: str) -> bool:
        """Return whether somebody has to be dialled, or is served."""
        asked = self._dialled.get(self._ids.get(agent, agent), -DIALLING)
        # Later the hub dials it itself.
        is_asked = time.monotonic() - asked < DIALLING
        return is_asked or super().needs(agent)

    async def close(self) -> None:
        """End; the members dial again, and nothing is stored here."""
        self._write(LetterKind.PRESENT)
        await self.lose()

    async def lose(self) -> None:
        """End, since another daemon has the hub now; see `GroupHub.lose`."""
        for task in self._tasks:
            task.cancel()
        lines = {line for line, _ in self._asked.values() if line.stands}
        await super().lose()
        self._asked.clear()
        self._room.set()
        for line in lines:
            await line.channel.close(MOVED)

    def _served(self) -> dict[str, int]:
        return {
            one.did: one.acknowledged for one in self._cursors.values() if one.is_here
        }

    def _write(
        self,
        kind: LetterKind,
        *,
        did: str = "",
        ref: int = 0,
        frame: str = "",
        members: Mapping[str, int] | None = None,
    ) -> None:
        letter = GroupLetter(
            kind=kind,
            group=self.group.id,
            did=did,
            ref=ref,
            frame=frame,
            members=dict(members or {}),
        )
        self._mail.send(self.holder, letter)


def _machine(head: StoredHub, last: int) -> GroupMachine:
    machine = GroupMachine(head.hub, new_ticket)
    machine.recall(number=last, by="", ref=0)
    return machine


def _head_of(shelf: GroupShelf, group: str) -> StoredHub | None:
    data = shelf.head(group)
    if data is None:
        return None
    try:
        return read_head(StoredHub, data)
    except RecordError:
        # It is that of a member.
        return None
