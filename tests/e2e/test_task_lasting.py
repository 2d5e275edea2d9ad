"""Tasks over time: much of it, old ones, keys renewed, peers that speak otherwise."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.elements import Part
from anp.interaction.states import is_terminal
from cache.records.peers import PeerState
from tests.e2e.talks import talks_in
from tests.e2e.test_task_faults import AGENT, state
from tests.waiting import until

MUCH = int(os.environ.get("ANPD_MUCH", "300"))
"Open tasks of one test; `ANPD_MUCH=10000` is the full number."

UPDATES = int(os.environ.get("ANPD_UPDATES", "1000"))
"Updates of another; `ANPD_UPDATES=20000` is the full number."

NOBODY = "ws://127.0.0.1:1/#did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169"

SIZES = '''
from collections.abc import Iterator


def much(lines: int, size: int) -> Iterator[str]:
    """Yield much."""
    for number in range(lines):
        yield f"{number} " + "x" * size
'''


def memory() -> int:
    """Return the bytes that this process has in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def test_many_updates_take_little_memory(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=SIZES, seconds=600) as talks:
        await talks.follow(await talks.start("much", lines=50, size=4_000))
        before, began = memory(), time.monotonic()
        task = await talks.start("much", lines=UPDATES, size=4_000)
        count = most = 0
        async for event in talks.caller.tasks.watch(task.log):
            most = max(most, memory()) if count % 100 == 0 else most
            parts = getattr(event.content, "parts", ())
            for part in parts:
                if str(part.content).endswith("x"):
                    assert str(part.content).split()[0] == str(count)
                    count += 1
            if is_terminal(getattr(event.content, "state", "")):
                break
        assert count == UPDATES
        grown = (most - before) / 2**20
        print(
            f"\n{UPDATES} updates of 4 kB in {time.monotonic() - began:.1f} s, "
            f"memory of both daemons grew by {grown:.1f} MiB"
        )
        assert grown < 60


async def test_a_watcher_that_reads_nothing_costs_nothing(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=SIZES) as talks:
        task = await talks.start("much", lines=300, size=4_000)
        watchers: list[Any] = [talks.caller.tasks.watch(task.log) for _ in range(20)]
        for watcher in watchers:
            await anext(watcher)
        seen = await talks.follow(task)
        assert len(seen.results) == 300
        for watcher in watchers:
            # Who goes on later misses nothing.
            assert (await anext(watcher)).number == 2
            await watcher.aclose()


async def test_many_open_tasks_are_listed_in_pages(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=SIZES, seconds=900) as talks:
        tasks = talks.caller.tasks
        logs = [await tasks.open_session(NOBODY) for _ in range(max(2, MUCH // 1000))]
        before, began = memory(), time.monotonic()
        for number in range(MUCH):
            await tasks.start_task(
                NOBODY, capability="a.b", log=logs[number % len(logs)]
            )
        made = time.monotonic() - began
        grown = memory() - before
        began, count, last = time.monotonic(), 0, ""
        pages = 0
        while page := await tasks.sessions.tasks(before=last, only_open=True):
            count, last, pages = count + len(page), page[-1].id, pages + 1
        listed = time.monotonic() - began
        assert count == MUCH
        assert pages >= MUCH // 100
        began = time.monotonic()
        for _ in range(1000):
            assert tasks.sessions.standing.ours(NOBODY.split("#")[1])
        looked = time.monotonic() - began
        print(
            f"\n{MUCH} open tasks: made in {made:.1f} s, "
            f"{grown / MUCH:.0f} bytes of memory and {listed / MUCH * 1e6:.0f} µs of "
            f"listing each, a look for work takes {looked * 1e3:.1f} µs"
        )
        assert grown / MUCH < 8_000 + 3e6 / MUCH
        assert listed / MUCH < 0.005


async def test_a_task_that_nobody_answers_is_given_up_also_when_clocks_jump(
    tmp_path: Path,
) -> None:
    async with talks_in(tmp_path, source=AGENT, interaction__max_wait=1) as talks:
        tasks = talks.caller.tasks
        task = await tasks.start_task(NOBODY, capability="agent.touch")
        await tasks.upkeep.sweep()
        assert await state(talks, task) == "x-requested"
        await asyncio.sleep(1.1)
        await tasks.upkeep.sweep(was_set=True)
        assert await state(talks, task) == "x-requested"
        await tasks.upkeep.sweep()
        end = (await tasks.task(task.id)).task
        assert (end.state, end.code) == ("canceled", "no_answer")
        # Nor is the dead peer told of that for ever.
        assert not tasks.sessions.standing.ours(NOBODY.split("#")[1])


async def test_tasks_at_a_peer_end_when_the_owner_blocks_it(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        task = await talks.start("slow", lines=2000, pause=0.02)
        await until(lambda: talks.provider.tasks.working == 1)
        await talks.caller.policy.rule(talks.provider.did, PeerState.BLOCKED)
        await talks.caller.enforcer.recheck()
        async with asyncio.timeout(5):
            seen = await talks.follow(task)
        assert seen.end is not None
        assert (seen.end.state, seen.end.may_have_run) == ("canceled", True)
        assert "blocked" in seen.end.reason


async def test_the_owners_limit_ends_a_task(tmp_path: Path) -> None:
    async with talks_in(
        tmp_path, source=AGENT, interaction__max_time_unlisted=1
    ) as talks:
        task = await talks.start("slow", lines=1000, pause=0.05)
        seen = await talks.follow(task)
        assert seen.states[-1] == "failed"
        assert seen.end is not None
        assert "interaction.max_time_unlisted" in seen.end.reason


async def test_a_question_that_nobody_answers_ends_by_the_owners_limit(
    tmp_path: Path,
) -> None:
    async with talks_in(
        tmp_path, source=AGENT, interaction__max_time_unlisted=1
    ) as talks:
        task = await talks.start("ask", file=str(tmp_path / "asked"))
        assert (await talks.follow(task)).states[-1] == "failed"


async def test_a_task_that_waits_in_vain_for_approval_ends(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    async with talks_in(
        tmp_path,
        source=AGENT,
        negotiation__approve="side-effects",
        interaction__max_wait=1,
    ) as talks:
        seen = await talks.follow(await talks.start("touch", file=str(ran)))
        assert seen.states == ["accepted", "failed"]
        assert seen.end is not None
        assert (seen.end.code, seen.end.may_have_run) == ("504", False)
        assert not ran.exists()


async def test_a_hidden_capability_ends_its_tasks_at_once(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        task = await talks.start("slow", lines=2000, pause=0.02)
        await until(lambda: talks.provider.tasks.working == 1)
        async for event in talks.caller.tasks.watch(task.log):
            if getattr(event.content, "state", "") == "working":
                break
        for name in list(talks.provider.home.attachments.iterdir()):
            name.write_text(name.read_text().replace('"*"', '"nothing"'))
        await talks.provider.reload()
        async with asyncio.timeout(5):
            seen = await talks.follow(task)
        assert seen.states[-1] == "failed"


async def test_a_key_that_is_renewed_under_a_stream_loses_nothing(
    tmp_path: Path,
) -> None:
    async with talks_in(tmp_path, source=AGENT, channels__renew_messages=40) as talks:
        task = await talks.start("slow", lines=200, pause=0.005)
        seen = await talks.follow(task)
        assert seen.results == [str(number) for number in range(200)]
        assert seen.states == ["accepted", "working", "completed"]


async def test_a_peer_without_the_protocol_gets_a_call_of_one_turn(
    tmp_path: Path,
) -> None:
    ran = tmp_path / "ran"

    async def none(offered: Sequence[str], peer: str) -> str | None:
        """Speak no protocol of the daemon's own."""
        return None

    async with talks_in(tmp_path, source=AGENT) as talks:
        talks.provider.consensus.select = none  # type: ignore[method-assign]
        task = await talks.start("touch", file=str(ran))
        seen = await talks.follow(task)
        assert seen.states == ["accepted", "working", "completed"]
        assert seen.results == [{"result": "done"}]
        assert ran.read_text() == "ran\n"
        again = await talks.start("nothing", log=task.log)
        assert (await talks.follow(again)).states[-1] == "failed"
        assert not talks.caller.tasks.sessions.standing.ours(talks.provider.did)


async def test_old_sessions_go_and_contents_before_them(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=SIZES, interaction__keep_days=1) as talks:
        tasks = talks.caller.tasks
        task = await talks.start("much", lines=20, size=4_000)
        await talks.follow(task)
        await until(lambda: not tasks.sessions.standing.ours(talks.provider.did))
        now = time.time()
        await tasks.sessions.room.prune(older_than=now - 9, content_before=now - 9)
        assert await tasks.sessions.events(task.log)
        await tasks.sessions.room.prune(older_than=now - 9, content_before=now + 9)
        assert not await tasks.sessions.events(task.log)
        assert (await tasks.task(task.id)).task.state == "completed"
        await tasks.sessions.room.prune(older_than=now + 9, content_before=now + 9)
        assert await tasks.sessions.task(task.id) is None


async def test_no_more_is_taken_than_the_owner_has_room_for(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=SIZES) as talks:
        provider: Any = talks.provider.tasks
        provider.sessions.room._max_size = 100_000
        task = await talks.start("much", lines=200, size=4_000)
        seen = await talks.follow(task)
        assert seen.states[-1] == "failed"
        assert seen.end is not None
        assert seen.end.may_have_run
        assert "room" in seen.end.reason
        refused = await talks.start("much", lines=2, size=10)
        assert (await talks.follow(refused)).states[-1] == "rejected"
        # What has ended makes room.
        await until(lambda: provider.working == 0)
        await asyncio.sleep(0.2)
        await provider.upkeep.prune()
        fresh = await talks.start("much", lines=2, size=10)
        assert (await talks.follow(fresh)).states[-1] == "completed"


@pytest.mark.slow
async def test_nothing_is_kept_of_many_sessions_in_memory(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT, seconds=300) as talks:
        for number in range(300):
            await talks.caller.tasks.start_task(
                NOBODY, capability="a.b", parts=[Part.value({"number": number})]
            )
        assert len(talks.caller.tasks.sessions._entries) <= 256
