"""Services over HTTP: what is sent, what is taken back, and what is refused."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anp.errors import ConfigError
from anp.sidecar.attachments import (
    AttachmentError,
    AttachmentSpec,
    ToolError,
    open_attachment,
)
from tests.anp.sidecar.attachments.web import (
    LIMITS,
    Asked,
    answer,
    attached,
    call,
    serving,
)

ITEM = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
    "required": ["id", "name"],
}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "shop", "version": "1"},
    "paths": {
        "/items/{id}": {
            "get": {
                "operationId": "getItem",
                "summary": "One item.",
                "parameters": [
                    {"name": "id", "in": "path", "schema": {"type": "string"}},
                    {"name": "deep", "in": "query", "schema": {"type": "boolean"}},
                ],
                "responses": {
                    "200": {"content": {"application/json": {"schema": ITEM}}}
                },
            }
        },
        "/items": {
            "post": {
                "operationId": "addItem",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": ITEM}},
                },
                "responses": {"204": {"description": "done"}},
            }
        },
    },
}


def shop(
    item: Callable[[Asked], Any] | None = None, document: Any = DOCUMENT
) -> Callable[[Asked], Any]:
    """Return a handler that has the document, and answers the rest with `item`."""

    def handle(asked: Asked) -> Any:
        if asked.target.startswith("/openapi.json"):
            return answer(document)
        if item is None:
            return answer({"id": 1, "name": "tea"})
        return item(asked)

    return handle


async def test_operations_become_capabilities_that_can_be_called() -> None:
    async with serving(shop()) as web, attached("http", web.url) as my:
        found = {each.name: each for each in my.capabilities()}
        assert found["my.getItem"].read_only
        assert found["my.getItem"].idempotent
        assert not found["my.addItem"].idempotent
        assert found["my.getItem"].description == "One item."
        assert found["my.getItem"].output_schema == ITEM
        assert await call(my, "getItem", id="a b", deep=True) == {
            "id": 1,
            "name": "tea",
        }
        asked = web.asked[-1]
        assert (asked.method, asked.target) == ("GET", "/items/a%20b?deep=true")
        assert asked.headers["anpd-caller"] == "did:key:zCaller"
        assert asked.headers["anpd-deadline"].endswith("Z")
        await call(my, "addItem", id=2, name="ä")
        assert web.asked[-1].json() == {"id": 2, "name": "ä"}


@pytest.mark.parametrize("value", ["..", ".", "a/b", "../admin", "a\\b", "", "a\nb"])
async def test_a_value_never_leads_to_another_path(value: str) -> None:
    async with serving(shop()) as web, attached("http", web.url) as my:
        before = len(web.asked)
        with pytest.raises(ToolError) as caught:
            await call(my, "getItem", id=value)
        assert caught.value.code == 400
        assert len(web.asked) == before


async def test_what_is_special_in_a_url_stays_within_its_segment() -> None:
    async with serving(shop()) as web, attached("http", web.url) as my:
        await call(my, "getItem", id="a?admin=1&x#y%2e")
        assert web.asked[-1].target == "/items/a%3Fadmin%3D1%26x%23y%252e"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        *((404, 404), (422, 422), (409, 409), (401, 502), (500, 500), (418, 418)),
        *((503, 503), (504, 504), (508, 508), (304, 502)),
    ],
)
async def test_statuses_become_codes(status: int, code: int) -> None:
    def refuse(asked: Asked) -> bytes:
        return answer({"detail": "no such thing"}, status)

    async with serving(shop(refuse)) as web, attached("http", web.url) as my:
        with pytest.raises(ToolError) as caught:
            await call(my, "getItem", id="1")
    assert caught.value.code == code
    if code not in {502}:
        assert caught.value.message == "no such thing"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x00\xff garbage\r\n\r\n", "broke off"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", "broke off"),
        (b"", "broke off"),
        (answer(b"{not json"), "not JSON"),
        (answer(b"[" * 10_000), "nested"),
        (answer([1, 2]), "no object"),
        (answer(b"--x--", content_type="multipart/mixed"), "multipart/mixed"),
        (answer(b"\x89PNG", content_type="image"), "with image, not with JSON"),
        (answer(b"\x89PNG", content_type="image/png\x01"), "not with JSON|broke off"),
        (answer(b"\xff\xfe", content_type="text/plain; charset=nope"), "no text"),
        (answer({}, content_encoding="gzip"), "compressed"),
        (answer(b"", 302, location="http://169.254.169.254/"), "another host"),
        (answer(b"", 302, location="http://127.0.0.1:1/"), "another host"),
        (answer(b"", 302, location="/items/1"), "too often"),
    ],
)
async def test_a_hostile_answer_ends_in_an_error_of_the_call(
    raw: bytes, reason: str
) -> None:
    async with serving(shop(lambda _: raw)) as web, attached("http", web.url) as my:
        with pytest.raises((ToolError, AttachmentError), match=reason):
            await call(my, "getItem", id="1")


async def test_an_answer_without_end_is_cut_at_the_limit() -> None:
    def flood(asked: Asked) -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + (
            b" " * 300_000
        )

    limits = replace(LIMITS, max_result=100_000, max_document=100_000)
    async with (
        serving(shop(flood)) as web,
        attached("http", web.url, limits) as my,
    ):
        with pytest.raises(ToolError, match="over 100000 bytes"):
            await call(my, "getItem", id="1")


async def test_a_slow_call_times_out_and_the_service_is_told() -> None:
    async def sleep(asked: Asked) -> bytes:
        await asyncio.sleep(60)
        return b""

    async with serving(shop(sleep)) as web, attached("http", web.url) as my:
        with pytest.raises(ToolError) as caught:
            await call(my, "getItem", 0.1, id="1")
        assert caught.value.code == 504
        await web.hung_up.wait()


async def test_a_cancelled_call_hangs_up() -> None:
    began = asyncio.Event()

    async def sleep(asked: Asked) -> bytes:
        began.set()
        await asyncio.sleep(60)
        return b""

    async with serving(shop(sleep)) as web, attached("http", web.url) as my:
        running = asyncio.create_task(call(my, "getItem", id="1"))
        await began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await web.hung_up.wait()


FAULT = {"error": {"code": "broken", "message": "the oven is cold"}}


@pytest.mark.parametrize(
    ("status", "body", "private"),
    [
        (400, {"detail": "no such item"}, False),
        (404, FAULT, False),
        (500, FAULT, False),
        (503, FAULT, False),
        (500, {"detail": "Traceback in /srv/shop.py"}, True),
        (500, {"error": "OperationalError: shop.db"}, True),
        (504, b"swordfish", True),
    ],
)
async def test_words_of_a_5xx_are_for_the_owner_unless_they_have_the_shape_of_an_error(
    status: int, body: Any, private: bool
) -> None:
    fails = shop(lambda _: answer(body, status))
    async with serving(fails) as web, attached("http", web.url) as my:
        with pytest.raises(ToolError) as caught:
            await call(my, "getItem", id="1")
        assert caught.value.private is private
        assert caught.value.may_have_run


async def test_what_never_left_is_said_to_have_not_run() -> None:
    async with serving(shop()) as web, attached("http", web.url) as my:
        with pytest.raises(ToolError) as caught:
            await call(my, "getItem", id="..")
        assert not caught.value.may_have_run
    limits = replace(LIMITS, max_calls=0)
    async with serving(shop()) as web, attached("http", web.url, limits) as my:
        before = len(web.asked)
        with pytest.raises(ToolError) as busy:
            await call(my, "getItem", id="1")
        assert not busy.value.may_have_run
        assert len(web.asked) == before


async def test_a_service_that_goes_after_a_redirect_may_have_run_the_call() -> None:
    async def redirect(asked: Asked) -> bytes:
        # No further connection is taken, and this one is closed.
        await web.close()
        return answer(b"", 307, location="/items/2")

    async with serving(shop(redirect)) as web, attached("http", web.url) as my:
        with pytest.raises(AttachmentError) as caught:
            await call(my, "getItem", id="1")
        assert "cannot connect" in str(caught.value)
        assert caught.value.may_have_run


async def test_calls_at_a_time_are_limited() -> None:
    began = asyncio.Event()

    async def sleep(asked: Asked) -> bytes:
        began.set()
        await asyncio.sleep(60)
        return b""

    async with (
        serving(shop(sleep)) as web,
        attached("http", web.url, replace(LIMITS, max_calls=1)) as my,
    ):
        running = asyncio.create_task(call(my, "getItem", id="1"))
        await began.wait()
        with pytest.raises(ToolError) as caught:
            await call(my, "getItem", id="2")
        assert caught.value.code == 503
        running.cancel()


async def test_a_service_that_goes_is_down_and_well_again_when_it_is_back() -> None:
    health: asyncio.Queue[bool] = asyncio.Queue()
    async with asyncio.timeout(30):
        async with serving(shop()) as web:
            port = web.port
            spec = AttachmentSpec(kind="http", name="my", url=web.url)
            my = open_attachment(
                spec, limits=LIMITS, on_change=lambda: health.put_nowait(my.healthy)
            )
            await my.start()
            assert await health.get() is True
        with pytest.raises(AttachmentError) as caught:
            await call(my, "getItem", id="1")
        assert not caught.value.may_have_run
        assert await health.get() is False
        assert "cannot connect" in str(my.problem)
        async with serving(shop(), port):
            while not my.healthy:
                await health.get()
            assert await call(my, "getItem", id="1")
        await my.close()


async def test_a_changed_document_is_read_from_time_to_time() -> None:
    document = json.loads(json.dumps(DOCUMENT))

    seen = asyncio.Semaphore(0)

    def handle(asked: Asked) -> bytes:
        seen.release()
        return answer(document)

    changed = asyncio.Event()
    async with asyncio.timeout(30), serving(handle) as web:
        spec = AttachmentSpec(kind="http", name="my", url=web.url)
        my = open_attachment(
            spec, limits=replace(LIMITS, refresh=0.02), on_change=changed.set
        )
        await my.start()
        changed.clear()
        for _ in range(3):
            await seen.acquire()
        assert not changed.is_set()
        del document["paths"]["/items"]
        await changed.wait()
        assert [each.name for each in my.capabilities()] == ["my.getItem"]
        await my.close()


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (answer([]), "no object"),
        (answer({"swagger": "2.0"}), "not OpenAPI 3"),
        (answer({"openapi": "3.0.0", "paths": []}), "paths"),
        (answer(b"openapi: 3.0.0"), "YAML"),
        (answer({}, 404), "no OpenAPI document"),
        (answer(b"", 302, location="https://evil.example/"), "another host"),
    ],
)
async def test_a_document_that_cannot_be_read_says_why(
    document: bytes, reason: str
) -> None:
    async with serving(lambda _: document) as web:
        with pytest.raises(AttachmentError, match=reason):
            async with attached("http", web.url):
                pass


async def test_a_document_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "shop.json").write_text(json.dumps(DOCUMENT))
    async with (
        serving(shop()) as web,
        attached("http", web.url, openapi="shop.json", cwd=tmp_path) as my,
    ):
        assert await call(my, "getItem", id="1")
    with pytest.raises(AttachmentError, match="cannot read"):
        async with attached("http", web.url, openapi=str(tmp_path / "no.json")):
            pass


async def test_secrets_come_from_the_environment_and_go_to_the_service_alone(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("SHOP_KEY", "very-secret")
    (tmp_path / "pair").write_text("me:hidden-word\n")
    document = json.loads(json.dumps(DOCUMENT))
    document["paths"]["/items/{id}"]["get"]["parameters"] += [
        {"name": "X-Key", "in": "header", "schema": {"type": "string"}},
        {"name": "key", "in": "query", "schema": {"type": "string"}},
    ]

    def item(asked: Asked) -> bytes:
        if asked.target.startswith("/items/away"):
            return answer(b"", 307, location="http://127.0.0.1:1/")
        return answer({"id": 1, "name": "tea"})

    with caplog.at_level(logging.DEBUG):
        async with (
            serving(shop(item, document)) as web,
            attached(
                "http",
                web.url,
                headers={"X-Key": "env:SHOP_KEY"},
                query={"key": "env:SHOP_KEY"},
                basic=f"file:{tmp_path}/pair",
            ) as my,
        ):
            # A parameter that the owner fills is none of the peer's.
            schema = my.capabilities()[0].input_schema
            assert isinstance(schema, dict)
            assert list(schema["properties"]) == ["id", "deep"]
            await call(my, "getItem", id="1")
            assert web.asked[-1].headers["x-key"] == "very-secret"
            assert web.asked[-1].headers["authorization"].startswith("Basic ")
            assert web.asked[-1].target == "/items/1?key=very-secret"
            with pytest.raises(ToolError) as caught:
                await call(my, "getItem", id="away")
            assert "secret" not in str(caught.value)
    assert "very-secret" not in caplog.text
    with pytest.raises(AttachmentError, match="NO_SUCH is not set"):
        async with attached("http", web.url, bearer="env:NO_SUCH"):
            pass


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"bearer": "sk-1234567"}, "write env:NAME"),
        ({"headers": {"X": "sk-1234567"}}, "write env:NAME"),
        ({"url": "http://shop.example/", "bearer": "env:X"}, "unencrypted"),
        ({"url": "ftp://shop.example/"}, "write a URL"),
        ({"url": "https://me:sk-1234567@shop.example/"}, "no user name"),
        ({"url": "https://shop.example/#x"}, "fragment"),
        ({"url": "https://shop.example:99999/"}, "port"),
        ({"url": "https://shop.example/a b"}, "characters"),
        ({"command": ("ls",)}, "means nothing"),
        ({"secret": "env:X"}, "means nothing"),
        ({"bearer": "env:X", "basic": "env:Y"}, "either bearer or basic"),
        ({"url": ""}, "url is missing"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(
    fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        AttachmentSpec(
            **{"kind": "http", "name": "my", "url": "https://shop.example/", **fields}
        )
    assert "sk-1234567" not in str(caught.value)


async def test_declared_capabilities_need_no_document() -> None:
    from anp.sidecar.attachments.declaration import DeclaredCapability

    one = {"type": "object", "properties": {"id": {}, "q": {"type": "string"}}}
    declared = (
        DeclaredCapability(
            name="find", method="GET", path="/find/{id}", input_schema=one
        ),
        DeclaredCapability(name="tell", path="/tell"),
        DeclaredCapability(name="bad", path="/{missing}"),
    )

    def handle(asked: Asked) -> bytes:
        return answer([asked.target, asked.body.decode()])

    async with (
        serving(handle) as web,
        attached("http", f"{web.url}/api/", capabilities=declared) as my,
    ):
        assert await call(my, "find", id=7, q="x&y") == {
            "result": ["/api/find/7?q=x%26y", ""]
        }
        assert await call(my, "tell", a=1) == {"result": ["/api/tell", '{"a": 1}']}
        assert my.skipped == ("bad: its input_schema lacks missing of its path",)


async def test_no_cookie_of_one_call_goes_with_the_next() -> None:
    def item(asked: Asked) -> bytes:
        return answer({"id": 1, "name": "x"}, set_cookie="session=1")

    async with serving(shop(item)) as web, attached("http", web.url) as my:
        await call(my, "getItem", id="1")
        await call(my, "getItem", id="1")
        assert "cookie" not in web.asked[-1].headers
