"""The A2A face over HTTP: who calls, how large, and how the answer goes back."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from anp.protocols.a2a.words import A2aError, A2aFault, A2aMethod, A2aVersion
from anp.sidecar.a2a.admission import Admission, NotAdmitted
from anp.sidecar.a2a.callers import A2aCaller
from anp.sidecar.a2a.card import AGENTS
from anp.sidecar.a2a.extensions import with_extensions
from anp.sidecar.a2a.rest import rest_error, rest_routes
from anp.sidecar.a2a.rpc import A2aRpc, fault_of, rpc_error
from negotiation.errors import JsonError
from negotiation.exact_numbers import write_json
from negotiation.strict_json import parse_json

__all__ = ["CARD_PATHS", "A2aFace", "make_face"]

logger = logging.getLogger(__name__)

CARD_PATHS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"Where a card is looked for, by 0.3 and 1.0, and by 0.2."

AGENT: Final = "agent"
"Name of the path's part that names an attachment."

HEARTBEAT: Final = 15.0
"Seconds of silence in a stream after which a comment is sent."

CARD_AGE: Final = 60
"Seconds for which a card may be kept before it is asked for again."


class A2aFace:
    """Serves the card and JSON-RPC."""

    def __init__(
        self,
        rpc: A2aRpc,
        *,
        door: Admission,
        card: Callable[[A2aCaller | None, str], Awaitable[dict[str, Any] | None]],
        max_body: int,
    ) -> None:
        """Make the face.

        Args:
            card: Makes the card that a caller may see, or everybody for None, of the
                daemon or of one agent in it; None when there is no such agent.
            max_body: Largest request, in bytes.
        """
        self._rpc = rpc
        self._door = door
        self._card = card
        self._max_body = max_body

    async def card(self, request: Request) -> Response:
        """Answer with the card; who has it gets no second copy (304)."""
        try:
            caller = await self._door.find(request.headers)
        except NotAdmitted as exc:
            return _turned_away(exc)
        found = await self._card(caller, agent_of(request))
        if found is None:
            return _no_agent()
        body = _bytes(found)
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        scope = "public" if caller is None else "private"
        headers = {
            "ETag": tag,
            "Cache-Control": f"{scope}, max-age={CARD_AGE}",
            "Vary": "Authorization",
        }
        if tag in _tags(request.headers.get("if-none-match", "")):
            return Response(None, 304, headers)
        return Response(body, 200, headers, "application/json")

    async def _caller(self, request: Request) -> A2aCaller:
        """Return who calls; NotAdmitted for nobody that we know."""
        caller = await self._door.admit(request.headers)
        agent = agent_of(request)
        if agent and await self._card(caller, agent) is None:
            raise NotAdmitted(404, "there is no such agent here", {})
        return replace(caller, agent=agent) if agent else caller

    async def call(self, request: Request) -> Response:
        """Answer a request of JSON-RPC."""
        try:
            caller = await self._caller(request)
        except NotAdmitted as exc:
            return _turned_away(exc)
        try:
            version = _version(request.headers)
            body = await self._json(request)
        except A2aError as exc:
            return _json(rpc_error(None, exc, A2aVersion.V03))
        answer = await self._rpc.answer(caller, body, version=version)
        return _json(answer.body) if answer.stream is None else _stream(answer.stream)

    async def rest(
        self, request: Request, method: A2aMethod, given: Mapping[str, Any]
    ) -> Response:
        """Answer a request of the HTTP+JSON binding, which is spoken in 1.0 only."""
        try:
            caller = await self._caller(request)
        except NotAdmitted as exc:
            return _turned_away(exc)
        try:
            if request.headers.get("a2a-version"):
                _check_new(_version(request.headers))
            params: Any = {}
            if request.method == "POST":
                params = await self._json(request, optional=True)
            if not isinstance(params, dict):
                raise A2aError(A2aFault.PARAMS)
            result = await self._rpc.call(
                caller, method, {**params, **given}, A2aVersion.V10
            )
        except Exception as exc:  # noqa: BLE001  # told to the caller, and logged
            status, told = rest_error(fault_of(exc))
            return _json(told, status)
        return _json(result) if isinstance(result, dict) else _stream(_told(result))

    async def _json(self, request: Request, *, optional: bool = False) -> Any:
        data = await self._body(request)
        if optional and not data:
            return {}
        try:
            return parse_json(data, max_size=self._max_body)
        except JsonError as exc:
            raise A2aError(A2aFault.PARSE, str(exc)) from exc

    async def _body(self, request: Request) -> bytes:
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > self._max_body:
                raise A2aError(
                    A2aFault.REQUEST,
                    f"a request has at most {self._max_body} bytes",
                )
        return bytes(data)


def make_face(face: A2aFace) -> ASGIApp:
    """Return the face as an ASGI application."""
    agent = f"{AGENTS}{{{AGENT}}}"
    app = Starlette(
        routes=[
            Route("/", face.call, methods=["POST"]),
            Route(agent, face.call, methods=["POST"]),
            *_routes(face, ""),
            *_routes(face, agent),
        ]
    )
    app.router.redirect_slashes = False
    return with_extensions(app)


def _routes(face: A2aFace, prefix: str) -> list[Route]:
    cards = [Route(prefix + path, face.card, methods=["GET"]) for path in CARD_PATHS]
    return [*cards, *rest_routes(face.rest, prefix)]


def agent_of(request: Request) -> str:
    """Return the attachment whose own address a request has; empty for the daemon's."""
    return str(request.path_params.get(AGENT, ""))


def _version(headers: Mapping[str, str]) -> A2aVersion:
    """Return the version that a request asks for; without a word it is 0.3."""
    asked = headers.get("a2a-version", "").strip()
    major, _, rest = asked.partition(".")
    if not asked or (major == "0" and rest[:1] in {"2", "3"}):
        return A2aVersion.V03
    if major == "1":
        return A2aVersion.V10
    raise A2aError(A2aFault.VERSION_NOT_SUPPORTED)


def _check_new(version: A2aVersion) -> None:
    if version is not A2aVersion.V10:
        raise A2aError(
            A2aFault.VERSION_NOT_SUPPORTED, "HTTP+JSON is spoken in A2A 1.0 alone here"
        )


def _turned_away(exc: NotAdmitted) -> Response:
    told = {"error": exc.text}
    return Response(_bytes(told), exc.status, exc.headers, "application/json")


def _no_agent() -> Response:
    return _turned_away(NotAdmitted(404, "there is no such agent here", {}))


def _tags(header: str) -> set[str]:
    """Return the tags of an `If-None-Match`; a weak one is as good for a GET."""
    return {one.strip().removeprefix("W/") for one in header.split(",")}


def _json(body: Any, status: int = 200) -> Response:
    return Response(_bytes(body), status, media_type="application/json")


def _stream(bodies: AsyncGenerator[dict[str, Any], None]) -> Response:
    return StreamingResponse(
        _frames(bodies),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _told(
    results: AsyncGenerator[dict[str, Any], None],
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield results of a stream, and a fault in it as the last of them."""
    async with contextlib.aclosing(results):
        try:
            async for result in results:
                yield result
        except Exception as exc:  # noqa: BLE001  # told to the caller, and logged
            yield rest_error(fault_of(exc))[1]


def _bytes(body: Any) -> bytes:
    return write_json(body, ensure_ascii=False, separators=(",", ":")).encode()


async def _frames(
    bodies: AsyncGenerator[dict[str, Any], None],
) -> AsyncIterator[bytes]:
    """Yield server-sent events, and comments while there are none."""
    waiting: asyncio.Future[dict[str, Any]] | None = None
    try:
        while True:
            if waiting is None:
                waiting = asyncio.ensure_future(anext(bodies))
            done, _ = await asyncio.wait({waiting}, timeout=HEARTBEAT)
            if not done:
                yield b": still here\n\n"
                continue
            finished, waiting = waiting, None
            try:
                body = finished.result()
            except StopAsyncIteration:
                return
            yield b"data: " + _bytes(body) + b"\n\n"
    finally:
        if waiting is not None:
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await waiting
        await bodies.aclose()
