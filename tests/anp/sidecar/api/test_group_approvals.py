"""Invitations and applications in the owner's queue."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from anp.errors import UnknownError
from anp.interaction.elements import Party
from anp.interaction.groups.elements import Group
from anp.interaction.groups.hub_records import Ticket
from anp.interaction.groups.member_state import MemberState, StoredMember
from anp.sidecar.api.operations.groups.approvals import GroupApprovals
from anp.sidecar.groups.standing import KnownGroup

LATER = datetime(2030, 1, 1, tzinfo=UTC)


def ticket(name: str, *, applied: bool) -> Ticket:
    return Ticket(id=name, did="did:c", applied=applied, expires=LATER, text="please")


def mine() -> KnownGroup:
    group = Group(id="g1", name="Build", hub=Party(id="did:a"), owner="did:a")
    tickets = (ticket("t1", applied=True), ticket("t2", applied=False))
    return KnownGroup(
        group=group,
        own="did:a",
        is_hub=True,
        state=MemberState.MEMBER,
        last=1,
        tickets=tickets,
    )


def theirs() -> KnownGroup:
    group = Group(id="g2", hub=Party(id="did:b"), owner="did:b")
    invited = MemberState.INVITED
    head = StoredMember(
        group=group,
        own="did:a",
        hub="did:b",
        address="",
        state=invited,
        invited_by="did:d",
        text="join us",
        stranger=True,
    )
    return KnownGroup(
        group=group, own="did:a", is_hub=False, state=invited, last=0, invitation=head
    )


class FakeGroups:
    """Two groups, and a list of what was done."""

    def __init__(self) -> None:
        self.did: list[Any] = []

    def all(self) -> list[KnownGroup]:
        return [mine(), theirs()]

    async def accept(self, name: str, *, is_owner: bool) -> None:
        self.did.append(("accept", name, is_owner))

    async def decline(self, name: str) -> None:
        self.did.append(("decline", name))

    async def answer(self, name: str, one: str, *, approve: bool, text: str) -> None:
        self.did.append((name, one, approve, text))


async def test_what_waits_is_listed_and_decided_by_its_id() -> None:
    groups = FakeGroups()
    queue = GroupApprovals(groups)  # type: ignore[arg-type]  # all that it uses of it
    application, invitation = queue.waiting()
    assert (application.id, application.peer) == ("application-t1", "did:c")
    assert (invitation.id, invitation.peer) == ("invitation-g2", "did:d")
    assert (invitation.stranger, invitation.text) == (True, "join us")
    await queue.decide("application-t1", accept=True)
    await queue.decide("application-t1", accept=False, note="full")
    await queue.decide("invitation-g2", accept=True)
    await queue.decide("invitation-g2", accept=False)
    assert groups.did == [
        ("g1", "t1", True, ""),
        ("g1", "t1", False, "full"),
        ("accept", "g2", True),
        ("decline", "g2"),
    ]
    # An invitation of ours for another is not ours to decide.
    for name in ("application-t2", "invitation-g1"):
        assert queue.is_one(name)
        with pytest.raises(UnknownError):
            await queue.decide(name, accept=True)
    assert not queue.is_one("0a1b2c")
