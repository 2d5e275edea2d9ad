"""Tasks between two daemons over A2A, in each of its protocols."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from anp.channel.channel import Channel
from anp.channel.links import LinkTarget
from anp.errors import CallError
from anp.protocols.a2a import A2A_URIS
from anp.sidecar.calls.call import CallRequest
from anp.wire.frames import ProtocolType
from negotiation.need import Need
from tests.clauses import clause
from tests.e2e.house import House, house_in
from tests.e2e.talks import AGENT, noted_channels, talks_in
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
