"""Faults between two daemons with tasks: what is lost, late, twice or too much."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.elements import Unreadable
from anp.sidecar.agreement.rulings import Decision
from anp.sidecar.api.operations.task_views import event_of
from anp.sidecar.tasks.chronicle import Chronicle
from cache.records.logs import LogEventRecord
from tests.e2e.talks import Talks, talks_in
from tests.waiting import until

AGENT = '''
import time
from collections.abc import Iterator
from typing import Protocol


class Context(Protocol):
    """What this agent uses of a call's context."""


def large(size: int) -> dict[str, str]:
    """Return a large value."""
    return {"text": "x" * size}


def stream(lines: int, file: str) -> Iterator[str]:
    """Yield lines; the file has how many were taken."""
    for number in range(lines):
        if number % 50 == 0:
            open(file, "w").write(str(number))
        yield f"{number}"
    open(file, "w").write(str(lines))


def slow(lines: int, pause: float) -> Iterator[str]:
    """Yield lines slowly."""
    for number in range(lines):
        time.sleep(pause)
        yield f"{number}"


def ask(file: str, context: Context) -> str:
    """Ask."""
    open(file, "a").write("asked\\n")
    return context.ask("Well?")


def chatter(notes: int, context: Context) -> str:
    """Tell more than anybody wants to know."""
    for number in range(notes):
        context.progress(number, notes, "x" * 100)
    return "done"


def touch(file: str) -> str:
    """Write a line."""
    open(file, "a").write("ran\\n")
    return "done"
'''


async def state(talks: Talks, task: Any) -> str:
    return (await talks.caller.tasks.task(task.id)).task.state


async def test_a_large_value_arrives_and_the_task_ends(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        task = await talks.start("large", size=600_000)
        seen = await talks.follow(task)
        assert seen.states[-1] == "completed"
        assert sum(len(str(one)) for one in seen.results) >= 600_000


async def test_too_large_arguments_are_refused_before_anything_is_stored(
    tmp_path: Path,
) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        with pytest.raises(Exception, match="large"):
            await talks.start("touch", file="x" * 5_000_000)
        task = await talks.start("touch", file=str(tmp_path / "ran"))
        assert (await talks.follow(task)).states[-1] == "completed"


async def test_a_task_that_waits_for_approval_runs_when_approved(
    tmp_path: Path,
) -> None:
    ran = tmp_path / "ran"
    async with talks_in(
        tmp_path, source=AGENT, negotiation__approve="side-effects"
    ) as talks:
        task = await talks.start("touch", file=str(ran))
        desk = talks.provider.agreer.desk
        waiting: list[Any] = []
        while not waiting:
            await asyncio.sleep(0.05)
            waiting = await desk.negotiations(open_only=True)
        assert await state(talks, task) == "accepted"
        assert not ran.exists()
        await desk.decide(waiting[0].id, Decision("accept"))
        assert (await talks.follow(task)).states[-1] == "completed"
        assert ran.read_text() == "ran\n"


async def test_a_cancelled_task_that_waited_for_approval_waits_no_more(
    tmp_path: Path,
) -> None:
    ran = tmp_path / "ran"
    async with talks_in(
        tmp_path, source=AGENT, negotiation__approve="side-effects"
    ) as talks:
        task = await talks.start("touch", file=str(ran))
        await until(lambda: talks.provider.tasks.working == 1)
        await asyncio.sleep(0.5)
        await talks.caller.tasks.cancel(task.id)
        assert (await talks.follow(task)).states[-1] == "canceled"
        await until(lambda: talks.provider.tasks.working == 0)


async def test_progress_without_end_takes_little_room(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        task = await talks.start("chatter", notes=5_000)
        seen = await talks.follow(task)
        assert seen.states[-1] == "completed"
        assert len(seen.numbers) < 2_000


async def test_a_link_that_is_cut_loses_nothing_of_a_stream(tmp_path: Path) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        task = await talks.start("slow", lines=150, pause=0.02)
        following = asyncio.create_task(talks.follow(task))
        for _ in range(4):
            await asyncio.sleep(0.6)
            await talks.caller.links.cut_off({talks.provider.did}, "cut by the test")
        seen = await following
        assert seen.results == [str(number) for number in range(150)]
        assert seen.states == ["accepted", "working", "completed"]


async def test_the_owners_word_ends_the_tasks_of_a_peer(tmp_path: Path) -> None:
    from cache.records.peers import PeerState

    async with talks_in(tmp_path, source=AGENT) as talks:
        await talks.start("slow", lines=2000, pause=0.02)
        await until(lambda: talks.provider.tasks.working == 1)
        await asyncio.sleep(0.5)
        await talks.provider.policy.rule(talks.caller.did, PeerState.BLOCKED)
        await talks.provider.enforcer.recheck()
        async with asyncio.timeout(5):
            await until(lambda: talks.provider.tasks.working == 0)
        known = await talks.provider.tasks.sessions.tasks()
        assert [one.task.state for one in known] == ["failed"]
        assert (known[0].task.code, known[0].task.may_have_run) == ("403", True)


async def test_a_damaged_event_is_shown_in_its_place_and_hides_no_other(
    tmp_path: Path,
) -> None:
    async with talks_in(tmp_path, source=AGENT) as talks:
        task = await talks.start("slow", lines=3, pause=0.01)
        seen = await talks.follow(task)
        sessions = talks.caller.tasks.sessions
        number = seen.numbers[-2]
        damage = LogEventRecord(task.log, number, 1.0, "c2VhbGVk")
        store = talks.caller.store
        await asyncio.to_thread(
            lambda: store._database.write(lambda rows: store._shelf.put(rows, damage))
        )
        found = await sessions.events(task.log)
        assert [one.number for one in found] == seen.numbers
        lost = [one for one in found if isinstance(one.content, Unreadable)]
        assert [one.number for one in lost] == [number]
        # A restart of the session's machine reads them, too.
        sessions._entries.clear()
        conversation = await sessions.conversation(task.log)
        assert conversation.tasks[task.task.id].state == "completed"
        head, _ = await sessions.overview(task.log)
        shown = Chronicle(sessions).watch(task.log, None, after=0)
        kinds = []
        async for told in shown:
            kinds.append(event_of(told).type)
            if told.event.number == head.last:
                break
        assert kinds.count("session.damaged") == 1
