"""Tasks whose parts are given to several daemons, and tasks that go on to the next."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from anp.sidecar.api.app import make_app
from anp.sidecar.api.guard import Door
from anp.sidecar.daemon import Daemon
from anp.sidecar.tasks.chronicle import Chronicle
from tests.clauses import clause
from tests.e2e.neighbours import introduce, neighbours_in

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
        await introduce(one, caller=caller, two=two)
        two.exposure.hide = None  # type: ignore[attr-defined]
        async with api_of(caller) as api, api_of(one) as other:
            proxied = await started(
                api,
                candidates=["caller-2", "one", "two"],
                capability="weather.now",
                **OSLO,
            )
            found = await ended(caller, api, proxied)
            assert found["state"] == "completed"
            (message,) = found["messages"]
            assert message["metadata"]["executor"] == one.did
            (passed,) = message["metadata"]["passed"]
            assert passed["peer"] == "caller-2"
            # A part at two, which is a candidate of one's in turn, and so on.
            assert other is not None
