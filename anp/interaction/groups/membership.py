"""The machine of one group at its hub: who is in it, and what is said in which order.

Inputs are operations of members and of those that want to join; each returns a
`HubStep` with the events to store and to distribute, the answer, and what else is told.
Every refusal raises `InteractionError` and changes nothing. The machine knows no
socket, file or clock.

    machine, step = GroupMachine.create(group, wall_now=now, make_id=new_id)
    step = machine.take(Asked(post, sender, ref, size, now, wall_now))
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Self

from anp.interaction.elements import Message, Party, Task
from anp.interaction.errors import InteractionFault
from anp.interaction.groups.admissions import Admissions
from anp.interaction.groups.elements import Group, GroupPolicy, GroupState, Member
from anp.interaction.groups.hub_records import Asked, HubHead, HubStep
from anp.interaction.groups.hub_state import MAX_ENDED, RECENT, refused
from anp.interaction.groups.operations import (
    GroupAcknowledgement,
    GroupAct,
    GroupPost,
    Membership,
)
from anp.interaction.groups.rate import Rate
from anp.interaction.operations import TaskCancel, TaskUpdate


class GroupMachine(Admissions):
    """One group at its hub."""

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
