"""The machine of a group at its hub: rights, tickets, order, limits, offers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from anp.interaction.elements import Party, TaskChange
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.elements import Group, GroupPolicy, JoinRule
from anp.interaction.groups.hub_records import Asked, HubStep
from anp.interaction.groups.member_copy import GroupCopy
from anp.interaction.groups.membership import GroupMachine
from anp.interaction.groups.operations import GroupAct, GroupPost, Membership
from anp.interaction.operations import TaskCancel, TaskUpdate
from anp.interaction.states import TaskState
from tests.anp.interaction.talk import ALICE, BOB, CAROL, NOW, message, task
from tests.clauses import clause

DAVE = "did:key:zDave"


class Hub:
    """A group at its hub, with the wires to it."""

    def __init__(self, *members: str, **policy: Any) -> None:
        fields = {"join": JoinRule.BOTH, "rate": 0, **policy}
        group = Group(
            id="g", hub=Party(id=ALICE), owner=ALICE, policy=GroupPolicy(**fields)
        )
        names = count(1)
        self.machine, step = GroupMachine.create(
            group, wall_now=NOW, make_id=lambda: f"t{next(names)}"
        )
        self.refs = count(1)
        self.now = NOW
        self.log = list(step.events)
        for name in members:
            self.join(name)

    def do(self, sender: str, act: GroupAct, **fields: Any) -> HubStep:
        return self.post(sender, Membership(act=act, **fields))

    def post(
        self,
        sender: str,
        content: Any,
        *,
        ref: int = 0,
        size: int = 100,
        now: float = 0,
    ) -> HubStep:
        post, ref = GroupPost(group="g", content=content), ref or next(self.refs)
        step = self.machine.take(Asked(post, sender, ref, size, now, self.now))
        self.log += step.events
        return step

    def invite(self, name: str, by: str = ALICE) -> str:
        return self.do(by, GroupAct.INVITE, member=Party(id=name)).answer.ticket

    def join(self, name: str) -> HubStep:
        return self.do(name, GroupAct.ACCEPT, ticket=self.invite(name))

    def refuses(
        self, code: InteractionFault, sender: str, act: GroupAct, **fields: Any
    ) -> None:
        before = self.machine.head
        with pytest.raises(InteractionError) as caught:
            self.do(sender, act, **fields)
        assert caught.value.code is code
        assert self.machine.head == before

    @property
    def members(self) -> list[str]:
        return [one.id for one in self.machine.group.members]


@clause("GBZ-11", "GBZ-12", "GBZ-17")
def test_a_message_goes_to_all_members_but_its_sender() -> None:
    hub = Hub(BOB, CAROL)
    for sender, others in ((ALICE, {BOB, CAROL}), (CAROL, {ALICE, BOB})):
        (event,) = hub.post(sender, message(f"of {sender}", sender)).events
        assert (event.by, set(event.to)) == (sender, others)
    assert [one.number for one in hub.log] == [1, 2, 3, 4, 5]


@clause("GBZ-13", "GBZ-14")
def test_who_is_invited_joins_once_and_a_new_epoch_begins() -> None:
    hub = Hub()
    step = hub.do(ALICE, GroupAct.INVITE, member=Party(id=BOB, address="wss://b"))
    (told,) = step.tells
    assert (told.to, told.address, told.content.by) == (BOB, "wss://b", ALICE)
    assert not step.events
    ticket = step.answer.ticket
    # A second invitation while the first one is open is the same.
    assert hub.invite(BOB) == ticket
    joined = hub.do(BOB, GroupAct.ACCEPT, ticket=ticket)
    assert joined.events[0].to == (ALICE,)
    assert joined.answer.state == hub.machine.group
    assert hub.machine.group.epoch == 2
    # Said once more it gets the same, and changes nothing.
    again = hub.do(BOB, GroupAct.ACCEPT, ticket=ticket)
    assert not again.events
    assert hub.members == [ALICE, BOB]
    hub.refuses(InteractionFault.STATE, BOB, GroupAct.DECLINE, ticket=ticket)


def test_a_repeated_operation_gets_the_same_answer() -> None:
    hub = Hub(BOB)
    first = hub.post(BOB, message("m", BOB), ref=77)
    again = hub.post(BOB, message("m", BOB), ref=77)
    assert again.answer == first.answer
    assert not again.events
    with pytest.raises(InteractionError, match="id of the message"):
        hub.post(BOB, message("m", BOB), ref=78)


@pytest.mark.parametrize(
    "act", [GroupAct.INVITE, GroupAct.REMOVE, GroupAct.CLOSE, GroupAct.APPROVE]
)
def test_only_owner_and_admins_manage(act: GroupAct) -> None:
    hub = Hub(BOB)
    fields = {"member": Party(id=CAROL), "ticket": "t9"}
    hub.refuses(InteractionFault.NOT_ALLOWED, BOB, act, **fields)
    hub.refuses(InteractionFault.UNKNOWN_GROUP, DAVE, act, **fields)
    hub.machine.group = replace(hub.machine.group, admins=(BOB,))
    hub.invite(CAROL, by=BOB)


@clause("GBZ-15")
def test_an_application_is_reviewed() -> None:
    hub = Hub(BOB)
    asked = hub.do(CAROL, GroupAct.APPLY, text="please")
    (told,) = asked.tells
    assert (told.to, told.content.text) == (ALICE, "please")
    assert told.content.member == Party(id=CAROL)
    ticket = asked.answer.ticket
    assert hub.do(CAROL, GroupAct.APPLY).answer.ticket == ticket
    hub.refuses(InteractionFault.NOT_ALLOWED, CAROL, GroupAct.ACCEPT, ticket=ticket)
    taken = hub.do(ALICE, GroupAct.APPROVE, ticket=ticket)
    assert taken.events[0].to == (BOB,)
    assert (taken.tells[0].to, taken.tells[0].content.act) == (CAROL, GroupAct.APPROVE)
    assert not hub.do(ALICE, GroupAct.APPROVE, ticket=ticket).events
    hub.refuses(InteractionFault.STATE, ALICE, GroupAct.DENY, ticket=ticket)
    denied = hub.do(DAVE, GroupAct.APPLY).answer.ticket
    step = hub.do(ALICE, GroupAct.DENY, ticket=denied, text="no")
    assert (step.tells[0].to, step.tells[0].content.act) == (DAVE, GroupAct.DENY)
    assert not step.events
    assert hub.members == [ALICE, BOB, CAROL]


@clause("GBZ-15")
def test_an_application_is_taken_back() -> None:
    hub = Hub(BOB)
    hub.machine.group = replace(hub.machine.group, admins=(BOB,))
    ticket = hub.do(CAROL, GroupAct.APPLY).answer.ticket
    hub.refuses(InteractionFault.UNKNOWN_GROUP, DAVE, GroupAct.LEAVE)
    step = hub.do(CAROL, GroupAct.LEAVE)
    assert not step.events
    assert [one.to for one in step.tells] == [ALICE, BOB]
    told = step.tells[0].content
    assert (told.act, told.ticket) == (GroupAct.LEAVE, ticket)
    assert told.member == Party(id=CAROL)
    # Its repeat changes nothing, and nobody can let it in by it any more.
    assert not hub.do(CAROL, GroupAct.LEAVE).tells
    hub.refuses(InteractionFault.STATE, ALICE, GroupAct.APPROVE, ticket=ticket)
    assert hub.do(CAROL, GroupAct.APPLY).answer.ticket != ticket
    # One that is denied is told to all admins, so that none of them asks its owner.
    step = hub.do(
        ALICE, GroupAct.DENY, ticket=hub.do(CAROL, GroupAct.APPLY).answer.ticket
    )
    assert [one.to for one in step.tells] == [CAROL, ALICE, BOB]


@clause("GBZ-16")
def test_a_third_party_that_is_admin_invites_and_reviews() -> None:
    hub = Hub()
    hub.machine.group = replace(hub.machine.group, admins=(DAVE,))
    ticket = hub.invite(BOB, by=DAVE)
    hub.do(BOB, GroupAct.ACCEPT, ticket=ticket)
    asked = hub.do(CAROL, GroupAct.APPLY)
    assert {one.to for one in asked.tells} == {ALICE, DAVE}
    hub.do(DAVE, GroupAct.APPROVE, ticket=asked.answer.ticket)
    assert hub.members == [ALICE, BOB, CAROL]


def test_invitation_and_application_that_cross_make_a_member() -> None:
    hub = Hub()
    hub.do(BOB, GroupAct.APPLY)
    step = hub.do(ALICE, GroupAct.INVITE, member=Party(id=BOB))
    assert [one.content.act for one in step.tells] == [GroupAct.APPROVE]
    ticket = hub.invite(CAROL)
    assert hub.do(CAROL, GroupAct.APPLY).answer.state == hub.machine.group
    assert hub.members == [ALICE, BOB, CAROL]
    # Both were used by that; two invitations that cross it find a member.
    hub.refuses(
        InteractionFault.CONFLICT, ALICE, GroupAct.INVITE, member=Party(id=CAROL)
    )
    assert not hub.do(CAROL, GroupAct.ACCEPT, ticket=ticket).events


def test_an_invitation_is_for_one_agent_and_expires() -> None:
    hub = Hub()
    ticket = hub.invite(BOB)
    hub.refuses(InteractionFault.NOT_ALLOWED, CAROL, GroupAct.ACCEPT, ticket=ticket)
    hub.refuses(InteractionFault.NOT_ALLOWED, BOB, GroupAct.ACCEPT, ticket="t99")
    hub.now = NOW + timedelta(days=7)
    hub.refuses(InteractionFault.EXPIRED, BOB, GroupAct.ACCEPT, ticket=ticket)
    fresh = hub.invite(BOB)
    assert fresh != ticket
    hub.do(BOB, GroupAct.ACCEPT, ticket=fresh)


@pytest.mark.parametrize(
    ("join", "invites", "applies"),
    [
        (JoinRule.INVITE, True, False),
        (JoinRule.APPLY, False, True),
        (JoinRule.BOTH, True, True),
        (JoinRule.CLOSED, False, False),
    ],
)
def test_the_policy_says_how_agents_join(
    join: JoinRule, invites: bool, applies: bool
) -> None:
    hub = Hub(join=join)
    not_allowed = InteractionFault.NOT_ALLOWED
    if invites:
        hub.invite(BOB)
    else:
        hub.refuses(not_allowed, ALICE, GroupAct.INVITE, member=Party(id=BOB))
    if applies:
        hub.do(CAROL, GroupAct.APPLY)
    else:
        hub.refuses(not_allowed, CAROL, GroupAct.APPLY)


def test_after_leaving_nothing_comes_and_nothing_is_taken() -> None:
    hub = Hub(BOB, CAROL)
    left = hub.do(BOB, GroupAct.LEAVE)
    assert set(left.events[0].to) == {ALICE, CAROL}
    assert not hub.do(BOB, GroupAct.LEAVE).events
    assert hub.post(CAROL, message("m", CAROL)).events[0].to == (ALICE,)
    with pytest.raises(InteractionError) as caught:
        hub.post(BOB, message("late", BOB))
    assert caught.value.code is InteractionFault.UNKNOWN_GROUP
    hub.refuses(InteractionFault.NOT_ALLOWED, ALICE, GroupAct.LEAVE)


def test_one_that_is_removed_hears_of_that_and_nothing_more() -> None:
    hub = Hub(BOB, CAROL)
    out = hub.do(ALICE, GroupAct.REMOVE, member=Party(id=BOB))
    assert set(out.events[0].to) == {BOB, CAROL}
    assert hub.machine.leavers[BOB] == out.events[0].number
    assert not hub.do(ALICE, GroupAct.REMOVE, member=Party(id=BOB)).events
    assert hub.post(ALICE, message("m")).events[0].to == (CAROL,)
    hub.refuses(InteractionFault.STATE, ALICE, GroupAct.REMOVE, member=Party(id=DAVE))
    hub.join(BOB)
    assert hub.machine.joined_at(BOB) == hub.machine.group.last


def test_a_message_of_a_removed_member_in_flight_is_refused() -> None:
    hub = Hub(BOB)
    hub.do(ALICE, GroupAct.REMOVE, member=Party(id=BOB))
    with pytest.raises(InteractionError) as caught:
        hub.post(BOB, message("in flight", BOB))
    assert caught.value.code is InteractionFault.UNKNOWN_GROUP


def test_an_admin_is_removed_by_the_owner_alone() -> None:
    hub = Hub(BOB, CAROL)
    hub.machine.group = replace(hub.machine.group, admins=(BOB, CAROL))
    for target in (ALICE, CAROL):
        hub.refuses(
            InteractionFault.NOT_ALLOWED, BOB, GroupAct.REMOVE, member=Party(id=target)
        )
    hub.do(ALICE, GroupAct.REMOVE, member=Party(id=CAROL))
    assert hub.machine.group.admins == (BOB,)


def test_a_closed_group_takes_nothing() -> None:
    hub = Hub(BOB)
    assert hub.do(ALICE, GroupAct.CLOSE).events[0].to == (BOB,)
    with pytest.raises(InteractionError, match="closed"):
        hub.post(BOB, message("m", BOB))
    hub = Hub(BOB)
    hub.machine.group = replace(hub.machine.group, expires=NOW + timedelta(1))
    hub.post(BOB, message("m", BOB))
    hub.now = NOW + timedelta(1)
    with pytest.raises(InteractionError, match="closed"):
        hub.post(BOB, message("n", BOB))


def test_a_group_of_one_hears_itself_only() -> None:
    hub = Hub()
    (event,) = hub.post(ALICE, message("alone")).events
    assert event.to == ()
    assert event.number == 2


@pytest.mark.parametrize(("size", "fits"), [(500, True), (501, False)])
def test_a_message_has_a_largest_size(size: int, fits: bool) -> None:
    hub = Hub(max_message=500)
    if fits:
        assert hub.post(ALICE, message("m"), size=size).events
        return
    with pytest.raises(InteractionError) as caught:
        hub.post(ALICE, message("m"), size=size)
    assert caught.value.code is InteractionFault.TOO_LARGE


def test_a_flooding_member_is_held_up_and_others_are_not() -> None:
    hub = Hub(BOB, rate=40)
    for number in range(10):
        hub.post(BOB, message(f"m{number}", BOB), now=0.0)
    with pytest.raises(InteractionError) as caught:
        hub.post(BOB, message("more", BOB), now=0.0)
    assert caught.value.code is InteractionFault.TOO_MANY
    hub.post(ALICE, message("calm"), now=0.0)
    hub.post(BOB, message("later", BOB), now=2.0)


def test_a_group_has_a_largest_number_of_members() -> None:
    hub = Hub(BOB, max_members=3)
    carol, dave = hub.invite(CAROL), hub.invite(DAVE)
    hub.do(CAROL, GroupAct.ACCEPT, ticket=carol)
    hub.refuses(InteractionFault.TOO_MANY, DAVE, GroupAct.ACCEPT, ticket=dave)
    hub.do(BOB, GroupAct.LEAVE)
    hub.do(DAVE, GroupAct.ACCEPT, ticket=dave)


@pytest.mark.parametrize(("history", "first"), [(0, 8), (2, 5), (None, 0), (99, 0)])
def test_a_late_joiner_gets_what_the_policy_allows(
    history: int | None, first: int
) -> None:
    hub = Hub(BOB, history=history)
    for number in range(5):
        hub.post(ALICE, message(f"m{number}"))
    hub.join(CAROL)
    assert hub.machine.after(CAROL, 0) == first
    assert hub.machine.after(CAROL, 8) == 8
    assert hub.machine.joined_at(CAROL) == 8
    with pytest.raises(InteractionError):
        hub.machine.after(DAVE, 0)


# Offers.


def report(state: str) -> TaskUpdate:
    return TaskUpdate(session="s", content=TaskChange(task="t", state=state))


@clause("GBZ-18")
def test_the_first_to_accept_an_offer_does_it() -> None:
    hub = Hub(BOB, CAROL)
    hub.post(ALICE, task(requester="", executor=""))
    hub.post(CAROL, report(TaskState.ACCEPTED))
    with pytest.raises(InteractionError) as caught:
        hub.post(BOB, report(TaskState.ACCEPTED))
    assert caught.value.code is InteractionFault.TAKEN
    hub.post(CAROL, report(TaskState.WORKING))
    with pytest.raises(InteractionError):
        hub.post(BOB, report(TaskState.COMPLETED))
    hub.post(CAROL, report(TaskState.COMPLETED))
    with pytest.raises(InteractionError):
        hub.post(CAROL, report(TaskState.FAILED))


def test_an_offer_is_not_for_its_maker_and_not_done_before_it_is_accepted() -> None:
    hub = Hub(BOB)
    hub.post(ALICE, task(requester="", executor=""))
    for sender, state in ((ALICE, TaskState.ACCEPTED), (BOB, TaskState.COMPLETED)):
        with pytest.raises(InteractionError):
            hub.post(sender, report(state))
    with pytest.raises(InteractionError):
        hub.post(BOB, TaskCancel(session="s", task="t"))
    hub.post(ALICE, TaskCancel(session="s", task="t"))
    with pytest.raises(InteractionError) as caught:
        hub.post(BOB, report(TaskState.ACCEPTED))
    assert caught.value.code is InteractionFault.TAKEN


# After a restart, and at the members.


def test_a_group_comes_back_from_its_head_and_its_newest_events() -> None:
    hub = Hub(BOB, CAROL)
    hub.post(ALICE, task(requester="", executor=""))
    head = hub.machine.head
    said = hub.post(BOB, message("m", BOB), ref=500)
    machine = GroupMachine(head, lambda: "t99")
    for event in hub.log:
        machine.recall(number=event.number, by=event.by, ref=event.ref)
    assert machine.head == hub.machine.head
    hub.machine = machine
    assert hub.post(BOB, message("m", BOB), ref=500).answer == said.answer


@clause("GBZ-12")
def test_members_have_the_events_in_one_order_whatever_way_they_came() -> None:
    hub = Hub()
    hub.join(BOB)
    start = hub.machine.group
    hub.join(CAROL)
    for number in range(6):
        hub.post(ALICE, message(f"m{number}"))
    hub.do(ALICE, GroupAct.REMOVE, member=Party(id=CAROL))
    copy = GroupCopy(start, last=start.last)
    posts = [
        replace(one.post, number=one.number, epoch=one.epoch, by=one.by)
        for one in hub.log
    ]
    late = posts[start.last :]
    assert not copy.deliver(reversed(late[1:]))
    assert copy.has_gap
    found = copy.deliver([late[0], *late])
    assert [one.number for one in found] == [one.number for one in late]
    assert not any(one.repeated for one in found)
    assert not copy.has_gap
    assert not copy.deliver(posts)
    assert copy.group == hub.machine.group
    assert copy.group.member(BOB) is not None


def test_a_hub_that_repeats_a_message_under_a_new_number_is_found_out() -> None:
    copy = GroupCopy(Hub(BOB).machine.group, last=2)
    for number, repeated in ((3, False), (4, True)):
        post = GroupPost(group="g", content=message("m"), by=ALICE, number=number)
        (found,) = copy.deliver([post])
        assert found.repeated is repeated


def test_what_a_fetch_leaves_out_is_no_gap() -> None:
    group = Hub(BOB).machine.group
    copy = GroupCopy(group)
    posts = [
        GroupPost(group="g", content=message(f"m{number}"), by=ALICE, number=number)
        for number in (6, 7)
    ]
    assert not copy.deliver(posts)
    assert [one.number for one in copy.fetched(group, 5)] == [6, 7]
