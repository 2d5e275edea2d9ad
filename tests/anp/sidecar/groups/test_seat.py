"""Seats of members in a sealed group, around a hub that numbers what it passes on."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from anp.interaction.elements import Message, Part, PartKind, Party, SenderRole
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.operations import GroupAct, Membership
from anp.interaction.sealing.encoding import SealingMeans
from anp.interaction.sealing.errors import SealingFault, Suspicion
from anp.interaction.sealing.membership import MemberRank
from anp.sidecar.groups.sealing.seat import SealedSeat, SeatAlarm
from tests.anp.interaction.sealing.circle import (
    GROUP,
    NOW,
    did_of,
    drawn,
    signer,
    verifies,
)

MAX_MESSAGE = 64 * 1024


def message(name: str, text: str) -> Message:
    return Message(
        id=f"m-{text[:20]}",
        session=GROUP,
        sender=did_of(name),
        role=SenderRole.SERVICE,
        task="t-1",
        parts=(Part(kind=PartKind.TEXT, content=text),),
    )


@dataclass
class Hub:
    """The hub as a log, and the seats around it, which it feeds in one order."""

    log: list[tuple[str, Message | Membership]] = field(default_factory=list)
    seats: dict[str, SealedSeat] = field(default_factory=dict)
    joined: dict[str, int] = field(default_factory=dict)
    read: dict[str, list[str]] = field(default_factory=dict)
    numbers: dict[str, list[int]] = field(default_factory=dict)
    alarms: list[SeatAlarm] = field(default_factory=list)
    rows: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def sit(self, name: str, *, is_in: bool = True) -> SealedSeat:
        seat = SealedSeat(
            GROUP,
            did_of("ann"),
            SealingMeans(signer(name), verifies, drawn(name)),
        )
        self.seats[name] = seat
        self.read[name], self.numbers[name], self.rows[name] = [], [], {}
        if is_in:
            self.joined[name] = len(self.log)
        return seat

    def join(self, name: str) -> None:
        """The agent accepts its invitation."""
        change = Membership(act=GroupAct.ACCEPT, member=Party(id=did_of(name)))
        self.log.append((name, change))
        self.sit(name)

    def leave(self, name: str) -> None:
        change = Membership(act=GroupAct.LEAVE, member=Party(id=did_of(name)))
        self.log.append((name, change))
        del self.joined[name]

    def say(self, name: str, text: str) -> None:
        for one in self.seats[name].say(message(name, text), max_message=MAX_MESSAGE):
            self.log.append((name, one))
        self.store(name)

    def settle(self, *names: str) -> None:
        """Give everything to all members, or to some, answers included."""
        while any(self.joined[name] < len(self.log) for name in names or self.joined):
            for name in names or tuple(self.joined):
                self._feed(name)

    def _feed(self, name: str) -> None:
        place = self.joined[name]
        if place >= len(self.log):
            return
        self.joined[name] += 1
        by, item = self.log[place]
        seat, number = self.seats[name], place + 1
        if isinstance(item, Message):
            step = seat.take(item, by=did_of(by), number=number, wall_now=NOW)
        else:
            step = seat.changed(item, by=did_of(by), wall_now=NOW)
        self.log += [(name, one) for one in step.send]
        for found, opened in step.opened:
            if by == name:
                assert opened.sender == did_of(name)
                continue
            content = opened.parts[0].content
            assert isinstance(content, str)
            self.read[name].append(content)
            self.numbers[name].append(found)
        self.alarms += step.alarms
        self.store(name)

    def store(self, name: str) -> None:
        for row, value in self.seats[name].changed_rows().items():
            if value is None:
                self.rows[name].pop(row, None)
            else:
                self.rows[name][row] = value

    def restart(self, name: str) -> None:
        self.seats[name] = SealedSeat.restore(
            self.rows[name],
            SealingMeans(signer(name), verifies, drawn(f"{name} again")),
        )


@pytest.fixture
def hub() -> Hub:
    """Ann founds the group and invited Bob and Cyd, who joined."""
    made = Hub()
    ann = made.sit("ann")
    made.log += [("ann", one) for one in ann.found(wall_now=NOW).send]
    for name in ("bob", "cyd"):
        ann.welcome(did_of(name))
        made.join(name)
    made.settle()
    return made


def test_what_members_say_is_read_by_members_and_hidden_from_the_hub(hub: Hub) -> None:
    hub.say("bob", "a secret")
    hub.say("ann", "another secret")
    hub.settle()
    assert hub.read == {
        "ann": ["a secret"],
        "bob": ["another secret"],
        "cyd": ["a secret", "another secret"],
    }
    assert "secret" not in repr([one for _, one in hub.log if isinstance(one, Message)])
    assert "t-1" not in repr(hub.log)
    assert not hub.alarms


def test_one_that_joins_reads_from_then_on_and_one_that_leaves_until_then(
    hub: Hub,
) -> None:
    hub.say("bob", "before")
    hub.settle()
    hub.seats["ann"].welcome(did_of("dan"))
    hub.join("dan")
    hub.settle()
    hub.leave("cyd")
    hub.settle()
    hub.say("ann", "after")
    hub.settle()
    assert hub.read["dan"] == ["after"]
    assert hub.read["cyd"] == ["before"]
    assert list(hub.seats["ann"].members) == [
        did_of(one) for one in ("ann", "bob", "dan")
    ]
    assert not hub.alarms


def test_one_that_the_hub_lets_in_by_itself_is_no_member(hub: Hub) -> None:
    hub.join("ghost")
    hub.settle()
    assert did_of("ghost") not in hub.seats["ann"].members
    hub.say("ann", "not for ghosts")
    hub.settle()
    assert hub.read["ghost"] == []
    with pytest.raises(InteractionError) as found:
        hub.seats["ghost"].say(message("ghost", "boo"), max_message=MAX_MESSAGE)
    assert found.value.code is InteractionFault.NOT_ALLOWED


def test_a_member_that_was_away_gets_the_keys_when_it_is_back(hub: Hub) -> None:
    cursor = hub.joined.pop("cyd")
    hub.say("bob", "first")
    hub.seats["ann"].welcome(did_of("dan"))
    hub.join("dan")
    hub.settle()
    hub.say("bob", "second")
    hub.say("ann", "third")
    hub.settle()
    hub.joined["cyd"] = cursor
    hub.restart("cyd")
    hub.settle()
    # The keys of Ann came before those of Bob; the numbers tell the order.
    found = dict(zip(hub.numbers["cyd"], hub.read["cyd"], strict=True))
    assert [found[one] for one in sorted(found)] == ["first", "second", "third"]
    assert not hub.alarms


def test_what_was_not_sealed_raises_an_alarm(hub: Hub) -> None:
    hub.log.append(("bob", message("bob", "pay the hub")))
    hub.settle()
    assert {one.code for one in hub.alarms} == {SealingFault.INVALID}
    assert hub.read["cyd"] == []


def test_a_message_that_the_hub_withholds_raises_an_alarm(hub: Hub) -> None:
    hub.say("bob", "hello")
    hub.settle()
    hub.say("bob", "withheld from cyd")
    hub.settle("ann", "bob")
    hub.joined["cyd"] = len(hub.log)
    hub.say("ann", "did you see it?")
    hub.settle()
    assert {one.code for one in hub.alarms} == {Suspicion.UNSEEN}
    assert {one.by for one in hub.alarms} == {did_of("ann")}


def test_seats_go_on_after_a_restart_of_everybody(hub: Hub) -> None:
    hub.say("bob", "one")
    for name in hub.seats:
        hub.restart(name)
    hub.seats["ann"].welcome(did_of("dan"))
    hub.join("dan")
    hub.settle()
    for name in hub.seats:
        hub.restart(name)
    hub.say("dan", "two")
    hub.say("bob", "three")
    hub.settle()
    assert hub.read["ann"] == ["one", "two", "three"]
    assert hub.read["dan"] == ["three"]
    assert not hub.alarms


def test_a_message_over_the_limit_is_refused_before_it_is_sealed(hub: Hub) -> None:
    with pytest.raises(InteractionError) as found:
        hub.say("bob", "x" * MAX_MESSAGE)
    assert found.value.code is InteractionFault.TOO_LARGE
    hub.say("bob", "x" * 40_000)
    hub.settle()
    assert not hub.alarms


def test_admins_that_the_owner_named_let_others_in(hub: Hub) -> None:
    hub.seats["ann"].admins = frozenset({did_of("dan")})
    hub.seats["ann"].welcome(did_of("dan"))
    hub.join("dan")
    hub.settle()
    assert hub.seats["bob"].members[did_of("dan")] is MemberRank.ADMIN
    hub.seats["dan"].welcome(did_of("eve"))
    hub.join("eve")
    hub.settle()
    hub.say("eve", "let in by dan")
    hub.settle()
    assert hub.read["bob"] == ["let in by dan"]
    assert not hub.alarms


def test_the_owner_catches_up_with_those_that_left_while_it_was_away(hub: Hub) -> None:
    members = {did_of("ann"), did_of("bob")}
    step = hub.seats["ann"].compare(members, wall_now=NOW)
    hub.log += [("ann", one) for one in step.send]
    del hub.joined["cyd"]
    hub.settle()
    assert hub.seats["bob"].members.keys() == members
    # Whom the hub names beyond that is no member.
    step = hub.seats["ann"].compare(members | {did_of("ghost")}, wall_now=NOW)
    assert step.send == []
