"""Invitations and applications: how an agent becomes a member of a group."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from anp.interaction.elements import Party
from anp.interaction.errors import InteractionFault
from anp.interaction.groups.elements import JoinRule, Member
from anp.interaction.groups.hub_records import Asked, GroupTell, HubStep, Ticket
from anp.interaction.groups.hub_state import INVITED_FOR, HubState, refused
from anp.interaction.groups.operations import GroupAct, Membership


class Admissions(HubState):
    """Takes the operations that lead to a new member (GBZ-14 to GBZ-16)."""

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
        self,
        step: HubStep,
        member: Member,
        act: GroupAct,
        ticket: Ticket,
        asked: Asked,
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


def _until(wanted: datetime | None, wall_now: datetime) -> datetime:
    most = wall_now + INVITED_FOR
    return most if wanted is None else min(wanted, most)
