"""Callback agents that answer 202, and send updates to the daemon's address."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from anp.sidecar.api.doors import serve_api
from anp.sidecar.attachments import AttachmentSpec
from anp.sidecar.attachments.declaration import DeclaredCapability
from anp.sidecar.calls.call import CallRequest
from negotiation.need import Need
from tests.anp.sidecar.attachments.web import Asked, answer, serving
from tests.e2e.talks import Talks, talks_in
from tests.waiting import until


@dataclass
class Agent:
    """An agent at a URL that takes its time."""

    talks: Talks
    posts: list[dict[str, Any]] = field(default_factory=list)
    "Everything that was posted to it."

    http: httpx.AsyncClient = field(default_factory=httpx.AsyncClient)

    async def call(self) -> dict[str, Any]:
        """Return the call that was posted."""
        await until(lambda: bool(self.posts))
        return self.posts[0]

    async def update(self, kind: str, /, token: str = "", **more: Any) -> int:
        """Send an update about the call; return the status of the answer."""
        updates = (await self.call())["updates"]
        found = await self.http.post(
            updates["url"],
            json={"type": kind, **more},
            headers={"authorization": f"Bearer {token or updates['token']}"},
        )
        return found.status_code


@asynccontextmanager
async def agent_in(folder: Path) -> AsyncIterator[Agent]:
    agents: list[Agent] = []

    def take(asked: Asked) -> bytes:
        agents[0].posts.append(asked.json())
        return answer({}, 202)

    async with serving(take) as web:
        spec = AttachmentSpec(
            kind="callback",
            name="slow",
            url=f"{web.url}/calls",
            capabilities=(DeclaredCapability(name="think"),),
            expose=("*",),
        )
        async with talks_in(folder, more=[spec]) as talks, serve_api(talks.provider):
            agents.append(Agent(talks))
            async with agents[0].http:
                yield agents[0]


async def test_updates_reach_the_requester_until_the_end(tmp_path: Path) -> None:
    async with agent_in(tmp_path) as agent:
        task = await agent.talks.start("slow.think", n=1)
        following = asyncio.create_task(agent.talks.follow(task, answers=("yes",)))
        call = await agent.call()
        assert call["updates"]["url"].startswith("http://127.0.0.1:")
        # 256 bits, in base64 without padding.
        assert len(call["updates"]["token"]) == 43
        assert call["key"]
        assert await agent.update("progress", progress=1, total=3, text="begun") == 200
        assert await agent.update("message", text="a moment") == 200
        assert await agent.update("ask", text="Really?") == 200
        await until(lambda: len(agent.posts) > 1)
        assert agent.posts[1] == {
            "id": call["id"],
            "answer": {"action": "accept", "text": "yes"},
        }
        data = base64.b64encode(b"\x00bytes").decode()
        part = {"bytes": data, "name": "a.bin"}
        assert await agent.update("part", text="one ") == 200
        assert await agent.update("part", parts=[part]) == 200
        assert await agent.update("completed", output={"thought": 42}) == 200
        seen = await following
        # The token is dead with the task, and looks like one that never was.
        assert await agent.update("progress", progress=2) == 404
    assert seen.states[-1] == "completed"
    assert seen.progress == ["begun"]
    assert seen.said == ["a moment", "Really?"]
    assert seen.results == ["one ", b"\x00bytes", {"thought": 42}]


async def test_a_wrong_token_and_an_ended_one_get_the_same_answer(
    tmp_path: Path,
) -> None:
    async with agent_in(tmp_path) as agent:
        tasks = [await agent.talks.start("slow.think") for _ in range(2)]
        await until(lambda: len(agent.posts) == 2)
        first, second = (one["updates"] for one in agent.posts)
        desk = agent.talks.provider.attaching.updates
        assert first["token"] != second["token"]
        # Of a token only its hash is kept.
        assert first["token"] not in str(list(desk._open))

        async def answer_to(url: str, token: str | None) -> tuple[int, bytes]:
            headers = {} if token is None else {"authorization": f"Bearer {token}"}
            found = await agent.http.post(
                url, json={"type": "progress", "progress": 1}, headers=headers
            )
            return found.status_code, found.content

        assert (await answer_to(first["url"], first["token"]))[0] == 200
        assert await agent.update("failed", code=409, message="no") == 200
        others = [
            await answer_to(first["url"], first["token"]),
            await answer_to(first["url"], "x" * 43),
            await answer_to(first["url"], second["token"]),
            await answer_to(first["url"], None),
            await answer_to(f"{second['url']}x", second["token"]),
            await answer_to(first["url"].rpartition("/")[0], second["token"]),
        ]
        assert {status for status, _ in others} == {404}
        assert len(set(others)) == 1
        assert (await answer_to(second["url"], second["token"]))[0] == 200
        ends = {
            one["updates"]["url"]: task
            for one, task in zip(agent.posts, tasks, strict=True)
        }
        assert len(ends) == 2


async def test_a_cancelled_task_is_told_to_the_agent(tmp_path: Path) -> None:
    async with agent_in(tmp_path) as agent:
        task = await agent.talks.start("slow.think")
        call = await agent.call()
        assert await agent.update("progress", progress=1) == 200
        await agent.talks.caller.tasks.cancel(task.id)
        await until(lambda: len(agent.posts) > 1)
        assert agent.posts[1] == {"id": call["id"], "cancel": True}
        assert await agent.update("completed", output={}) == 404
        assert (await agent.talks.follow(task)).states[-1] == "canceled"


async def test_a_call_of_one_turn_waits_for_the_updates(tmp_path: Path) -> None:
    async with agent_in(tmp_path) as agent:
        request = CallRequest(
            peer=agent.talks.address, need=Need("slow.think"), arguments={}
        )
        calling = asyncio.create_task(agent.talks.caller.caller.call(request))
        assert await agent.update("part", text="a ") == 200
        assert await agent.update("part", text="b") == 200
        assert await agent.update("completed") == 200
        assert (await calling).output == {"result": "a b"}


async def test_what_is_no_update_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    async with agent_in(tmp_path) as agent:
        task = await agent.talks.start("slow.think")
        assert await agent.update("finished") == 400
        assert await agent.update("part") == 400
        assert await agent.update("progress", text=7) == 400
        assert await agent.update("completed", output=[1]) == 200
        assert (await agent.talks.follow(task)).results == [{"result": [1]}]
