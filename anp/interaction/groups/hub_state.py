"""The state of a group at its hub, and the steps that all operations are made of."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.elements import GroupState, JoinRule, Member
from anp.interaction.groups.hub_records import (
    Asked,
    GroupEvent,
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

INVITED_FOR: Final = timedelta(days=7)
"Time for which an invitation or an application counts."

MAX_OPEN: Final = 256
"Invitations and applications of a group that wait, together."

MAX_ENDED: Final = 256
"Ended ones, and former members, that are kept so that a repeat gets the same answer."

RECENT: Final = 4096
"Operations of a group whose repeats are known."


class HubState:
    """One group at its hub: its members, tickets, and the answers that it gave."""

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

    def _add(
        self,
        step: HubStep,
        content: Membership,
        asked: Asked,
    ) -> None:
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


def refused(code: InteractionFault, text: str) -> InteractionError:
    """Return the error that refuses an operation."""
    return InteractionError(code, text)
