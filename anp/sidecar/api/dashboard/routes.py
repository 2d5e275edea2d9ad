"""The dashboard's files and its sign-in, as routes of the local API."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from starlette.requests import Request, cookie_parser
from starlette.responses import Response
from starlette.routing import Route

from anp.errors import CallError, ErrorKind
from anp.sidecar.api.dashboard.visits import (
    CODE_LIFETIME,
    COOKIE_LIFETIME,
    Visits,
    cookie_counts,
    cookie_name,
)
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

Opener = Callable[[], Awaitable[str]]
"Returns an origin such as `http://127.0.0.1:8484`."

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
"Names by which a browser on this machine may call us."

MAX_SIGN_IN: Final = 1024
"Largest body of a sign-in, in bytes."

CSP: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        # Pictures of a session are fetched with our header, and shown as blobs.
        "img-src 'self' blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No text can become markup: the browser refuses `innerHTML` altogether.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"The policy of the pages: they run our scripts and talk to us, nothing else."

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CSP,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # An upgrade takes effect with the next reload.
    "Cache-Control": "no-cache",
}
"Headers of every answer of the dashboard."

TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"Media types of the files, by the end of their names."


@dataclass(frozen=True, slots=True)
class _File:
    """One file as it is sent."""

    data: bytes

    media_type: str


class Dashboard:
    """Serves the pages, and lets browsers that are signed in use the API."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._visits = Visits(secrets.token_bytes)
        self._files: dict[str, _File] = {}
        self.opener: Opener | None = None
        """Opens the loopback port unless it is open, and returns our origin there."""

    async def link(self) -> tuple[str, float]:
        """Return a link that signs one browser in, and its lifetime in seconds.

        The code is behind `#`: browsers keep that part to themselves, so it is in no
        log and no `Referer`.

        Raises:
            CallError: `local_resource`, the port cannot be opened.
        """
        if self.opener is None:
            raise CallError(ErrorKind.LOCAL_RESOURCE, "the local API is not served")
        origin = await self.opener()
        code = self._visits.new_code(now=self._clock())
        return f"{origin}/#code={code}", CODE_LIFETIME

    def admits(self, headers: Mapping[str, str], *, port: int) -> bool:
        """Tell whether a request carries a cookie of ours from a page of ours.

        Args:
            headers: By lower-case name.
            port: The loopback port at which this daemon serves the dashboard.
        """
        cookie = cookie_parser(headers.get("cookie", "")).get(cookie_name(port))
        own = {f"http://{name}:{port}" for name in LOOPBACK}
        return (
            cookie is not None
            and cookie_counts(headers, own)
            and self._visits.knows(cookie, now=self._clock())
        )

    def routes(self) -> list[Route]:
        """Return the routes; they need no token, only the checks of Host and Origin.

        Nothing of the owner's is in them: the data comes from `/v1/…`.
        """
        return [
            Route("/", self._page),
            Route("/dashboard/session", self._sign_in, methods=["POST"]),
            Route("/dashboard/session", self._sign_out, methods=["DELETE"]),
            Route("/dashboard/{name:path}", self._static),
        ]

    async def _page(self, request: Request) -> Response:
        return self._answer("index.html")

    async def _static(self, request: Request) -> Response:
        return self._answer(request.path_params["name"])

    def _answer(self, name: str) -> Response:
        if not self._files:
            self._files = _load()
        file = self._files.get(name)
        if file is None:
            return _text(404, "there is no such file")
        return Response(file.data, headers={**HEADERS, "Content-Type": file.media_type})

    async def _sign_in(self, request: Request) -> Response:
        """Swap a one-time code for a cookie."""
        sent = request.headers.get("content-type", "").partition(";")[0]
        if sent.strip().lower() != "application/json":
            return _text(415, "the content type has to be application/json")
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > MAX_SIGN_IN:
                return _text(413, "the body is too large")
        try:
            body = parse_json(bytes(data), max_size=MAX_SIGN_IN)
        except JsonError:
            return _text(400, "the body is no JSON")
        code = body.get("code") if isinstance(body, dict) else None
        if not isinstance(code, str):
            return _text(400, "code is missing")
        cookie = self._visits.redeem(code, now=self._clock())
        if cookie is None:
            return _text(
                403, "this link was used, or is too old; `anpd dashboard` prints a new"
            )
        answer = Response(status_code=204, headers=HEADERS)
        answer.set_cookie(
            _cookie_of(request),
            cookie,
            max_age=COOKIE_LIFETIME,
            httponly=True,
            samesite="strict",
        )
        return answer

    async def _sign_out(self, request: Request) -> Response:
        name = _cookie_of(request)
        self._visits.leave(request.cookies.get(name, ""))
        answer = Response(status_code=204, headers=HEADERS)
        answer.delete_cookie(name, httponly=True, samesite="strict")
        return answer


def is_open(path: str) -> bool:
    """Tell whether a path is of the dashboard's files, which hold nothing secret."""
    return path == "/" or path.startswith("/dashboard/")


def _cookie_of(request: Request) -> str:
    """Return the cookie's name; `Host` was checked before, so its port is ours."""
    return cookie_name(request.url.port or 80)


def _text(status: int, text: str) -> Response:
    return Response(text, status_code=status, headers=HEADERS, media_type="text/plain")


def _load() -> dict[str, _File]:
    """Read every file: only what was found here is ever served."""
    found: dict[str, _File] = {}
    root = files("anp.sidecar.api.dashboard") / "static"
    for entry in root.iterdir():
        inner = entry.iterdir() if entry.is_dir() else (entry,)
        for file in inner:
            kind = TYPES.get(file.name.rpartition(".")[2])
            if kind is not None:
                prefix = f"{entry.name}/" if entry.is_dir() else ""
                found[prefix + file.name] = _File(file.read_bytes(), kind)
    return found
