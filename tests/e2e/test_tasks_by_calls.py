"""Tasks at a peer that speaks no protocol for them, each made as one call."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.elements import Part, Task
from anp.interaction.states import TaskState
from anp.protocols.gbz.words import GBZ_GROUPS_URI
from anp.sidecar.offer.gate import ApprovalPending
from anp.sidecar.tasks.delivery.one_turn import OneTurn
from anp.sidecar.tasks.desk import TaskDesk
from anp.sidecar.tasks.known import KnownTask
from tests.e2e.talks import AGENT, Talks, talks_in
from tests.waiting import until

PAYS = (
    AGENT
    + '''

def pay(file: str) -> str:
    """Pay, and fail."""
    open(file, "a").write("paid\\n")
    raise ValueError("no")
'''
)


async def stopped(talks: Talks) -> None:
    """Stop what carries the caller's tasks, as a daemon that stops does."""
    await talks.caller.tasks._exchange.lines.close()
    await talks.caller.tasks._exchange._plain.close()


async def test_a_call_that_was_accepted_before_a_stop_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon stops when it has told that it begins, and has not begun."""
    change, held = OneTurn._change, asyncio.Event()

    async def hold(
        self: OneTurn, log: str, task: Task, state: TaskState, **more: Any
    ) -> None:
        if state == "working":
            held.set()
            await asyncio.Event().wait()
        await change(self, log, task, state, **more)

    async with talks_in(tmp_path, source=PAYS, interaction__order=()) as talks:
        mark = tmp_path / "mark"
        with monkeypatch.context() as patch:
            patch.setattr(OneTurn, "_change", hold)
            task = await talks.start("pay", file=str(mark))
            await held.wait()
            await stopped(talks)
        assert not mark.exists()
        await talks.caller.tasks._exchange.resume(task.log)
        seen = await talks.follow(task)
        assert seen.states == ["accepted", "working", "failed"]
        assert mark.read_text() == "paid\n"


async def test_a_call_that_is_cancelled_over_a_stop_may_have_run(
    tmp_path: Path,
) -> None:
    async with talks_in(tmp_path, interaction__order=()) as talks:
        mark = tmp_path / "mark"
        task = await talks.start("wait", file=str(mark))
        await until(mark.exists)
        await stopped(talks)
        await talks.caller.tasks.cancel(task.id)
        await talks.caller.tasks._exchange.resume(task.log)
        seen = await talks.follow(task)
        assert seen.end is not None
        assert (seen.end.state, seen.end.may_have_run) == ("canceled", True)


async def pending(*_: Any) -> None:
    raise ApprovalPending("wait")


async def nowhere(*_: Any) -> None:
    """Find no protocol for tasks at a peer."""


async def given(talks: Talks, mark: Path, protocol: str = "") -> KnownTask:
    """Give a task, and wait until the peer has it."""
    task = await talks.caller.tasks.start_task(
        talks.address,
        capability="agent.pay",
        parts=[Part.value({"file": str(mark)})],
        protocol=protocol,
    )
    log = await talks.caller.tasks.sessions.conversation(task.log)
    (peer,) = log.peers()
    await until(lambda: not log.unacknowledged(peer))
    return task


async def cut(talks: Talks) -> None:
    """End every connection over which tasks are talked of."""
    for lines in [*talks.caller.tasks._exchange.lines._lines.values()]:
        for line in [*lines]:
            await line.channel.close("cut")


@pytest.mark.parametrize("is_said", [False, True])
@pytest.mark.parametrize("protocol", ["", GBZ_GROUPS_URI], ids=["any", "named"])
async def test_a_task_that_the_peer_took_over_a_protocol_is_not_made_as_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, *, is_said: bool
) -> None:
    """The peer speaks none now; it said that it accepted the task, or only took it."""
    async with talks_in(tmp_path, source=PAYS) as talks:
        mark = tmp_path / "mark"
        desk = talks.provider.tasks.desk
        monkeypatch.setattr(desk._capabilities.gate, "admit", pending)
        if not is_said:
            monkeypatch.setattr(TaskDesk, "begin", lambda *_: None)
        task = await given(talks, mark, protocol)
        if is_said:
            tasks = (await talks.caller.tasks.sessions.conversation(task.log)).tasks
            await until(lambda: tasks[task.task.id].state == "accepted")
        monkeypatch.setattr(talks.caller.tasks._exchange, "dial", nowhere)
        await cut(talks)
        seen = await talks.follow(task)
        assert seen.end is not None
        assert seen.states == ["accepted", "failed"]
        assert (seen.end.code, seen.end.may_have_run) == ("no_protocol", True)
        assert not mark.exists()


async def test_a_task_that_the_peer_took_is_cancelled_without_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talks_in(tmp_path, source=PAYS) as talks:
        mark = tmp_path / "mark"
        monkeypatch.setattr(TaskDesk, "begin", lambda *_: None)
        task = await given(talks, mark)
        cancelled = asyncio.Event()

        async def late(*_: Any) -> None:
            await cancelled.wait()

        monkeypatch.setattr(talks.caller.tasks._exchange, "dial", late)
        await cut(talks)
        await talks.caller.tasks.cancel(task.id)
        cancelled.set()
        seen = await talks.follow(task)
        assert seen.end is not None
        assert (seen.end.state, seen.end.may_have_run) == ("canceled", True)
        assert not mark.exists()


async def test_a_session_that_is_deleted_before_its_turn_disturbs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with talks_in(tmp_path, interaction__order=()) as talks:
        one = await talks.start("ticks", number=20, pause=0.05)
        two = await talks.start("ticks", number=600, pause=0.05)
        log = await talks.caller.tasks.sessions.conversation(two.log)
        await until(lambda: log.tasks[two.task.id].state == "working")
        carry, deleted = OneTurn.carry, asyncio.Event()

        async def late(self: OneTurn, log: str, *more: Any) -> None:
            if log == two.log and not deleted.is_set():
                deleted.set()
                await talks.caller.tasks.delete(two.log)
            await carry(self, log, *more)

        monkeypatch.setattr(OneTurn, "carry", late)
        await deleted.wait()
        assert (await talks.follow(one)).states[-1] == "completed"
    assert not [one for one in caplog.records if one.levelname == "ERROR"]
