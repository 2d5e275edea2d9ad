"""An attached agent in groups: what it hears, and what it does not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from anp.interaction.elements import Part
from anp.sidecar.groups.agent import ANSWERS, GroupAgent
from anp.sidecar.offer.gate import ApprovalPending
from anp.sidecar.offer.ways import WayIn
from negotiation.need import Capability
from tests.anp.sidecar.groups.fleet import SharedStore, fleet_in, lapse, settle
from tests.anp.sidecar.groups.net import Node, join, joined, net_in, texts
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
        self.gate = SimpleNamespace(find=self._find)

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
