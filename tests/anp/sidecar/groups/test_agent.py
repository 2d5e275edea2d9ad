"""An attached agent in groups: what it hears, and what it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from anp.interaction.elements import Part, Task, TaskChange
from anp.interaction.operations import TaskCancel, TaskUpdate
from anp.interaction.states import is_terminal
from anp.sidecar.groups.agent import ANSWERS, GroupAgent
from anp.sidecar.groups.frames import work_of
from anp.sidecar.offer.gate import ApprovalPending
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.plans.group_offer import GroupOffer
from negotiation.need import Capability
from tests.anp.sidecar.groups.fleet import SharedStore, fleet_in, lapse, settle
from tests.anp.sidecar.groups.net import Node, join, joined, net_in, note, texts
from tests.clauses import clause
from tests.waiting import until

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}


class FakeCalls:
    """Repeats what it is told, for peers that it knows."""

    def __init__(self) -> None:
        self.hidden: set[str] = set()
        self.pending = 0
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.gate = SimpleNamespace(
            find=self._find, named=self._find, offered=lambda way, peer: (1,)
        )

    def _find(self, way: WayIn, peer: str, name: str) -> Capability | None:
        assert (way, name) == (WayIn.GROUP, "echo.say")
        if peer in self.hidden:
            return None
        return Capability(
            name=name,
            description="",
            input_schema=SCHEMA,
            output_schema={},
            read_only=False,
            idempotent=False,
        )

    async def run(
        self, name: str, arguments: dict[str, Any], *, peer: str, **more: Any
    ) -> Any:
        if self.pending:
            self.pending -= 1
            raise ApprovalPending("wait")
        self.heard.append((peer, arguments))
        text = str(arguments.get("text", ""))
        return "" if text == "hush" else {"text": f"heard {text}"}


@asynccontextmanager
async def answering(node: Node) -> AsyncIterator[FakeCalls]:
    calls = FakeCalls()
    agent = GroupAgent(
        node.groups,
        calls,  # type: ignore[arg-type]  # all that it uses of it
        folders=None,  # type: ignore[arg-type]  # no message here has files
        name="echo.say",
    )
    agent.look()
    node.groups.publish = lambda kind, data: agent.look()
    try:
        yield calls
    finally:
        await agent.close()


def say(node: Node, group: str, text: str, **metadata: Any) -> Any:
    return node.groups.post(group, [Part.text(text)], metadata=metadata)


async def test_an_agent_answers_others_and_no_answers(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (_, (a, b, c)):
        group = await joined(a, b)
        await say(a, group, "before")
        await texts(b, group, 1)
        async with answering(b) as b_calls, answering(c) as c_calls:
            # C comes while both agents are there; neither answers the other.
            await join(a, group, c)
            await say(a, group, "hush")
            await say(a, group, "hello")
            await say(a, group, "an answer", **{ANSWERS: "m0"})
            said = await texts(a, group, 6)
            assert sorted(said[1:]) == [
                "an answer",
                *("heard hello", "heard hello"),
                *("hello", "hush"),
            ]
            for calls in (b_calls, c_calls):
                words = [(a.did, {"text": one}) for one in ("hush", "hello")]
                assert calls.heard == words


async def test_an_object_gives_the_arguments_and_the_gate_decides(
    tmp_path: Path,
) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (_, (a, b, c)):
        group = await joined(a, b, c)
        async with answering(a) as calls:
            calls.hidden = {c.did}
            await say(c, group, "not for you")
            await b.groups.post(group, [Part.value({"text": "by value"})])
            assert (await texts(b, group, 3))[-1] == "heard by value"
            assert calls.heard == [(b.did, {"text": "by value"})]


async def test_a_message_waits_for_the_owners_word(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("anp.sidecar.groups.agent.WORD_CHECK", 0.01)
    async with net_in(tmp_path, "a", "b") as (_, (a, b)):
        group = await joined(a, b)
        async with answering(a) as calls:
            calls.pending = 3
            await say(b, group, "may I?")
            assert await texts(b, group, 2) == ["may I?", "heard may I?"]
            await until(lambda: calls.pending == 0)


def is_heard(first: FakeCalls, second: FakeCalls, most: int) -> bool:
    return len(first.heard + second.heard) > most


async def test_the_agent_of_a_fleet_goes_with_the_group(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    async with fleet_in(tmp_path, lambda: SharedStore(shared), "b") as (net, nodes):
        one, other, b = nodes
        async with answering(one) as first, answering(other) as second:
            group = (await one.groups.create()).group.id
            await join(one, group, b)
            await say(b, group, "one")
            await texts(b, group, 2)
            for told, last, now in ((1, one, other), (2, other, one)):
                lapse(last, group, last.store)
                await settle(now)
                # Who dials comes to the first that is up.
                net.nodes[last.name] = net.nodes.pop(last.name)
                await settle(last)
                await say(b, group, now.name)
                await until(partial(is_heard, first, second, told))
            assert first.heard == [(b.did, {"text": "one"})] * 2
            assert second.heard == [(b.did, {"text": "other"})]


def offer(node: Node, group: str, name: str) -> Task:
    said = replace(note(node, group, f"wish {name}"), task=name)
    return Task(
        id=name,
        session=group,
        requester=node.did,
        executor="",
        capability="echo.say",
        messages=(said,),
    )


async def states(node: Node, group: str, task: str) -> list[tuple[str, str]]:
    """Return the states of an offer to its end, with those who reported them."""
    found = []
    async for event in node.groups.watch(group):
        match work_of(event):
            case TaskUpdate(content=TaskChange(state=state)) as update:
                if update.content.task == task:
                    found.append((event.by, str(state)))
                    if is_terminal(state):
                        break
    return found


@clause("GBZ-18")
async def test_the_first_agent_that_accepts_an_offer_does_it(tmp_path: Path) -> None:
    async with net_in(tmp_path, "a", "b", "c") as (_, (a, b, c)):
        group = await joined(a, b, c)
        async with answering(b) as b_calls, answering(c) as c_calls:
            for number in range(4):
                await a.groups.say(group, offer(a, group, f"t{number}"))
            for number in range(4):
                found = await states(a, group, f"t{number}")
                assert [one for _, one in found] == ["accepted", "working", "completed"]
                assert len({by for by, _ in found}) == 1
            # Each was done once, by one of them, and what it said is no message.
            heard = b_calls.heard + c_calls.heard
            words = sorted(said["text"] for _, said in heard)
            assert words == [f"wish t{number}" for number in range(4)]
            assert (await texts(a, group, 4))[0].startswith("heard wish t")
            # One that is not exposed to its maker is nobody's.
            b_calls.hidden = c_calls.hidden = {a.did}
            await a.groups.say(group, offer(a, group, "t4"))
            await a.groups.say(group, TaskCancel(session=group, task="t4"))
            assert await c.groups.say(group, note(c, group, "end")) is not None
        assert len(b_calls.heard + c_calls.heard) == 4


async def test_an_offer_at_work_is_cancelled_or_fails_with_its_daemon(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("anp.sidecar.groups.agent.WORD_CHECK", 0.01)
    async with net_in(tmp_path, "a", "b") as (net, (a, b)):
        group = await joined(a, b)
        async with answering(b) as calls:
            calls.pending = 1_000_000
            await a.groups.say(group, offer(a, group, "first"))
            await until(lambda: calls.pending < 1_000_000)
            await a.groups.say(group, TaskCancel(session=group, task="first"))
            assert (await states(a, group, "first"))[-1] == (b.did, "canceled")
            await until(lambda: b.groups.at_work(group) == ())
            left = calls.pending
            await a.groups.say(group, offer(a, group, "second"))
            await until(lambda: calls.pending < left)
        b = await net.again(b, kill=True)
        async with answering(b) as calls:
            assert (await states(a, group, "second"))[-1] == (b.did, "failed")
            await until(lambda: b.groups.at_work(group) == ())
            assert calls.heard == []


async def test_who_offered_a_task_follows_it_again_after_a_restart(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("anp.sidecar.groups.agent.WORD_CHECK", 0.01)
    async with net_in(tmp_path, "a", "b", "c") as (net, (a, b, c)):
        group = await joined(a, b, c)
        async with answering(c) as calls:
            calls.pending = 1_000_000
            before = b.groups.known(group).last
            first = GroupOffer(b.groups, group, offer(b, group, "work"))
            run = asyncio.create_task(first.run(after=before, patience=5.0))
            await until(lambda: first.executor == c.did)
            run.cancel()
            b = await net.again(b)
            calls.pending = 0
            again = GroupOffer(b.groups, group, offer(b, group, "work"))
            await again.run(after=before, patience=5.0)
            assert again.change is not None
            assert (again.executor, again.change.state) == (c.did, "completed")
            (said,) = again.results
            assert said.parts == (Part.text("heard wish work"),)
        assert len(calls.heard) == 1
