"""The doors of the local API: the owner's socket, and loopback with a token."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from anp.errors import CallError, ErrorKind
from anp.sidecar.api.dashboard import is_open
from anp.sidecar.api.problems import ApiError, problem_of, problem_response
from anp.sidecar.home.home import write_atomic

__all__ = ["OPEN_PATHS", "Door", "Guard", "load_token", "refusal"]

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
    "The token that `Authorization: Bearer` has to give; needed with a port."

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


def refusal(door: Door, path: str, headers: Mapping[str, str]) -> ApiError | None:
    """Return why a request may not come in, or None. Pure.

    Args:
        headers: By lower-case name.
    """
    origin = headers.get("origin")
    if door.port is None:
        # No page can reach a Unix socket, so none has reason to.
        return None if origin is None else _foreign(origin)
    if headers.get("host", "").lower() not in door.hosts:
        return ApiError(421, "this Host is not ours; use http://127.0.0.1 and the port")
    if origin is not None and origin.lower() not in door.origins:
        return _foreign(origin)
    if path in OPEN_PATHS or (door.session is not None and is_open(path)):
        return None
    if door.session is not None and door.session(headers):
        return None
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and hmac.compare_digest(
        token.strip().encode(), door.token.encode()
    ):
        return None
    return ApiError(
        401,
        "the token is missing or wrong; send Authorization: Bearer with the text of "
        "the file that token_file in api.json names",
        kind=ErrorKind.POLICY,
        headers={"WWW-Authenticate": 'Bearer realm="anpd"'},
    )


class Guard:
    """Refuses requests that may not come in, before anything else reads them."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key = name.decode("latin-1").lower()
            if key in headers and key in {"host", "origin", "authorization"}:
                twice = ApiError(400, f"{key} is sent twice")
                await problem_response(problem_of(twice))(scope, receive, send)
                return
            headers[key] = value.decode("latin-1")
        refused = refusal(self._door, scope["path"], headers)
        if refused is None:
            await self._app(scope, receive, send)
            return
        answer = problem_response(problem_of(refused), refused.headers)
        await answer(scope, receive, send)


def load_token(path: Path) -> str:
    """Return the token in `path`, made (0600) when there is none.

    Raises:
        CallError: `local_resource`, others may read the file, or it holds no token.
    """
    if not path.exists():
        write_atomic(path, f"{secrets.token_urlsafe(TOKEN_BYTES)}\n".encode())
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


def _foreign(origin: str) -> ApiError:
    shown = origin[:100] if origin.isprintable() else "this Origin"
    return ApiError(
        403,
        f"pages of {shown} may not use this API; remove the Origin header",
        kind=ErrorKind.POLICY,
    )
