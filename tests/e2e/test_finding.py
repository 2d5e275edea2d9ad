"""Calls and tasks that go to the best of several peers, between three daemons."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from anp.errors import CallError, ErrorKind
from anp.interaction.elements import Part
from anp.interaction.errors import InteractionError, InteractionFault
from anp.sidecar.api.app import make_app
from anp.sidecar.api.guard import Door
from anp.sidecar.calls.call import CallRequest, CallResult
from anp.sidecar.daemon import Daemon
from anp.sidecar.peers.directory import KnownPeer
from anp.sidecar.tasks.chronicle import Chronicle
from anp.sidecar.tasks.known import KnownTask
from cache.records.peers import PeerState
from negotiation.need import Need
from sandbox.pool.shares import Share
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


def known(daemon: Daemon) -> list[KnownPeer]:
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
        for _ in range(9):
            caller.measures.failed((two if other is one else one).did, "weather.now")
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with neighbours_in(tmp_path, "one", "two") as all_of:
        caller, one, two = all_of.values()
        await introduce(caller, one=one, two=two)
        tasks = [await start(caller) for _ in range(4)]
        done, ended = await Chronicle(caller.tasks.sessions).wait(
            [task.id for task in tasks], timeout=20
        )
        assert done
        assert {task.task.state for task in ended} == {"completed"}
        assert {task.task.executor for task in ended} == {one.did, two.did}
        monkeypatch.setattr(one.tasks.desk, "check_room", no_room)
        for _ in range(3):
            assert (await start(caller)).task.executor == two.did
        monkeypatch.setattr(two.tasks.desk, "check_room", no_room)
        with pytest.raises(CallError, match="no room here"):
            await start(caller)


def no_room(share: Share) -> None:
    raise InteractionError(InteractionFault.TOO_MANY, "no room here")


async def start(caller: Daemon) -> KnownTask:
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

        async def after(state: str, *more: str, any_of: bool = False) -> KnownTask:
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
        done, ended = await Chronicle(tasks.sessions).wait(ids, timeout=30)
        assert done
        states = [one.task.state for one in ended]
        assert states == ["failed", "completed", "canceled", "completed"]
        assert ended[2].task.code == "dependency_failed"
        done, _ = await Chronicle(tasks.sessions).wait([ids[0]], timeout=0.01)
        assert done


async def test_waiting_ends_with_its_time_or_with_the_first(tmp_path: Path) -> None:
    async with neighbours_in(tmp_path, "one") as all_of:
        caller, one = all_of.values()
        await introduce(caller, one=one)
        await one.links.close()
        task = await caller.tasks.start_task("one", capability="weather.now")
        done, (found,) = await Chronicle(caller.tasks.sessions).wait(
            [task.id], timeout=0.2
        )
        assert not done
        assert found.task.state == "x-requested"
        other = await caller.tasks.start_task("", capability="x", log=task.log)
        both = [task.id, other.id]
        waiting = asyncio.create_task(
            Chronicle(caller.tasks.sessions).wait(both, any_of=True, timeout=20)
        )
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await caller.tasks.recheck()
        await caller.policy.rule(one.did, PeerState.BLOCKED)
        await caller.tasks.recheck()
        done, _ = await waiting
        assert done


async def test_what_the_api_refuses_and_what_an_agent_may_not_see(
    tmp_path: Path,
) -> None:
    async with neighbours_in(tmp_path, "one") as all_of:
        caller, one = all_of.values()
        await introduce(caller, one=one)
        app = make_app(caller, door=Door(owner_token="owner"))
        agent, owner = (
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app),
                base_url="http://anpd",
                headers=headers,
                timeout=60,
            )
            for headers in ({}, {"authorization": "Bearer owner"})
        )
        async with agent, owner:

            async def status(path: str, **body: object) -> int:
                return (await agent.post(path, json=body)).status_code

            find = {"find": "weather.now", "input": PARIS}
            assert await status("/v1/calls", **find, peer="one") == 400
            assert await status("/v1/calls", **find, need="weather.now") == 400
            assert await status("/v1/calls", peer="one") == 400
            assert await status("/v1/calls", **find, protocol="urn:a:b") == 400
            assert await status("/v1/calls", **find) == 200
            assert await status("/v1/tasks", **find, peer="one") == 400
            assert await status("/v1/tasks", **find, capability="x") == 400
            assert await status("/v1/tasks", find="weather.later") == 424
            started = await owner.post("/v1/tasks", json=find)
            assert started.status_code == 202
            task = started.json()["id"]
            assert await status("/v1/tasks/wait", tasks=[task]) == 404
            assert await status("/v1/tasks/wait", tasks=["x"]) == 404
            assert await status("/v1/tasks/wait", tasks=[]) == 400
            done = await owner.post("/v1/tasks/wait", json={"tasks": [task]})
            assert done.json()["done"] is True
            wrong = {"task": task, "states": ["working"]}
            assert await status("/v1/tasks", peer="one", depends_on=[wrong]) == 400
            found = (await agent.get("/v1/peers/find?capability=now")).json()
            assert found["announced"] == []
            (peer,) = found["peers"]
            assert (peer["address"], peer["capability"]) == ("one", "weather.now")
