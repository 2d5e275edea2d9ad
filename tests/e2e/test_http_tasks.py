"""Tasks between two daemons that are done by a service over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartParser

from anp.interaction.elements import Message, Part, PartKind
from anp.sidecar.attachments import AttachmentSpec
from anp.sidecar.attachments.declaration import DeclaredCapability
from tests.anp.sidecar.attachments.web import Asked, Web, answer, serving
from tests.e2e.talks import Talks, talks_in
from tests.waiting import until

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4000
"Larger than what goes in one frame."


def service(asked: Asked) -> Any:
    """Answer as services do that stream, take their time, or have pictures."""
    if asked.target == "/picture":
        return answer(PICTURE, content_type="image/png")
    if asked.target == "/forms":
        return _form_of(asked)
    if asked.target == "/copies":
        kind = asked.headers["content-type"]
        return answer(asked.body[::-1], content_type=kind)
    if asked.target == "/later":
        return answer({}, 202, location="/jobs/7", retry_after="1")
    if asked.target == "/jobs/7":
        return answer({"done": True})
    return _pieces(asked.target)


async def _form_of(asked: Asked) -> bytes:
    """Answer with the hash of each field, as a common reader of forms sees it."""

    async def stream() -> AsyncGenerator[bytes, None]:
        yield asked.body

    parser = MultiPartParser(Headers(asked.headers), stream())
    found = {}
    for name, value in (await parser.parse()).multi_items():
        if isinstance(value, UploadFile):
            digest = hashlib.sha256(await value.read()).hexdigest()
            found[name] = [value.filename, value.content_type, digest]
        else:
            found[name] = [value]
    return answer(found)


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
        told = [dict(part.metadata) for part in parts]
        # The body ends after the last one.
        assert told == [event] * (len(STEPS) - 1) + [{**event, "lastChunk": True}]


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


def uploads(web: Web, folder: Path) -> AttachmentSpec:
    """Return a service whose OpenAPI document takes files in two ways."""
    binary = {"type": "string", "contentMediaType": "application/octet-stream"}
    fields = {"title": {"type": "string"}, "scan": binary}
    schema = {"type": "object", "properties": fields, "required": ["title", "scan"]}

    def post(name: str, media_type: str, schema: Any) -> Any:
        content = {media_type: {"schema": schema}}
        return {
            "operationId": name,
            "requestBody": {"required": True, "content": content},
            "responses": {"200": {"description": "fine"}},
        }

    document = {
        "openapi": "3.1.0",
        "paths": {
            "/forms": {"post": post("send", "multipart/form-data", schema)},
            "/copies": {"post": post("turn", "image/*", {})},
        },
    }
    file = folder / "uploads.json"
    file.write_text(json.dumps(document))
    return AttachmentSpec(
        kind="http", name="web", url=web.url, openapi=str(file), expose=("*",)
    )


async def test_files_go_to_a_service_as_a_form_and_as_a_body(tmp_path: Path) -> None:
    async with (
        serving(service) as web,
        talks_in(tmp_path, more=[uploads(web, tmp_path)]) as talks,
    ):
        scan = Part.data(PICTURE, media_type="image/png", name="scan.png")
        start = talks.caller.tasks.start_task
        task = await start(
            talks.address,
            capability="web.send",
            parts=[Part.value({"title": "a\r\nb"}), scan],
        )
        seen = await talks.follow(task)
        digest = hashlib.sha256(PICTURE).hexdigest()
        assert seen.results == [
            {"title": ["a\r\nb"], "scan": ["scan.png", "image/png", digest]}
        ]
        task = await start(talks.address, capability="web.turn", parts=[scan])
        seen = await talks.follow(task)
        assert {part.media_type for part in seen.parts} == {"image/png"}
        assert b"".join(seen.results) == PICTURE[::-1]
        # One that takes no files says so, and is not started without them.
        task = await start(
            talks.address,
            capability="agent.double",
            parts=[Part.value({"number": 1}), scan],
        )
        seen = await talks.follow(task)
        assert seen.end is not None
        assert (seen.end.state, seen.end.code) == ("rejected", "400")
        assert "scan.png" in seen.end.reason


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
