"""The machine of one group at its hub: who is in it, and what is said in which order.

Inputs are operations of members and of those that want to join; each returns a
`HubStep` with the events to store and to distribute, the answer, and what else is told.
Every refusal raises `InteractionError` and changes nothing. The machine knows no
socket, file or clock.

    machine, step = GroupMachine.create(group, wall_now=now, make_id=new_id)
    step = machine.take(Asked(post, sender, ref, size, now, wall_now))
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Self

from anp.interaction.elements import Message, Party, Task
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.elements import (
    Group,
    GroupPolicy,
    GroupState,
    JoinRule,
    Member,
)
from anp.interaction.groups.hub_records import (
    Asked,
    GroupEvent,
    GroupTell,
    HubHead,
    HubStep,
    Ticket,
)
from anp.interaction.groups.offers import GroupOffers
from anp.interaction.groups.operations import (
    GroupAcknowledgement,
    GroupAct,
    GroupPost,
    Membership,
)
from anp.interaction.groups.rate import Rate
from anp.interaction.operations import TaskCancel, TaskUpdate

# Invitations and applications: how an agent becomes a member of a group.


# The state of a group at its hub, and the steps that all operations are made of.


INVITED_FOR: Final = timedelta(days=7)
"Time for which an invitation or an application counts."

MAX_OPEN: Final = 256
"Invitations and applications of a group that wait, together."

MAX_ENDED: Final = 256
"Ended ones, and former members, that are kept so that a repeat gets the same answer."

RECENT: Final = 4096
"Operations of a group whose repeats are known."


def refused(code: InteractionFault, text: str) -> InteractionError:
    """Return the error that refuses an operation."""
    return InteractionError(code, text)


def _until(wanted: datetime | None, wall_now: datetime) -> datetime:
    most = wall_now + INVITED_FOR
    return most if wanted is None else min(wanted, most)


class GroupMachine:
    """One group at its hub."""

    def __init__(self, head: HubHead, make_id: Callable[[], str]) -> None:
        """Bring a group back.

        Args:
            make_id: Returns a new id for a ticket, which nobody can guess.
        """
        self.group = head.group
        self.offers = GroupOffers(head.offers)
        self.leavers = dict(head.leavers)
        self.floors = dict(head.floors)
        self._make_id = make_id
        self._tickets = {one.id: one for one in head.tickets}
        self._others: dict[str, tuple[str, ...]] = {}
        self._rates: dict[str, Rate] = {}
        self._answered: OrderedDict[tuple[str, int], GroupAcknowledgement] = (
            OrderedDict()
        )
        self._messages: OrderedDict[tuple[str, str, int], None] = OrderedDict()

    @classmethod
    def create(
        cls,
        group: Group,
        *,
        wall_now: datetime,
        make_id: Callable[[], str],
        founder: str = "",
    ) -> tuple[Self, HubStep]:
        """Make a group whose only member is its owner.

        Args:
            founder: DID of the third party that makes it for its owner (GBZ-13); it is
                an admin and no member, and the owner joins as all others do.
        """
        if not group.id or not group.owner:
            raise refused(InteractionFault.INVALID, "a group has an id and an owner")
        if group.sealed and group.policy.history != 0:
            raise refused(
                InteractionFault.INVALID,
                "a sealed group has no history: new members cannot read what was "
                "said before them",
            )
        owner = group.member(group.owner) or Member(id=group.owner)
        if founder:
            group = replace(group, admins=(*group.admins, founder))
        group = replace(
            group,
            members=() if founder else (replace(owner, since=1),),
            epoch=1,
            last=0,
            state=GroupState.OPEN,
        )
        floors = () if founder else ((group.owner, 0),)
        made = cls(HubHead(group=group, floors=floors), make_id)
        made._check_open(wall_now)
        content = Membership(act=GroupAct.CREATE, group=group)
        post = GroupPost(group=group.id, content=content)
        step = HubStep(answer=GroupAcknowledgement(group=group.id, ref=0), changed=True)
        made._put(step, post, Asked(post, founder or group.owner, 0, 0, 0.0, wall_now))
        return made, step

    def preset(
        self, *, policy: GroupPolicy, admins: Iterable[str], gone: Container[str]
    ) -> None:
        """Give the group the rules of its hub's settings.

        Args:
            admins: All agents that manage it besides its owner.
            gone: Agents whose invitations count no more.
        """
        self.group = replace(self.group, policy=policy, admins=tuple(admins))
        self._rates.clear()
        for one in self.tickets:
            if one.did in gone and not (one.applied or one.ended):
                self._end(one, GroupAct.REMOVE)

    def take(self, asked: Asked) -> HubStep:
        """Take an operation of an agent."""
        known = self._answered.get((asked.sender, asked.ref))
        if known is not None:
            return HubStep(answer=known)
        self._check_open(asked.wall_now)
        answer = GroupAcknowledgement(group=self.group.id, ref=asked.ref)
        step = HubStep(answer=answer)
        content = asked.post.content
        if isinstance(content, Membership):
            step.changed = True
            self._change(step, content, asked)
            if asked.sender in self.floors:
                step.answer = replace(step.answer, state=self.group)
        else:
            self._say(step, content, asked)
        self._keep(asked.sender, asked.ref, step.answer)
        return step

    def _say(
        self,
        step: HubStep,
        content: Message | Task | TaskUpdate | TaskCancel,
        asked: Asked,
    ) -> None:
        sender, policy = asked.sender, self.group.policy
        if sender not in self.floors:
            raise self._unknown()
        if self.group.sealed and not isinstance(content, Message):
            raise refused(
                InteractionFault.NOT_ALLOWED,
                "the hub of a sealed group cannot read offers, so it cannot say who "
                "takes one; give the task to a member in a message",
            )
        if asked.size > policy.max_message:
            raise refused(
                InteractionFault.TOO_LARGE, f"at most {policy.max_message} bytes"
            )
        if policy.rate:
            rate = self._rates.get(sender)
            if rate is None:
                rate = self._rates[sender] = Rate(policy.rate)
            rate.check(asked.now)
        if isinstance(content, Message):
            self._check_message(content, sender)
        else:
            step.changed = True
            self.offers.take(content, sender)
        self._put(step, asked.post, asked)

    def _check_message(self, message: Message, sender: str) -> None:
        chunk = -1 if message.chunk is None else message.chunk.index
        place = sender, message.id, chunk
        if place in self._messages:
            raise refused(
                InteractionFault.CONFLICT, "the id of the message was used before"
            )
        self._messages[place] = None
        if len(self._messages) > RECENT:
            self._messages.popitem(last=False)

    def _change(self, step: HubStep, content: Membership, asked: Asked) -> None:
        match content.act:
            case GroupAct.INVITE:
                self._invite(step, content, asked)
            case GroupAct.ACCEPT | GroupAct.DECLINE:
                self._answer_invitation(step, content, asked)
            case GroupAct.APPLY:
                self._apply(step, content, asked)
            case GroupAct.APPROVE | GroupAct.DENY:
                self._answer_application(step, content, asked)
            case GroupAct.LEAVE:
                self._leave(step, asked)
            case GroupAct.REMOVE:
                self._remove(step, content, asked)
            case GroupAct.CLOSE:
                self._check_admin(asked.sender)
                self.group = replace(self.group, state=GroupState.CLOSED)
                self._add(step, content, asked)
            case GroupAct.CREATE:
                raise refused(InteractionFault.CONFLICT, "the group is there already")

    def _leave(self, step: HubStep, asked: Asked) -> None:
        sender = asked.sender
        if sender in self.leavers:
            return
        if sender not in self.floors:
            self._take_back(step, sender, asked.wall_now)
            return
        if sender == self.group.owner:
            raise refused(
                InteractionFault.NOT_ALLOWED, "the owner closes the group instead"
            )
        self._drop(sender)
        content = Membership(act=GroupAct.LEAVE, member=Party(id=sender))
        self._add(step, content, asked)
        self._left(sender, 0)

    def _remove(self, step: HubStep, content: Membership, asked: Asked) -> None:
        sender = asked.sender
        self._check_admin(sender)
        assert content.member is not None, "the codec checks it"
        target = content.member.id
        if target in self.leavers:
            return
        if target not in self.floors:
            raise refused(InteractionFault.STATE, "the agent is no member")
        is_owner = sender == self.group.owner
        if target == self.group.owner or (self.group.is_admin(target) and not is_owner):
            raise refused(
                InteractionFault.NOT_ALLOWED, "only the owner removes an admin"
            )
        floor = self.floors[target]
        self._drop(target)
        # The last thing that it hears of the group is that it is not in it.
        self.floors[target] = floor
        self._others.clear()
        change = Membership(
            act=GroupAct.REMOVE, member=Party(id=target), text=content.text
        )
        self._add(step, change, asked)
        del self.floors[target]
        self._others.clear()
        self._left(target, self.group.last)

    def _drop(self, did: str) -> None:
        self._members(one for one in self.group.members if one.id != did)
        if did in self.group.admins:
            admins = tuple(one for one in self.group.admins if one != did)
            self.group = replace(self.group, admins=admins)
        del self.floors[did]
        self._rates.pop(did, None)
        self._others.clear()

    def _left(self, did: str, last: int) -> None:
        self.leavers[did] = last
        while len(self.leavers) > MAX_ENDED:
            del self.leavers[next(iter(self.leavers))]

    def _invite(self, step: HubStep, content: Membership, asked: Asked) -> None:
        sender, wall_now = asked.sender, asked.wall_now
        self._check_admin(sender)
        self._check_join(JoinRule.INVITE)
        target = content.member
        assert target is not None, "the codec checks it"
        if target.id in self.floors:
            raise refused(InteractionFault.CONFLICT, "the agent is a member")
        if self.group.sealed and target.id == self.group.hub.id:
            # Its own seat and the hub would be one: it could read what it passes on.
            raise refused(
                InteractionFault.NOT_ALLOWED,
                "the hub of a sealed group cannot be its member",
            )
        known = self._open_ticket(target.id, wall_now)
        if known is not None and known.applied:
            self._admit_applicant(step, known, asked)
            return
        if known is None:
            self._check_room(wall_now)
            known = Ticket(
                id=self._make_id(),
                did=target.id,
                applied=False,
                expires=_until(content.expires, wall_now),
                address=target.address,
                by=sender,
                text=content.text,
            )
            self._tickets[known.id] = known
        step.answer = replace(step.answer, ticket=known.id)
        told = Membership(
            act=GroupAct.INVITE,
            ticket=known.id,
            by=known.by,
            group=self.group,
            expires=known.expires,
            text=known.text,
        )
        step.tells.append(GroupTell(to=known.did, address=known.address, content=told))

    def _answer_invitation(
        self, step: HubStep, content: Membership, asked: Asked
    ) -> None:
        sender, wall_now = asked.sender, asked.wall_now
        ticket = self._ticket(content.ticket, applied=False)
        if ticket.did != sender:
            raise refused(InteractionFault.NOT_ALLOWED, "no such invitation of yours")
        if ticket.ended == content.act:
            return
        self._check_usable(ticket, wall_now)
        if content.act is GroupAct.DECLINE:
            self._end(ticket, content.act)
            return
        self._check_places()
        self._end(ticket, content.act)
        member = Member(id=sender, address=ticket.address)
        self._join(step, member, GroupAct.ACCEPT, ticket, asked)

    def _apply(self, step: HubStep, content: Membership, asked: Asked) -> None:
        sender, wall_now = asked.sender, asked.wall_now
        if sender in self.floors:
            raise refused(InteractionFault.CONFLICT, "you are a member")
        known = self._open_ticket(sender, wall_now)
        if known is not None and not known.applied:
            self._check_places()
            self._end(known, GroupAct.ACCEPT)
            member = Member(id=sender, address=known.address)
            self._join(step, member, GroupAct.ACCEPT, known, asked)
            return
        self._check_join(JoinRule.APPLY)
        if known is None:
            self._check_room(wall_now)
            address = "" if content.member is None else content.member.address
            known = Ticket(
                id=self._make_id(),
                did=sender,
                applied=True,
                expires=_until(None, wall_now),
                address=address,
                text=content.text,
            )
            self._tickets[known.id] = known
        step.answer = replace(step.answer, ticket=known.id)
        step.tells += self.tells_of(known)

    def tells_of(self, application: Ticket) -> list[GroupTell]:
        """Return what is told to the owner and the admins about an application."""
        told = Membership(
            act=GroupAct(application.ended or GroupAct.APPLY),
            member=Party(id=application.did, address=application.address),
            ticket=application.id,
            expires=application.expires,
            text=application.text,
        )
        admins = dict.fromkeys((self.group.owner, *self.group.admins))
        return [GroupTell(to=admin, address="", content=told) for admin in admins]

    def _take_back(self, step: HubStep, sender: str, wall_now: datetime) -> None:
        """End an application whose applicant does not want to join any more."""
        known = self._open_ticket(sender, wall_now)
        if known is not None and known.applied:
            step.tells += self.tells_of(self._end(known, GroupAct.LEAVE))
        elif not any(
            one.did == sender and one.ended == GroupAct.LEAVE
            for one in self._tickets.values()
        ):
            raise self._unknown()

    def _answer_application(
        self, step: HubStep, content: Membership, asked: Asked
    ) -> None:
        self._check_admin(asked.sender)
        ticket = self._ticket(content.ticket, applied=True)
        if ticket.ended == content.act:
            return
        self._check_usable(ticket, asked.wall_now)
        if content.act is GroupAct.APPROVE:
            self._admit_applicant(step, ticket, asked)
            return
        ended = self._end(ticket, content.act)
        told = Membership(act=GroupAct.DENY, ticket=ticket.id, text=content.text)
        step.tells.append(
            GroupTell(to=ticket.did, address=ticket.address, content=told)
        )
        step.tells += self.tells_of(ended)

    def _admit_applicant(self, step: HubStep, ticket: Ticket, asked: Asked) -> None:
        self._check_places()
        self._end(ticket, GroupAct.APPROVE)
        member = Member(id=ticket.did, address=ticket.address)
        self._join(step, member, GroupAct.APPROVE, ticket, asked)
        told = Membership(act=GroupAct.APPROVE, ticket=ticket.id, group=self.group)
        step.tells.append(
            GroupTell(to=ticket.did, address=ticket.address, content=told)
        )

    def _join(
        self, step: HubStep, member: Member, act: GroupAct, ticket: Ticket, asked: Asked
    ) -> None:
        number = self.group.last + 1
        history = self.group.policy.history
        first = 0 if history is None else max(0, self.group.last - history)
        self.leavers.pop(member.id, None)
        member = replace(member, since=number)
        self._members((*self.group.members, member))
        content = Membership(
            act=act,
            member=Party(id=member.id, address=member.address),
            ticket=ticket.id,
        )
        self._add(step, content, asked)
        self.floors[member.id] = first if history != 0 else number
        self._others.clear()

    @property
    def head(self) -> HubHead:
        """The state, to be stored."""
        return HubHead(
            group=self.group,
            tickets=tuple(self._tickets.values()),
            offers=self.offers.all,
            leavers=tuple(self.leavers.items()),
            floors=tuple(self.floors.items()),
        )

    @property
    def tickets(self) -> tuple[Ticket, ...]:
        """Invitations and applications, ended ones too."""
        return tuple(self._tickets.values())

    @property
    def gone(self) -> set[str]:
        """Agents that left, were removed, or declined to join; not those of now."""
        declined = {one.did for one in self.tickets if one.ended == GroupAct.DECLINE}
        return (declined | self.leavers.keys()) - self.floors.keys()

    def hears(self, did: str) -> bool:
        """Return whether an agent is a member."""
        return did in self.floors

    def after(self, did: str, wanted: int) -> int:
        """Return the number after which a member gets events, given its wish.

        Raises:
            InteractionError: It is none, and was none.
        """
        floor = self.floors.get(did)
        if floor is None and did not in self.leavers:
            raise self._unknown()
        return max(floor or 0, min(wanted, self.group.last))

    def joined_at(self, did: str) -> int:
        """Return the number of the event by which a member joined, or 0."""
        member = self.group.member(did)
        return 0 if member is None else member.since

    def recall(self, *, number: int, by: str, ref: int) -> None:
        """Know a stored event again, so that its repeat gets the same answer."""
        if ref:
            group = self.group.id
            answer = GroupAcknowledgement(group=group, ref=ref, posted=((ref, number),))
            self._keep(by, ref, answer)
        if number > self.group.last:
            self.group = replace(self.group, last=number)

    def expire(self, *, wall_now: datetime) -> bool:
        """Forget tickets that count no more; return whether there were any."""
        before = len(self._tickets)
        ended = [one for one in self._tickets.values() if not one.is_open(wall_now)]
        for one in ended[: max(0, len(ended) - MAX_ENDED)]:
            del self._tickets[one.id]
        return len(self._tickets) != before

    # Checks.

    def _check_open(self, wall_now: datetime) -> None:
        expires = self.group.expires
        is_over = expires is not None and expires <= wall_now
        if self.group.state is GroupState.CLOSED or is_over:
            raise refused(InteractionFault.CLOSED, "the group is closed")

    def _check_admin(self, did: str) -> None:
        if not self.group.is_admin(did):
            raise (
                refused(InteractionFault.NOT_ALLOWED, "only its owner and admins may")
                if did in self.floors
                else self._unknown()
            )

    def _check_join(self, way: JoinRule) -> None:
        if self.group.policy.join not in (way, JoinRule.BOTH):
            raise refused(
                InteractionFault.NOT_ALLOWED, f"nobody joins this group by {way}"
            )

    def _check_places(self) -> None:
        if len(self.group.members) >= self.group.policy.max_members:
            raise refused(InteractionFault.TOO_MANY, "the group is full")

    def _check_room(self, wall_now: datetime) -> None:
        self._check_places()
        self.expire(wall_now=wall_now)
        waiting = sum(one.is_open(wall_now) for one in self._tickets.values())
        if waiting >= MAX_OPEN:
            raise refused(
                InteractionFault.TOO_MANY, "too many invitations and applications wait"
            )

    def _check_usable(self, ticket: Ticket, wall_now: datetime) -> None:
        if ticket.ended:
            raise refused(InteractionFault.STATE, "it was used before")
        if not ticket.is_open(wall_now):
            raise refused(InteractionFault.EXPIRED, "it counts no more")

    def _ticket(self, name: str, *, applied: bool) -> Ticket:
        found = self._tickets.get(name)
        if found is None or found.applied is not applied:
            kind = "application" if applied else "invitation"
            raise refused(InteractionFault.NOT_ALLOWED, f"no such {kind} of yours")
        return found

    def _open_ticket(self, did: str, wall_now: datetime) -> Ticket | None:
        for one in self._tickets.values():
            if one.did == did and one.is_open(wall_now):
                return one
        return None

    def _end(self, ticket: Ticket, act: GroupAct) -> Ticket:
        ended = self._tickets[ticket.id] = replace(ticket, ended=str(act))
        return ended

    def _unknown(self) -> InteractionError:
        # Not even that there is one of this id is a stranger's to know.
        return refused(InteractionFault.UNKNOWN_GROUP, "no such group here")

    # Steps.

    def _members(self, members: Iterable[Member]) -> None:
        """Change the members, with which a new epoch begins."""
        epoch = self.group.epoch + 1
        self.group = replace(self.group, members=tuple(members), epoch=epoch)

    def _add(self, step: HubStep, content: Membership, asked: Asked) -> None:
        """Make the event of a change of members."""
        self._put(step, GroupPost(group=self.group.id, content=content), asked)

    def _put(self, step: HubStep, post: GroupPost, asked: Asked) -> None:
        """Make an event, and answer its sender with its number."""
        number, by = self.group.last + 1, asked.sender
        self.group = replace(self.group, last=number)
        to = self._others.get(by)
        if to is None:
            to = self._others[by] = tuple(one for one in self.floors if one != by)
        event = GroupEvent(
            number=number,
            epoch=self.group.epoch,
            at=asked.wall_now,
            by=by,
            ref=asked.ref,
            post=post,
            to=to,
        )
        step.events.append(event)
        if asked.ref:
            step.answer = replace(step.answer, posted=((asked.ref, number),))

    def _keep(self, sender: str, ref: int, answer: GroupAcknowledgement) -> None:
        self._answered[sender, ref] = answer
        if len(self._answered) > RECENT:
            self._answered.popitem(last=False)
