"""Attached agents that want tokens of OAuth 2."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from anp.errors import ConfigError
from anp.sidecar.attachments import (
    AttachmentError,
    AttachmentSpec,
    open_attachment,
)
from anp.sidecar.attachments.a2a.sign_in import secret_wanted, token_place
from anp.sidecar.attachments.urls import parse_url
from tests.anp.sidecar.attachments.web import LIMITS, Asked, Web, answer, call, serving
from tests.clauses import clause


class Shop:
    """An agent behind tokens that it gives out itself."""

    def __init__(self, *, is_old: bool = False, lifetime: Any = 3600) -> None:
        self.is_old = is_old
        self.lifetime = lifetime
        self.url = ""
        self.given: list[Asked] = []
        self.token = ""
        self.token_url = "/token"
        self.status = 200

    def __call__(self, asked: Asked) -> bytes:
        if asked.method == "GET":
            return answer(self.card())
        if asked.target == "/token":
            self.given.append(asked)
            self.token = f"token-{len(self.given)}"
            found = {"access_token": self.token, "token_type": "Bearer"}
            return answer({**found, "expires_in": self.lifetime}, self.status)
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            return answer({}, 401)
        said = asked.json()
        message: dict[str, Any] = {"messageId": "m", "role": "ROLE_AGENT"}
        message["parts"] = [{"text": "hello"}]
        result: dict[str, Any] = {"message": message}
        if self.is_old:
            result = {**message, "kind": "message", "role": "agent"}
            result["parts"] = [{"kind": "text", "text": "hello"}]
        return answer({"jsonrpc": "2.0", "id": said["id"], "result": result})

    def card(self) -> dict[str, Any]:
        flow = {"tokenUrl": f"{self.url}{self.token_url}", "scopes": {"talk": "Talk."}}
        flows = {"clientCredentials": flow}
        common: dict[str, Any] = {
            "name": "shop",
            "description": "Sells.",
            "version": "1",
            "capabilities": {},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "do", "name": "do", "description": "", "tags": []}],
        }
        if self.is_old:
            return {
                **common,
                "url": f"{self.url}/rpc",
                "protocolVersion": "0.3.0",
                "preferredTransport": "JSONRPC",
                "securitySchemes": {"sign": {"type": "oauth2", "flows": flows}},
                "security": [{"sign": ["talk"]}],
            }
        interface = {"protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        return {
            **common,
            "supportedInterfaces": [{"url": f"{self.url}/rpc", **interface}],
            "securitySchemes": {"sign": {"oauth2SecurityScheme": {"flows": flows}}},
            "securityRequirements": [{"schemes": {"sign": {"list": ["talk"]}}}],
        }


@asynccontextmanager
async def signed_in(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> AsyncIterator[tuple[Any, Web]]:
    monkeypatch.setenv("SHOP_SECRET", "s:cret")
    given = {"oauth_client": "me", "oauth_secret": "env:SHOP_SECRET", **more}
    async with serving(shop) as web:
        shop.url = web.url
        spec = AttachmentSpec(kind="a2a", name="my", url=web.url, **given)
        my = open_attachment(spec, limits=LIMITS)
        try:
            await my.start()
            yield my, web
        finally:
            await my.close()


@clause("A2A-9", "A2A-21")
@pytest.mark.parametrize("is_old", [False, True])
async def test_client_credentials_as_the_card_says(
    is_old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(is_old=is_old)
    async with signed_in(shop, monkeypatch) as (my, _):
        for _ in range(3):
            assert await call(my, "do", text="x") == {"text": "hello"}
    (asked,) = shop.given
    assert parse_qs(asked.body.decode()) == {
        "grant_type": ["client_credentials"],
        "scope": ["talk"],
    }
    coded = asked.headers["authorization"].removeprefix("Basic ")
    assert base64.b64decode(coded) == b"me:s%3Acret"


async def test_a_token_that_is_refused_or_ends_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = Shop()
    async with signed_in(shop, monkeypatch) as (my, _):
        assert await call(my, "do", text="x") == {"text": "hello"}
        shop.token = "rotated"
        assert await call(my, "do", text="x") == {"text": "hello"}
        assert len(shop.given) == 2
    short = Shop(lifetime=0.001)
    async with signed_in(short, monkeypatch) as (my, _):
        for _ in range(2):
            assert await call(my, "do", text="x") == {"text": "hello"}
        assert len(short.given) == 2


@clause("A2A-9")
async def test_a_signed_token_is_traded_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "assertion").write_text("a.b.c\n")
    shop = Shop()
    more = {
        "oauth_secret": "",
        "oauth_assertion": f"file:{tmp_path / 'assertion'}",
        "oauth_scopes": ("more", "talk"),
    }
    async with signed_in(shop, monkeypatch, **more) as (my, _):
        assert await call(my, "do", text="x") == {"text": "hello"}
    form = parse_qs(shop.given[0].body.decode())
    assert form == {
        "grant_type": ["urn:ietf:params:oauth:grant-type:jwt-bearer"],
        "assertion": ["a.b.c"],
        "client_id": ["me"],
        "scope": ["more talk"],
    }
    assert "authorization" not in shop.given[0].headers


async def test_a_secret_goes_to_no_host_that_only_the_card_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = Shop()
    shop.token_url = "@evil.example/token"
    with pytest.raises(AttachmentError, match="no user name"):
        async with signed_in(shop, monkeypatch):
            pass
    spec = AttachmentSpec(
        kind="a2a",
        name="my",
        url="https://shop.example",
        oauth_client="me",
        oauth_secret="env:S",
    )
    shop.url, shop.token_url = "https://evil.example", "/token"
    with pytest.raises(AttachmentError, match="--oauth-token-url https://evil"):
        token_place(shop.card(), parse_url("https://shop.example"), spec)
    with pytest.raises(AttachmentError, match="names no address"):
        token_place({}, parse_url("https://shop.example"), spec)


async def test_no_token_is_no_call_and_says_nothing_of_the_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = Shop()
    shop.status = 401
    async with signed_in(shop, monkeypatch) as (my, _):
        with pytest.raises(AttachmentError, match="gives no token") as caught:
            await call(my, "do", text="x")
    assert "s:cret" not in str(caught.value)
    assert caught.value.may_have_run is False


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"oauth_secret": "plain"}, "env:NAME or"),
        ({"oauth_secret": "env:S"}, "oauth_client"),
        (
            {"oauth_secret": "env:S", "oauth_client": "me", "bearer": "env:B"},
            "give either",
        ),
        ({"kind": "callback", "oauth_secret": "env:S"}, "means nothing"),
        (
            {
                "oauth_secret": "env:S",
                "oauth_client": "me",
                "oauth_token_url": "http://login.example/token",
            },
            "unencrypted",
        ),
    ],
)
def test_settings_that_cannot_be_meant(more: dict[str, Any], said: str) -> None:
    given = {"kind": "a2a", "name": "my", "url": "https://shop.example", **more}
    with pytest.raises(ConfigError, match=said):
        AttachmentSpec(**given)


@pytest.mark.parametrize(
    ("scheme", "option"),
    [
        ({"type": "http", "scheme": "bearer"}, "--bearer env:NAME"),
        ({"type": "http", "scheme": "Basic"}, "--basic env:NAME"),
        ({"type": "apiKey", "in": "header", "name": "X-K"}, "--header X-K=env:NAME"),
        (
            {"apiKeySecurityScheme": {"location": "query", "name": "key"}},
            "--query key=env:NAME",
        ),
        ({"httpAuthSecurityScheme": {"scheme": "Bearer"}}, "--bearer env:NAME"),
        ({"oauth2SecurityScheme": {"flows": {}}}, "--oauth-secret env:NAME"),
        ({"mtlsSecurityScheme": {}}, "--bearer"),
    ],
)
def test_a_card_that_requires_a_secret_is_warned_of(
    scheme: dict[str, Any], option: str
) -> None:
    card = {"securitySchemes": {"one": scheme}}
    forms: list[dict[str, Any]] = [
        {"security": [{"one": []}]},
        {"securityRequirements": [{"schemes": {"one": {"list": []}}}]},
    ]
    for form in forms:
        assert option in secret_wanted({**card, **form})
    assert secret_wanted(card) == ""
    assert secret_wanted({**card, "security": [{"one": []}, {}]}) == ""


async def test_attaching_without_the_secret_warns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = Shop()
    for given in ({}, {"bearer": "env:SHOP_SECRET"}):
        none: dict[str, Any] = {"oauth_client": "", "oauth_secret": ""}
        async with signed_in(shop, monkeypatch, **none, **given) as (my, _):
            assert len(my.listing.warnings) == (0 if given else 1)
