"""The scheduler over a store: kills, several daemons, clocks that jump, conditions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError, ErrorKind
from anp.interaction.triggers.subscription import EventSource
from anp.interaction.triggers.watch import Happening
from anp.sidecar.subscriptions.kept import (
    Kept,
    KeptRun,
    Order,
    SubscriptionBook,
    Watcher,
)
from anp.sidecar.subscriptions.scheduler import Scheduler
from cache.store import Store
from tests.clauses import clause

EVERY = {"type": "time", "every": 10}
FAILED = {"type": "event", "event": "build.failed"}
SECRET = bytes(32)


class Killed(BaseException):
    """The daemon ends here."""


class Daemons:
    """Daemons on one store, with a clock, and the tasks that they made."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)
        self.book = SubscriptionBook(self.store, SECRET)
        self.now = 1000.0
        self.made: Counter[str] = Counter()
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.dies = ""
        self.is_refusing = False

    def scheduler(self) -> Scheduler:
        return Scheduler(
            self.book,
            start=self._start,
            fits=self._fits,
            publish=lambda kind, data: self.events.append((kind, data)),
            clock=lambda: self.now,
        )

    async def _start(self, kept: Kept, run: KeptRun) -> str:
        if self.dies == "before":
            raise Killed
        if self.is_refusing:
            raise CallError(ErrorKind.PEER_UNREACHABLE, "nobody knows this peer")
        # As the service does: the task has the name of its run.
        self.made[f"{kept.id}/{run.number}"] = 1
        if self.dies == "after":
            raise Killed
        return f"task-{run.number}"

    async def _fits(self, schema: Mapping[str, Any], value: Any) -> bool:
        assert schema == {"const": "odd"}
        return int(value["event"]["number"]) % 2 == 1

    async def keep(self, *triggers: dict[str, Any], **more: Any) -> Kept:
        """Store a subscription that was made now."""
        kept = Kept(
            id="sub",
            name="sub",
            created=self.now,
            watcher=Watcher.HERE,
            order=Order(peer="shop"),
            given={"triggers": list(triggers), **more},
        )
        return await self.book.save(kept, now=self.now)

    async def keys(self) -> list[str]:
        """Return the keys of the stored runs, in order."""
        return [one.key for one in reversed(await self.book.runs("sub"))]

    async def started(self, *schedulers: Scheduler) -> None:
        """Wait until everything that is stored is started, or a daemon died."""
        for _ in range(500):
            kept = await self.book.find("sub")
            assert kept is not None
            if not kept.starting or self.dies:
                return
            await asyncio.sleep(0.001)
        raise TimeoutError


def event(number: int) -> Happening:
    return Happening(
        id=f"b-{number}",
        source=EventSource.LOCAL,
        type="build.failed",
        at=1000.0,
        data={"number": number},
    )


@pytest.fixture
def daemons(tmp_path: Path) -> Daemons:
    return Daemons(tmp_path)


@clause("GBZ-63", "GBZ-64")
@pytest.mark.parametrize("dies", ["before", "after"])
async def test_a_kill_between_firing_and_start(daemons: Daemons, dies: str) -> None:
    await daemons.keep(EVERY, missed="all")
    first = daemons.scheduler()
    await first.load()
    daemons.now, daemons.dies = 1010.0, dies
    await first.tick()
    handing = first._entries["sub"].handing
    assert handing is not None
    with pytest.raises(Killed):
        await handing
    # The firing is stored, whatever became of its start.
    kept = await daemons.book.find("sub")
    assert kept is not None
    assert kept.starting == (1,)
    daemons.dies = ""
    second = daemons.scheduler()
    await second.load()
    await second.tick()
    await daemons.started()
    assert daemons.made == {"sub/1": 1}
    run = await daemons.book.run("sub", 1)
    assert run is not None
    assert run.task == "task-1"
    await second.close()


@clause("GBZ-63")
async def test_one_daemon_of_several_fires(daemons: Daemons) -> None:
    await daemons.keep(EVERY, FAILED, missed="all")
    several = [daemons.scheduler() for _ in range(3)]
    for one in several:
        await one.load()
    for now in range(1010, 1100, 10):
        daemons.now = float(now)
        await asyncio.gather(*(one.tick() for one in several))
    # Nor does an event start twice that reaches two of them.
    found = await asyncio.gather(*(one.observe(event(1)) for one in several))
    assert sorted(found) == [[], [], ["sub"]]
    await daemons.started()
    assert len(await daemons.keys()) == 10
    assert len(daemons.made) == 10
    assert len(set(await daemons.keys())) == 10
    for one in several:
        await one.close()


async def test_a_clock_that_jumps(daemons: Daemons) -> None:
    await daemons.keep(EVERY, missed="all")
    scheduler = daemons.scheduler()
    await scheduler.load()
    for now in (1010.0, 1035.0, 900.0, 1035.0, 1040.0):
        daemons.now = now
        await scheduler.tick()
    await daemons.started()
    assert [key[-13:-5] for key in await daemons.keys()] == [
        "00:16:50",
        "00:17:00",
        "00:17:10",
        "00:17:20",
    ]
    assert scheduler.next_due == 1050.0
    await scheduler.close()


async def test_a_condition_and_the_end(daemons: Daemons) -> None:
    await daemons.keep(FAILED, condition={"const": "odd"}, maxRuns=2)
    scheduler = daemons.scheduler()
    await scheduler.load()
    found = [await scheduler.observe(event(number)) for number in range(5)]
    assert found == [[], ["sub"], [], ["sub"], []]
    await daemons.started()
    kept = await daemons.book.find("sub")
    assert kept is not None
    assert (kept.ended, kept.runs) == ("max_runs", 2)
    assert kept.record is not None
    assert not kept.record.open
    ended = [data for kind, data in daemons.events if kind == "subscription.ended"]
    assert ended == [{"subscription": "sub", "reason": "max_runs"}]
    await scheduler.close()


async def test_one_that_cannot_be_started_says_why(daemons: Daemons) -> None:
    await daemons.keep(FAILED)
    daemons.is_refusing = True
    scheduler = daemons.scheduler()
    await scheduler.load()
    await scheduler.observe(event(1))
    await daemons.started()
    run = await daemons.book.run("sub", 1)
    assert run is not None
    assert (run.task, run.problem) == ("", "nobody knows this peer")
    await scheduler.close()


async def test_it_expires_while_nobody_looks(daemons: Daemons) -> None:
    await daemons.keep(EVERY, missed="all", expires="1970-01-01T00:17:00Z")
    daemons.now = 2000.0
    scheduler = daemons.scheduler()
    await scheduler.load()
    await scheduler.tick()
    kept = await daemons.book.find("sub")
    assert kept is not None
    assert (kept.ended, kept.runs) == ("expired", 0)
    assert scheduler.next_due is None
    await scheduler.close()


async def test_it_is_ended_and_goes_on_no_more(daemons: Daemons) -> None:
    await daemons.keep(EVERY)
    scheduler = daemons.scheduler()
    await scheduler.load()
    await scheduler.end("sub", "canceled")
    daemons.now = 1010.0
    await scheduler.tick()
    assert await daemons.keys() == []
    assert await scheduler.observe(event(1)) == []
    await scheduler.close()


async def test_what_ended_long_ago_goes_with_its_runs(daemons: Daemons) -> None:
    await daemons.keep(EVERY)
    assert await daemons.book.prune(older_than=5000.0) == 0
    scheduler = daemons.scheduler()
    await scheduler.load()
    daemons.now = 1010.0
    await scheduler.tick()
    await daemons.started()
    await scheduler.end("sub", "canceled")
    assert await daemons.book.runs("sub")
    assert await daemons.book.prune(older_than=1010.0) == 0
    assert await daemons.book.prune(older_than=1011.0) == 1
    assert await daemons.book.find("sub") is None
    assert await daemons.book.runs("sub") == []
    await scheduler.close()


async def test_the_loop_waits_for_what_is_due_next(daemons: Daemons) -> None:
    scheduler = daemons.scheduler()
    scheduler.run()
    kept = await daemons.keep({"type": "time", "at": "1970-01-01T00:16:41Z"})
    daemons.now = 1001.0
    scheduler.add(kept)
    await daemons.started()
    async with asyncio.timeout(10):
        while not daemons.made:  # noqa: ASYNC110 - another task makes them
            await asyncio.sleep(0.001)
    await daemons.started()
    found = await daemons.book.find("sub")
    assert found is not None
    assert found.ended == "done"
    await scheduler.close()


def test_contents_rest_encrypted(daemons: Daemons, tmp_path: Path) -> None:
    asyncio.run(daemons.keep(FAILED))
    record = daemons.store.subscription("sub")
    assert record is not None
    assert "build.failed" not in str(record)
    assert "shop" not in str(record)
