"""Calls and tasks that go to the best of several peers, between three daemons."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from anp.errors import CallError, ErrorKind
from anp.interaction.elements import Part
from anp.sidecar.calls.call import CallRequest, CallResult
from anp.sidecar.daemon import Daemon
from negotiation.need import Need
from tests.clauses import clause
from tests.e2e.neighbours import introduce, neighbours_in
from tests.waiting import until

PARIS = {"city": "Paris"}


def wanted(name: str = "weather.now") -> CallRequest:
    return CallRequest(peer="", need=Need(name), arguments=PARIS)


async def call(daemon: Daemon, name: str = "weather.now") -> CallResult:
    return await daemon.dispatcher.call(wanted(name))


@clause("A2A-26")
async def test_equal_peers_are_called_in_turn_and_unlisted_ones_never(
    tmp_path: Path,
) -> None:
    async with neighbours_in(tmp_path, "one", "two", "three") as all_of:
        caller = all_of["caller"]
        with pytest.raises(CallError, match="no allowed peer publishes") as caught:
            await call(caller)
        assert caught.value.kind is ErrorKind.PEER_UNREACHABLE
        await introduce(caller, one=all_of["one"], two=all_of["two"])
        said = [(await call(caller, "now")).output["by"] for _ in range(4)]
        assert {*said[:2]} == {"one", "two"}
        assert "three" not in said
        await until(lambda: sum(one.figures.answered for one in known(caller)) == 4)
        assert {one.health for one in known(caller)} == {"good"}


def known(daemon: Daemon) -> list:  # type: ignore[type-arg]
    return daemon.directory.peers()


@clause("A2A-26")
async def test_a_call_fails_over_before_anything_ran(tmp_path: Path) -> None:
    async with neighbours_in(tmp_path, "one", "two") as all_of:
        caller, one, two = all_of.values()
        await introduce(caller, one=one, two=two)
        first = (await call(caller)).output["by"]
        # Both lists are known, so that the one that stops is still tried.
        other = one if first == "two" else two
        await other.links.close()
        said = {(await call(caller)).output["by"] for _ in range(3)}
        assert said == {first}
        troubles = [peer.trouble for peer in known(caller)]
        assert sum(one is not None for one in troubles) == 1


@clause("A2A-26")
async def test_a_call_that_may_have_run_goes_to_nobody_else(tmp_path: Path) -> None:
    async with neighbours_in(tmp_path, "one", "two") as all_of:
        caller, one, two = all_of.values()
        await introduce(caller, one=one, two=two)
        with pytest.raises(CallError) as caught:
            await caller.dispatcher.call(
                CallRequest(
                    peer="", need=Need("weather.fail"), arguments={"words": "no"}
                )
            )
        assert caught.value.may_have_run
        await until(lambda: sum(one.figures.answered for one in known(caller)) == 1)


@clause("A2A-26")
async def test_a_task_is_found_a_peer_and_another_when_that_is_busy(
    tmp_path: Path,
) -> None:
    async with neighbours_in(tmp_path, "one", "two") as all_of:
        caller, one, two = all_of.values()
        await introduce(caller, one=one, two=two)
        for busy in (one, two):
            tasks = [await start(caller) for _ in range(2)]
            done, ended = await caller.tasks.wait(
                [task.id for task in tasks], timeout=20
            )
            assert done
            assert {one.task.state for one in ended} == {"completed"}
            del busy
        full = type(one.tasks.desk).check_room

        def no_room(*_: object) -> None:
            from anp.interaction.errors import InteractionError, InteractionFault

            raise InteractionError(InteractionFault.TOO_MANY, "no room here")

        one.tasks.desk.check_room = no_room  # type: ignore[method-assign]
        for _ in range(3):
            task = await start(caller)
            assert task.task.executor == two.did
        two.tasks.desk.check_room = no_room  # type: ignore[method-assign]
        with pytest.raises(CallError, match="no room here"):
            await start(caller)
        del full


async def start(caller: Daemon):  # type: ignore[no-untyped-def]
    return await caller.dispatcher.start_task("weather.now", parts=[Part.value(PARIS)])


@clause("A2A-26")
async def test_tasks_run_on_the_condition_of_others_and_are_waited_for(
    tmp_path: Path,
) -> None:
    async with neighbours_in(tmp_path, "one") as all_of:
        caller, one = all_of.values()
        await introduce(caller, one=one)
        tasks = caller.tasks
        bad = await tasks.start_task(
            "one", capability="weather.fail", parts=[Part.value({"words": "x"})]
        )

        async def after(state: str, *more: str, any_of: bool = False):  # type: ignore[no-untyped-def]
            return await tasks.start_task(
                "",
                capability="weather.now",
                parts=[Part.value(PARIS)],
                log=bad.log,
                depends_on=[bad.id, *more],
                needs=[state, *("completed" for _ in more)],
                needs_any=any_of,
            )

        rescue = await after("failed rejected")
        regular = await after("completed")
        either = await after("completed", rescue.id, any_of=True)
        ids = [bad.id, rescue.id, regular.id, either.id]
        done, ended = await tasks.wait(ids, timeout=30)
        assert done
        states = [one.task.state for one in ended]
        assert states == ["failed", "completed", "canceled", "completed"]
        assert ended[2].task.code == "dependency_failed"
        done, _ = await tasks.wait([ids[0]], timeout=0.01)
        assert done


async def test_waiting_ends_with_its_time_or_with_the_first(tmp_path: Path) -> None:
    async with neighbours_in(tmp_path, "one") as all_of:
        caller, one = all_of.values()
        await introduce(caller, one=one)
        await one.links.close()
        task = await caller.tasks.start_task("one", capability="weather.now")
        done, (found,) = await caller.tasks.wait([task.id], timeout=0.2)
        assert not done
        assert found.task.state == "x-requested"
        waiting = asyncio.create_task(
            caller.tasks.wait([task.id, task.id], any_of=True, timeout=20)
        )
        await asyncio.sleep(0)
        await caller.tasks.close_session(task.log)
        waiting.cancel()
