"""Agents written with the official A2A SDK, driven as tasks from another daemon."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from anp.interaction.elements import PartKind
from anp.sidecar.attachments import AttachmentSpec
from tests.e2e.agents.a2a_agent import LARGE, PICTURE
from tests.e2e.agents.running import running
from tests.e2e.talks import Talks, talks_in

MODES = ("stream", "poll", "rest", "old")


@asynccontextmanager
async def talks_with_agent(folder: Path, mode: str) -> AsyncIterator[Talks]:
    """Run two daemons of which one has the agent."""
    with running("a2a_agent.py", mode) as agent:
        spec = AttachmentSpec(kind="a2a", name="agent", url=agent.url, expose=("*",))
        async with talks_in(folder, attached=spec) as talks:
            yield talks


@pytest.fixture(params=MODES)
async def talks(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Talks]:
    async with talks_with_agent(tmp_path, request.param) as found:
        yield found


async def test_an_agent_streams_to_the_other_daemon(tmp_path: Path) -> None:
    async with talks_with_agent(tmp_path, "stream") as talks:
        task = await talks.start("shout", text="poem 40")
        seen = await talks.follow(task)
        lines = [f"line {number}\n" for number in range(40)]
        assert seen.results == [*lines, "A title", "it is done"]
        assert seen.progress == ["thinking"]
        assert seen.states == ["accepted", "working", "completed"]
        first, *rest = [dict(part.metadata) for part in seen.parts]
        more = {"artifact": "poem", "append": True}
        assert first == {"artifact": "poem"}
        assert rest == [
            *[more] * 38,
            {**more, "lastChunk": True},
            {"artifact": "title"},
            {"status": "completed"},
        ]


async def test_every_mode_of_an_agent_is_driven_to_the_end(talks: Talks) -> None:
    seen = await talks.follow(await talks.start("shout", text="poem 5"))
    lines = "".join(f"line {number}\n" for number in range(5))
    assert "".join(seen.results) == f"{lines}A titleit is done"
    assert seen.states[-1] == "completed"

    seen = await talks.follow(await talks.start("shout", text="done early"))
    assert (seen.results, seen.states[-1]) == (["EARLY"], "completed")

    seen = await talks.follow(await talks.start("shout", text="fail"))
    assert seen.end is not None
    assert (seen.end.state, seen.end.reason) == ("failed", "no oven")

    seen = await talks.follow(await talks.start("shout", text="whoami"))
    assert seen.results == [f"{talks.caller.did} shout"]


async def test_an_agent_asks_back_and_goes_on(talks: Talks) -> None:
    task = await talks.start("shout", text="ask")
    seen = await talks.follow(task, answers=("Berlin",))
    assert seen.said == ["which city?"]
    assert seen.results == ["Berlin/accept"]
    assert seen.states == [
        "accepted",
        "working",
        "x-input-required",
        "working",
        "completed",
    ]
    task = await talks.start("shout", text="login")
    seen = await talks.follow(task, answers=("signed in",))
    assert seen.states[2] == "x-auth-required"
    assert seen.urls == ["https://login.example/a?b=1"]
    assert seen.results == ["signed in/accept"]
    task = await talks.start("shout", text="badge")
    seen = await talks.follow(task, answers=("here",))
    assert seen.states[2] == "x-auth-required"
    assert (seen.said, seen.urls) == (["show your badge"], [])


async def test_files_of_an_agent_come_byte_for_byte(talks: Talks) -> None:
    seen = await talks.follow(await talks.start("shout", text="file"))
    picture, *halves, link = seen.parts
    assert (picture.name, picture.media_type) == ("a.png", "image/png")
    assert picture.content == PICTURE
    large = b"".join(one.content for one in halves if isinstance(one.content, bytes))
    assert hashlib.sha256(large).digest() == hashlib.sha256(LARGE).digest()
    assert {(one.name, one.media_type) for one in halves} == {
        ("large", "application/x-large")
    }
    assert len({one.metadata["artifact"] for one in halves}) == 1
    assert (link.kind, link.content) == (PartKind.URI, "https://files.example/a")


async def test_a_cancelled_task_is_cancelled_at_the_agent(talks: Talks) -> None:
    task = await talks.start("shout", text="hang")
    async for event in talks.caller.tasks.watch(task.log, after=0):
        if getattr(event.content, "state", "") == "working":
            break
    # The agent's task has a moment to begin.
    await asyncio.sleep(0.5)
    await talks.caller.tasks.cancel(task.id)
    seen = await talks.follow(task)
    assert seen.states[-1] == "canceled"
    seen = await talks.follow(await talks.start("shout", text="cancelled"))
    assert seen.results == ["yes"]
