"""Services that stream, answer later, or answer with bytes."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest

from anp.interaction.elements import PartKind
from anp.sidecar.attachments import AttachmentError, ToolError
from anp.sidecar.attachments.declaration import DeclaredCapability
from anp.sidecar.attachments.http import results
from anp.sidecar.attachments.http.operations import BYTES_OUTPUT, STREAM_OUTPUT
from anp.sidecar.attachments.requester import LAST_CHUNK
from tests.anp.sidecar.attachments.http.test_service import shop
from tests.anp.sidecar.attachments.python.test_streaming import Taker, taking
from tests.anp.sidecar.attachments.web import (
    LIMITS,
    Asked,
    answer,
    attached,
    call,
    serving,
)
from tests.waiting import until

GO = (DeclaredCapability(name="go"),)
PNG = b"\x89PNG\r\n\x1a\n\x00\xff"


def head(content_type: str, status: int = 200) -> bytes:
    """Return the head of an answer that ends with its connection."""
    return f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\n\r\n".encode()


def slowly(content_type: str, *pieces: bytes) -> Callable[[Asked], Any]:
    """Return a handler that sends pieces, and then nothing more."""

    async def pour(asked: Asked) -> AsyncIterator[bytes]:
        yield head(content_type)
        for piece in pieces:
            yield piece
        await asyncio.sleep(60)

    return pour


STREAMS = [
    ("text/event-stream", b'data: {"n": 1}\n\ndata: two\n\n'),
    ("application/x-ndjson; charset=utf-8", b'{"n": 1}\ntwo\n'),
    ("application/jsonl", b'{"n": 1}\ntwo'),
]


@pytest.mark.parametrize(("content_type", "body"), STREAMS)
async def test_a_stream_is_joined_for_a_call_of_one_turn(
    content_type: str, body: bytes
) -> None:
    async with (
        serving(lambda _: answer(body, content_type=content_type)) as web,
        attached("http", web.url, capabilities=GO) as my,
    ):
        assert await call(my, "go") == {"result": [{"n": 1}, "two"]}
        with taking(Taker()) as taker:
            assert await call(my, "go") == {}
        assert taker.contents == [{"n": 1}, "two"]
        assert [part.kind for part in taker.parts] == [PartKind.JSON, PartKind.TEXT]
        marks = [part.metadata.get(LAST_CHUNK) for part in taker.parts]
        assert marks == [None, True]


@pytest.mark.parametrize(("content_type", "body"), STREAMS[:2])
async def test_a_part_is_passed_on_before_the_next_one_comes(
    content_type: str, body: bytes
) -> None:
    async with (
        serving(slowly(content_type, body)) as web,
        attached("http", web.url, capabilities=GO) as my,
    ):
        with taking(Taker()) as taker:
            work = asyncio.create_task(call(my, "go"))
            await until(lambda: len(taker.parts) == 2)
            assert not work.done()
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
            async with asyncio.timeout(1):
                await web.hung_up.wait()


async def test_a_stream_that_goes_on_too_long_ends_at_the_deadline() -> None:
    stream = slowly("text/event-stream", b"data: 1\n\n")
    async with (
        serving(stream) as web,
        attached("http", web.url, capabilities=GO) as my,
    ):
        with taking(Taker()) as taker, pytest.raises(ToolError) as caught:
            await call(my, "go", 0.3)
        assert caught.value.code == 504
        assert taker.contents == [1]
        async with asyncio.timeout(1):
            await web.hung_up.wait()


async def test_a_service_that_streams_faster_than_it_is_read_is_held_up() -> None:
    line = b'"' + b"x" * 65_533 + b'"\n'

    async def flood(asked: Asked) -> AsyncIterator[bytes]:
        yield head("application/x-ndjson")
        for _ in range(1000):
            yield line

    limits = replace(LIMITS, max_result=1_000_000, max_document=1_000_000)
    async with (
        serving(flood) as web,
        attached("http", web.url, limits, capabilities=GO) as my,
    ):
        with taking(Taker(gate=asyncio.Event())) as taker:
            work = asyncio.create_task(call(my, "go", 30.0))
            await until(lambda: web.sent > 0)
            await asyncio.sleep(0.5)
            # What is on the way is in the sockets of both sides.
            assert web.sent < 16_000_000
            assert taker.gate is not None
            taker.gate.set()
            assert await work == {}
        assert len(taker.parts) == 1000
        # Nobody can hold all of it in a call of one turn.
        with pytest.raises(ToolError, match="over 1000000 bytes"):
            await call(my, "go", 30.0)


async def test_a_cancelled_call_hangs_up_also_while_its_requester_is_slow() -> None:
    async with (
        serving(slowly("application/jsonl", b"1\n2\n")) as web,
        attached("http", web.url, capabilities=GO) as my,
    ):
        with taking(Taker(gate=asyncio.Event())):
            work = asyncio.create_task(call(my, "go"))
            await until(lambda: web.sent > len(head("application/jsonl")))
            await asyncio.sleep(0.1)
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
            async with asyncio.timeout(1):
                await web.hung_up.wait()


async def test_a_line_without_end_is_cut_off() -> None:
    async def flood(asked: Asked) -> AsyncIterator[bytes]:
        yield head("text/event-stream")
        yield b"data: first\n\n"
        while True:
            yield b"x" * 65_536

    limits = replace(LIMITS, max_result=1_000_000, max_document=1_000_000)
    async with (
        serving(flood) as web,
        attached("http", web.url, limits, capabilities=GO) as my,
    ):
        with (
            taking(Taker()) as taker,
            pytest.raises(ToolError, match=r"one line of .* is over 1000000 bytes"),
        ):
            await call(my, "go", 30.0)
        assert taker.contents == ["first"]
        await web.hung_up.wait()


async def test_a_stream_that_breaks_off_is_an_error() -> None:
    body = b"HTTP/1.1 200 X\r\nContent-Type: application/jsonl\r\n"
    body += b"Content-Length: 99\r\n\r\n1\n2\n"
    async with (
        serving(lambda _: body) as web,
        attached("http", web.url, capabilities=GO) as my,
    ):
        with (
            taking(Taker()) as taker,
            pytest.raises(AttachmentError, match="broke off") as caught,
        ):
            await call(my, "go")
        assert caught.value.may_have_run
        assert taker.contents == [1, 2]
        assert not any(LAST_CHUNK in part.metadata for part in taker.parts)


def later(*polls: bytes, location: str = "/jobs/1", **headers: str) -> Any:
    """Return a handler that takes a call, and answers the questions about it."""
    left = list(polls)

    def handle(asked: Asked) -> bytes:
        if asked.method == "POST":
            return answer({"job": 1}, 202, location=location, **headers)
        return left.pop(0)

    return handle


NOW = {"retry_after": "0"}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(results, "LEAST_PAUSE", 0.01)


async def test_a_result_that_comes_later_is_fetched() -> None:
    service = later(
        answer({}, 202),
        answer({}, 202, location="2", **NOW),
        answer({}, 503, **NOW),
        answer({}, 202, retry_after="no time"),
        answer(b"", 303, location="/results/2"),
        answer({"done": True}),
    )
    async with (
        serving(service) as web,
        attached("http", f"{web.url}/api/", capabilities=GO) as my,
    ):
        assert await call(my, "go", a=1) == {"done": True}
        assert [one.target for one in web.asked] == [
            *("/api/", "/jobs/1", "/jobs/1", "/jobs/2", "/jobs/2", "/jobs/2"),
            "/results/2",
        ]
        followed = web.asked[1]
        assert (followed.method, followed.body) == ("GET", b"")
        assert followed.headers["anpd-caller"] == "did:key:zCaller"
        assert "content-type" not in followed.headers


@pytest.mark.parametrize(
    ("location", "asked"),
    [
        ("/jobs/größe 1".encode("latin-1"), "/jobs/gr%F6%DFe%201"),
        ("/jobs/größe".encode(), "/jobs/gr%C3%B6%C3%9Fe"),
        (b"/jobs/100%25?a=b+c&d", "/jobs/100%25?a=b+c&d"),
    ],
)
async def test_a_location_that_is_not_ascii_is_followed(
    location: bytes, asked: str
) -> None:
    taken = answer({"job": 1}, 202, location="@").replace(b"@", location)

    def service(asked: Asked) -> bytes:
        return taken if asked.method == "POST" else answer({"done": True})

    async with (
        serving(service) as web,
        attached("http", web.url, capabilities=GO) as my,
    ):
        assert await call(my, "go") == {"done": True}
        assert web.asked[1].target == asked


async def test_the_secrets_of_the_owner_go_with_each_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY", "very-secret")
    async with (
        serving(later(answer({"done": True}))) as web,
        attached("http", web.url, capabilities=GO, bearer="env:KEY") as my,
    ):
        await call(my, "go")
        sent = {one.headers["authorization"] for one in web.asked}
        assert sent == {"Bearer very-secret"}


@pytest.mark.parametrize(
    "location",
    ["http://127.0.0.1:1/", "//169.254.169.254/x", "https://127.0.0.1/", "http://["],
)
async def test_a_result_elsewhere_is_not_fetched(location: str) -> None:
    async with (
        serving(later(location=location)) as web,
        attached("http", web.url, capabilities=GO) as my,
    ):
        with pytest.raises(ToolError, match=r"another host|to no URL") as caught:
            await call(my, "go")
        assert caught.value.may_have_run
        assert len(web.asked) == 1


async def test_a_question_about_a_result_is_led_nowhere_else() -> None:
    away = answer(b"", 307, location="http://127.0.0.1:1/")
    async with (
        serving(later(away)) as web,
        attached("http", web.url, capabilities=GO) as my,
    ):
        with pytest.raises(ToolError, match="another host"):
            await call(my, "go")


async def test_the_pause_is_the_one_that_the_service_tells() -> None:
    async def pause(retry_after: str) -> float:
        loop = asyncio.get_running_loop()
        service = later(answer({}), retry_after=retry_after)
        async with (
            serving(service) as web,
            attached("http", web.url, capabilities=GO) as my,
        ):
            began = loop.time()
            await call(my, "go")
            return loop.time() - began

    assert await pause("1") >= 1
    assert await pause(formatdate(0, usegmt=True)) < 0.9


async def test_a_result_that_never_comes_ends_with_the_deadline() -> None:
    async with (
        serving(later(*[answer({}, 202)] * 1000)) as web,
        attached("http", web.url, capabilities=GO) as my,
    ):
        with pytest.raises(ToolError) as caught:
            await call(my, "go", 0.3)
        assert caught.value.code == 504
        asked = len(web.asked)
        await asyncio.sleep(0.2)
        assert len(web.asked) == asked


async def test_a_service_that_goes_before_its_result_may_have_run_the_call() -> None:
    async def handle(asked: Asked) -> bytes:
        await web.close()
        return answer({}, 202, location="/jobs/1")

    async with (
        serving(handle) as web,
        attached("http", web.url, capabilities=GO) as my,
    ):
        with pytest.raises(AttachmentError, match="cannot connect") as caught:
            await call(my, "go")
        assert caught.value.may_have_run


async def test_a_202_without_an_address_is_the_answer() -> None:
    async with (
        serving(lambda _: answer({"queued": True}, 202)) as web,
        attached("http", web.url, capabilities=GO) as my,
    ):
        assert await call(my, "go") == {"queued": True}


@pytest.mark.parametrize(
    "media_type", ["image/png", "application/pdf", "application/octet-stream"]
)
async def test_bytes_are_a_part_of_a_task_and_an_object_of_a_call(
    media_type: str,
) -> None:
    async with (
        serving(lambda _: answer(PNG, content_type=media_type)) as web,
        attached("http", web.url, capabilities=GO) as my,
    ):
        assert await call(my, "go") == {
            "mediaType": media_type,
            "data": base64.b64encode(PNG).decode(),
            "size": len(PNG),
        }
        with taking(Taker()) as taker:
            assert await call(my, "go") == {}
        (part,) = taker.parts
        assert (part.kind, part.content) == (PartKind.BYTES, PNG)
        assert part.media_type == media_type


async def test_bytes_over_the_limit_are_refused() -> None:
    limits = replace(LIMITS, max_result=1000)
    async with (
        serving(lambda _: answer(b"x" * 1001, content_type="image/png")) as web,
        attached("http", web.url, limits, capabilities=GO) as my,
    ):
        with taking(Taker()), pytest.raises(ToolError, match="over 1000 bytes"):
            await call(my, "go")


def operation(*types: str, **statuses: Any) -> dict[str, Any]:
    found = {"200": {"content": {name: {"schema": {}} for name in types}}, **statuses}
    return {"get": {"operationId": "go", "responses": found}}


@pytest.mark.parametrize(
    ("found", "schema"),
    [
        (operation("image/png"), BYTES_OUTPUT),
        (operation("image/*", "application/pdf"), BYTES_OUTPUT),
        (operation("text/event-stream"), STREAM_OUTPUT),
        (operation("application/x-ndjson; charset=utf-8"), STREAM_OUTPUT),
        (operation("*/*"), {"type": "object"}),
        (operation("text/plain"), {"type": "object"}),
        (operation("image/png", "text/event-stream"), {"type": "object"}),
        (
            operation("image/png", **{"202": {"headers": {"Location": {}}}}),
            BYTES_OUTPUT,
        ),
        (operation("image/png", **{"204": {}}), {"type": "object"}),
    ],
)
async def test_the_output_schema_says_what_will_come(
    found: dict[str, Any], schema: dict[str, Any]
) -> None:
    document = {"openapi": "3.1.0", "paths": {"/go": found}}
    async with (
        serving(shop(document=document)) as web,
        attached("http", web.url) as my,
    ):
        (made,) = my.capabilities()
        assert made.output_schema == schema
        # Only who surely streams says so: another has a call's answer of its own.
        assert made.updates == ({} if schema == STREAM_OUTPUT else None)


async def test_a_declared_capability_says_what_will_come() -> None:
    declared = [
        DeclaredCapability(name=name.partition("/")[2], media_type=name)
        for name in ("image/png", "text/event-stream", "application/json")
    ]
    async with (
        serving(lambda _: answer(PNG, content_type="image/png")) as web,
        attached("http", web.url, capabilities=tuple(declared)) as my,
    ):
        schemas = [one.output_schema for one in my.capabilities()]
        assert schemas == [BYTES_OUTPUT, STREAM_OUTPUT]
        assert my.skipped == (
            "json: media_type is for streams and bytes, not application/json",
        )
        assert (await call(my, "png"))["size"] == len(PNG)


async def test_content_that_is_no_object_leaves_its_operation_out() -> None:
    found = {"get": {"operationId": "go", "responses": {"200": {"content": [{}]}}}}
    document = {"openapi": "3.1.0", "paths": {"/go": found}}
    async with (
        serving(shop(document=document)) as web,
        attached("http", web.url) as my,
    ):
        assert my.capabilities() == []
        assert "content of a response is no object" in my.skipped[0]


async def test_a_stream_is_asked_for_where_somebody_reads_it() -> None:
    found = operation("application/json", "text/event-stream")
    document = {"openapi": "3.1.0", "paths": {"/go": found}}
    async with (
        serving(shop(document=document)) as web,
        attached("http", web.url) as my,
    ):
        await call(my, "go")
        assert web.asked[-1].headers["accept"].startswith("application/json, ")
        with taking(Taker()):
            await call(my, "go")
        assert web.asked[-1].headers["accept"].startswith("text/event-stream, ")
