"""The doors of the local API: the socket, loopback with a token, and their scopes."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from anp.errors import CallError, ErrorKind
from anp.sidecar.api.connections import RETRY_AFTER
from anp.sidecar.api.dashboard import is_open
from anp.sidecar.api.problems import ApiError, problem_of, problem_response
from anp.sidecar.api.table import LocalScope, give_scope
from anp.sidecar.api.tokenless import TokenlessPace, admit
from anp.sidecar.home.home import write_atomic

OPEN_PATHS: Final = frozenset({"/livez", "/readyz"})
"Paths that need no token: they say nothing but whether we are well."

TOKEN_BYTES: Final = 32
"Random bytes of a token."

MAX_TOKEN_FILE: Final = 1024
"Largest token file that is read, in bytes."

Session = Callable[[Mapping[str, str]], bool]
"Tells by its headers whether a request of our own pages has a valid cookie."


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One way into the API, with its conditions."""

    port: int | None = None
    "TCP port on loopback, or None for the Unix socket, whose mode is its lock."

    token: str = ""
    """The token of scope `agent`, for `Authorization: Bearer`; empty if there is none.

    The port asks for a token; on the socket a request without one is an agent's.
    """

    owner_token: str = ""
    "The token of scope `owner`; empty if there is none."

    session: Session | None = None
    "Lets our own pages in without the token (SIDECAR.md, Dashboard), if they are on."

    @property
    def hosts(self) -> frozenset[str]:
        """The values of `Host` on TCP; another one is a rebound name (DNS)."""
        names = ("127.0.0.1", "localhost", "[::1]")
        return frozenset(f"{name}:{self.port}" for name in names)

    @property
    def origins(self) -> frozenset[str]:
        """The origins of our own pages."""
        return frozenset(f"http://{host}" for host in self.hosts)


def scope_at(door: Door, path: str, headers: Mapping[str, str]) -> LocalScope:
    """Return the scope that a request has. Pure.

    Args:
        headers: By lower-case name.

    Raises:
        ApiError: The request may not come in.
    """
    origin = headers.get("origin")
    if door.port is None:
        # No page can reach a Unix socket, so none has reason to.
        if origin is not None:
            raise _foreign(origin)
        if "authorization" not in headers:
            return LocalScope.AGENT
    else:
        check_page(door, headers)
    scope = _of_token(door, headers.get("authorization", ""))
    if scope is not LocalScope.NONE:
        return scope
    if door.session is not None and door.session(headers):
        return LocalScope.OWNER
    if path in OPEN_PATHS or (door.session is not None and is_open(path)):
        return LocalScope.NONE
    raise ApiError(
        401,
        "the token is missing or wrong; send Authorization: Bearer with the text of "
        "the file that token_file in api.json names",
        kind=ErrorKind.POLICY,
        headers={"WWW-Authenticate": 'Bearer realm="anpd"'},
    )


def check_page(door: Door, headers: Mapping[str, str]) -> None:
    """Refuse a request on TCP that a page of somebody else sends. Pure.

    Raises:
        ApiError: Its `Host` is a rebound name (DNS), or its `Origin` is not ours.
    """
    origin = headers.get("origin")
    if headers.get("host", "").lower() not in door.hosts:
        raise ApiError(421, "this Host is not ours; use http://127.0.0.1 and the port")
    if origin is not None and origin.lower() not in door.origins:
        raise _foreign(origin)


def single_headers(scope: Scope) -> dict[str, str]:
    """Return the headers of a request by lower-case name.

    Raises:
        ApiError: One that says who asks is there twice.
    """
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in headers and key in {"host", "origin", "authorization"}:
            raise ApiError(400, f"{key} is sent twice")
        headers[key] = value.decode("latin-1")
    return headers


def _of_token(door: Door, authorization: str) -> LocalScope:
    """Return the scope of the token that a request shows; `NONE` without a good one."""
    kind, _, token = authorization.partition(" ")
    if kind.lower() != "bearer":
        return LocalScope.NONE
    shown = token.strip().encode()
    for scope, known in (
        (LocalScope.OWNER, door.owner_token),
        (LocalScope.AGENT, door.token),
    ):
        if known and hmac.compare_digest(shown, known.encode()):
            return scope
    return LocalScope.NONE


class Guard:
    """Refuses requests that may not come in, before anything else reads them."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door
        self._tokenless = TokenlessPace()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        try:
            headers = single_headers(scope)
        except ApiError as exc:
            await problem_response(problem_of(exc))(scope, receive, send)
            return
        try:
            given = scope_at(self._door, scope["path"], headers)
            if given is not LocalScope.NONE:
                await _admit(scope, is_owner=given is LocalScope.OWNER)
        except ApiError as exc:
            answer = problem_response(problem_of(exc), exc.headers)
            await self._in_turn(answer, scope, receive, send)
            return
        give_scope(scope, given)
        if given is LocalScope.NONE:
            await self._in_turn(self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _in_turn(
        self, app: ASGIApp, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a request without a good token, when it is its turn."""
        if await self._tokenless.wait(scope, receive):
            await app(scope, receive, send)


def load_token(path: Path) -> str:
    """Return the token in `path`, made (0600) when there is none.

    Raises:
        CallError: `local_resource`, others may read the file, or it holds no token.
    """
    if not path.exists():
        write_atomic(path, f"{new_token()}\n".encode())
    if path.stat().st_mode & 0o077:
        raise CallError(
            ErrorKind.LOCAL_RESOURCE, f"others may read {path}; run: chmod 600 {path}"
        )
    with path.open("rb") as file:
        text = file.read(MAX_TOKEN_FILE).decode("ascii", "replace").strip()
    if len(text) < TOKEN_BYTES or not text.isprintable() or " " in text:
        raise CallError(
            ErrorKind.LOCAL_RESOURCE, f"{path} holds no token; remove it for a new one"
        )
    return text


def new_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(TOKEN_BYTES)


async def _admit(scope: Scope, *, is_owner: bool) -> None:
    """Take the connection of a request out of the share of those without a token.

    Raises:
        ApiError: Every place of the others stayed taken, and busy.
    """
    if not await admit(scope, is_owner=is_owner):
        raise ApiError(
            503,
            "too many requests are being answered (limits.api_connections); end one of "
            "them, such as a stream of events, or come again",
            kind=ErrorKind.LOCAL_RESOURCE,
            retry_after=RETRY_AFTER,
        )


def _foreign(origin: str) -> ApiError:
    shown = origin[:100] if origin.isprintable() else "this Origin"
    return ApiError(
        403,
        f"pages of {shown} may not use this API; remove the Origin header",
        kind=ErrorKind.POLICY,
    )
