"""Tasks over A2A that are cancelled, cut off, refused or forgotten."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.elements import Part, TaskChange
from anp.protocols.a2a import A2A_URIS
from anp.protocols.a2a.words import A2aMethod
from anp.sidecar.tasks.delivery.a2a_requests import A2aRequests, Refused
from anp.sidecar.tasks.desk import TaskDesk
from tests.clauses import clause
from tests.e2e.talks import noted_channels, talks_in
from tests.waiting import until

URIS = sorted(A2A_URIS)


@pytest.mark.parametrize("uri", URIS)
async def test_a_task_is_cancelled_before_the_peer_named_it(
    tmp_path: Path, uri: str
) -> None:
    """The request waits for the id, since the peer would refuse one without."""
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        task = await talks.start("ticks", number=600, pause=0.05)
        await talks.caller.tasks.cancel(task.id)
        seen = await talks.follow(task)
        assert seen.states[-1] == "canceled"
        (theirs,) = await talks.provider.tasks.sessions.tasks()
        assert theirs.task.state == "canceled"


@pytest.mark.parametrize("uri", URIS)
async def test_a_message_to_a_task_that_the_peer_has_not_named(
    tmp_path: Path, uri: str
) -> None:
    """It waits as well: without the task's id it would start another one."""
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        task = await talks.start("book", seat="4A")
        await talks.caller.tasks.send(task.id, [Part.text("yes")], metadata={})
        seen = await talks.follow(task, answers=("yes",))
        assert seen.results == [{"result": "4A: yes"}]
        assert len(await talks.provider.tasks.sessions.tasks()) == 1


@pytest.mark.parametrize("uri", URIS)
async def test_a_refused_cancel_does_not_end_the_task(
    tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the stream of the task tells how it goes on."""
    refused: list[str] = []

    def refuse(self: A2aRequests, method: A2aMethod, params: Any) -> Any:
        if method is A2aMethod.CANCEL:
            refused.append(params["id"])
            params = {"id": "none"}
        return ask(self, method, params)

    ask = A2aRequests.ask
    monkeypatch.setattr(A2aRequests, "ask", refuse)
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        task = await talks.start("ticks", number=20, pause=0.1)
        await talks.caller.tasks.cancel(task.id)
        seen = await talks.follow(task)
        assert seen.states == ["accepted", "working", "completed"]
        assert len(seen.results) == 20
        assert refused
        assert all(refused)


@pytest.mark.parametrize("uri", URIS)
async def test_a_cancel_that_failed_at_the_peer_is_sent_again(
    tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anp.sidecar.tasks.delivery.a2a_carrier.CANCEL_AGAIN", 0.0)
    asked: list[A2aMethod] = []

    async def busy(self: A2aRequests, method: A2aMethod, params: Any) -> Any:
        asked.append(method)
        if method is A2aMethod.CANCEL and asked.count(method) == 1:
            raise Refused("-32603", "busy")
        async with contextlib.aclosing(ask(self, method, params)) as results:
            async for result in results:
                yield result

    ask = A2aRequests.ask
    monkeypatch.setattr(A2aRequests, "ask", busy)
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        task = await talks.start("ticks", number=600, pause=0.05)
        await talks.caller.tasks.cancel(task.id)
        seen = await talks.follow(task)
        assert seen.states[-1] == "canceled"
        assert asked.count(A2aMethod.CANCEL) == 2


async def test_a_task_that_was_begun_over_another_protocol_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A2A knows its tasks by ids that the peer gives, and this one has none."""
    async with talks_in(tmp_path) as talks:
        task = await talks.start("ticks", number=600, pause=0.1)
        exchange = talks.caller.tasks._exchange
        log = await talks.caller.tasks.sessions.conversation(task.log)
        await until(lambda: log.tasks[task.task.id].state == "working")
        monkeypatch.setattr(exchange, "_order", ("urn:anpd:a2a:1.0",))
        for lines in [*exchange.lines._lines.values()]:
            for line in [*lines]:
                await line.channel.close("cut")
        seen = await talks.follow(task)
        assert seen.end is not None
        assert seen.states == ["accepted", "working", "failed"]
        assert (seen.end.code, seen.end.may_have_run) == ("no_protocol", True)
        # What is given from now on goes over A2A.
        seen = await talks.follow(await talks.start("double", number=2))
        assert seen.states[-1] == "completed"


async def test_the_id_of_a_task_is_known_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer named the task and said no more of it."""
    async with talks_in(tmp_path, interaction__order=("urn:anpd:a2a:1.0",)) as talks:
        monkeypatch.setattr(TaskDesk, "begin", lambda *_: None)
        task = await talks.start("double", number=2)
        sessions = talks.caller.tasks.sessions
        log = await sessions.conversation(task.log)
        await until(lambda: len(log.threads) > 1)
        await sessions.settle()
        # As after a kill: nothing but the store is left.
        sessions._entries.clear()
        assert (await sessions.conversation(task.log)).threads == log.threads


async def test_a_session_that_is_deleted_disturbs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    channels = noted_channels(monkeypatch)
    async with talks_in(tmp_path, interaction__order=("urn:anpd:a2a:1.0",)) as talks:
        one = await talks.start("ticks", number=600, pause=0.05)
        sessions = talks.caller.tasks.sessions
        log = await sessions.conversation(one.log)
        await until(lambda: log.tasks[one.task.id].state == "working")
        two = await talks.start("ticks", number=20, pause=0.05)
        other = await sessions.conversation(two.log)
        await until(lambda: other.tasks[two.task.id].state == "working")
        await talks.caller.tasks.delete(one.log)
        seen = await talks.follow(two)
        assert len(seen.results) == 20
        assert len(channels) == 1
    gc.collect()
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


def broken(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> None:
    """Have the first request for a task end with an error after some answers.

    Args:
        answers: What comes in place of what the peer says; None is the peer's own.
    """
    ask = A2aRequests.ask
    asked: list[A2aMethod] = []

    async def broken_ask(self: A2aRequests, method: A2aMethod, params: Any) -> Any:
        is_first = not asked
        asked.append(method)
        async with contextlib.aclosing(ask(self, method, params)) as results:
            if not is_first:
                async for result in results:
                    yield result
                return
            for answer in answers:
                told = await anext(results)
                yield told if answer is None else answer
            raise Refused("-32603", "an error of the peer's")

    monkeypatch.setattr(A2aRequests, "ask", broken_ask)


@pytest.mark.parametrize("uri", URIS)
async def test_a_task_goes_on_after_an_error_in_its_stream(
    tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer has named it, so it can be asked how it goes."""
    broken(monkeypatch, None)
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        seen = await talks.follow(await talks.start("ticks", number=30, pause=0.05))
        assert seen.states[-1] == "completed"
        assert len(seen.results) == 30


async def test_a_task_whose_first_answer_cannot_be_read_may_have_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, {"tsk": 1})
    async with talks_in(tmp_path, interaction__order=("urn:anpd:a2a:1.0",)) as talks:
        seen = await talks.follow(await talks.start("ticks", number=30, pause=0.05))
        assert seen.end is not None
        assert seen.states == ["accepted", "failed"]
        assert (seen.end.code, seen.end.may_have_run) == ("502", True)


async def test_a_task_whose_first_answer_is_late_may_have_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anp.sidecar.tasks.delivery.a2a_requests.PATIENCE", 0.0)
    async with talks_in(tmp_path, interaction__order=("urn:anpd:a2a:1.0",)) as talks:
        seen = await talks.follow(await talks.start("ticks", number=30, pause=0.05))
        assert seen.end is not None
        assert (seen.end.code, seen.end.may_have_run) == ("timeout", True)


@pytest.mark.parametrize("uri", URIS)
@pytest.mark.parametrize("whole", [False, True], ids=["task", "session"])
async def test_a_task_that_waits_for_an_answer_is_cancelled(
    tmp_path: Path, uri: str, *, whole: bool
) -> None:
    """By itself, or with its session; nobody follows it while it waits."""
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        task = await talks.start("book", seat="4A")
        tasks = talks.caller.tasks
        async for event in tasks.watch(task.log):
            content = event.content
            if isinstance(content, TaskChange) and content.state == "x-input-required":
                break
        await (tasks.close_session(task.log) if whole else tasks.cancel(task.id))
        seen = await talks.follow(task)
        assert seen.states[-1] == "canceled"
        (theirs,) = await talks.provider.tasks.sessions.tasks()
        assert theirs.task.state == "canceled"


@clause("A2A-15", "A2A-22")
@pytest.mark.parametrize("uri", ["urn:anpd:a2a:0.3", "urn:anpd:a2a:1.0"])
async def test_a_task_goes_on_after_its_channel_broke(
    tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels = noted_channels(monkeypatch)
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        task = await talks.start("ticks", number=30, pause=0.1)
        await until(lambda: bool(channels))
        following = asyncio.create_task(talks.follow(task))
        await asyncio.sleep(1)
        await channels[0].close("cut")
        seen = await following
        assert seen.states == ["accepted", "working", "completed"]
        # Data of 0.3 is an object.
        is_old = uri.endswith("0.3")
        wanted = [{"value": one} if is_old else one for one in range(30)]
        assert seen.results == wanted
        assert len(channels) == 2


@clause("A2A-15")
@pytest.mark.parametrize("is_told_of", [False, True])
async def test_a_task_that_the_peer_has_forgotten_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_told_of: bool
) -> None:
    """It may have run, also where the peer forgot it before it said anything of it."""
    channels = noted_channels(monkeypatch)
    async with talks_in(tmp_path, interaction__order=("urn:anpd:a2a:1.0",)) as talks:
        task = await talks.start("ticks", number=600, pause=0.05)
        following = asyncio.create_task(talks.follow(task))
        sessions = talks.provider.tasks.sessions
        async with asyncio.timeout(10):
            # Nobody tells of it.
            while not (known := await sessions.tasks()):  # noqa: ASYNC110
                await asyncio.sleep(0)
        if is_told_of:
            log = await talks.caller.tasks.sessions.conversation(task.log)
            await until(lambda: log.tasks[task.task.id].state == "working")
        await talks.provider.tasks.delete(known[0].log)
        await channels[-1].close("cut")
        seen = await following
        assert seen.end is not None
        assert seen.states[-1] == "failed"
        assert (seen.end.code, seen.end.may_have_run) == ("-32001", True)


async def test_a_task_that_is_held_goes_out_when_its_time_comes(tmp_path: Path) -> None:
    async with talks_in(tmp_path, interaction__order=("urn:anpd:a2a:1.0",)) as talks:
        first = await talks.start("ticks", number=20, pause=0.05)
        second = await talks.caller.tasks.start_task(
            talks.address,
            capability="agent.double",
            parts=[Part.value({"number": 2})],
            log=first.log,
            depends_on=[first.id],
        )
        seen = await talks.follow(second)
        assert seen.results == [{"number": 4}]
