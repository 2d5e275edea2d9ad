"""The life of tasks as callers of the A2A face see it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from anp.sidecar.a2a import face as face_module
from tests.a2a.test_edges import Face, body, message, old_message
from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.test_a2a_face import ASK, CALCULATE, SLOW, STREAM, face_in
from tests.waiting import until

STEPS = """
import asyncio


async def steps(path: str, count: int):
    for number in range(count):
        await asyncio.sleep(0.2)
        with open(path, "a") as file:
            file.write(f"{number}\\n")
        yield f"{number} "
"""

VERSIONS = ("0.3", "1.0")
NAMES = {
    "get": ("tasks/get", "GetTask"),
    "cancel": ("tasks/cancel", "CancelTask"),
    "subscribe": ("tasks/resubscribe", "SubscribeToTask"),
    "send": ("message/send", "SendMessage"),
    "stream": ("message/stream", "SendStreamingMessage"),
}


class Caller:
    """Speaks one version with the face."""

    def __init__(self, face: Face, version: str) -> None:
        self.face = face
        self.is_old = version == "0.3"
        self.head = {"A2A-Version": version}

    def request(self, name: str, params: Any) -> Any:
        return body(NAMES[name][not self.is_old], params)

    def said(self, *parts: Any, **more: Any) -> Any:
        if not self.is_old:
            return message(*parts, **more)
        kinds = [{"kind": "data" if "data" in one else "text", **one} for one in parts]
        return old_message(*kinds, **more)

    def skill(self, name: str, **arguments: Any) -> Any:
        return self.said({"data": {"skill": name, "arguments": arguments}})

    async def ask(self, name: str, params: Any) -> Any:
        answer = await self.face.post(self.request(name, params), **self.head)
        return answer.json()

    async def send(self, said: Any, **configuration: Any) -> Any:
        params = {"message": said, "configuration": configuration}
        result = (await self.ask("send", params))["result"]
        return result if self.is_old else result["task"]

    async def get(self, task: str, **more: Any) -> Any:
        return (await self.ask("get", {"id": task, **more}))["result"]

    @contextlib.asynccontextmanager
    async def stream(self, name: str, params: Any) -> AsyncIterator[Any]:
        """Begin a stream; yields an iterator over its lines."""
        async with self.face.http.stream(
            "POST", self.face.url, json=self.request(name, params), headers=self.head
        ) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield answer.aiter_lines()

    async def events(self, lines: Any) -> list[Any]:
        return [one async for one in each(lines)]

    async def streamed(self, name: str, params: Any) -> list[Any]:
        async with self.stream(name, params) as lines:
            return await self.events(lines)

    def kind(self, event: Any) -> str:
        if self.is_old:
            return str(event["kind"])
        (name,) = event
        return str(name).replace("U", "-u")

    def inner(self, event: Any) -> Any:
        return event if self.is_old else next(iter(event.values()))

    def state(self, found: Any) -> str:
        word = found["status"]["state"]
        return str(word.removeprefix("TASK_STATE_").lower().replace("_", "-"))


async def each(lines: Any) -> AsyncIterator[Any]:
    async for line in lines:
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))["result"]


@contextlib.asynccontextmanager
async def caller(folder: Path, version: str, **more: str) -> AsyncIterator[Caller]:
    async with (
        face_in(folder, **more) as url,
        httpx.AsyncClient(trust_env=False, timeout=60) as http,
    ):
        yield Caller(Face(url, http), version)


@clause("A2A-15")
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_length_of_the_history(tmp_path: Path, version: str) -> None:
    async with caller(tmp_path, version, order=ASK) as one:
        task = await one.send(one.skill("order.order", item="tea"))
        more = {"taskId": task["id"], "contextId": task["contextId"]}
        reply = one.said({"text": "two"}, **more)
        task = await one.send(reply)
        whole = task["history"]
        assert len(whole) == 3
        assert (await one.get(task["id"]))["history"] == whole
        assert "history" not in await one.get(task["id"], historyLength=0)
        newest = await one.get(task["id"], historyLength=2)
        assert newest["history"] == whole[1:]
        assert (await one.get(task["id"], historyLength=99))["history"] == whole
        said = one.skill("twice.twice", number=1)
        assert "history" not in await one.send(said, historyLength=0)


@clause("A2A-4", "A2A-16")
@pytest.mark.parametrize("version", VERSIONS)
async def test_waiting_or_not(tmp_path: Path, version: str) -> None:
    async with caller(tmp_path, version, slow=SLOW) as one:
        no_wait = {"blocking": False} if one.is_old else {"returnImmediately": True}
        task = await one.send(one.skill("slow.slow", seconds=1), **no_wait)
        assert one.state(task) in {"submitted", "working"}
        subscribed = await one.streamed("subscribe", {"id": task["id"]})
        assert one.state(one.inner(subscribed[-1])) == "completed"
        assert one.state(await one.get(task["id"])) == "completed"
        task = await one.send(one.skill("slow.slow", seconds=0.3))
        assert one.state(task) == "completed"


@clause("A2A-24")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_task_that_has_ended(tmp_path: Path, version: str) -> None:
    async with caller(tmp_path, version, order=ASK) as one:
        task = await one.send(one.skill("twice.twice", number=1))
        more = {"taskId": task["id"], "contextId": task["contextId"]}
        params = {"message": one.said({"text": "again"}, **more)}
        for name, asked, code in (
            ("send", params, -32004),
            ("stream", params, -32004),
            ("subscribe", {"id": task["id"]}, -32004),
            ("cancel", {"id": task["id"]}, -32002),
        ):
            assert (await one.ask(name, asked))["error"]["code"] == code, name
        # Its context goes on with another task.
        said = {"data": {"skill": "twice.twice", "arguments": {"number": 2}}}
        next_one = await one.send(one.said(said, contextId=task["contextId"]))
        assert next_one["contextId"] == task["contextId"]
        assert next_one["id"] != task["id"]
        asks = await one.send(one.skill("order.order", item="tea"))
        other = {"taskId": asks["id"], "contextId": task["contextId"]}
        params = {"message": one.said({"text": "two"}, **other)}
        assert (await one.ask("send", params))["error"]["code"] == -32602


@clause("A2A-14", "A2A-18")
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_order_of_a_stream(tmp_path: Path, version: str) -> None:
    async with caller(tmp_path, version, story=STREAM, order=ASK) as one:
        story = {"message": one.skill("story.story", topic="wire")}
        events = await one.streamed("stream", story)
        kinds = [one.kind(event) for event in events]
        assert kinds[0] == "task"
        assert kinds[-1] == "status-update"
        assert one.state(one.inner(events[-1])) == "completed"
        order = {"message": one.skill("order.order", item="tea")}
        asked = await one.streamed("stream", order)
        assert one.state(one.inner(asked[-1])) == "input-required"
        # Only 0.3 marks the last, and nothing but the last.
        for found in (events, asked):
            marks = [one.inner(event).get("final", False) for event in found]
            assert marks == [False] * (len(found) - 1) + [one.is_old]


@pytest.mark.parametrize("version", VERSIONS)
async def test_two_watch_and_one_leaves(tmp_path: Path, version: str) -> None:
    """The task goes on, whoever watches it."""
    path = tmp_path / "steps.txt"
    async with caller(tmp_path, version, steps=STEPS) as one:
        skill = one.skill("steps.steps", path=str(path), count=10)
        async with one.stream("stream", {"message": skill}) as lines:
            first = one.inner(await anext(each(lines)))
        # Its connection is closed.
        task = {"id": first["id"]}
        seen = await asyncio.gather(*(one.streamed("subscribe", task) for _ in "ab"))
        for events in seen:
            assert one.kind(events[0]) == "task"
            assert one.state(one.inner(events[-1])) == "completed"
            parts = list(
                one.inner(events[0]).get("artifacts", [{"parts": []}])[0]["parts"]
            )
            for event in events[1:]:
                if one.kind(event) == "artifact-update":
                    parts += one.inner(event)["artifact"]["parts"]
            words = "".join(part["text"] for part in parts)
            assert words == "".join(f"{number} " for number in range(10))
        assert path.read_text().split() == [str(number) for number in range(10)]


async def test_a_silent_stream_is_kept_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(face_module, "HEARTBEAT", 0.1)
    async with caller(tmp_path, "1.0", slow=SLOW) as one:
        skill = one.skill("slow.slow", seconds=1)
        async with one.stream("stream", {"message": skill}) as lines:
            found = [line async for line in lines]
    comments = [line for line in found if line.startswith(":")]
    assert len(comments) >= 3
    last = json.loads(found[-2].removeprefix("data: "))["result"]["statusUpdate"]
    assert last["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.slow
@clause("A2A-4", "A2A-24")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_restart_while_a_task_asks(tmp_path: Path, version: str) -> None:
    """A function that was asking has lost its place; a question of ours stands."""
    (tmp_path / "made.py").write_text(ASK + CALCULATE)
    daemon = Anpd(
        tmp_path / "home",
        a2a__listen="127.0.0.1:0",
        a2a__open="true",
        operation__stop_timeout="1",
    )
    for name in ("order", "ai_calculate"):
        target = ("python", f"{tmp_path}/made.py:{name}")
        daemon.ok("attach", *target, "--name", name, "--expose", "*")

    def urls() -> list[str]:
        return re.findall(r"a2a +(http\S+)", daemon.log())

    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        with daemon.up():
            await until(lambda: len(urls()) == 1)
            one = Caller(Face(urls()[0], http), version)
            lost = await one.send(one.skill("order.order", item="tea"))
            task = await one.send(one.said({"text": "Do something."}))
            for found in (lost, task):
                assert one.state(found) == "input-required"
        with daemon.up():
            await until(lambda: len(urls()) == 2)
            one = Caller(Face(urls()[1], http), version)
            lost = await one.get(lost["id"])
            assert one.state(lost) == "failed"
            assert lost["metadata"]["mayHaveRun"] is True
            assert await one.get(task["id"]) == task
            async with one.stream("subscribe", {"id": task["id"]}) as lines:
                events = each(lines)
                assert one.inner(await anext(events)) == task
                skill = {"skill": "ai_calculate", "arguments": {"num1": 1, "num2": 2}}
                more = {"taskId": task["id"], "contextId": task["contextId"]}
                answer = await one.send(one.said({"data": skill}, **more))
                rest = [event async for event in events]
            assert one.state(answer) == "completed", answer
            assert answer["artifacts"][0]["parts"][0]["data"] == {"sum": 3}
            assert one.state(one.inner(rest[-1])) == "completed"
