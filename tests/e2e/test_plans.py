"""Tasks whose parts are given to several daemons, and tasks that go on to the next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from anp.errors import CallError, ErrorKind
from anp.identity.dids import agent_name
from anp.interaction.elements import Task, TaskChange
from anp.interaction.plan import Subtask, TaskPlan
from anp.interaction.states import TaskState
from anp.protocols.a2a.words import A2A_URIS
from anp.protocols.envelope import ENVELOPE_TASKS_URI
from anp.protocols.gbz.words import GBZ_URI
from anp.sidecar.api.app import make_app
from anp.sidecar.api.guard import Door
from anp.sidecar.calls.call import CallRequest
from anp.sidecar.daemon import Daemon
from anp.sidecar.plans import worker
from anp.sidecar.plans.group_offer import GroupOffer
from anp.sidecar.tasks.chronicle import Chronicle
from anp.sidecar.tasks.known import Maker
from anp.sidecar.tasks.work.worker import Worker
from negotiation.need import Need
from tests.clauses import clause
from tests.e2e.neighbours import address, introduce, neighbours_in
from tests.waiting import until

OSLO = {"input": {"city": "Oslo"}}


@asynccontextmanager
async def api_of(daemon: Daemon) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(make_app(daemon, door=Door()))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://anpd", timeout=60
    ) as client:
        yield client


async def started(api: httpx.AsyncClient, **body: Any) -> str:
    answer = await api.post("/v1/tasks", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


async def ended(daemon: Daemon, api: httpx.AsyncClient, task: str) -> dict[str, Any]:
    done, _ = await Chronicle(daemon.tasks.sessions).wait([task], timeout=30)
    assert done
    found: dict[str, Any] = (await api.get(f"/v1/tasks/{task}")).json()
    return found


def told(found: dict[str, Any]) -> list[tuple[int, str, Any]]:
    """Return number, state and content of each part."""
    return sorted(
        (
            one["metadata"]["subtask"],
            one["metadata"]["state"],
            one["parts"][0].get("value", one["parts"][0].get("text")),
        )
        for one in found["messages"]
    )


@clause("GBZ-59", "GBZ-60", "GBZ-61")
async def test_a_master_gives_parts_to_others_and_has_their_results_in_one_place(
    tmp_path: Path,
) -> None:
    async with neighbours_in(tmp_path, "one", "two") as all_of:
        caller, one, two = all_of.values()
        await introduce(caller, one=one, two=two)
        parts = [{"peer": name, "capability": "weather.now", **OSLO} for name in all_of]
        async with api_of(caller) as api:
            whole = await started(api, subtasks=parts[1:])
            found = await ended(caller, api, whole)
            assert found["state"] == "completed"
            assert told(found) == [
                (0, "completed", {"city": "Oslo", "by": "one"}),
                (1, "completed", {"city": "Oslo", "by": "two"}),
            ]
            executors = {one["metadata"]["executor"] for one in found["messages"]}
            assert executors == {one.did, two.did}
            # One after the other: behind a part that failed nothing is begun.
            bad = {"peer": "one", "capability": "weather.fail", "text": "no"}
            serial = await started(api, subtasks=[bad, parts[2]], dispatch="serial")
            found = await ended(caller, api, serial)
            assert (found["state"], len(found["messages"])) == ("failed", 1)
            any_of = await started(
                api, subtasks=[bad, parts[2]], dispatch="serial", wait="any"
            )
            found = await ended(caller, api, any_of)
            assert found["state"] == "completed"
            assert [state for _, state, _ in told(found)] == ["failed", "completed"]


@clause("GBZ-59", "GBZ-62")
async def test_a_task_that_is_handed_back_goes_to_the_next_and_never_in_a_circle(
    tmp_path: Path,
) -> None:
    async with neighbours_in(tmp_path, "one", "two") as all_of:
        caller, one, two = all_of.values()
        await introduce(caller, one=one, two=two)
        async with api_of(caller) as api:
            names = ["no-one", "one", "two"]
            now = {"capability": "weather.now", **OSLO}
            proxied = await started(api, candidates=names, **now)
            found = await ended(caller, api, proxied)
            assert found["state"] == "completed", found
            (message,) = found["messages"]
            assert message["metadata"]["executor"] == one.did
            (passed,) = message["metadata"]["passed"]
            assert (passed["peer"], passed["code"]) == ("no-one", "usage")
            missing = {"candidates": ["one", "two"], "capability": "weather.later"}
            found = await ended(caller, api, await started(api, **missing))
            assert (found["state"], found["code"]) == ("rejected", "unknown_action")
            assert found["reason"].count("there is no capability") == 2
            # What may have run goes to nobody else.
            broken = {"capability": "weather.fail", "text": "no"}
            ran = await started(api, candidates=["one", "two"], **broken)
            found = await ended(caller, api, ran)
            assert (found["state"], found["may_have_run"]) == ("failed", True)
            given = [one.task.capability for one in await two.tasks.sessions.tasks()]
            assert "weather.fail" not in given
            find = [{"find": "now", **OSLO} for _ in range(2)]
            found = await ended(caller, api, await started(api, subtasks=find))
            executors = {one["metadata"]["executor"] for one in found["messages"]}
            assert executors == {one.did, two.did}
            found = await ended(
                caller, api, await started(api, find="now", proxy=True, **OSLO)
            )
            assert found["state"] == "completed"


@clause("GBZ-62")
async def test_no_task_goes_in_a_circle_and_a_cancelled_whole_cancels_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with neighbours_in(tmp_path, "one") as all_of:
        caller, one = all_of.values()
        await introduce(caller, one=one)
        async with api_of(caller) as api:
            # The peer does not know what is meant, and so asks: the task is at work.
            whole = await started(api, candidates=["one"], text="something")
            await until(lambda: one.tasks.desk.working == 1)
            (there,) = await one.tasks.sessions.tasks()
            visited = await one.plans.visited(there.id)
            assert visited == (caller.did,)
            back = TaskPlan(
                subtasks=(Subtask(peers=(address(caller),)),), visited=visited
            )
            known = await one.plans.start(back, [], maker=Maker.OWNER)
            _, (failed,) = await Chronicle(one.tasks.sessions).wait(
                [known.id], timeout=20
            )
            assert failed.task.state == "failed"
            assert "goes in a circle" in failed.task.reason
            # A daemon that does not look is told so by the one that has it again.
            monkeypatch.setattr(worker, "loop_problem", lambda *_: "")
            known = await one.plans.start(back, [], maker=Maker.OWNER)
            _, (failed,) = await Chronicle(one.tasks.sessions).wait(
                [known.id], timeout=20
            )
            assert (failed.task.state, failed.task.code) == ("rejected", "loop")
            assert (await api.post(f"/v1/tasks/{whole}/cancel", json={})).is_success
            found = await ended(caller, api, whole)
            assert found["state"] == "canceled"
            late = await started(api, candidates=["one"], text="more", timeout=0.5)
            found = await ended(caller, api, late)
            assert (found["state"], found["code"]) == ("failed", "deadline")
            await until(lambda: one.tasks.desk.working == 0)
            assert (await one.tasks.task(there.id)).task.state == "canceled"


@clause("GBZ-62")
@pytest.mark.parametrize("stored", [False, True])
async def test_a_plan_goes_on_after_a_stop_and_starts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    async with neighbours_in(tmp_path, "one") as all_of:
        caller, one = all_of.values()
        await introduce(caller, one=one)
        create, reached = caller.tasks.create, asyncio.Event()

        async def cut_off(log: str, task: Task) -> None:
            if stored:
                await create(log, task)
            reached.set()
            await asyncio.Event().wait()

        async with api_of(caller) as api:
            with monkeypatch.context() as patch:
                patch.setattr(caller.tasks, "create", cut_off)
                whole = await started(
                    api, candidates=["one", address(one)], text="something"
                )
                await reached.wait()
                await caller.tasks.desk.close()
            await caller.tasks.resume()
            await until(lambda: one.tasks.desk.working == 1)
            known = [one async for one in _parts_of(caller)]
            assert len(known) == 1
            assert (await caller.tasks.task(whole)).task.state == "working"


async def _parts_of(daemon: Daemon) -> AsyncIterator[str]:
    for known in await daemon.tasks.sessions.tasks():
        if known.task.parent:
            yield known.id


@clause("GBZ-62")
async def test_work_of_a_candidate_is_not_forgotten_when_the_next_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def repeatable(*_: Any) -> bool:
        return True

    monkeypatch.setattr(worker.PlanWorker, "_is_repeatable", repeatable)
    async with neighbours_in(tmp_path, "one", "two") as all_of:
        # The one without tools takes nothing.
        none, one, two = all_of.values()
        await introduce(two, one=one, none=none)
        create, reached = two.tasks.create, asyncio.Event()

        async def cut_off(log: str, task: Task) -> None:
            await create(log, task)
            if agent_name(task.executor) == agent_name(none.did):
                reached.set()
                await asyncio.Event().wait()

        async with api_of(two) as api:
            broken = {"capability": "weather.fail", "text": "no"}
            whole = await started(api, candidates=["one", "none"], **broken)
            found = await ended(two, api, whole)
            assert (found["state"], found["may_have_run"]) == ("failed", True)
            assert found["reason"].startswith("nobody took it: one: ")
            # Nor after a stop, when only the newest candidate is asked further.
            with monkeypatch.context() as patch:
                patch.setattr(two.tasks, "create", cut_off)
                whole = await started(api, candidates=["one", "none"], **broken)
                await reached.wait()
                await two.tasks.desk.close()
            await two.tasks.resume()
            found = await ended(two, api, whole)
            assert (found["state"], found["may_have_run"]) == ("failed", True)


@clause("GBZ-62")
async def test_a_cancelled_plan_says_that_a_part_may_have_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with neighbours_in(tmp_path, "one") as all_of:
        caller, one = all_of.values()
        await introduce(caller, one=one)
        begun, begin = asyncio.Event(), Worker.begin

        async def begins(self: Worker) -> bool:
            found = await begin(self)
            begun.set()
            await asyncio.Event().wait()
            return found

        monkeypatch.setattr(Worker, "begin", begins)
        async with api_of(caller) as api:
            whole = await started(
                api, candidates=["one"], capability="weather.now", **OSLO
            )
            await begun.wait()
            assert (await api.post(f"/v1/tasks/{whole}/cancel", json={})).is_success
            found = await ended(caller, api, whole)
            assert (found["state"], found["may_have_run"]) == ("canceled", True)


@clause("GBZ-18")
@pytest.mark.parametrize("how", ["deadline", "silence", "refused", "nobody"])
async def test_an_offer_that_may_be_at_work_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A member works past the deadline, the hub is silent, or we fail after it."""
    monkeypatch.setattr("anp.sidecar.plans.group_offer.SETTLING", 0.5)
    timeout = None

    def accepted(self: GroupOffer, event: Any) -> None:
        self.executor = "did:web:member"
        self.change = TaskChange(task=self.task.id, state=TaskState.WORKING)

    if how == "deadline":
        monkeypatch.setattr(GroupOffer, "_take", accepted)
        timeout = 1
    elif how == "silence":
        monkeypatch.setattr(GroupOffer, "_take", lambda self, event: None)
    settings = {"caller": {"interaction.max_wait": 1}}
    async with neighbours_in(tmp_path, settings=settings) as all_of:
        (caller,) = all_of.values()
        group = (await caller.groups.create()).group.id
        say = caller.groups.say

        async def failing(*given: Any) -> Any:
            await say(*given)
            raise CallError(ErrorKind.PEER_UNREACHABLE, "an error after it was said")

        if how == "refused":
            monkeypatch.setattr(caller.groups, "say", failing)
        async with api_of(caller) as api:
            part = {"group": group, "capability": "weather.now", **OSLO}
            more = {"timeout": timeout} if timeout else {}
            whole = await started(api, subtasks=[part], **more)
            found = await ended(caller, api, whole)
            assert found["state"] == "failed"
            assert found["may_have_run"] is (how != "nobody")
            codes = {"deadline": "deadline", "nobody": "no_peer"}
            assert found["code"] == codes.get(how, "lost")


@clause("GBZ-18")
async def test_an_offer_whose_group_goes_may_be_at_work(tmp_path: Path) -> None:
    async with neighbours_in(tmp_path) as all_of:
        (caller,) = all_of.values()
        group = (await caller.groups.create()).group.id
        async with api_of(caller) as api:
            part = {"group": group, "capability": "weather.now", **OSLO}
            whole = await started(api, subtasks=[part])
            await until(lambda: caller.groups.known(group).last > 1)
            await caller.groups.close_group(group)
            await caller.groups.forget(group)
            found = await ended(caller, api, whole)
            assert (found["state"], found["may_have_run"]) == ("failed", True)
            assert found["code"] == "lost"


@clause("GBZ-62", "GBZ-Q20")
async def test_an_agent_hands_a_task_back_and_the_next_candidate_does_it(
    tmp_path: Path,
) -> None:
    async with neighbours_in(tmp_path, "one", "two") as all_of:
        caller, one, two = all_of.values()
        await introduce(caller, one=one, two=two)
        both = {"candidates": ["one", "two"], "capability": "weather.choosy"}
        async with api_of(caller) as api:
            whole = await started(api, **both, input={"by": "two"})
            found = await ended(caller, api, whole)
            assert told(found) == [(0, "completed", {"by": "two"})]
            (passed,) = found["messages"][0]["metadata"]["passed"]
            assert (passed["executor"], passed["state"], passed["reason"]) == (
                one.did,
                "rejected",
                "one is not two",
            )
            # When all hand it back, so does the daemon, and nothing has run.
            whole = await started(api, **both, input={"by": "three"})
            found = await ended(caller, api, whole)
            assert (found["state"], found["may_have_run"]) == ("rejected", False)
            assert found["reason"].startswith("nobody took it: one: one is not three")
            for uri in (GBZ_URI, ENVELOPE_TASKS_URI, *A2A_URIS):
                single = {"peer": "one", "protocol": uri, "input": {"by": "three"}}
                single["capability"] = "weather.choosy"
                found = await ended(caller, api, await started(api, **single))
                assert (found["state"], found["may_have_run"]) == ("rejected", False)
                assert found["reason"] == "one is not three"
            # A task takes a name as a call does: short, and in any spelling.
            short = {"peer": "one", "capability": "Choosy", "input": {"by": "one"}}
            found = await ended(caller, api, await started(api, **short))
            assert found["state"] == "completed"
            # Those that are only away have handed nothing back.
            gone = await started(api, candidates=["none", "never"], capability="c")
            found = await ended(caller, api, gone)
            assert found["state"] == "failed"
        # A call of one turn says that nothing ran.
        request = CallRequest(
            peer=address(one), need=Need("weather.choosy"), arguments={"by": "three"}
        )
        with pytest.raises(CallError, match="one is not three") as caught:
            await caller.caller.call(request)
        assert not caught.value.may_have_run
