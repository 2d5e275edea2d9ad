"""Many messages of many members, and what kills leave of them."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError
from anp.interaction.elements import Part
from anp.interaction.groups import membership
from anp.interaction.groups.elements import GroupPolicy
from anp.sidecar.groups import backlog, wires
from anp.sidecar.groups.reception import NoGroup
from cache.errors import CacheError
from tests.anp.sidecar.groups.net import Node, joined, net_in, note, texts
from tests.clauses import clause
from tests.waiting import until


async def said_once(group: str, hub: Node, nodes: list[Node]) -> list[str]:
    """Wait until all have everything; return what was said, in the order of all."""
    await until(lambda: has_everything(group, hub, nodes))
    count = hub.groups.known(group).last
    heard = [await numbered(one, group, count) for one in nodes]
    truth: dict[int, str] = {}
    for one in heard:
        truth |= one
    for node, one in zip(nodes, heard, strict=True):
        # What it said right before it was killed is known to the others alone.
        lost = [truth[number] for number in truth.keys() - one.keys()]
        assert all(text.startswith(f"{node.name}/") for text in lost)
        assert one == {number: truth[number] for number in one}
    order = [truth[number] for number in sorted(truth)]
    assert len(order) == len(set(order))
    return order


def has_everything(group: str, hub: Node, nodes: list[Node]) -> bool:
    count = hub.groups.known(group).last
    members = [one.groups._members.get(group) for one in nodes]
    return all(one.groups.known(group).last == count for one in nodes) and not any(
        one is not None and one._queued for one in members
    )


async def numbered(node: Node, group: str, last: int) -> dict[int, str]:
    found = {}
    async for event in node.groups.watch(group):
        frame = event.frame()
        if frame["op"] == "message.send":
            found[event.number] = frame["dataItems"][0]["payload"]
        if event.number >= last:
            break
    return found


async def test_a_killed_hub_knows_all_its_numbers_again(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b") as (net, (a, b)):
        group = await joined(a, b)
        for number in range(40):
            # Each is a page of its own in the store.
            await a.groups.post(group, [Part.text(f"{number}")])
        a = await net.again(a, kill=True)
        await a.groups.post(group, [Part.text("after")])
        assert (await said_once(group, a, [a, b]))[-2:] == ["39", "after"]


async def test_what_was_taken_long_ago_is_not_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "RECENT", 8)
    async with net_in(tmp_path, "a", "b") as (net, (a, b)):
        group = await joined(a, b)
        # The answer is lost, and B is away while others go on.
        net.walls |= {("a", "b"), ("b", "a")}
        for pipe in a.pipes:
            pipe.stuck = True
        _, number = await b.groups.post(group, [Part.text("mine")], timeout=0.01)
        assert number is None
        before = a.groups.known(group).last
        await until(lambda: a.groups.known(group).last > before - 1)
        a.cut()
        for other in range(20):
            await a.groups.post(group, [Part.text(f"{other}")])
        net.walls.clear()
        assert "mine" in await said_once(group, a, [a, b])


@clause("GBZ-12", "GBZ-17")
async def test_eight_members_hear_one_order_whoever_is_killed(tmp_path: Path) -> None:
    names = [f"m{number}" for number in range(8)]
    choose = random.Random(5)
    async with net_in(tmp_path, *names) as (net, nodes):
        group = await joined(nodes[0], *nodes[1:])
        certain: set[str] = set()

        async def speak(name: str) -> None:
            for number in range(40):
                node = net.nodes[name]
                try:
                    await node.groups.post(
                        group, [Part.text(f"{name}/{number}")], timeout=1
                    )
                except (CallError, NoGroup, CacheError):
                    assert not node.up
                if node.up:
                    certain.add(f"{name}/{number}")

        speaking = [asyncio.create_task(speak(name)) for name in names[:4]]
        for part in range(1, 5):
            wanted = 25 * part
            await until(partial(has_said, certain, wanted, speaking))
            for name in (choose.choice(names[1:]), "m0"):
                await net.again(net.nodes[name], kill=True)
        await asyncio.gather(*speaking)
        now = list(net.nodes.values())
        order = await said_once(group, net.nodes["m0"], now)
        assert certain <= set(order)


def has_said(certain: set[str], count: int, speaking: list[asyncio.Task[None]]) -> bool:
    return len(certain) >= count or all(one.done() for one in speaking)


@pytest.mark.parametrize("first", [1.0, 2.0])
async def test_what_waited_for_the_hub_is_not_lost_to_the_limit_of_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: float
) -> None:
    monkeypatch.setattr(backlog, "FIRST", first)
    monkeypatch.setattr(wires, "CHECK", 0.05)
    async with net_in(tmp_path, "a", "b") as (net, (a, b)):
        # Sixty may come at once.
        group = await joined(a, b, policy=GroupPolicy(rate=240))
        net.walls |= {("a", "b"), ("b", "a")}
        a.cut()
        member: Any = b.groups._members[group]
        await until(lambda: not member.is_there)
        said = [str(number) for number in range(62)]
        for text in said:
            number = await b.groups.say(group, note(b, group, text), timeout=0.0)
            assert number is None
        net.walls.clear()
        assert sorted(await texts(a, group, 62), key=int) == said
