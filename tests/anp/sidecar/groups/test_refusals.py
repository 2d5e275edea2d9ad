"""Groups that refuse: in words that say why, and with nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from anp.errors import CallError, ConflictError
from anp.interaction.elements import Part
from anp.interaction.errors import InteractionError
from anp.interaction.groups.member_state import MemberState, why_no_member
from anp.sidecar.groups.reception import NoGroup
from tests.anp.sidecar.groups.net import Node, joined, net_in
from tests.waiting import until


def state(node: Node, group: str) -> str:
    return {one.group.id: str(one.state) for one in node.groups.all()}.get(group, "")


async def test_an_application_that_is_refused_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    async with net_in(tmp_path, "a", "b") as (_, (a, b)):
        group = await joined(a)
        for name in ("nosuchgroup", group):
            with pytest.raises(InteractionError):
                await b.groups.apply("a", name)
        with pytest.raises(CallError, match="nothing listens"):
            await b.groups.apply("c", group)
        assert b.groups.all() == []


async def test_who_is_no_member_is_told_why(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b") as (_, (a, b)):
        group = await joined(a)
        await a.groups.invite(group, "b")
        await until(lambda: state(b, group) == "invited")
        for act in (b.groups.post(group, [Part.text("hi")]), b.groups.leave(group)):
            with pytest.raises(InteractionError, match="accept or decline"):
                await act
        await b.groups.accept(group)
        await a.groups.remove(group, b.did)
        await until(lambda: state(b, group) == "removed")
        with pytest.raises(InteractionError, match="you were removed"):
            await b.groups.post(group, [Part.text("hi")])
        with pytest.raises(ConflictError, match="hub of this group is here"):
            await a.groups.accept(group)
        with pytest.raises(NoGroup, match="there is no group 'x'"):
            await b.groups.accept("x")


@pytest.mark.parametrize("one", MemberState)
def test_every_state_but_a_members_has_its_words(one: MemberState) -> None:
    assert (why_no_member(one) is None) == (one is MemberState.MEMBER)
