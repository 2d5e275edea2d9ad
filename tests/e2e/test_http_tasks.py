"""Tasks between two daemons that are done by a service over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from anp.interaction.elements import Message, PartKind
from anp.sidecar.attachments import AttachmentSpec
from anp.sidecar.attachments.spec import DeclaredCapability
from tests.anp.sidecar.attachments.web import Asked, Web, answer, serving
from tests.e2e.talks import Talks, talks_in
from tests.waiting import until

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4000
"Larger than what goes in one frame."


def service(asked: Asked) -> Any:
    """Answer as services do that stream, take their time, or have pictures."""
    if asked.target == "/picture":
        return answer(PICTURE, content_type="image/png")
    if asked.target == "/later":
        return answer({}, 202, location="/jobs/7", retry_after="1")
    if asked.target == "/jobs/7":
        return answer({"done": True})
    return _pieces(asked.target)


async def _pieces(target: str) -> AsyncIterator[bytes]:
    kind = "application/x-ndjson" if target == "/lines" else "text/event-stream"
    yield f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode()
    number = 0
    while number < 20 or target == "/endless":
        line = f'{{"n": {number}}}' if number % 2 else f"word {number}"
        yield f"{line}\n".encode() if target == "/lines" else _event(line)
        await asyncio.sleep(0.01)
        number += 1


def _event(line: str) -> bytes:
    return f": still here\nevent: step\ndata: {line}\n\n".encode()


def attachment(web: Web) -> AttachmentSpec:
    names = ("events", "lines", "endless", "later", "picture")
    capabilities = tuple(
        DeclaredCapability(name=name, path=f"/{name}", method="POST") for name in names
    )
    return AttachmentSpec(
        kind="http",
        name="web",
        url=web.url,
        capabilities=capabilities,
        expose=("*",),
    )


STEPS: list[Any] = [{"n": n} if n % 2 else f"word {n}" for n in range(20)]


@pytest.mark.parametrize("name", ["events", "lines"])
async def test_a_stream_of_a_service_comes_part_by_part(
    tmp_path: Path, name: str
) -> None:
    async with (
        serving(service) as web,
        talks_in(tmp_path, more=[attachment(web)]) as talks,
    ):
        task = await talks.start(f"web.{name}")
        seen = await talks.follow(task)
        assert seen.results == STEPS
        assert seen.states == ["accepted", "working", "completed"]
        # Each came as a message of its own, and with the name of its event.
        parts = [part for message in await said(talks, task) for part in message.parts]
        event = {} if name == "lines" else {"event": "step"}
        assert [dict(part.metadata) for part in parts] == [event] * len(STEPS)


async def test_a_result_that_a_service_has_later(tmp_path: Path) -> None:
    async with (
        serving(service) as web,
        talks_in(tmp_path, more=[attachment(web)]) as talks,
    ):
        seen = await talks.follow(await talks.start("web.later"))
        assert seen.results == [{"done": True}]
        assert seen.states == ["accepted", "working", "completed"]


async def test_a_picture_comes_byte_for_byte(tmp_path: Path) -> None:
    async with (
        serving(service) as web,
        talks_in(tmp_path, more=[attachment(web)]) as talks,
    ):
        task = await talks.start("web.picture")
        seen = await talks.follow(task)
        assert seen.states == ["accepted", "working", "completed"]
        parts = [part for message in await said(talks, task) for part in message.parts]
        assert {part.kind for part in parts} == {PartKind.BYTES}
        assert {part.media_type for part in parts} == {"image/png"}
        pieces = [p.content for p in parts if isinstance(p.content, bytes)]
        assert b"".join(pieces) == PICTURE


async def test_a_cancelled_task_hangs_up_on_the_service(tmp_path: Path) -> None:
    async with (
        serving(service) as web,
        talks_in(tmp_path, more=[attachment(web)]) as talks,
    ):
        task = await talks.start("web.endless")
        await until(lambda: web.sent > 200)
        assert not web.hung_up.is_set()
        await talks.caller.tasks.cancel(task.id)
        seen = await talks.follow(task)
        assert seen.states[-1] == "canceled"
        async with asyncio.timeout(2):
            await web.hung_up.wait()


async def said(talks: Talks, task: Any) -> list[Message]:
    """Return the messages of a task that ended, as the caller has them."""
    found = []
    async for event in talks.caller.tasks.watch(task.log, after=0):
        if isinstance(event.content, Message) and event.by != task.task.requester:
            found.append(event.content)
        if getattr(event.content, "state", "") == "completed":
            break
    return found
