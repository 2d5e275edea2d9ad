"""Tasks at a peer that speaks no protocol for them, each made as one call."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.elements import Task
from anp.interaction.states import TaskState
from anp.sidecar.tasks.one_turn import OneTurn
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
