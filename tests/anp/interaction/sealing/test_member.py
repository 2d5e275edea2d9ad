"""A sealed group with an honest hub: who can read what, and what is kept."""

from __future__ import annotations

import json

import pytest

from anp.interaction.sealing.errors import SealingError, SealingFault
from anp.interaction.sealing.member import MAX_EPOCHS
from anp.interaction.sealing.membership import ChangeKind, MemberRank
from anp.interaction.sealing.message import OVERHEAD
from tests.anp.interaction.sealing.circle import Circle, did_of


def fault(call: object, *args: object) -> SealingFault:
    with pytest.raises(SealingError) as found:
        call(*args)  # type: ignore[operator]
    return found.value.code


def test_members_read_each_other_and_nobody_is_suspected() -> None:
    circle = Circle("ann", "bob", "cyd")
    for text in ("one", "two"):
        circle.say("ann", text)
        circle.say("bob", f"bob {text}")
    circle.settle()
    assert circle.agents["cyd"].texts == ["one", "bob one", "two", "bob two"]
    assert circle.agents["ann"].texts == ["bob one", "bob two"]
    assert all(not one.suspicions for one in circle.agents.values())


def test_the_hub_has_ciphertext_only_and_one_for_all() -> None:
    circle = Circle("ann", "bob", "cyd")
    item = circle.say("ann", "the secret word")
    seen = json.dumps([one.value for one in circle.log]).encode() + item.data
    assert b"secret" not in seen
    assert len(item.data) == len("the secret word") + OVERHEAD


def test_a_removed_member_cannot_read_what_comes_after() -> None:
    circle = Circle("ann", "bob", "cyd")
    circle.say("ann", "all three")
    circle.settle()
    circle.change(ChangeKind.REMOVE, "cyd")
    item = circle.say("ann", "without cyd")
    circle.settle()
    assert circle.agents["bob"].texts == ["all three", "without cyd"]
    cyd = circle.agents["cyd"]
    assert cyd.texts == ["all three"]
    # Cyd has everything that the hub has, and still no way in.
    assert fault(cyd.member.open, item.data) is SealingFault.OLD
    grants = [one.value["grant"] for one in circle.log if "grant" in (one.value or {})]
    assert did_of("cyd") not in grants[-1]["keys"]
    assert fault(cyd.member.seal, b"still here") is SealingFault.NOT_MEMBER


def test_a_new_member_cannot_read_what_was_before() -> None:
    circle = Circle("ann", "bob")
    before = circle.say("ann", "before")
    circle.settle()
    circle.join("cyd")
    circle.change(ChangeKind.ADD, "cyd")
    circle.say("ann", "after")
    circle.settle()
    cyd = circle.agents["cyd"]
    assert cyd.texts == ["after"]
    assert fault(cyd.member.open, before.data) is SealingFault.OLD


def test_a_member_that_was_away_reads_everything_of_its_epochs() -> None:
    circle = Circle("ann", "bob", "cyd")
    away = circle.agents.pop("cyd")
    circle.say("ann", "first")
    circle.join("dan")
    circle.change(ChangeKind.ADD, "dan")
    circle.say("bob", "second")
    circle.settle()
    circle.agents["cyd"] = away
    circle.settle()
    # The second was said before the keys of cyd were there for its epoch.
    assert away.texts == ["first"]
    assert [away.member.unlock(one) for one in away.locked] == [b"second"]
    circle.say("cyd", "back")
    circle.settle()
    assert circle.agents["dan"].texts == ["second", "back"]
    assert not away.suspicions


def test_keys_are_deleted_after_use() -> None:
    circle = Circle("ann", "bob")
    item = circle.say("ann", "once")
    circle.settle()
    bob = circle.agents["bob"]
    assert bob.texts == ["once"]
    assert fault(bob.member.unlock, item.data) is SealingFault.OLD
    # Nobody can agree on the secrets of this epoch again: the private keys are gone.
    for agent in circle.agents.values():
        keys = json.loads(agent.rows["1/keys"])
        assert keys["agreement"] is None
        assert keys["start"] is None
    assert json.loads(bob.rows["1/keys"])["from"] == {}


def test_a_restarted_member_goes_on_and_uses_no_counter_twice() -> None:
    circle = Circle("ann", "bob")
    circle.say("ann", "one")
    circle.agents["ann"].restart()
    two = circle.say("ann", "two")
    circle.settle()
    circle.agents["bob"].restart()
    circle.agents["ann"].restart()
    three = circle.say("ann", "three")
    circle.say("bob", "answer")
    circle.settle()
    assert (two.counter, three.counter) == (2, 3)
    assert circle.agents["bob"].texts == ["one", "two", "three"]
    assert circle.agents["ann"].texts == ["answer"]
    assert not circle.agents["bob"].suspicions + circle.agents["ann"].suspicions


def test_a_message_rewrites_small_rows_only() -> None:
    circle = Circle("ann", *(f"member{one}" for one in range(30)))
    circle.say("ann", "first")
    circle.settle()
    ann, other = circle.agents["ann"].member, circle.agents["member7"].member
    message, _ = ann.seal(b"x" * 1024)
    assert sum(len(row or b"") for row in ann.changed_rows().values()) < 500
    other.open(message.data)
    rows = other.changed_rows()
    assert set(rows) == {"1/own", f"1/{did_of('ann')}"}
    assert sum(len(row or b"") for row in rows.values()) < 500


def test_a_refused_message_is_missed_by_nobody() -> None:
    circle = Circle("ann", "bob")
    circle.say("ann", "one")
    refused = circle.say("ann", "refused by the hub")
    circle.log.remove(refused)
    circle.agents["ann"].member.withdraw(refused.epoch, refused.counter)
    circle.say("ann", "three")
    circle.settle()
    assert circle.agents["bob"].texts == ["one", "three"]
    assert not circle.agents["bob"].suspicions
    # Its key is deleted nevertheless, since the hub has the ciphertext.
    assert fault(circle.agents["bob"].member.unlock, refused.data) is SealingFault.OLD


def test_keys_of_old_epochs_are_dropped() -> None:
    circle = Circle("ann", "bob", "cyd")
    circle.say("ann", "old")
    circle.settle()
    for _ in range(MAX_EPOCHS // 2):
        circle.change(ChangeKind.REMOVE, "cyd")
        circle.change(ChangeKind.ADD, "cyd")
    assert not [name for name in circle.agents["bob"].rows if name.startswith("1/")]
    circle.agents["bob"].restart()
    circle.say("ann", "new")
    circle.settle()
    assert circle.agents["bob"].texts == ["old", "new"]


def test_admins_add_and_remove_and_only_the_owner_makes_admins() -> None:
    circle = Circle("ann", "bob", "cyd")
    circle.change(ChangeKind.RANK, "bob", rank=MemberRank.ADMIN)
    circle.join("dan")
    circle.change(ChangeKind.ADD, "dan", by="bob")
    circle.change(ChangeKind.REMOVE, "cyd", by="bob")
    assert circle.agents["dan"].member.chain.members == {
        did_of("ann"): MemberRank.OWNER,
        did_of("bob"): MemberRank.ADMIN,
        did_of("dan"): MemberRank.MEMBER,
    }
    for kind, name, rank in (
        (ChangeKind.RANK, "dan", MemberRank.ADMIN),
        (ChangeKind.ADD, "eve", MemberRank.ADMIN),
        (ChangeKind.REMOVE, "ann", MemberRank.MEMBER),
    ):
        with pytest.raises(SealingError) as found:
            circle.change(kind, name, by="bob", rank=rank)
        assert found.value.code is SealingFault.NOT_ALLOWED


def test_a_message_that_crosses_a_removal_is_marked() -> None:
    circle = Circle("ann", "bob", "cyd")
    circle.say("bob", "hello")
    circle.settle()
    late, _ = circle.agents["bob"].member.seal(b"crossing")
    circle.change(ChangeKind.REMOVE, "cyd")
    found = circle.agents["ann"].member.open(late.data)
    assert found.is_stale
    assert found.content == b"crossing"
