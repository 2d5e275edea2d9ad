"""A hub, or a former member together with it, attacks a sealed group."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anp.interaction.sealing.errors import SealingError, SealingFault, Suspicion
from anp.interaction.sealing.membership import (
    ChangeKind,
    MemberChange,
    MembershipChain,
    MembershipEntry,
)
from anp.interaction.sealing.packages import KeyPackage
from tests.anp.interaction.sealing.circle import (
    GROUP,
    NOW,
    Circle,
    Item,
    did_of,
    secret,
    signer,
    verifies,
)


def fault(call: Callable[..., object], *args: object) -> SealingFault:
    with pytest.raises(SealingError) as found:
        call(*args)
    return found.value.code


def add(name: str) -> MemberChange:
    return MemberChange(ChangeKind.ADD, did_of(name))


def entries(circle: Circle) -> list[MembershipEntry]:
    return circle.agents[circle.owner].member.chain.entries


def signed(entry: MembershipEntry, name: str) -> dict[str, Any]:
    return {"entry": replace(entry, signature=secret(name).sign(entry.signed())).json()}


# Forging


@settings(max_examples=50)
@given(st.data())
def test_a_changed_message_is_refused_wherever_it_is_changed(
    data: st.DataObject,
) -> None:
    circle = Circle("ann", "bob", "cyd")
    circle.say("ann", "pay 10")
    circle.settle()
    item = circle.say("ann", "pay 20")
    place = data.draw(st.integers(0, len(item.data) * 8 - 1))
    changed = bytearray(item.data)
    changed[place // 8] ^= 1 << place % 8
    bob = circle.agents["bob"].member
    before = circle.agents["bob"].rows | {}
    assert fault(bob.open, bytes(changed)) in {
        SealingFault.FORGED,
        SealingFault.INVALID,
        SealingFault.GHOST,
        SealingFault.FORK,
        # Another place among the members: that one has other keys.
        SealingFault.REPEATED,
    }
    assert bob.changed_rows() == {}
    assert before == circle.agents["bob"].rows
    assert bob.open(item.data).content == b"pay 20"


def test_a_member_cannot_speak_for_another_one() -> None:
    circle = Circle("ann", "bob", "cyd")
    item = circle.say("ann", "by ann")
    circle.settle()
    # Cyd knows the chain key of Ann, as every member does, but not her signing key.
    message, _ = circle.agents["cyd"].member.seal(b"as if by ann")
    place = item.data[33:35]
    forged = message.data[:33] + place + message.data[35:]
    assert fault(circle.agents["bob"].member.open, forged) is SealingFault.FORGED


def test_a_message_of_another_group_or_epoch_is_refused() -> None:
    circle = Circle("ann", "bob")
    old = circle.say("ann", "old")
    circle.settle()
    other = Circle("ann", "bob", "cyd")
    foreign = other.say("ann", "foreign")
    bob = circle.agents["bob"].member
    assert fault(bob.open, foreign.data) is SealingFault.FORK
    circle.join("cyd")
    circle.change(ChangeKind.ADD, "cyd")
    assert fault(circle.agents["bob"].member.open, old.data) is SealingFault.REPEATED


# Repeats, order, gaps


def test_a_repeated_message_is_refused() -> None:
    circle = Circle("ann", "bob")
    one, _two = circle.say("ann", "one"), circle.say("ann", "two")
    circle.settle()
    assert fault(circle.agents["bob"].member.open, one.data) is SealingFault.REPEATED
    circle.agents["bob"].restart()
    assert fault(circle.agents["bob"].member.open, one.data) is SealingFault.REPEATED


def test_a_gap_is_noticed_with_the_next_message_of_its_sender() -> None:
    circle = Circle("ann", "bob")
    circle.say("ann", "one")
    circle.settle()
    circle.log.remove(circle.say("ann", "left out"))
    circle.agents["ann"].member.place(1, 2)
    circle.say("ann", "three")
    circle.settle()
    bob = circle.agents["bob"]
    assert bob.texts == ["one", "three"]
    assert Suspicion.GAP in bob.suspicions


def test_the_order_of_one_sender_is_noticed_and_late_ones_are_read() -> None:
    circle = Circle("ann", "bob")
    circle.say("ann", "one")
    circle.settle()
    two, three = circle.say("ann", "two"), circle.say("ann", "three")
    first = circle.feed("bob", three)
    second = circle.feed("bob", two)
    assert first is not None
    assert second is not None
    assert first.suspicions == (Suspicion.GAP,)
    assert second.suspicions == (Suspicion.REORDERED,)
    assert second.content == b"two"
    assert fault(circle.agents["bob"].member.open, two.data) is SealingFault.REPEATED


def test_late_messages_are_read_within_256_missing_ones() -> None:
    circle = Circle("ann", "bob")
    circle.say("ann", "first")
    circle.settle()
    held = [circle.say("ann", f"{number}") for number in range(258)]
    bob = circle.agents["bob"].member
    assert bob.open(held[257].data).content == b"257"
    assert bob.open(held[1].data).content == b"1"
    assert fault(bob.open, held[0].data) is SealingFault.REPEATED


def test_a_message_withheld_from_one_is_noticed_when_another_speaks() -> None:
    circle = Circle("ann", "bob", "cyd")
    circle.say("cyd", "hello")
    circle.settle()
    item = circle.say("ann", "not for bob")
    circle.deliver("ann")
    circle.deliver("cyd")
    circle.agents["bob"].cursor += 2  # Her grant and her message.
    assert circle.log[-1] is item
    circle.say("cyd", "I have seen it")
    circle.settle()
    assert Suspicion.UNSEEN in circle.agents["bob"].suspicions


# Forks


def test_two_orders_are_noticed_when_one_member_speaks() -> None:
    circle = Circle("ann", "bob", "cyd")
    circle.say("ann", "a")
    circle.say("cyd", "c")
    circle.settle()
    ann, cyd = circle.say("ann", "first?"), circle.say("cyd", "or this?")
    # Bob is shown the other order.
    circle.feed("bob", cyd)
    circle.feed("bob", ann)
    circle.agents["bob"].cursor = len(circle.log)
    for name in ("ann", "cyd"):
        circle.deliver(name)
    assert not any(one.suspicions for one in circle.agents.values())
    circle.say("cyd", "next")
    circle.settle()
    assert circle.agents["bob"].suspicions == [Suspicion.FORK]
    assert fault(circle.agents["bob"].member.seal, b"no") is SealingFault.FORK
    # The next epoch begins with equal hashes; what was seen of the old one is told.
    circle.join("dan")
    circle.change(ChangeKind.ADD, "dan")
    assert Suspicion.FORK in circle.agents["ann"].suspicions
    circle.join("eve")
    with pytest.raises(SealingError):
        circle.say("bob", "too early")
    circle.change(ChangeKind.ADD, "eve")
    circle.say("bob", "together again")
    circle.settle()
    assert circle.agents["eve"].texts == ["together again"]


def test_two_histories_of_members_are_noticed_when_both_sides_speak() -> None:
    circle = Circle("ann", "bob", "cyd")
    circle.say("bob", "before")
    circle.settle()
    ann = circle.agents["ann"].member
    one = ann.propose([add("dan")], at=NOW)
    other = ann.propose([MemberChange(ChangeKind.REMOVE, did_of("cyd"))], at=NOW)
    ann.take(one)
    bob = circle.agents["bob"].member
    bob.take(other)
    message, _ = bob.seal(b"after")
    assert fault(ann.open, message.data) is SealingFault.FORK
    # Shown later, it looks like that of an admin who was too late.
    assert fault(bob.take, one) is SealingFault.TAKEN


def test_a_sender_cannot_give_members_different_chain_keys() -> None:
    circle = Circle("ann", "bob", "cyd")
    circle.say("ann", "hello")
    circle.settle()
    grants = [one.value for one in circle.log if "grant" in (one.value or {})]
    twin = Circle("ann", "bob", "cyd")
    epoch = twin.agents["ann"].member._epochs[1]
    epoch.own.start = bytes(32)
    second = epoch.grant([did_of("bob"), did_of("cyd")])
    assert second is not None
    bob = circle.agents["bob"].member
    assert fault(bob.take, {"grant": second.json()}) is SealingFault.FORK
    # The honest one, once more.
    bob.take(grants[0])


def test_what_its_sender_did_not_encrypt_for_us_is_said() -> None:
    circle = Circle("ann", "bob")
    circle.say("ann", "hello")
    circle.settle()
    own = circle.agents["ann"].member._epochs[1].own
    assert own.ratchet is not None
    own.ratchet.key = bytes(32)
    circle.say("ann", "unreadable")
    circle.settle()
    bob = circle.agents["bob"]
    assert bob.opened[-1].content is None
    assert bob.suspicions == [Suspicion.UNREADABLE]


# Ghosts and the chain of members


def test_a_hub_adds_no_ghost() -> None:
    circle = Circle("ann", "bob")
    bob = circle.agents["bob"].member
    chain = bob.chain
    entry = MembershipEntry(
        group=GROUP,
        epoch=2,
        changes=(add("ghost"),),
        previous=chain.hash,
        by=did_of("ghost"),
        key="did:test:ghost#1",
        at=NOW,
    )
    assert fault(bob.take, signed(entry, "ghost")) is SealingFault.NOT_ALLOWED
    by_ann = replace(entry, by=did_of("ann"), key="did:test:ann#1")
    assert fault(bob.take, signed(by_ann, "ghost")) is SealingFault.FORGED
    by_ann = replace(entry, by=did_of("ann"))
    assert fault(bob.take, signed(by_ann, "ghost")) is SealingFault.FORGED
    by_bob = replace(entry, by=did_of("bob"), key="did:test:bob#1")
    assert fault(bob.take, signed(by_bob, "bob")) is SealingFault.NOT_ALLOWED
    assert did_of("ghost") not in chain.members


def test_a_ghost_gets_no_key_whatever_it_sends() -> None:
    circle = Circle("ann", "bob")
    real = next(one.value["package"] for one in circle.log if "package" in one.value)
    package = KeyPackage.read(real)
    ghost = replace(package, did=did_of("ghost"), key="did:test:ghost#1")
    ghost = replace(ghost, signature=secret("ghost").sign(ghost.signed()))
    ann = circle.agents["ann"].member
    assert fault(ann.take, {"package": ghost.json()}) is SealingFault.GHOST
    circle.say("ann", "hello")
    grants = [one.value["grant"] for one in circle.log if "grant" in (one.value or {})]
    assert [list(one["keys"]) for one in grants] == [[did_of("bob")]]


def test_a_hub_cannot_exchange_the_keys_of_a_member() -> None:
    circle = Circle("ann", "bob", "cyd")
    packages = [
        KeyPackage.read(one.value["package"])
        for one in circle.log
        if "package" in one.value
    ]
    cyd = next(one for one in packages if one.did == did_of("cyd"))
    bob = next(one for one in packages if one.did == did_of("bob"))
    mixed = replace(cyd, agreement=bob.agreement)
    forged = replace(mixed, signature=secret("hub").sign(mixed.signed()))
    ann = circle.agents["ann"].member
    assert fault(ann.take, {"package": forged.json()}) is SealingFault.FORGED
    # Not even the member itself changes them, since the others may have used them.
    own = replace(mixed, signature=secret("cyd").sign(mixed.signed()))
    assert fault(ann.take, {"package": own.json()}) is SealingFault.FORK


def test_packages_of_another_epoch_are_refused() -> None:
    circle = Circle("ann", "bob", "cyd")
    old = next(one.value for one in circle.log if "package" in one.value)
    circle.change(ChangeKind.REMOVE, "cyd")
    package = KeyPackage.read(old["package"])
    assert package.epoch == 1
    moved = replace(package, epoch=2)
    ann = circle.agents["ann"].member
    assert fault(ann.take, {"package": moved.json()}) is SealingFault.FORK
    assert fault(ann.take, old) is SealingFault.REPEATED


def chain_of(circle: Circle, count: int) -> MembershipChain:
    chain = MembershipChain(GROUP, did_of("ann"), verifies=verifies)
    for entry in entries(circle)[:count]:
        chain.take(entry)
    return chain


def test_the_chain_refuses_repeats_gaps_and_other_histories() -> None:
    circle = Circle("ann", "bob", "cyd")
    circle.change(ChangeKind.REMOVE, "cyd")
    circle.change(ChangeKind.ADD, "cyd")
    first, second, third = entries(circle)
    chain = chain_of(circle, 1)
    assert fault(chain.take, first) is SealingFault.REPEATED
    assert fault(chain.take, third) is SealingFault.GAP
    other = replace(second, changes=(add("dan"),))
    assert fault(chain.take, other) is SealingFault.FORGED
    chain.take(second)
    again = MembershipEntry.read(signed(other, "ann")["entry"])
    assert fault(chain.take, again) is SealingFault.TAKEN
    elsewhere = replace(other, previous=bytes(32))
    elsewhere = MembershipEntry.read(signed(elsewhere, "ann")["entry"])
    assert fault(chain.take, elsewhere) is SealingFault.FORK
    moved = replace(first, epoch=3, changes=(add("dan"),))
    moved = MembershipEntry.read(signed(moved, "ann")["entry"])
    assert fault(chain.take, moved) is SealingFault.FORK
    assert fault(chain.take, replace(third, group="other")) is SealingFault.INVALID


def test_a_group_of_another_founder_is_refused() -> None:
    circle = Circle("ann", "bob")
    chain = MembershipChain(GROUP, did_of("bob"), verifies=verifies)
    assert fault(chain.take, entries(circle)[0]) is SealingFault.NOT_ALLOWED


def test_an_admin_that_was_removed_changes_nothing_more() -> None:
    circle = Circle("ann", "bob", "cyd")
    chain = chain_of(circle, 1)
    gone = chain.propose(
        [MemberChange(ChangeKind.REMOVE, did_of("bob"))],
        at=NOW,
        signer=signer("ann"),
    )
    chain.take(gone)
    late = MembershipEntry(
        group=GROUP,
        epoch=3,
        changes=(add("ghost"),),
        previous=chain.hash,
        by=did_of("bob"),
        key="did:test:bob#1",
        at=NOW,
    )
    late = MembershipEntry.read(signed(late, "bob")["entry"])
    assert fault(chain.take, late) is SealingFault.NOT_ALLOWED


# Any input


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.booleans(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_any_json_is_refused_and_changes_nothing(value: object) -> None:
    member = copy.copy(_CIRCLE.agents["bob"].member)
    for one in (value, {"entry": value}, {"package": value}, {"grant": value}):
        assert fault(member.take, one) is SealingFault.INVALID
    assert member.changed_rows() == {}


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_refused_and_change_nothing(data: bytes, is_headed: bool) -> None:
    member = _CIRCLE.agents["bob"].member
    if is_headed:
        data = _ITEM.data[: len(data)] + data
    with pytest.raises(SealingError):
        member.open(data)
    assert member.changed_rows() == {}


_CIRCLE = Circle("ann", "bob")
_ITEM: Item = _CIRCLE.say("ann", "hello")
_CIRCLE.settle()
