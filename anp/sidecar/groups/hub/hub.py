"""The message distribution module of one group (GBZ-11, GBZ-17): its hub.

What a member says is numbered, stored, and then sent to all other members, in one order
for all. Each member has a cursor, so that a slow or absent one holds up nobody: what it
has not acknowledged comes from memory or from the store when it reads again. Cursors
are stored lazily, since receivers drop repeats.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from anp.channel.stranger_work import counted
from anp.identity.dids import agent_name
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.elements import Group, GroupPolicy, GroupState
from anp.interaction.groups.hub_records import Asked, GroupEvent, HubHead, HubStep
from anp.interaction.groups.membership import GroupMachine
from anp.interaction.groups.operations import (
    GroupAcknowledgement,
    GroupFetch,
    GroupPost,
    Membership,
)
from anp.protocols.gbz.group_writer import group_frame, write_distributed
from anp.sidecar.groups.hub.branches import Branches
from anp.sidecar.groups.hub.tickets import TicketNews
from anp.sidecar.groups.log import GroupLog
from anp.sidecar.groups.shelf import GroupShelf, StoredEvent, head_bytes, said_in
from anp.sidecar.groups.wires import GroupWires
from anp.sidecar.tasks.delivery.line import Line

logger = logging.getLogger(__name__)

WINDOW = 1024
"Events that a member may have to acknowledge before more are sent to it."

FEED = 256
"Events that are sent to one member at a time."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredHub:
    """The head of a group at its hub, as it is stored."""

    hub: HubHead
    acknowledged: tuple[tuple[str, int], ...] = ()
    "For each member at another daemon, the newest event that it has stored."

    preset: tuple[str, ...] | None = None
    "DIDs that our `[[group]]` names as members, if there is one."


@dataclass(slots=True, eq=False)
class _Cursor:
    """One member at another daemon, and how far it is."""

    did: str
    address: str
    acknowledged: int
    sent: int = 0
    line: Line | None = None
    "The line on which it asked for events; None while it is away."

    whole: int = 0
    "Number of the last event that it gets also if it is its own."

    until: int = 0
    "Number of the last event that it gets, once it was removed; 0 for no end."

    reading: asyncio.Task[None] | None = None

    @property
    def is_here(self) -> bool:
        """True while its line stands."""
        return self.line is not None and self.line.stands


class GroupHub:
    """One group whose hub this daemon is."""

    def __init__(
        self,
        machine: GroupMachine,
        shelf: GroupShelf,
        wires: GroupWires,
        *,
        own: Callable[[str], bool],
        branches: Branches,
        acknowledged: Sequence[tuple[str, int]] = (),
        preset: tuple[str, ...] | None = None,
    ) -> None:
        """Go on with a group.

        Args:
            own: Tells if a DID is one of this daemon's own.
            branches: The sisters that serve members, in a fleet.
        """
        self.machine = machine
        self.preset = preset
        self._wires = wires
        self._own = own
        self.branches = branches
        self._cursors: dict[str, _Cursor] = {}
        self.first = 1
        "Number of the oldest event that is kept."

        self._news = TicketNews(machine.group.id, wires, branches)
        self._ids: dict[str, str] = {}
        self.changed: Callable[[], object] = lambda: None
        "Told when members or tickets change."

        self.log = GroupLog(
            shelf,
            machine.group.id,
            head=self._head,
            last=machine.group.last,
            stored=self._stored,
        )
        self._follow_members()
        for did, number in acknowledged:
            cursor = self._cursors.get(did)
            if cursor is not None:
                cursor.acknowledged = max(cursor.acknowledged, number)
        for did, number in machine.leavers.items():
            # One that was removed while it was away is told so.
            if number and not own(did):
                self._cursors[did] = _Cursor(did, "", number - 1, until=number)
        for one in machine.tickets:
            self._ids.setdefault(agent_name(one.did), one.did)
        self._news.restore(machine, own)

    @classmethod
    def create(
        cls,
        group: Group,
        shelf: GroupShelf,
        wires: GroupWires,
        *,
        own: Callable[[str], bool],
        branches: Branches,
        founder: str = "",
    ) -> GroupHub:
        """Make a group; InteractionError if it cannot be one."""
        machine, step = GroupMachine.create(
            group, wall_now=datetime.now(UTC), make_id=new_ticket, founder=founder
        )
        made = cls(machine, shelf, wires, own=own, branches=branches)
        made.log.last = 0
        made._put(step)
        return made

    @property
    def group(self) -> Group:
        """The group as it is now."""
        return self.machine.group

    def needs(self, agent: str) -> bool:
        """Return whether something waits for an agent, by its name."""
        did = self._ids.get(agent, agent)
        if self._news.waits_for(did):
            return True
        cursor = self._cursors.get(did)
        if cursor is None:
            return False
        is_behind = cursor.acknowledged < (cursor.until or self.log.stored_last)
        if is_behind and not self.branches.serves(did):
            return True
        return self.group.state is GroupState.OPEN and cursor.is_here

    def name_of(self, did: str) -> str:
        """Return the DID under which the group knows an agent."""
        return self._ids.get(agent_name(did), did)

    async def take(
        self, post: GroupPost, *, sender: str, ref: int, size: int
    ) -> GroupAcknowledgement:
        """Take an operation, and return its answer when it is stored.

        Args:
            sender: DID of who the channel proved.

        Raises:
            InteractionError: It is refused, and changed nothing.
        """
        step = self.take_soon(post, sender=sender, ref=ref, size=size)
        if step.events or step.changed:
            await self.log.durable()
        return step.answer

    def take_soon(
        self, post: GroupPost, *, sender: str, ref: int, size: int
    ) -> HubStep:
        """Take an operation that is stored soon; see `take`."""
        self.log.check_room()
        asked = Asked(
            _named(post, self.name_of),
            self.name_of(sender),
            ref,
            size,
            time.monotonic(),
            datetime.now(UTC),
        )
        step = self.machine.take(asked)
        self._put(step)
        return step

    def put_preset(
        self, policy: GroupPolicy, admins: Sequence[str], members: Sequence[str]
    ) -> None:
        """Give the group the rules and members of our settings; stored soon."""
        gone = set(self.preset or ()) - {*members}
        self.preset = tuple(members)
        self.machine.preset(policy=policy, admins=admins, gone=gone)
        for did in gone:
            self._news.drop(did)
        self.log.put((), head=True)
        self.changed()
        told = GroupAcknowledgement(group=self.group.id, ref=1, state=self.group)
        for cursor in self._cursors.values():
            if cursor.until:
                continue
            if cursor.line is not None and self._is_there(cursor):
                cursor.line.say(told)
            else:
                self.branches.tell(cursor.did, told)

    def fetch(self, line: Line, asked: GroupFetch, ref: int) -> None:
        """Send a member what comes after a number, from now on over this line.

        Raises:
            InteractionError: It is no member, and was none.
        """
        did = self.name_of(line.peer)
        after = max(self.machine.after(did, asked.after), self.first - 1)
        cursor = self._cursors.get(did)
        is_member = self.machine.hears(did)
        if cursor is None and is_member:
            raise InteractionError(InteractionFault.NOT_ALLOWED, "this is the hub")
        answer = GroupAcknowledgement(
            group=self.group.id,
            ref=ref,
            after=after,
            state=self.group if is_member else None,
        )
        self._news.joined(did)
        line.say(answer)
        if cursor is not None:
            cursor.line = line
            self.branches.came(did, cursor.address)
            cursor.acknowledged = max(cursor.acknowledged, min(asked.after, after))
            cursor.sent = after
            cursor.whole = self.group.last if asked.whole else 0
            self._feed(cursor)

    def acknowledge(self, line: Line, ack: GroupAcknowledgement) -> None:
        """Take note of how far a member is, or that it knows of a ticket."""
        did = self.name_of(line.peer)
        if ack.ticket:
            self.told(did, ack.ticket)
            return
        cursor = self._cursors.get(did)
        if cursor is None or ack.ref <= cursor.acknowledged:
            return
        if not cursor.is_here and line.stands and ack.ref <= self.log.stored_last:
            # A member answers on the line that counts: it came back from a sister.
            cursor.line, cursor.sent = line, ack.ref
            self.branches.came(did, "")
        if ack.ref > cursor.sent:
            return
        cursor.acknowledged = ack.ref
        if self._is_done(cursor):
            return
        if cursor.sent < self.log.stored_last:
            self._feed(cursor)

    def _is_done(self, cursor: _Cursor) -> bool:
        """Forget a member that was removed, once it knows that."""
        is_done = 0 < cursor.until <= cursor.acknowledged
        if is_done:
            del self._cursors[cursor.did]
        return is_done

    def told(self, did: str, ticket: str) -> None:
        """Note that an agent knows of its ticket."""
        self._news.known(self.name_of(did), ticket)

    def present(self, sister: str, members: Mapping[str, int], came: str) -> None:
        """Take a sister's word about the members that it serves.

        Args:
            came: The one that came to it just now, and has left our line.
        """
        served: list[str] = []
        for did, number in members.items():
            cursor = self._cursors.get(did)
            if cursor is None or (did != came and cursor.is_here):
                continue
            served.append(did)
            cursor.line = None
            number = min(number, self.log.stored_last)
            cursor.acknowledged = max(cursor.acknowledged, number)
            self._is_done(cursor)
        self._news.came(self.branches.present(sister, served))

    def opened(self, line: Line) -> None:
        """Tell an agent that is there again what it does not know."""
        self._news.opened(self.name_of(line.peer), line)

    async def close(self) -> None:
        """Store what waits, cursors included."""
        self.log.put((), head=True)
        await self.log.close()
        for cursor in self._cursors.values():
            if cursor.reading is not None:
                cursor.reading.cancel()

    async def lose(self) -> None:
        """End here without a word to the store: a sister of the fleet has it now."""
        self.log.give_up()
        for cursor in self._cursors.values():
            if cursor.reading is not None:
                cursor.reading.cancel()
            if cursor.line is not None and not cursor.line.closed:
                # It dials again, and comes to the sister.
                await cursor.line.channel.close("a sister has the group")

    # What follows from a step.

    def _put(self, step: HubStep) -> None:
        if step.changed:
            self._follow_members()
            self.changed()
        for tell in step.tells:
            if self._own(tell.to):
                # It sees the tickets themselves.
                continue
            self._ids.setdefault(agent_name(tell.to), tell.to)
            self._news.tell(tell)
        if step.events or step.changed:
            self.log.put([_stored(one) for one in step.events], head=step.changed)

    def wake(self) -> None:
        """Dial those for whom something waits, after a restart."""
        self._news.wake()
        for cursor in self._cursors.values():
            if cursor.acknowledged < (cursor.until or self.log.stored_last):
                self._wires.want(cursor.did, cursor.address)

    def _follow_members(self) -> None:
        """Have a cursor for each member at another daemon, and for no other."""
        group = self.machine.group
        for did in (group.owner, *group.admins):
            self._ids.setdefault(agent_name(did), did)
        for member in group.members:
            self._ids[agent_name(member.id)] = member.id
            known = self._cursors.get(member.id)
            if self._own(member.id) or (known is not None and not known.until):
                continue
            floor = self.machine.floors.get(member.id, 0)
            self._cursors[member.id] = _Cursor(member.id, member.address, floor, floor)
        for did, cursor in list(self._cursors.items()):
            if not self.machine.hears(did) and not cursor.until:
                cursor.until = self.machine.leavers.get(did, 0)
                if not cursor.until:
                    del self._cursors[did]

    def _head(self) -> tuple[bytes, bool]:
        head = StoredHub(
            hub=self.machine.head,
            acknowledged=tuple(
                (one.did, one.acknowledged) for one in self._cursors.values()
            ),
            preset=self.preset,
        )
        return head_bytes(StoredHub, head), self.group.state is GroupState.OPEN

    # Distribution.

    def _stored(self, events: Sequence[StoredEvent]) -> None:
        self.branches.stored()
        for cursor in list(self._cursors.values()):
            if cursor.line is not None:
                self._feed(cursor)
            else:
                self._want(cursor)

    def _feed(self, cursor: _Cursor) -> None:
        """Send a member what it may get now."""
        while cursor.reading is None and self._is_there(cursor):
            room = min(WINDOW - (cursor.sent - cursor.acknowledged), FEED)
            if cursor.until:
                room = min(room, cursor.until - cursor.sent)
            if room <= 0:
                return
            found = self.log.recent(cursor.sent, room)
            if found is None:
                cursor.reading = asyncio.create_task(counted(self._read(cursor, room)))
                return
            if not found:
                return
            self._send(cursor, found)

    def _is_there(self, cursor: _Cursor) -> bool:
        if not cursor.is_here:
            self._want(cursor)
        return cursor.is_here

    def _want(self, cursor: _Cursor) -> None:
        served = self.branches.serves(cursor.did)
        if not served and not self.branches.dial(cursor.did, cursor.address):
            self._wires.want(cursor.did, cursor.address)

    async def _read(self, cursor: _Cursor, room: int) -> None:
        sent, found = cursor.sent, []
        try:
            found = await self.log.events(after=cursor.sent, limit=room)
        finally:
            cursor.reading = None
        if cursor.sent == sent and found and self._is_there(cursor):
            self._send(cursor, found)
        self._feed(cursor)

    def _send(self, cursor: _Cursor, events: Sequence[StoredEvent]) -> None:
        assert cursor.line is not None, "the caller looked"
        joined = self.machine.joined_at(cursor.did)
        frames: list[bytes] = []
        posted: list[tuple[int, int]] = []
        for one in events:
            cursor.sent = one.number
            if one.by == cursor.did and one.ref:
                posted.append((one.ref, one.number))
            if one.by != cursor.did or not one.ref or one.number <= cursor.whole:
                is_old = one.number < joined
                frames.append(_replayed(one.data) if is_old else one.data)
        if posted:
            answer = GroupAcknowledgement(
                group=self.group.id, ref=posted[-1][0], posted=tuple(posted)
            )
            cursor.line.say(answer)
        if frames:
            cursor.line.pass_on(frames)


def new_ticket() -> str:
    """Return an id that nobody can guess."""
    return uuid.uuid4().hex


def _named(post: GroupPost, name_of: Callable[[str], str]) -> GroupPost:
    """Return an operation about an agent by the DID that the group knows."""
    content = post.content
    if not isinstance(content, Membership) or content.member is None:
        return post
    member = replace(content.member, id=name_of(content.member.id))
    return replace(post, content=replace(content, member=member))


def _stored(event: GroupEvent) -> StoredEvent:
    frame = event.post.frame or group_frame(event.post, event.number)
    data = write_distributed(
        frame, number=event.number, epoch=event.epoch, at=event.at, by=event.by
    )
    said = said_in(event.post)
    return StoredEvent(event.number, event.by, event.ref, data, message=said)


def _replayed(data: bytes) -> bytes:
    return data[:-1] + b',"replayed":true}'
