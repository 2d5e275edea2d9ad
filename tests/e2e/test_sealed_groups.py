"""A sealed group of three daemons around a hub in a process of its own.

Everything that the hub has is read: its memory, its files, its log and its records.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from anp.interaction.elements import Part
from anp.sidecar.daemon import Daemon
from anp.sidecar.groups.member import MemberState
from anp.sidecar.groups.shelf import SEALED
from cache.records.peers import PeerState
from tests.e2e.test_groups import daemon, place
from tests.waiting import until


@asynccontextmanager
async def sealed(folder: Path, *names: str) -> AsyncIterator[list[Any]]:
    """Run a hub and members; all of them list nobody and let everybody in."""
    flags = {"groups.hub_for": "listed"}
    made = [daemon(folder, name, **flags) for name in ("hub", *names)]
    async with asyncio.timeout(30), AsyncExitStack() as stack:
        for one in made:
            await stack.enter_async_context(one.running())
        for one in made[1:]:
            await made[0].policy.remember(
                one.did, shown_did=one.did, state=PeerState.ALLOWED
            )
        yield made


async def join(owner: Daemon, group: str, one: Daemon) -> None:
    await owner.groups.invite(group, place(one))
    await until(lambda: any(known.group.id == group for known in one.groups.all()))
    await one.groups.accept(group, is_owner=True)
    await until(lambda: one.did in members(owner, group))
    await until(lambda: members(one, group) == members(owner, group))


def members(one: Daemon, group: str) -> list[str]:
    sealing = one.groups.known(group).sealing
    assert sealing is not None
    return list(sealing["members"])


async def texts(one: Daemon, group: str, count: int) -> list[str]:
    """Return the messages of a group in its order; keys may come after them."""
    found: dict[int, str] = {}
    async for event in one.groups.watch(group):
        if event.mark == SEALED:
            found[event.number] = event.frame()["dataItems"][0]["payload"]
            if len(found) >= count:
                break
    return [found[number] for number in sorted(found)]


async def test_a_sealed_group_at_the_hub_of_another(tmp_path: Path) -> None:
    async with sealed(tmp_path, "a", "b", "c") as (hub, a, b, c):
        group = (await a.groups.create(hub=place(hub), sealed=True)).group.id
        await until(lambda: members(a, group) == [a.did])
        for one in (b, c):
            await join(a, group, one)
        words = [f"{secrets.token_hex(8)} {number}" for number in range(3)]
        for one, word in zip((a, b, c), words, strict=True):
            await one.groups.post(group, [Part.text(word)])
        for one in (a, b, c):
            assert await texts(one, group, 3) == words
            known = one.groups.known(group)
            assert known.sealing is not None
            assert known.sealing["alarms"] == []
            assert known.state is MemberState.MEMBER
