"""Agents that take calls at a URL of their own."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from anp.sidecar.attachments import AttachmentError, ToolError
from anp.sidecar.attachments.declaration import DeclaredCapability
from anp.sidecar.attachments.http.callback import sign
from tests.anp.sidecar.attachments.web import Asked, answer, attached, call, serving

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
LISTED = {"capabilities": [{"name": "twice", "input_schema": SCHEMA}]}
DECLARED = (DeclaredCapability(name="twice", input_schema=SCHEMA),)


def agent(reply: Callable[[Asked], bytes]) -> Callable[[Asked], bytes]:
    """Return a handler that lists `twice` and answers calls with `reply`."""
    return lambda asked: answer(LISTED) if asked.method == "GET" else reply(asked)


async def test_a_call_says_what_who_and_until_when() -> None:
    def reply(asked: Asked) -> bytes:
        return answer({"output": {"twice": asked.json()["input"]["n"] * 2}})

    async with (
        serving(agent(reply)) as web,
        attached("callback", f"{web.url}/calls?x=1") as my,
    ):
        assert await call(my, "twice", n=4) == {"twice": 8}
        asked = web.asked[-1]
        assert (asked.method, asked.target) == ("POST", "/calls?x=1")
        said = asked.json()
        assert said.keys() == {"id", "capability", "input", "caller", "deadline"}
        assert said["capability"] == "twice"
        assert said["caller"] == {"did": "did:key:zCaller"}
        assert datetime.fromisoformat(said["deadline"]) > datetime.now(UTC)


async def test_declared_capabilities_are_not_asked_for() -> None:
    def reply(asked: Asked) -> bytes:
        assert asked.method == "POST"
        return answer({"output": [1, 2]})

    async with (
        serving(reply) as web,
        attached("callback", web.url, capabilities=DECLARED) as my,
    ):
        assert await call(my, "twice", n=1) == {"result": [1, 2]}


@pytest.mark.parametrize(
    ("raw", "code", "text"),
    [
        (answer({"error": "too hot"}, 400), 400, "too hot"),
        (answer({"error": {"code": 409, "message": "gone"}}, 400), 409, "gone"),
        (answer({"error": {"code": True, "message": "x"}}, 404), 404, "x"),
        (answer({"error": {"code": 7, "message": "x"}}, 404), 404, "x"),
        (answer(b"<html>", 500), 500, "answered 500"),
        (answer({}), 502, "no {"),
        (answer([]), 502, "no {"),
        (answer(b"\xff"), 502, "no {"),
    ],
)
async def test_errors_of_the_agent_are_passed_on(
    raw: bytes, code: int, text: str
) -> None:
    async with (
        serving(agent(lambda _: raw)) as web,
        attached("callback", web.url) as my,
    ):
        with pytest.raises(ToolError) as caught:
            await call(my, "twice", n=1)
    assert caught.value.code == code
    assert text in caught.value.message


async def test_calls_are_signed_as_standard_webhooks_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = b"0123456789abcdef"
    monkeypatch.setenv("HOOK", f"whsec_{base64.b64encode(key).decode()}")
    async with (
        serving(agent(lambda _: answer({"output": {}}))) as web,
        attached("callback", web.url, secret="env:HOOK") as my,
    ):
        await call(my, "twice", n=1)
    for asked in web.asked:
        head = asked.headers
        parts = (head["webhook-id"], head["webhook-timestamp"], asked.body.decode())
        digest = hmac.digest(key, ".".join(parts).encode(), hashlib.sha256)
        wanted = f"v1,{base64.b64encode(digest).decode()}"
        assert head["webhook-signature"] == wanted


def test_a_signature_covers_id_time_and_content() -> None:
    one = sign(b"k", "id", b"body", now=1)["webhook-signature"]
    for other in (
        sign(b"k", "id2", b"body", now=1),
        sign(b"k", "id", b"body2", now=1),
        sign(b"k", "id", b"body", now=2),
        sign(b"k2", "id", b"body", now=1),
    ):
        assert other["webhook-signature"] != one


@pytest.mark.parametrize(
    "raw",
    [
        *(answer({}), answer([]), answer({}, 404), answer(b"x"), b"junk\r\n\r\n"),
        answer({"capabilities": 5}),
    ],
)
async def test_an_agent_that_lists_nothing_says_what_to_do(raw: bytes) -> None:
    async with serving(lambda _: raw) as web:
        with pytest.raises(AttachmentError, match=r"capabilities|broke off"):
            async with attached("callback", web.url):
                pass


async def test_what_cannot_be_listed_is_left_out() -> None:
    listed: dict[str, Any] = {
        "capabilities": [
            {"name": "fine"},
            {"name": "bad\nname"},
            {"name": "schema", "input_schema": 5},
            {"name": "output", "output_schema": {"$ref": "http://x.example/"}},
            7,
        ]
    }
    async with (
        serving(lambda _: answer(listed)) as web,
        attached("callback", web.url) as my,
    ):
        assert [each.name for each in my.capabilities()] == ["my.fine"]
        assert len(my.skipped) == 4
