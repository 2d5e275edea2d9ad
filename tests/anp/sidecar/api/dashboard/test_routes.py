"""The dashboard's files, headers and sign-in, behind the door of the local API."""

from __future__ import annotations

import re
from importlib.resources import files

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from anp.errors import CallError
from anp.sidecar.api.dashboard import Dashboard
from anp.sidecar.api.dashboard.visits import CODE_LIFETIME
from anp.sidecar.api.guard import Door, Guard

PORT = 8484
ORIGIN = f"http://127.0.0.1:{PORT}"
PAGE = {"X-Anpd-Page": "1"}
STATIC = files("anp.sidecar.api.dashboard") / "static"


async def secret(request: Request) -> Response:
    return JSONResponse({"secret": True})


class Daemon:
    """A dashboard behind a door, with one thing worth protecting."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.dashboard = Dashboard(clock=lambda: self.now)
        self.dashboard.opener = self._origin
        door = Door(
            port=PORT,
            token="t" * 43,
            session=lambda headers: self.dashboard.admits(headers, port=PORT),
        )
        routes = [
            Route("/v1/info", secret, methods=["GET", "POST"]),
            *self.dashboard.routes(),
        ]
        app = Guard(Starlette(routes=routes), door)
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url=ORIGIN
        )

    async def _origin(self) -> str:
        return ORIGIN

    async def code(self) -> str:
        """Return a code as it stands in a link."""
        link, _ = await self.dashboard.link()
        assert link.startswith(f"{ORIGIN}/#code=")
        return link.partition("code=")[2]

    async def sign_in(self) -> httpx.Response:
        """Swap a code for a cookie; the client keeps it."""
        body = {"code": await self.code()}
        return await self.client.post("/dashboard/session", json=body)


@pytest.fixture
def daemon() -> Daemon:
    return Daemon()


async def test_the_page_is_served_to_anybody_here_and_holds_nothing(
    daemon: Daemon,
) -> None:
    answer = await daemon.client.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert (await daemon.client.get("/v1/info")).status_code == 401


@pytest.mark.parametrize("path", ["/", "/dashboard/app.js", "/dashboard/none.js"])
async def test_every_answer_has_the_strict_headers(daemon: Daemon, path: str) -> None:
    headers = (await daemon.client.get(path)).headers
    rules = dict(
        rule.partition(" ")[::2]
        for rule in headers["content-security-policy"].split("; ")
    )
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == rules["form-action"]
    assert rules["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


async def test_every_file_is_served_with_its_type(daemon: Daemon) -> None:
    kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    names = [f.name for f in STATIC.iterdir() if f.is_file()]
    names += [f"pages/{f.name}" for f in (STATIC / "pages").iterdir()]
    assert "pages/negotiation.js" in names
    for name in names:
        answer = await daemon.client.get(f"/dashboard/{name}")
        kind = kinds.get(name.rpartition(".")[2], "text/html")
        assert answer.headers["content-type"].startswith(kind), name
        assert answer.content


@pytest.mark.parametrize(
    "path",
    ["../routes.py", "..%2froutes.py", "%2e%2e/visits.py", "/etc/passwd", "pages", ""],
)
async def test_nothing_but_the_files_is_served(daemon: Daemon, path: str) -> None:
    answer = await daemon.client.get(f"/dashboard/{path}")
    assert answer.status_code in {401, 404}


async def test_files_load_nothing_from_elsewhere_and_never_parse_markup() -> None:
    scripts = [*STATIC.iterdir(), *(STATIC / "pages").iterdir()]
    for file in scripts:
        if not file.is_file():
            continue
        text = file.read_text("utf-8")
        urls = {
            url
            for url in re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", text)
            if not url.startswith("http://www.w3.org/")
        }
        assert urls == set(), file.name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|"
            r"new Function|DOMParser|createContextualFragment|srcdoc",
            text,
        ), file.name
    page = (STATIC / "index.html").read_text("utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|style=", page)


async def test_a_code_becomes_a_cookie_that_opens_the_api(daemon: Daemon) -> None:
    answer = await daemon.sign_in()
    assert answer.status_code == 204
    cookie = answer.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=strict", "Max-Age=43200", f"anpd-{PORT}="):
        assert part in cookie
    read = await daemon.client.get("/v1/info", headers=PAGE)
    assert read.json() == {"secret": True}
    said = await daemon.client.post(
        "/v1/info", headers={**PAGE, "Origin": ORIGIN}, json={}
    )
    assert said.status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({**PAGE, "Sec-Fetch-Site": "same-site"}, 401),
        ({**PAGE, "Sec-Fetch-Site": "cross-site"}, 401),
        ({**PAGE, "Origin": "http://127.0.0.1:3000"}, 403),
        ({**PAGE, "Origin": "https://evil.example"}, 403),
        ({**PAGE, "Origin": "null"}, 403),
        ({**PAGE, "Host": f"evil.example:{PORT}"}, 421),
        ({**PAGE, "Host": "127.0.0.1:3000"}, 421),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_the_cookie_alone_opens_nothing(
    daemon: Daemon, method: str, headers: dict[str, str], status: int
) -> None:
    await daemon.sign_in()
    answer = await daemon.client.request(method, "/v1/info", headers=headers)
    assert answer.status_code == status


async def test_foreign_hosts_and_origins_get_no_page_and_no_cookie(
    daemon: Daemon,
) -> None:
    code = await daemon.code()
    for headers in ({"Host": "evil.example"}, {"Origin": "http://127.0.0.1:3000"}):
        assert (await daemon.client.get("/", headers=headers)).status_code >= 400
        answer = await daemon.client.post(
            "/dashboard/session", json={"code": code}, headers=headers
        )
        assert answer.status_code >= 400
    # The code was not used up by them.
    answer = await daemon.client.post("/dashboard/session", json={"code": code})
    assert answer.status_code == 204


async def test_a_code_is_refused_twice_late_and_made_up(daemon: Daemon) -> None:
    code = await daemon.code()
    for sent in (code, code, "made-up", "x" * 900):
        answer = await daemon.client.post("/dashboard/session", json={"code": sent})
    assert answer.status_code == 403
    assert "anpd dashboard" in answer.text
    late = await daemon.code()
    daemon.now += CODE_LIFETIME
    answer = await daemon.client.post("/dashboard/session", json={"code": late})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b'{"code": "x"}', "text/plain", 415),
        (b"code=x", "application/x-www-form-urlencoded", 415),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"code": 1}', "application/json", 400),
        (b'{"code": "' + b"x" * 2_000 + b'"}', "application/json", 413),
        (b"[" * 1_000, "application/json", 400),
    ],
)
async def test_other_bodies_are_refused(
    daemon: Daemon, body: bytes, content_type: str, status: int
) -> None:
    answer = await daemon.client.post(
        "/dashboard/session", content=body, headers={"Content-Type": content_type}
    )
    assert answer.status_code == status
    assert "set-cookie" not in answer.headers


async def test_who_signs_out_is_out(daemon: Daemon) -> None:
    await daemon.sign_in()
    cookies = dict(daemon.client.cookies)
    answer = await daemon.client.delete("/dashboard/session")
    assert answer.status_code == 204
    # Also for who kept the cookie.
    daemon.client.cookies.update(cookies)
    assert (await daemon.client.get("/v1/info", headers=PAGE)).status_code == 401


async def test_a_link_needs_a_served_api() -> None:
    with pytest.raises(CallError, match="not served"):
        await Dashboard().link()
