"""Tasks and sessions in the local API: followed, answered, cancelled, kept apart."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from starlette.responses import StreamingResponse

from anp.interaction.chunks import split_message
from anp.interaction.conversation import Conversation
from anp.interaction.elements import Message, MessagePurpose, Part, SenderRole
from anp.interaction.step import Step
from anp.sidecar.api.app import make_app
from anp.sidecar.api.event_stream import event_stream
from anp.sidecar.api.guard import Door
from anp.sidecar.api.operations.task_views import event_of
from anp.sidecar.tasks.chronicle import Chronicle
from anp.sidecar.tasks.known import utc_now
from tests.e2e.talks import Talks, talks_in
from tests.waiting import until

PNG = bytes.fromhex("89504e470d0a1a0a") + bytes(range(256))


@dataclass
class Asked:
    """The caller's API, as its agent and as its owner ask it."""

    talks: Talks
    agent: httpx.AsyncClient
    owner: httpx.AsyncClient

    async def start(self, name: str, /, **data: Any) -> dict[str, Any]:
        """Start a task as the agent."""
        return await started(
            self.agent, peer=self.talks.address, capability=f"agent.{name}", input=data
        )

    async def events(self, path: str, *, after: int = 0) -> list[dict[str, Any]]:
        """Return the events of a stream that ends."""
        headers = {"last-event-id": str(after)} if after else {}
        answer = await self.agent.get(f"{path}/events", headers=headers)
        assert answer.status_code == 200, answer.text
        return events_in(answer.text)


def events_in(text: str) -> list[dict[str, Any]]:
    lines = (line.partition("data: ") for line in text.splitlines())
    return [json.loads(data) for before, sep, data in lines if sep and not before]


async def started(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post("/v1/tasks", json=body)
    assert answer.status_code == 202, answer.text
    found = answer.json()
    assert answer.headers["location"] == f"/v1/tasks/{found['id']}"
    return dict(found)


@asynccontextmanager
async def asked_in(folder: Path) -> AsyncIterator[Asked]:
    async with talks_in(folder) as talks:
        app = make_app(talks.caller, door=Door(owner_token="owner"))
        clients = [
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app),
                base_url="http://anpd",
                headers=headers,
                timeout=60,
            )
            for headers in ({}, {"authorization": "Bearer owner"})
        ]
        async with clients[0], clients[1]:
            yield Asked(talks, *clients)


async def test_a_task_is_started_followed_and_resumed(tmp_path: Path) -> None:
    async with asked_in(tmp_path) as asked:
        task = await asked.start("poem", lines=5)
        path = f"/v1/tasks/{task['id']}"
        events = await asked.events(path)
        assert events[0]["type"] == "task.created"
        assert events[-1]["type"] == "task.state"
        assert events[-1]["data"]["state"] == "completed"
        assert events[-1]["data"]["ended"] is True
        texts = [
            part["text"]
            for event in events
            if event["type"] == "task.message"
            for part in event["data"]["message"]["parts"]
        ]
        assert texts == [f"line {number}\n" for number in range(5)]
        # Who knows some goes on behind them, also when it is long over.
        known = events[3]["number"]
        assert await asked.events(path, after=known) == events[4:]
        assert await asked.events(path, after=events[-1]["number"]) == []
        found = (await asked.agent.get(path)).json()
        assert (found["state"], found["ended"], found["question"]) == (
            "completed",
            True,
            None,
        )
        assert [m["parts"][0]["text"] for m in found["messages"]] == texts


async def test_a_question_is_seen_and_answered(tmp_path: Path) -> None:
    async with asked_in(tmp_path) as asked:
        task = await asked.start("book", seat="4A")
        path = f"/v1/tasks/{task['id']}"
        found = await asked.agent.get(path)
        async with asyncio.timeout(30):
            while found.json()["question"] is None:
                async for event in asked.talks.caller.tasks.watch(task["session"]):
                    if getattr(event.content, "purpose", None) == "communication":
                        break
                found = await asked.agent.get(path)
        assert found.json()["state"] == "x-input-required"
        assert found.json()["question"]["text"] == "Is 4A right?"
        empty = await asked.agent.post(f"{path}/messages", json={})
        assert empty.status_code == 400
        answer = await asked.agent.post(f"{path}/messages", json={"text": "yes"})
        assert answer.status_code == 200
        events = await asked.events(path)
        told = [e["data"]["progress"] for e in events if e["type"] == "task.progress"]
        assert told == [1]
        assert events[-1]["data"]["state"] == "completed"
        late = await asked.agent.post(f"{path}/messages", json={"text": "yes"})
        assert late.status_code == 409


async def test_a_task_is_cancelled(tmp_path: Path) -> None:
    async with asked_in(tmp_path) as asked:
        task = await asked.start("wait", file=str(tmp_path / "mark"))
        path = f"/v1/tasks/{task['id']}"
        await until((tmp_path / "mark").exists)
        listed = (await asked.agent.get("/v1/tasks?open=1")).json()["tasks"]
        assert [one["id"] for one in listed] == [task["id"]]
        assert (await asked.agent.post(f"{path}/cancel", json={})).status_code == 200
        events = await asked.events(path)
        assert events[-1]["data"]["state"] == "canceled"
        assert "task.cancel_requested" in [event["type"] for event in events]
        assert (await asked.agent.get("/v1/tasks?open=1")).json()["tasks"] == []


async def test_an_agent_sees_its_own_tasks_only(tmp_path: Path) -> None:
    async with asked_in(tmp_path) as asked:
        body = {
            "peer": asked.talks.address,
            "capability": "agent.double",
            "input": {"number": 1},
        }
        owners = await started(asked.owner, **body)
        agents = await started(asked.agent, **body)
        assert (owners["made_by"], agents["made_by"]) == ("owner", "agent")
        await asked.events(f"/v1/tasks/{agents['id']}")
        for path in (
            f"/v1/tasks/{owners['id']}",
            f"/v1/tasks/{owners['id']}/events",
            f"/v1/sessions/{owners['session']}",
            f"/v1/sessions/{owners['session']}/events",
            "/v1/tasks/no-such-task",
        ):
            assert (await asked.agent.get(path)).status_code == 404
        joining = await asked.agent.post(
            "/v1/tasks", json={"session": owners["session"], "capability": "double"}
        )
        assert joining.status_code == 404
        for client, wanted in (
            (asked.agent, [agents["id"]]),
            (asked.owner, [agents["id"], owners["id"]]),
        ):
            pages, after = [], ""
            while after is not None:
                more = f"&after={after}" if after else ""
                page = (await client.get(f"/v1/tasks?limit=1{more}")).json()
                pages += [one["id"] for one in page["tasks"]]
                after = page["next"]
            assert pages == wanted
        trusting = await asked.agent.post(
            "/v1/tasks", json={**body, "trust_first_use": True}
        )
        assert trusting.status_code == 403
        # Tasks of peers are the owner's to see.
        app = make_app(asked.talks.provider, door=Door(owner_token="owner"))
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://anpd"
        ) as provider:
            assert (await provider.get("/v1/tasks")).json()["tasks"] == []
            headers = {"authorization": "Bearer owner"}
            seen = (await provider.get("/v1/tasks", headers=headers)).json()["tasks"]
            assert [one["made_by"] for one in seen] == ["peer", "peer"]


async def test_watchers_have_a_limit_and_the_owner_a_place(tmp_path: Path) -> None:
    async with asked_in(tmp_path) as asked:
        task = await asked.start("double", number=1)
        path = f"/v1/tasks/{task['id']}/events"
        await asked.events(f"/v1/tasks/{task['id']}")
        sessions = asked.talks.caller.tasks.sessions
        assert sessions.watchers == 0
        # One who hangs up in the middle leaves its place.
        known = await asked.talks.caller.tasks.task(task["id"])
        for taken in (1, 2, 3):
            told = Chronicle(sessions).watch(known.log, after=0)
            answer = event_stream(event_of(one) async for one in told)
            assert isinstance(answer, StreamingResponse)
            frames = aiter(answer.body_iterator)
            for _ in range(taken):
                await anext(frames)
            await frames.aclose()  # type: ignore[attr-defined]  # it is a generator
            del told, answer, frames
            await until(lambda: sessions.watchers == 0)
        sessions.watchers = 128
        refused = await asked.agent.get(path)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert (await asked.owner.get(path)).status_code == 200


async def test_a_session_is_exported_closed_and_deleted(tmp_path: Path) -> None:
    async with asked_in(tmp_path) as asked:
        task = await asked.start("double", number=4)
        await asked.events(f"/v1/tasks/{task['id']}")
        path = f"/v1/sessions/{task['session']}"
        found = (await asked.agent.get(path)).json()
        assert [one["id"] for one in found["tasks"]] == [task["id"]]
        assert found["participants"][0]["id"] == asked.talks.provider.did
        watching = asyncio.create_task(asked.agent.get(f"{path}/events"))
        exported = (await asked.owner.get(f"{path}/export")).text.splitlines()
        assert [json.loads(line)["number"] for line in exported] == list(
            range(1, found["events"] + 1)
        )
        assert (await asked.agent.get(f"{path}/export")).status_code == 403
        closed = (await asked.agent.post(f"{path}/close", json={})).json()
        assert closed["open"] is False
        more = {"session": task["session"], "capability": "agent.double"}
        assert (await asked.agent.post("/v1/tasks", json=more)).status_code == 409
        assert (await asked.agent.post(f"{path}/delete", json={})).status_code == 403
        assert (await asked.owner.post(f"{path}/delete", json={})).status_code == 200
        assert (await asked.owner.get(path)).status_code == 404
        # Who watches it sees the end of the stream.
        async with asyncio.timeout(10):
            assert events_in((await watching).text)[0]["type"] == "session.state"


async def test_bytes_are_shown_as_images_or_saved(tmp_path: Path) -> None:
    async with asked_in(tmp_path) as asked:
        sent = {"bytes": base64.b64encode(PNG).decode(), "media_type": "image/png"}
        task = await started(
            asked.agent,
            peer=asked.talks.address,
            capability="agent.wait",
            input={"file": str(tmp_path / "mark")},
            parts=[sent],
        )
        await until((tmp_path / "mark").exists)
        # A picture and a page in two chunks, as an executor may send them.
        provider = asked.talks.provider.tasks.sessions
        (theirs,) = await provider.tasks()
        page = b"<script>" * 1000
        contents = [
            (Part.data(PNG, media_type="image/png", name="../a.png"),),
            (Part.data(page, media_type="text/html"),),
        ]
        for parts in contents:
            message = Message(
                id=f"m{len(parts[0].content)}",  # type: ignore[arg-type]  # bytes
                session=theirs.task.session,
                task=theirs.task.id,
                sender="",
                role=SenderRole.SERVICE,
                purpose=MessagePurpose.RESULT,
                final=False,
                parts=parts,
            )
            for chunk in split(message):
                await provider.apply(theirs.log, partial(post, chunk))
        path = f"/v1/tasks/{task['id']}"
        await asked.agent.post(f"{path}/cancel", json={})
        events = await asked.events(path)
        parts_seen = [
            part
            for event in events
            if event["type"] == "task.message"
            for part in event["data"]["message"]["parts"]
        ]
        request = events[0]["data"]["messages"][0]["parts"][1]
        given = await asked.agent.get(f"{path}/artifacts/{request['artifact']}")
        assert (given.content, given.headers["content-type"]) == (PNG, "image/png")
        first, *pieces = parts_seen
        assert (first["name"], first["size"]) == ("../a.png", len(PNG))
        assert len(pieces) > 1
        assert {piece["artifact"] for piece in pieces} == {pieces[0]["artifact"]}
        # The same numbers for who comes in the middle.
        middle = events[-2]["number"] - 1
        resumed = await asked.events(path, after=middle)
        assert resumed == [one for one in events if one["number"] > middle]
        image = await asked.agent.get(f"{path}/artifacts/{first['artifact']}")
        assert image.content == PNG
        assert image.headers["content-type"] == "image/png"
        saved = await asked.agent.get(f"{path}/artifacts/{pieces[0]['artifact']}")
        assert saved.content == page
        assert saved.headers["content-type"] == "application/octet-stream"
        assert saved.headers["content-disposition"] == "attachment"
        for answer in (image, saved):
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-security-policy"].startswith("sandbox")
        for wrong in ("1.0", "999.0", "x", "1.9"):
            answer = await asked.agent.get(f"{path}/artifacts/{wrong}")
            assert answer.status_code == 404


def post(message: Message, conversation: Conversation) -> Step:
    return conversation.post(message, wall_now=utc_now())


def split(message: Message) -> list[Message]:

    return list(split_message(message, max_content=4096))
