"""Calls over the protocol of tasks, while tasks go on between the same daemons."""

from __future__ import annotations

from pathlib import Path

from anp.interaction.elements import Part
from anp.protocols.gbz import GBZ_URI
from anp.sidecar.calls.call import CallRequest
from anp.sidecar.daemon import Daemon
from negotiation.need import Need
from tests.e2e.talks import talks_in
from tests.waiting import until


async def call(caller: Daemon, address: str, number: int = 2) -> None:
    request = CallRequest(
        peer=address,
        need=Need("agent.double"),
        arguments={"number": number},
        protocol=GBZ_URI,
        trust_first_use=True,
    )
    assert (await caller.caller.call(request)).output == {"number": 2 * number}


async def test_a_call_takes_nothing_from_a_task_that_asks(tmp_path: Path) -> None:
    async with talks_in(tmp_path, seconds=30) as talks:
        task = await talks.start("book", seat="5A")
        sessions = talks.caller.tasks.sessions
        conversation = await sessions.conversation(task.log)
        await until(
            lambda: conversation.tasks[task.task.id].state == "x-input-required"
        )
        await call(talks.caller, talks.address)
        await talks.caller.tasks.send(task.id, [Part.text("yes")], metadata={})
        seen = await talks.follow(task)
        assert seen.results == [{"result": "5A: yes"}]


async def test_a_task_begins_while_its_executor_calls(tmp_path: Path) -> None:
    async with talks_in(tmp_path, seconds=30, is_mutual=True) as talks:
        await call(talks.provider, f"{talks.caller.url}#{talks.caller.did}")
        task = await talks.start("double", number=4)
        seen = await talks.follow(task)
        assert seen.results == [{"number": 8}]
