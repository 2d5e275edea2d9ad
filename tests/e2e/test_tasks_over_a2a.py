"""Tasks between two daemons over A2A, in each of its protocols."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from anp.channel.channel import Channel
from anp.channel.links import LinkTarget
from anp.errors import CallError
from anp.interaction.elements import Part, TaskChange
from anp.protocols.a2a import A2A_URIS
from anp.protocols.a2a.words import A2aMethod
from anp.sidecar.calls.call import CallRequest
from anp.sidecar.tasks.delivery.a2a_carrier import A2aCarrier
from anp.sidecar.tasks.delivery.a2a_requests import A2aRequests, Refused
from anp.wire.frames import ProtocolType
from negotiation.need import Need
from tests.clauses import clause
from tests.e2e.house import House, house_in
from tests.e2e.talks import AGENT, talks_in
from tests.e2e.test_a2a_face import CALCULATE, SEED_REQUEST
from tests.waiting import until

URIS = sorted(A2A_URIS)


@clause("A2A-4", "A2A-14", "A2A-16", "A2A-24")
@pytest.mark.parametrize("uri", URIS)
async def test_tasks_stream_ask_and_fail(tmp_path: Path, uri: str) -> None:
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        seen = await talks.follow(await talks.start("poem", lines=40))
        assert seen.results == [f"line {number}\n" for number in range(40)]
        assert seen.states == ["accepted", "working", "completed"]

        seen = await talks.follow(
            await talks.start("book", seat="4A"), answers=("yes",)
        )
        assert seen.said == ["Is 4A right?"]
        assert seen.progress == ["looked at the plan"]
        assert seen.results == [{"result": "4A: yes"}]
        assert "x-input-required" in seen.states

        seen = await talks.follow(await talks.start("fail", words="no"))
        assert seen.end is not None
        assert (seen.states[-1], seen.end.may_have_run) == ("failed", True)
        seen = await talks.follow(await talks.start("nothing"))
        assert seen.states[-1] == "rejected"
        assert seen.end is not None
        assert "agent.double" in seen.end.reason


@pytest.mark.parametrize("uri", URIS)
async def test_a_task_is_cancelled(tmp_path: Path, uri: str) -> None:
    mark = tmp_path / "mark"
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        task = await talks.start("wait", file=str(mark))
        await until(mark.exists)
        await talks.caller.tasks.cancel(task.id)
        seen = await talks.follow(task)
        assert seen.states[-1] == "canceled"
        await until(lambda: mark.read_text() == "began\nended\n")


@pytest.mark.parametrize("uri", URIS)
async def test_a_task_is_cancelled_before_the_peer_named_it(
    tmp_path: Path, uri: str
) -> None:
    """The request waits for the id, since the peer would refuse one without."""
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        task = await talks.start("ticks", number=600, pause=0.05)
        await talks.caller.tasks.cancel(task.id)
        seen = await talks.follow(task)
        assert seen.states[-1] == "canceled"
        (theirs,) = await talks.provider.tasks.sessions.tasks()
        assert theirs.task.state == "canceled"


@pytest.mark.parametrize("uri", URIS)
async def test_a_message_to_a_task_that_the_peer_has_not_named(
    tmp_path: Path, uri: str
) -> None:
    """It waits as well: without the task's id it would start another one."""
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        task = await talks.start("book", seat="4A")
        await talks.caller.tasks.send(task.id, [Part.text("yes")], metadata={})
        seen = await talks.follow(task, answers=("yes",))
        assert seen.results == [{"result": "4A: yes"}]
        assert len(await talks.provider.tasks.sessions.tasks()) == 1


@pytest.mark.parametrize("uri", URIS)
async def test_a_refused_cancel_does_not_end_the_task(
    tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the stream of the task tells how it goes on."""
    refused: list[str] = []

    def refuse(self: A2aRequests, method: A2aMethod, params: Any) -> Any:
        if method is A2aMethod.CANCEL:
            refused.append(params["id"])
            params = {"id": "none"}
        return ask(self, method, params)

    ask = A2aRequests.ask
    monkeypatch.setattr(A2aRequests, "ask", refuse)
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        task = await talks.start("ticks", number=20, pause=0.1)
        await talks.caller.tasks.cancel(task.id)
        seen = await talks.follow(task)
        assert seen.states == ["accepted", "working", "completed"]
        assert len(seen.results) == 20
        assert refused
        assert all(refused)


def broken(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> None:
    """Have the first request for a task end with an error after some answers.

    Args:
        answers: What comes in place of what the peer says; None is the peer's own.
    """
    ask = A2aRequests.ask
    asked: list[A2aMethod] = []

    async def broken_ask(self: A2aRequests, method: A2aMethod, params: Any) -> Any:
        is_first = not asked
        asked.append(method)
        async with contextlib.aclosing(ask(self, method, params)) as results:
            if not is_first:
                async for result in results:
                    yield result
                return
            for answer in answers:
                told = await anext(results)
                yield told if answer is None else answer
            raise Refused("-32603", "an error of the peer's")

    monkeypatch.setattr(A2aRequests, "ask", broken_ask)


@pytest.mark.parametrize("uri", URIS)
async def test_a_task_goes_on_after_an_error_in_its_stream(
    tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer has named it, so it can be asked how it goes."""
    broken(monkeypatch, None)
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        seen = await talks.follow(await talks.start("ticks", number=30, pause=0.05))
        assert seen.states[-1] == "completed"
        assert len(seen.results) == 30


async def test_a_task_whose_first_answer_cannot_be_read_may_have_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, {"tsk": 1})
    async with talks_in(tmp_path, interaction__order=("urn:anpd:a2a:1.0",)) as talks:
        seen = await talks.follow(await talks.start("ticks", number=30, pause=0.05))
        assert seen.end is not None
        assert seen.states == ["accepted", "failed"]
        assert (seen.end.code, seen.end.may_have_run) == ("502", True)


async def test_a_task_whose_first_answer_is_late_may_have_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anp.sidecar.tasks.delivery.a2a_requests.PATIENCE", 0.0)
    async with talks_in(tmp_path, interaction__order=("urn:anpd:a2a:1.0",)) as talks:
        seen = await talks.follow(await talks.start("ticks", number=30, pause=0.05))
        assert seen.end is not None
        assert (seen.end.code, seen.end.may_have_run) == ("timeout", True)


@pytest.mark.parametrize("uri", URIS)
@pytest.mark.parametrize("whole", [False, True], ids=["task", "session"])
async def test_a_task_that_waits_for_an_answer_is_cancelled(
    tmp_path: Path, uri: str, *, whole: bool
) -> None:
    """By itself, or with its session; nobody follows it while it waits."""
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        task = await talks.start("book", seat="4A")
        tasks = talks.caller.tasks
        async for event in tasks.watch(task.log):
            content = event.content
            if isinstance(content, TaskChange) and content.state == "x-input-required":
                break
        await (tasks.close_session(task.log) if whole else tasks.cancel(task.id))
        seen = await talks.follow(task)
        assert seen.states[-1] == "canceled"
        (theirs,) = await talks.provider.tasks.sessions.tasks()
        assert theirs.task.state == "canceled"


@pytest.mark.parametrize("uri", URIS)
async def test_a_call_that_names_the_protocol(tmp_path: Path, uri: str) -> None:
    async with house_in(tmp_path, consensus__use=True) as house:
        request = CallRequest(
            peer=f"{house.provider.url}#{house.provider.did}",
            need=Need("twice"),
            arguments={"number": 9007199254740993},
            protocol=uri,
        )
        result = await house.caller.caller.call(request)
        assert result.output == {"twice": 18014398509481986}


async def opened(house: House, uri: str) -> Channel:
    target = LinkTarget(house.provider.did, house.provider.url)
    channel = await house.caller.binder.requesters.open(target, None, [uri])
    assert channel.peer_meta.selected_protocol == uri
    return channel


async def said(channel: Channel, body: Any) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    await channel.send(ProtocolType.APPLICATION, data)
    return json.loads((await channel.receive()).frame.data)


@clause("INT-6", "INT-12")
async def test_the_request_of_the_extension_over_a_channel(tmp_path: Path) -> None:
    more = {"ai_calculate": CALCULATE}
    async with house_in(tmp_path, more=more, consensus__use=True) as house:
        channel = await opened(house, "urn:anpd:a2a-intent:1")
        answer = await said(channel, SEED_REQUEST.encode())
        assert answer["id"] == "request-1"
        task = answer["result"]
        assert task["artifacts"][0]["parts"][0]["data"] == {"sum": 203}
        # The same message again is the same task.
        again = await said(channel, SEED_REQUEST.encode())
        assert again["result"]["id"] == task["id"]
        await channel.close("done")


@clause("A2A-21")
async def test_push_and_other_versions_are_refused(tmp_path: Path) -> None:
    async with house_in(tmp_path, consensus__use=True) as house:
        channel = await opened(house, "urn:anpd:a2a:1.0")
        request = {"jsonrpc": "2.0", "id": 7, "params": {}}
        for method, params, code in (
            ("CreateTaskPushNotificationConfig", {"url": "https://a.example"}, -32003),
            (
                "SendMessage",
                {"configuration": {"taskPushNotificationConfig": {"url": "x"}}},
                -32003,
            ),
            ("message/send", {}, -32009),
            ("GetTask", {"id": "another's"}, -32001),
            ("nothing", {}, -32601),
        ):
            body = {**request, "method": method, "params": params}
            answer = await said(channel, body)
            assert (answer["id"], answer["error"]["code"]) == (7, code), method
        assert (await said(channel, b"{"))["error"]["code"] == -32700
        card = await said(channel, {**request, "method": "GetExtendedAgentCard"})
        assert "securitySchemes" not in card["result"]
        assert card["result"]["skills"]
        await channel.close("done")


def noted_channels(monkeypatch: pytest.MonkeyPatch) -> list[Channel]:
    """Return the channels that carry tasks, as they come."""
    channels: list[Channel] = []

    class Noted(A2aCarrier):
        def __init__(self, sessions: Any, channel: Any, version: Any) -> None:
            channels.append(channel)
            super().__init__(sessions, channel, version)

    monkeypatch.setattr("anp.sidecar.tasks.exchange.A2aCarrier", Noted)
    return channels


@clause("A2A-15", "A2A-22")
@pytest.mark.parametrize("uri", ["urn:anpd:a2a:0.3", "urn:anpd:a2a:1.0"])
async def test_a_task_goes_on_after_its_channel_broke(
    tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels = noted_channels(monkeypatch)
    async with talks_in(tmp_path, interaction__order=(uri,)) as talks:
        task = await talks.start("ticks", number=30, pause=0.1)
        await until(lambda: bool(channels))
        following = asyncio.create_task(talks.follow(task))
        await asyncio.sleep(1)
        await channels[0].close("cut")
        seen = await following
        assert seen.states == ["accepted", "working", "completed"]
        # Data of 0.3 is an object.
        is_old = uri.endswith("0.3")
        wanted = [{"value": one} if is_old else one for one in range(30)]
        assert seen.results == wanted
        assert len(channels) == 2


LARGE = (
    f"import io\n{AGENT}"
    + '''

def big(size: int) -> str:
    """Give a text of a size."""
    return "x" * size


def picture(size: int) -> bytes:
    """Give a file of a size."""
    return io.BytesIO(b"p" * size)


async def pages(number: int, size: int, file: str) -> AsyncIterator[str]:
    """Give texts of a size, the last one when there is a file."""
    for one in range(number):
        while one == number - 1 and not Path(file).exists():
            await asyncio.sleep(0.02)
        yield str(one) * size
'''
)


@clause("A2A-18", "A2A-22")
async def test_what_is_larger_than_a_frame_comes_in_pieces_or_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels = noted_channels(monkeypatch)
    small: dict[str, Any] = {
        "interaction__order": ("urn:anpd:a2a:1.0",),
        "channels__max_frame": 70_000,
    }
    async with talks_in(tmp_path, seconds=20, source=LARGE, **small) as talks:
        # No part of it can be cut.
        seen = await talks.follow(await talks.start("big", size=100_000))
        assert seen.states == ["accepted", "working", "failed"]
        assert seen.end is not None
        assert (seen.end.code, seen.end.may_have_run) == ("-32030", True)
        assert "a frame here 69999" in seen.end.reason

        # Nobody can fetch a file over the channel, so it goes itself.
        large = await talks.follow(await talks.start("picture", size=30_000))
        assert large.results == [b"p" * 30_000]
        over = await talks.follow(await talks.start("picture", size=60_000))
        assert over.end is not None
        assert over.end.code == "-32030"

        # After a break the whole task comes again, which is more than a frame has.
        file = tmp_path / "go"
        task = await talks.start("pages", number=12, size=10_000, file=str(file))
        log = await talks.caller.tasks.sessions.conversation(task.log)
        following = asyncio.create_task(talks.follow(task))
        await until(lambda: log.last > 12)
        number = len(channels)
        await channels[-1].close("cut")
        await until(lambda: len(channels) > number)
        await asyncio.sleep(0.3)
        file.touch()
        seen = await following
        assert seen.states == ["accepted", "working", "completed"]
        assert seen.results == [str(one) * 10_000 for one in range(12)]


@clause("A2A-15")
@pytest.mark.parametrize("is_told_of", [False, True])
async def test_a_task_that_the_peer_has_forgotten_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_told_of: bool
) -> None:
    """It may have run, also where the peer forgot it before it said anything of it."""
    channels = noted_channels(monkeypatch)
    async with talks_in(tmp_path, interaction__order=("urn:anpd:a2a:1.0",)) as talks:
        task = await talks.start("ticks", number=600, pause=0.05)
        following = asyncio.create_task(talks.follow(task))
        sessions = talks.provider.tasks.sessions
        async with asyncio.timeout(10):
            # Nobody tells of it.
            while not (known := await sessions.tasks()):  # noqa: ASYNC110
                await asyncio.sleep(0)
        if is_told_of:
            log = await talks.caller.tasks.sessions.conversation(task.log)
            await until(lambda: log.tasks[task.task.id].state == "working")
        await talks.provider.tasks.delete(known[0].log)
        await channels[-1].close("cut")
        seen = await following
        assert seen.end is not None
        assert seen.states[-1] == "failed"
        assert (seen.end.code, seen.end.may_have_run) == ("-32001", True)


@pytest.mark.parametrize("uri", ["urn:anpd:a2a:0.3", "urn:anpd:a2a:1.0"])
async def test_a_call_whose_result_is_too_large_ends_with_an_error(
    tmp_path: Path, uri: str
) -> None:
    big = {"big": 'def big(size: int) -> str:\n    return "x" * size\n'}
    flags: dict[str, Any] = {"consensus__use": True, "channels__max_frame": 70_000}
    async with house_in(tmp_path, more=big, **flags) as house:
        request = CallRequest(
            peer=f"{house.provider.url}#{house.provider.did}",
            need=Need("big"),
            arguments={"size": 100_000},
            protocol=uri,
        )
        with pytest.raises(CallError) as caught:
            await house.caller.caller.call(request)
        assert "a frame here 69999" in caught.value.detail
        assert caught.value.may_have_run


SAYS = """
async def echo(text: str):
    yield "echo: "
    yield text
"""


@clause("A2A-24")
@pytest.mark.parametrize("uri", ["urn:anpd:a2a:0.3", "urn:anpd:a2a:1.0"])
async def test_a_call_gets_one_whole_answer(tmp_path: Path, uri: str) -> None:
    """What an agent gives in pieces is folded as in a call over another protocol."""
    flags: dict[str, Any] = {"consensus__use": True}
    async with house_in(tmp_path, more={"echo": SAYS}, **flags) as house:
        request = CallRequest(
            peer=f"{house.provider.url}#{house.provider.did}",
            need=Need("echo"),
            arguments={"text": "via a2a"},
        )
        plain = await house.caller.caller.call(request)
        answer = await house.caller.caller.call(request._replace(protocol=uri))
        assert answer.output == plain.output == {"result": ["echo: ", "via a2a"]}
