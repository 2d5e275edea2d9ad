"""Two daemons with more than one way for tasks between them: each task goes one way."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.elements import Part, Task
from anp.interaction.states import TaskState
from anp.protocols.a2a.words import A2aMethod
from anp.protocols.gbz.words import GBZ_GROUPS_URI
from anp.sidecar.tasks.delivery.a2a_carrier import A2aCarrier
from anp.sidecar.tasks.delivery.a2a_requests import A2aRequests
from anp.sidecar.tasks.delivery.one_turn import OneTurn
from anp.sidecar.tasks.known import utc_now
from tests.e2e.talks import Talks, noted_channels, talks_in
from tests.e2e.test_tasks_by_calls import PAYS, cut, nowhere, stopped
from tests.waiting import until

A2A = "urn:anpd:a2a:1.0"
GBZ = "urn:anpd:gbz-185.6:1"


def with_two_orders(folder: Path) -> AbstractAsyncContextManager[Talks]:
    """Run a caller that prefers A2A, and a provider that prefers GB/Z."""
    return talks_in(
        folder,
        interaction__order=(A2A, GBZ),
        provider={"interaction__order": (GBZ, A2A)},
    )


def without_a2a(exchange: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a caller find that its peer does not speak A2A any more."""
    dial = exchange.dial

    async def dial_others(peer: str, protocol: str) -> Any:
        return None if protocol == A2A else await dial(peer, protocol)

    monkeypatch.setattr(exchange, "dial", dial_others)


async def begun(talks: Talks, name: str, /, **data: Any) -> Any:
    """Give a task, and wait until its agent is at work."""
    task = await talks.start(name, **data)
    log = await talks.caller.tasks.sessions.conversation(task.log)
    await until(lambda: log.tasks[task.task.id].state == "working")
    return task


async def dialled(talks: Talks) -> None:
    """Have the provider dial the caller over GB/Z, and stay."""
    for one in (talks.caller, talks.provider):
        one.tasks._exchange.lines.users.append(lambda peer: True)
    exchange = talks.provider.tasks._exchange
    address = f"{talks.caller.url}#{talks.caller.did}"
    found = await exchange.dial(address, GBZ_GROUPS_URI)
    assert found is not None
    await exchange.lines.begin(*found, lambda: True)
    await until(lambda: talks.caller.tasks._exchange.lines.has(talks.provider.did))


@pytest.mark.parametrize("first", ["a2a", "calls"])
async def test_a_line_of_the_peers_takes_new_sessions_and_no_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    async with with_two_orders(tmp_path) as talks:
        if first == "calls":
            monkeypatch.setattr(talks.caller.tasks._exchange, "dial", nowhere)
        old = await begun(talks, "ticks", number=60, pause=0.05)
        await dialled(talks)
        for _ in range(3):
            seen = await talks.follow(await talks.start("ticks", number=5, pause=0.05))
            assert (seen.states[-1], len(seen.results)) == ("completed", 5)
        if first == "a2a":
            # Another task of the old session goes the way of that session.
            more = await talks.start("double", log=old.log, number=2)
            assert (await talks.follow(more)).states[-1] == "completed"
        assert (await talks.follow(old)).states[-1] == "completed"
        theirs = await talks.provider.tasks.sessions.tasks()
        ran = [one for one in theirs if one.task.capability == "agent.ticks"]
        assert len(ran) == (4 if first == "a2a" else 3)


async def test_tasks_go_on_over_a2a_though_there_is_a_line_after_a_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels = noted_channels(monkeypatch)
    async with talks_in(tmp_path, interaction__order=(A2A, GBZ)) as talks:
        task = await begun(talks, "ticks", number=60, pause=0.05)
        await dialled(talks)
        await channels[0].close("cut")
        seen = await talks.follow(task)
        assert (seen.states[-1], len(seen.results)) == ("completed", 60)
        theirs = await talks.provider.tasks.sessions.tasks()
        ran = [one for one in theirs if one.task.capability == "agent.ticks"]
        assert len(ran) == 1


@pytest.mark.parametrize("still", [True, False])
async def test_tasks_over_a2a_when_another_protocol_is_preferred_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, still: bool
) -> None:
    """They go on where they are as long as the peer speaks that; others are free."""
    async with talks_in(tmp_path, interaction__order=(A2A, GBZ)) as talks:
        task = await begun(talks, "ticks", number=60, pause=0.05)
        await stopped(talks)
        exchange = talks.caller.tasks._exchange
        if not still:
            without_a2a(exchange, monkeypatch)
        monkeypatch.setattr(exchange, "_order", (GBZ, A2A))
        await exchange.resume(task.log)
        seen = await talks.follow(task)
        if still:
            assert (seen.states[-1], len(seen.results)) == ("completed", 60)
        else:
            assert seen.end is not None
            assert (seen.end.code, seen.end.may_have_run) == ("no_protocol", True)


async def test_a_session_that_was_bound_to_a2a_is_free_when_the_peer_leaves_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels = noted_channels(monkeypatch)
    async with talks_in(tmp_path, interaction__order=(A2A, GBZ)) as talks:
        task = await begun(talks, "ticks", number=600, pause=0.05)
        exchange = talks.caller.tasks._exchange
        without_a2a(exchange, monkeypatch)
        monkeypatch.setattr(exchange, "_order", (GBZ,))
        await channels[0].close("cut")
        seen = await talks.follow(task)
        assert seen.end is not None
        assert (seen.end.code, seen.end.may_have_run) == ("no_protocol", True)
        seen = await talks.follow(await talks.start("double", number=2))
        assert seen.states[-1] == "completed"


@pytest.mark.parametrize("how", ["a2a", "calls"])
async def test_a_line_that_comes_and_goes_takes_its_tasks_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """They come again over the next line, while another session goes another way."""
    async with with_two_orders(tmp_path) as talks:
        exchange = talks.caller.tasks._exchange
        with monkeypatch.context() as patch:
            if how == "calls":
                patch.setattr(exchange, "dial", nowhere)
            old = await begun(talks, "ticks", number=60, pause=0.05)
            await dialled(talks)
            new = await begun(talks, "ticks", number=30, pause=0.05)
        await cut(talks)
        for task, count in ((new, 30), (old, 60)):
            seen = await talks.follow(task)
            assert seen.states[-1] == "completed", seen.end
            # Calls give one whole result.
            assert len(seen.results) == count


@pytest.mark.parametrize("protocol", ["", GBZ_GROUPS_URI], ids=["any", "named"])
async def test_a_task_that_was_sent_and_not_acknowledged_may_have_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """The connection ends before the acknowledgement; then no protocol is common."""

    async def lost(*_: Any) -> None:
        """Take nothing that the peer says."""

    async with talks_in(tmp_path, source=PAYS) as talks:
        mark = tmp_path / "mark"
        exchange = talks.caller.tasks._exchange
        monkeypatch.setattr(exchange, "take", lost)
        task = await talks.caller.tasks.start_task(
            talks.address,
            capability="agent.pay",
            parts=[Part.value({"file": str(mark)})],
            protocol=protocol,
        )
        await until(mark.exists)
        monkeypatch.setattr(exchange, "dial", nowhere)
        await cut(talks)
        seen = await talks.follow(task)
        assert seen.end is not None
        assert (seen.end.state, seen.end.may_have_run) == ("failed", True)
        assert mark.read_text() == "paid\n"


@pytest.mark.parametrize("uri", [A2A, GBZ])
async def test_a_call_that_was_not_begun_is_made_whatever_the_peer_speaks_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str
) -> None:
    held = asyncio.Event()

    async def hold(
        self: OneTurn, log: str, task: Task, state: TaskState, **more: Any
    ) -> None:
        held.set()
        await asyncio.Event().wait()

    async with talks_in(tmp_path, source=PAYS, interaction__order=(uri,)) as talks:
        mark = tmp_path / "mark"
        exchange = talks.caller.tasks._exchange
        with monkeypatch.context() as patch:
            patch.setattr(OneTurn, "_change", hold)
            patch.setattr(exchange, "dial", nowhere)
            task = await talks.start("pay", file=str(mark))
            await held.wait()
            await stopped(talks)
        await exchange.resume(task.log)
        seen = await talks.follow(task)
        assert seen.states == ["accepted", "working", "failed"]
        assert mark.read_text() == "paid\n"


@pytest.mark.parametrize("is_named", [False, True])
async def test_a_task_that_was_given_up_is_not_left_at_an_a2a_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_named: bool
) -> None:
    async with talks_in(tmp_path, interaction__order=(A2A,)) as talks:
        exchange = talks.caller.tasks._exchange
        dial, free = exchange.dial, asyncio.Event()

        async def late(*given: Any) -> Any:
            await free.wait()
            return await dial(*given)

        if is_named:
            task = await begun(talks, "ticks", number=600, pause=0.05)
        else:
            monkeypatch.setattr(exchange, "dial", late)
            task = await talks.start("ticks", number=600, pause=0.05)
        sessions = talks.caller.tasks.sessions
        await sessions.apply(
            task.log,
            lambda c: c.give_up(task.task.id, reason="late", wall_now=utc_now()),
        )
        free.set()
        log = await sessions.conversation(task.log)
        await until(lambda: not log.is_busy)
        provider = talks.provider.tasks.sessions
        theirs = await provider.tasks()
        assert len(theirs) == is_named
        logs = [await provider.conversation(one.log) for one in theirs]
        await until(lambda: not any(log.unfinished for log in logs))
        ends = [one.state for log in logs for one in log.tasks.values()]
        assert ends == ["canceled"] * is_named


async def test_a_channel_that_ends_before_a_task_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its request waits for room, and another session is looked at just then."""
    channels = noted_channels(monkeypatch)
    ask, look = A2aRequests.ask, A2aCarrier._look
    blocked, room, looking = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with talks_in(tmp_path, interaction__order=(A2A,)) as talks:
        one = await begun(talks, "ticks", number=100, pause=0.05)

        async def full(self: Any, method: A2aMethod, params: Any) -> Any:
            if method is A2aMethod.STREAM and not blocked.is_set():
                blocked.set()
                await room.wait()
            async for result in ask(self, method, params):
                yield result

        async def looks(self: Any, log: str) -> None:
            if log == one.log and blocked.is_set() and not room.is_set():
                looking.set()
                await room.wait()
                await asyncio.sleep(0.05)
            await look(self, log)

        monkeypatch.setattr(A2aRequests, "ask", full)
        monkeypatch.setattr(A2aCarrier, "_look", looks)
        two = await talks.start("double", number=2)
        await looking.wait()
        await channels[0].close("cut")
        room.set()
        assert (await talks.follow(two)).states[-1] == "completed"
