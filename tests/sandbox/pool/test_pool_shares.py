"""Workers by who uses them: bounds for each peer, and the end of unused ones."""

from __future__ import annotations

import asyncio
import os

import pytest

from sandbox.errors import SandboxError
from sandbox.pool.config import SandboxConfig
from sandbox.pool.module import Module
from sandbox.pool.pool import Sandbox
from sandbox.pool.shares import NICE, OWNER, Rank, Share, current_share
from tests.sandbox.sources import MISBEHAVING
from tests.waiting import until

NEAR, FAR = Share(Rank.COMMON, "192.0.2.1"), Share(Rank.COMMON, "192.0.2.2")
LISTED = Share(Rank.LISTED, "did:key:zFriend")


async def load(sandbox: Sandbox, share: Share, *names: str) -> list[Module]:
    """Load a module under each name for a share."""

    async def work() -> list[Module]:
        current_share.set(share)
        return [
            await sandbox.load(f"{share.name}:{name}", MISBEHAVING, origin="rules")
            for name in names
        ]

    return await asyncio.create_task(work())


def alive(modules: list[Module]) -> list[bool]:
    return [module.worker is not None and module.worker.alive for module in modules]


async def test_a_peer_with_many_agreements_ends_its_own_workers_only() -> None:
    sandbox = Sandbox(SandboxConfig(max_workers=8))
    await sandbox.start()
    try:
        friend = await load(sandbox, LISTED, "a", "b")
        near = await load(sandbox, NEAR, *"abcdef")
        assert alive(near) == [False] * 4 + [True] * 2
        far = await load(sandbox, FAR, *"abcdef")
        third = await load(sandbox, Share(Rank.COMMON, "192.0.2.3"), *"ab")
        # The bound of all addresses together is four.
        assert sum(alive(near) + alive(far) + alive(third)) == 4
        assert alive(friend) == [True, True]
        own = await load(sandbox, OWNER, *"abcd")
        assert alive(own) + alive(friend) == [True] * 6
        # They come back when they are needed.
        assert await near[0].call("echo", 1, deadline=5) == 1
    finally:
        await sandbox.close()


async def test_a_peer_whose_workers_are_busy_is_refused_and_no_other() -> None:
    sandbox = Sandbox(SandboxConfig(max_workers=4))
    await sandbox.start()
    try:
        [module] = await load(sandbox, NEAR, "a")
        spinning = asyncio.create_task(module.call("spin", deadline=1))
        await asyncio.sleep(0)
        with pytest.raises(SandboxError, match="1 workers for this peer are busy"):
            await load(sandbox, NEAR, "b")
        assert alive(await load(sandbox, FAR, "b") + await load(sandbox, LISTED, "b"))
        with pytest.raises(SandboxError, match="no result"):
            await spinning
    finally:
        await sandbox.close()


async def test_workers_of_the_common_rank_make_room_first() -> None:
    sandbox = Sandbox(SandboxConfig(max_workers=4))
    await sandbox.start()
    try:
        [friend] = await load(sandbox, LISTED, "a")
        near, far = await load(sandbox, NEAR, "a"), await load(sandbox, FAR, "a")
        await load(sandbox, OWNER, "a", "b")
        assert alive([friend, *near, *far]) == [True, False, True]
    finally:
        await sandbox.close()


async def test_an_unused_worker_ends_and_the_next_run_starts_another() -> None:
    sandbox = Sandbox(SandboxConfig(idle_timeout=0.3))
    await sandbox.start()
    try:
        [module] = await load(sandbox, LISTED, "a")
        await until(lambda: not any(alive([module])))
        assert not sandbox._modules
        assert await module.call("echo", 1, deadline=5) == 1
        assert alive([module]) == [True]
        spinning = asyncio.create_task(module.call("spin", deadline=1))
        with pytest.raises(SandboxError, match="no result"):
            await spinning
        await sandbox.unload(module.key)
        with pytest.raises(SandboxError, match="unloaded"):
            await module.call("echo", 1, deadline=5)
    finally:
        await sandbox.close()


async def test_workers_of_peers_that_are_not_listed_have_a_lower_priority(
    sandbox: Sandbox,
) -> None:
    [near], [friend] = await load(sandbox, NEAR, "a"), await load(sandbox, LISTED, "a")
    assert near.worker is not None
    assert friend.worker is not None
    low = os.getpriority(os.PRIO_PROCESS, near.worker.pid)
    assert (low, NICE) == (19, 19)
    assert os.getpriority(os.PRIO_PROCESS, friend.worker.pid) < low
