"""Subscriptions between two daemons: times and events start tasks at a peer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anp.sidecar.daemon import Daemon
from anp.sidecar.subscriptions.kept import Order
from anp.sidecar.tasks.chronicle import Chronicle
from anp.sidecar.tasks.known import KnownTask, Maker
from tests.clauses import clause
from tests.e2e.house import House, house_in

NOTE = """
notes = []


def note(build: dict) -> dict[str, list]:
    notes.append(build)
    return {"notes": notes}
"""


def order(house: House, **more: Any) -> Order:
    """Return a task for the provider's function."""
    peer = f"{house.provider.url}#{house.provider.did}"
    return Order(peer=peer, capability="note.note", give="build", **more)


async def next_task(daemon: Daemon, watcher: Any) -> tuple[KnownTask, Any]:
    """Return the task of the run that is started next, when it has ended."""
    event = await watcher.next()
    while event.type != "subscription.started":
        event = await watcher.next()
    chronicle = Chronicle(daemon.tasks.sessions)
    _, (known,) = await chronicle.wait([event.data["task"]], timeout=30)
    newest, _ = await chronicle.newest(known, most=1)
    return known, newest[0].content.parts[0].content


@clause("GBZ-59", "GBZ-63", "GBZ-64", "GBZ-66")
async def test_a_time_and_an_event_start_a_task_at_the_peer(tmp_path: Path) -> None:
    async with house_in(tmp_path, more={"note": NOTE}) as house:
        caller = house.caller
        with caller.events.subscribe() as watcher:
            kept = await caller.subscriptions.create(
                order(house),
                {
                    "triggers": [
                        {"type": "time", "every": 1},
                        {"type": "event", "event": "build.failed"},
                    ],
                    "maxRuns": 2,
                },
                maker=Maker.OWNER,
            )
            known, result = await next_task(caller, watcher)
            assert known.task.state == "completed"
            assert known.task.trigger is not None
            assert known.task.trigger["subscription"] == kept.id
            assert result["notes"][0]["event"] is None
            await caller.subscriptions.tell("build.failed", {"job": 7}, name="b-7")
            known, result = await next_task(caller, watcher)
            assert result["notes"][1]["event"] == {"job": 7}
        assert (await caller.subscriptions.find(kept.id)).ended == "max_runs"
