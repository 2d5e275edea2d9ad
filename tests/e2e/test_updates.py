"""Updates before the answer of a negotiated protocol, between two daemons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError, ErrorKind
from anp.sidecar.attachments import AttachmentSpec
from anp.sidecar.attachments.declaration import DeclaredCapability
from anp.sidecar.bound.cases import RequesterCases
from anp.sidecar.bound.provider import BoundProvider
from anp.sidecar.bound.updates import UpdateSink
from anp.sidecar.calls.call import CallRequest
from anp.wire.frames import ProtocolType
from negotiation.need import Need
from tests.anp.sidecar.attachments.web import serving
from tests.e2e.agents.running import running
from tests.e2e.talks import Talks, talks_in
from tests.e2e.test_http_tasks import STEPS, attachment, service
from tests.waiting import until

PLAIN: dict[str, Any] = {"interaction__order": ()}
"Neither side speaks a protocol for tasks."


@pytest.mark.parametrize("published", [False, True])
async def test_a_task_over_an_agreement_streams(
    tmp_path: Path, published: bool
) -> None:
    async with talks_in(tmp_path, consensus__use=published, **PLAIN) as talks:
        task = await talks.start("poem", lines=5)
        seen = await talks.follow(task)
        assert seen.results == [f"line {number}\n" for number in range(5)]
        assert seen.states == ["accepted", "working", "completed"]
        seen = await talks.follow(await talks.start("ticks", number=3, pause=0.05))
        assert seen.results == [0, 1, 2]
        # One that does not stream gives its one result.
        seen = await talks.follow(await talks.start("double", number=21))
        assert seen.results == [{"number": 42}]


async def test_a_call_of_one_turn_gets_all_joined(tmp_path: Path) -> None:
    async with talks_in(tmp_path, consensus__use=False, **PLAIN) as talks:
        request = CallRequest(
            peer=talks.address, need=Need("agent.poem"), arguments={"lines": 3}
        )
        result = await talks.caller.caller.call(request)
        assert result.output == {"result": "line 0\nline 1\nline 2\n"}


async def call(talks: Talks, **data: Any) -> list[Any]:
    """Call the function that streams; return its updates, and raise what it raises."""
    seen: list[Any] = []

    async def take(value: Any) -> None:
        seen.append(value)

    request = CallRequest(
        peer=talks.address,
        need=Need("agent.poem"),
        arguments=data,
        updates=UpdateSink(take),
    )
    result = await talks.caller.caller.call(request)
    assert "".join(seen) == result.output["result"]
    return seen


@pytest.mark.parametrize(
    ("update", "told"),
    [
        (b'{"messageId": "%s", "update": 5}', "an update breaks the protocol"),
        (b'{"messageId": "%s", "update": "x", "y": 1}', "breaks the protocol"),
    ],
)
async def test_a_wrong_update_of_the_peer_ends_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update: bytes, told: str
) -> None:
    async def send(self: BoundProvider, exchange: Any, data: bytes) -> None:
        name = data.split(b'"messageId": "')[1].split(b'"')[0]
        await self.channel.send(ProtocolType.APPLICATION, update % name)

    async with talks_in(tmp_path, consensus__use=False, **PLAIN) as talks:
        assert len(await call(talks, lines=2)) == 2
        with monkeypatch.context() as patch:
            patch.setattr(BoundProvider, "_send_update", send)
            with pytest.raises(CallError, match=told) as caught:
                await call(talks, lines=2)
        assert caught.value.kind is ErrorKind.GENERATED_CODE
        assert caught.value.may_have_run
        assert len(await call(talks, lines=2)) == 2


async def test_an_update_after_the_answer_costs_the_peer_its_channel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answer, send = BoundProvider._answer, BoundProvider._send_update
    updates: list[tuple[Any, bytes]] = []

    async def kept(self: BoundProvider, exchange: Any, data: bytes) -> None:
        updates.append((exchange, data))
        await send(self, exchange, data)

    async def late(self: BoundProvider, exchange: Any, *more: Any) -> None:
        await answer(self, exchange, *more)
        await send(self, *updates[-1])

    async with talks_in(tmp_path, consensus__use=False, **PLAIN) as talks:
        with monkeypatch.context() as patch:
            patch.setattr(BoundProvider, "_send_update", kept)
            patch.setattr(BoundProvider, "_answer", late)
            assert len(await call(talks, lines=2)) == 2
            await until(lambda: "update after the answer" in caplog.text)
        assert len(await call(talks, lines=2)) == 2


async def test_test_cases_with_the_peer_have_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    send, read = BoundProvider._send_update, RequesterCases._behind_updates
    answers: list[Any] = []

    async def seen(self: BoundProvider, exchange: Any, data: bytes) -> None:
        if exchange.verification:
            sent.append(data)
        await send(self, exchange, data)

    async def behind(self: RequesterCases, answer: Any) -> Any:
        answers.append(await read(self, answer))
        return answers[-1]

    monkeypatch.setattr(BoundProvider, "_send_update", seen)
    monkeypatch.setattr(RequesterCases, "_behind_updates", behind)
    async with talks_in(tmp_path, consensus__use=False, **PLAIN) as talks:
        assert len(await call(talks, lines=2)) == 2
    assert sent
    assert answers
    assert all(b'"status"' in data for data, _ in answers)


async def test_a_stream_of_http_goes_over_an_agreement(tmp_path: Path) -> None:
    async with serving(service) as web:
        settings = {"consensus__use": False, **PLAIN}
        steps = DeclaredCapability(
            name="steps",
            path="/events",
            method="POST",
            media_type="text/event-stream",
        )
        spec = replace(attachment(web), capabilities=(steps,))
        async with talks_in(tmp_path, attached=spec, **settings) as talks:
            seen = await talks.follow(await talks.start("web.steps"))
            assert seen.states[-1] == "completed"
            assert seen.results == STEPS


async def test_an_a2a_agent_streams_over_an_agreement(tmp_path: Path) -> None:
    with running("a2a_agent.py", "stream") as agent:
        spec = AttachmentSpec(kind="a2a", name="agent", url=agent.url, expose=("*",))
        settings = {"consensus__use": False, **PLAIN}
        async with talks_in(tmp_path, attached=spec, **settings) as talks:
            seen = await talks.follow(await talks.start("shout", text="poem 5"))
            lines = [f"line {number}\n" for number in range(5)]
            assert seen.results == [*lines, "A title", "it is done"]
            assert seen.states[-1] == "completed"
