"""A2A agents: one made with the official SDK, and some that answer as none should."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from anp.sidecar.attachments import AttachmentError, ToolError
from anp.sidecar.attachments.a2a.tasks import TaskRecord
from tests.anp.sidecar.attachments.web import (
    LIMITS,
    Asked,
    Web,
    answer,
    attached,
    call,
    serving,
)
from tests.e2e.agents.a2a_agent import LARGE, PICTURE
from tests.e2e.agents.running import Agent, running


@pytest.fixture(params=["stream", "poll", "rest"])
def agent(request: pytest.FixtureRequest) -> Iterator[Agent]:
    with running("a2a_agent.py", request.param) as started:
        yield started


async def test_skills_are_called_and_tasks_followed_to_their_end(agent: Agent) -> None:
    async with attached("a2a", agent.url) as my:
        found = {each.name: each for each in my.capabilities()}
        assert list(found) == ["my.shout", "my.add_up", "my.see"]
        assert "Says it louder." in found["my.shout"].description
        assert my.skipped == ()
        see = found["my.see"].input_schema
        assert isinstance(see, dict)
        assert see["required"] == ["files"]
        assert await call(my, "shout", text="shout hello") == {"text": "HELLO"}
        assert await call(my, "shout", text="slow hello") == {"text": "HELLO"}
        assert await call(my, "add_up", data={"a": 1, "b": 2}) == {
            "text": "",
            "data": [{"total": 3}],
        }
        assert await call(my, "shout", text="whoami") == {
            "text": "did:key:zCaller shout"
        }
        assert await call(my, "shout", text="chunks") == {"text": "onetwo"}


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("ask", 400, "which city?"),
        ("login", 502, "sign in"),
        ("fail", 500, "no oven"),
        ("reject", 400, "not today"),
        ("huge 200000", 502, "over 100000 bytes"),
    ],
)
async def test_a_task_without_result_is_an_error_of_the_call(
    text: str, code: int, said: str
) -> None:
    limits = replace(LIMITS, max_result=100_000)
    with running("a2a_agent.py") as agent:
        async with attached("a2a", agent.url, limits) as my:
            with pytest.raises(ToolError) as caught:
                await call(my, "shout", text=text)
    assert caught.value.code == code
    assert said in caught.value.message


async def test_everything_of_a_streaming_agent_is_joined_for_one_turn(
    agent: Agent,
) -> None:
    async with attached("a2a", agent.url) as my:
        lines = "".join(f"line {number}\n" for number in range(3))
        assert await call(my, "shout", text="poem 3") == {
            "text": f"{lines}\n\nA title",
            "status": "it is done",
        }
        assert await call(my, "shout", text="done early") == {"text": "EARLY"}


async def test_files_come_byte_for_byte_in_a_call_of_one_turn(agent: Agent) -> None:
    async with attached("a2a", agent.url) as my:
        found = await call(my, "shout", text="file")
    picture, large, link = found.pop("parts")
    assert found == {"text": ""}
    assert (picture["name"], picture["mediaType"]) == ("a.png", "image/png")
    assert base64.b64decode(picture["data"]) == PICTURE
    assert (large["name"], large["mediaType"]) == ("large", "application/x-large")
    assert base64.b64decode(large["data"]) == LARGE
    assert link == {"mediaType": "text/csv", "uri": "https://files.example/a"}


async def test_a_skill_takes_files(agent: Agent) -> None:
    file = {
        "mediaType": "image/png",
        "name": "b.png",
        "data": base64.b64encode(PICTURE).decode(),
    }
    async with attached("a2a", agent.url) as my:
        assert await call(my, "see", files=[file]) == {"text": "", "parts": [file]}
        with pytest.raises(ToolError, match="are not base64"):
            await call(my, "see", files=[{**file, "data": "?"}])


async def test_what_nobody_waits_for_is_cancelled_at_the_agent(agent: Agent) -> None:
    async with attached("a2a", agent.url) as my:
        with pytest.raises(ToolError) as caught:
            await call(my, "shout", 0.5, text="hang")
        assert caught.value.code == 504
        assert (await call(my, "shout", text="cancelled"))["text"] == "yes"


async def test_an_agent_that_breaks_off_once_is_told_that_nobody_waits() -> None:
    web: list[Web] = []
    asked: list[str] = []

    def reply(one: Asked) -> bytes:
        body = one.json()
        asked.append(body["method"])
        if asked[-1] == "GetTask":
            return b""
        task = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}
        result = {"task": task} if asked[-1] == "SendMessage" else task
        return answer({"jsonrpc": "2.0", "id": body["id"], "result": result})

    async with serving(agent_of(web, reply)) as found:
        web.append(found)
        async with attached("a2a", found.url) as my:
            with pytest.raises(AttachmentError) as caught:
                await call(my, "do", text="x")
    assert caught.value.may_have_run
    assert asked == ["SendMessage", "GetTask", "CancelTask"]


async def test_an_agent_is_told_of_a_cancel_that_comes_before_it_named_its_task() -> (
    None
):
    web: list[Web] = []
    asked: list[str] = []
    begun = asyncio.Event()

    async def reply(one: Asked) -> bytes:
        if one.method == "GET":
            return answer(card(web[0].url))
        body = one.json()
        asked.append(body["method"])
        begun.set()
        await asyncio.sleep(0.2)
        task = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}
        result = {"task": task} if asked[-1] == "SendMessage" else task
        return answer({"jsonrpc": "2.0", "id": body["id"], "result": result})

    async with serving(reply) as found:
        web.append(found)
        async with attached("a2a", found.url) as my:
            running = asyncio.create_task(call(my, "do", text="x"))
            await begun.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
    assert asked == ["SendMessage", "CancelTask"]


async def test_calls_go_to_another_host_only_if_the_owner_says_so() -> None:
    with running("a2a_agent.py", "elsewhere") as agent:
        with pytest.raises(AttachmentError, match="--endpoint http://localhost"):
            async with attached("a2a", agent.url):
                pass
        there = f"{agent.url}/a2a"
        async with attached("a2a", agent.url, endpoint=there) as my:
            assert await call(my, "shout", text="shout a") == {"text": "A"}


def card(web_url: str, **more: Any) -> dict[str, Any]:
    """Return a card of an agent that is called at `/rpc`."""
    return {
        "name": "x",
        "description": "x",
        "version": "1",
        "supportedInterfaces": [
            {
                "url": f"{web_url}/rpc",
                "protocolBinding": "JSONRPC",
                "protocolVersion": "1.0",
            }
        ],
        "capabilities": {"streaming": False},
        "skills": [{"id": "do", "name": "Do", "description": "Does.", "tags": []}],
        **more,
    }


def agent_of(web: list[Web], reply: Callable[[Asked], bytes]) -> Any:
    """Return a handler with a card, and with `reply` for calls."""

    def handle(asked: Asked) -> bytes:
        if asked.method == "GET":
            return answer(card(web[0].url))
        return reply(asked)

    return handle


def rpc(result: Any) -> Callable[[Asked], bytes]:
    return lambda asked: answer(
        {"jsonrpc": "2.0", "id": asked.json()["id"], "result": result}
    )


@pytest.mark.parametrize(
    "reply",
    [
        lambda _: answer([]),
        lambda _: answer(b"junk"),
        lambda _: answer(b"[" * 5000),
        lambda _: answer({"result": 5}),
        lambda _: answer({"result": {"task": {"status": {"state": "ODD"}}}}),
        lambda _: answer({"result": {"task": {"status": {"state": 99}}}}),
        lambda _: answer({"result": {"message": {"parts": 5}}}),
        lambda _: answer({"error": 5}),
        lambda _: answer({"error": {"code": -32603, "message": "x"}}),
        lambda _: answer({}, 500),
        lambda _: answer({}, 401),
        lambda _: answer(b"", 307, location="http://127.0.0.1:1/"),
        lambda _: answer(b'{"result": "' + b"x" * 300_000 + b'"}'),
        lambda _: b"junk\r\n\r\n",
        lambda _: b"",
        rpc({"task": {"id": "", "status": {"state": "TASK_STATE_WORKING"}}}),
        rpc({}),
    ],
)
async def test_a_hostile_answer_ends_in_an_error_of_the_call(
    reply: Callable[[Asked], bytes],
) -> None:
    limits = replace(LIMITS, max_result=100_000, max_document=100_000)
    webs: list[Web] = []
    async with serving(agent_of(webs, reply)) as web:
        webs.append(web)
        async with attached("a2a", web.url, limits) as my:
            with pytest.raises((ToolError, AttachmentError)) as caught:
                await call(my, "do", 3.0, text="x")
            assert "unexpected" not in str(caught.value)
            assert "failed:" not in str(caught.value)
            assert str(caught.value).count("\n") == 0


async def test_a_task_that_never_ends_is_asked_less_and_less_often() -> None:
    task = {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}

    def reply(asked: Asked) -> bytes:
        said = asked.json()
        result = {"task": task} if said["method"] == "SendMessage" else task
        return answer({"jsonrpc": "2.0", "id": said["id"], "result": result})

    webs: list[Web] = []
    async with serving(agent_of(webs, reply)) as web:
        webs.append(web)
        async with attached("a2a", web.url) as my:
            with pytest.raises(ToolError) as caught:
                await call(my, "do", 1.5, text="x")
            assert caught.value.code == 504
        methods = [json.loads(a.body)["method"] for a in web.asked if a.body]
        assert methods[0] == "SendMessage"
        assert methods[-1] == "CancelTask"
        assert methods.count("GetTask") <= 5


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([], "cannot be read"),
        ({"skills": 5}, "cannot be read"),
        ({}, "no way to call"),
        ({"name": 5}, "cannot be read"),
        ({"supportedInterfaces": [{"url": "http://169.254.169.254/"}]}, "no way"),
        (
            {
                "supportedInterfaces": [
                    {
                        "url": "https://evil.example/",
                        "protocolBinding": "JSONRPC",
                        "protocolVersion": "1.0",
                    }
                ]
            },
            "another host",
        ),
        (
            {
                "supportedInterfaces": [
                    {"url": "http://127.0.0.1/", "protocolBinding": "GRPC"}
                ]
            },
            "GRPC",
        ),
    ],
)
async def test_a_card_that_cannot_be_used_says_why(found: Any, reason: str) -> None:
    async with serving(lambda _: answer(found)) as web:
        with pytest.raises(AttachmentError, match=reason) as caught:
            async with attached("a2a", web.url):
                pass
    assert "\n" not in str(caught.value)


async def test_an_old_card_is_read_as_well() -> None:
    webs: list[Web] = []

    def handle(asked: Asked) -> bytes:
        old = card("")
        del old["supportedInterfaces"]
        old |= {"url": f"{webs[0].url}/rpc", "preferredTransport": "JSONRPC"}
        old |= {"protocolVersion": "0.3.0"}
        if asked.method == "GET":
            return answer(old)
        message = {
            "kind": "message",
            "messageId": "m",
            "role": "agent",
            "parts": [{"kind": "text", "text": "hello"}],
        }
        said = asked.json()
        return answer({"jsonrpc": "2.0", "id": said["id"], "result": message})

    async with serving(handle) as web:
        webs.append(web)
        async with attached("a2a", f"{web.url}/card.json") as my:
            assert await call(my, "do", text="x") == {"text": "hello"}
        assert web.asked[0].target == "/card.json"


def test_whole_numbers_are_integers_again() -> None:
    from a2a.types.a2a_pb2 import StreamResponse
    from google.protobuf.json_format import ParseDict

    data = {"a": 1, "b": [1.5, 2], "c": {"d": -3}, "e": None, "f": "1"}
    event = {"message": {"messageId": "m", "parts": [{"data": data}]}}
    record = TaskRecord(max_size=1000)
    record.add(ParseDict(event, StreamResponse()))
    found = record.output()["data"]
    assert json.dumps(found, sort_keys=True) == json.dumps([data], sort_keys=True)
