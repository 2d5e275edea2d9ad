"""Subscriptions between two daemons: times and events start tasks at a peer."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError, ErrorKind
from anp.interaction.elements import Message
from anp.interaction.triggers.watch import time_text
from anp.sidecar.daemon import Daemon
from anp.sidecar.subscriptions.kept import Kept, Order, Watcher
from anp.sidecar.tasks.chronicle import Chronicle
from anp.sidecar.tasks.known import Maker
from cache.records.peers import PeerState
from tests.clauses import clause
from tests.e2e.house import House, house_in
from tests.waiting import until

NOTE = """
notes = []


def note(build: dict) -> dict[str, list]:
    notes.append(build)
    return {"notes": notes}
"""

FAILED = {"type": "event", "event": "build.failed"}


def order(house: House, **more: Any) -> Order:
    """Return a task for the provider's function."""
    peer = f"{house.provider.url}#{house.provider.did}"
    return Order(peer=peer, capability="note.note", **more)


async def heard(watcher: Any, kind: str, **data: Any) -> dict[str, Any]:
    """Return the next event of a kind that has some data."""
    while True:
        event = await watcher.next()
        if event.type == kind and data.items() <= event.data.items():
            return dict(event.data)


async def result_of(daemon: Daemon, item: str) -> Any:
    """Return the result of a task of ours when it has ended."""
    chronicle = Chronicle(daemon.tasks.sessions)
    _, (known,) = await chronicle.wait([item], timeout=30)
    newest, _ = await chronicle.newest(known, most=1)
    content = newest[0].event.content
    assert isinstance(content, Message)
    return content.parts[0].content


def theirs(daemon: Daemon) -> list[Kept]:
    """Return the subscriptions that a daemon watches for peers."""
    return daemon.subscriptions.scheduler.open(Watcher.FOR_PEER)


@clause("GBZ-59", "GBZ-63", "GBZ-64", "GBZ-66")
async def test_a_time_and_an_event_start_a_task_at_the_peer(tmp_path: Path) -> None:
    async with house_in(tmp_path, more={"note": NOTE}) as house:
        caller = house.caller
        service = caller.subscriptions
        with caller.events.subscribe() as watcher:
            soon = time_text(time.time() + 0.3)
            kept = await service.create(
                order(house, give="build"),
                {"triggers": [{"type": "time", "at": soon}, FAILED], "maxRuns": 2},
                maker=Maker.OWNER,
            )
            assert await service.tell("build.failed", {"job": 7}, name="b") == [kept.id]
            assert await service.tell("build.failed", {"job": 7}, name="b") == []
            first = await heard(watcher, "subscription.started", number=1)
            notes = (await result_of(caller, first["task"]))["notes"]
            assert notes[0]["event"] == {"job": 7}
            task = (await caller.tasks.task(first["task"])).task
            assert task.trigger is not None
            assert task.trigger["subscription"] == kept.id
            second = await heard(watcher, "subscription.started", number=2)
            notes = (await result_of(caller, second["task"]))["notes"]
            assert notes[1]["event"] is None
        assert (await service.find(kept.id)).ended == "max_runs"


@clause("GBZ-63", "GBZ-65", "GBZ-66")
async def test_the_peer_watches_and_does_the_task(tmp_path: Path) -> None:
    async with house_in(
        tmp_path,
        more={"note": NOTE},
        interaction__events_for_peers=["build.failed"],
    ) as house:
        caller, provider = house.caller, house.provider
        for one, other in ((caller, provider), (provider, caller)):
            await one.policy.rule(other.identities.canonical, PeerState.ALLOWED)
        service = caller.subscriptions

        async def give(trigger: dict[str, Any]) -> Kept:
            return await service.create(
                order(house, give="build"),
                {"triggers": [trigger]},
                maker=Maker.OWNER,
                by_peer=True,
            )

        with caller.events.subscribe() as watcher:
            kept = await give(FAILED)
            await until(lambda: bool(theirs(provider)))
            assert await provider.subscriptions.tell(
                "build.failed", {"job": 1}, name="b"
            )
            run = await heard(watcher, "subscription.started", number=1)
            (note,) = (await result_of(caller, run["task"]))["notes"]
            assert note["event"] == {"job": 1}
            known = await caller.tasks.task(run["task"])
            assert known.task.id == f"{kept.id}/1"
            await service.cancel(kept.id)
            await until(lambda: not theirs(provider))
            # What the peer's owner does not want is refused, with the reason.
            for trigger, reason in (
                ({"type": "time", "every": 5}, "at least 60 s"),
                ({"type": "event", "event": "secret"}, "not watched for peers"),
                ({"type": "event", "state": "failed"}, "not watched for peers"),
            ):
                kept = await give(trigger)
                await heard(watcher, "subscription.ended", subscription=kept.id)
                found = await service.find(kept.id)
                assert found.ended == "refused"
                assert reason in found.reason
            # Whoever waits for the first word reads the reason at once.
            with pytest.raises(CallError, match="at least 60 s") as caught:
                await service.given.answered(await give({"type": "time", "every": 1}))
            assert caught.value.kind is ErrorKind.NEGOTIATION_REJECTED
            kept = await give(FAILED)
            await service.given.answered(kept)
            assert len(theirs(provider)) == 1
            await service.cancel(kept.id)
            await until(lambda: not theirs(provider))
        assert not theirs(provider)


async def test_who_may_not_and_what_is_too_much_is_refused(tmp_path: Path) -> None:
    async with house_in(
        tmp_path,
        more={"note": NOTE},
        interaction__events_for_peers=["build.failed"],
        interaction__max_subscriptions_peer=1,
        interaction__max_subscriptions=3,
    ) as house:
        caller, provider = house.caller, house.provider
        service, own = caller.subscriptions, caller.identities.canonical

        async def refusal(capability: str = "note.note") -> str:
            given = replace(order(house), capability=capability)
            with caller.events.subscribe() as watcher:
                kept = await service.create(
                    given, {"triggers": [FAILED]}, maker=Maker.OWNER, by_peer=True
                )
                await heard(watcher, "subscription.ended", subscription=kept.id)
            return (await service.find(kept.id)).reason

        assert "only listed peers" in await refusal()
        await provider.policy.rule(own, PeerState.ALLOWED)
        assert "no such capability for you" in await refusal("note.other")
        await service.create(
            order(house), {"triggers": [FAILED]}, maker=Maker.OWNER, by_peer=True
        )
        await until(lambda: len(theirs(provider)) == 1)
        assert "at most 1 " in await refusal()
        here = {"triggers": [FAILED]}
        for _ in range(2):
            await service.create(order(house), here, maker=Maker.OWNER)
        with pytest.raises(CallError, match="at most 3 "):
            await service.create(order(house), here, maker=Maker.OWNER)
