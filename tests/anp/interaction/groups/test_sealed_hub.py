"""The hub of a sealed group says what it cannot do there."""

from __future__ import annotations

import pytest

from anp.interaction.elements import Party
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.groups.elements import Group, GroupPolicy
from anp.interaction.groups.hub_records import Asked
from anp.interaction.groups.membership import GroupMachine
from anp.interaction.groups.operations import GroupAct, GroupPost, Membership
from tests.anp.interaction.talk import ALICE, NOW, message, task


def made(history: int | None = 0, hub: str = ALICE) -> GroupMachine:
    group = Group(
        id="g",
        hub=Party(id=hub),
        owner=ALICE,
        policy=GroupPolicy(history=history),
        sealed=True,
    )
    return GroupMachine.create(group, wall_now=NOW, make_id=lambda: "t")[0]


@pytest.mark.parametrize("history", [None, 10])
def test_a_sealed_group_has_no_history(history: int | None) -> None:
    with pytest.raises(InteractionError, match="no history") as found:
        made(history)
    assert found.value.code is InteractionFault.INVALID


def test_a_sealed_group_has_no_offers_and_passes_on_messages() -> None:
    machine = made()
    offer = GroupPost(group="g", content=task())
    with pytest.raises(InteractionError, match="cannot read offers") as found:
        machine.take(Asked(offer, ALICE, 1, 10, 0.0, NOW))
    assert found.value.code is InteractionFault.NOT_ALLOWED
    post = GroupPost(group="g", content=message("hello", ALICE))
    assert machine.take(Asked(post, ALICE, 2, 10, 0.0, NOW)).events


def test_the_hub_of_a_sealed_group_is_not_invited_into_it_later() -> None:
    machine = made(hub="did:key:hub")
    content = Membership(act=GroupAct.INVITE, member=Party(id="did:key:hub"))
    asked = Asked(GroupPost(group="g", content=content), ALICE, 1, 10, 0.0, NOW)
    with pytest.raises(InteractionError, match="cannot be its member") as found:
        machine.take(asked)
    assert found.value.code is InteractionFault.NOT_ALLOWED
    assert machine.tickets == ()
