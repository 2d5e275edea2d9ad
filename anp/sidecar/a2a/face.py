"""The A2A face over HTTP: who calls, how large, and how the answer goes back."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anp.protocols.a2a.words import (
    INTENT_URI,
    A2aError,
    A2aFault,
    A2aMethod,
    A2aVersion,
)
from anp.sidecar.a2a.card import AGENTS
from anp.sidecar.a2a.door.admission import LOOK, A2aDoor, NotAdmitted
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.a2a.push import KEYS_PATH
from anp.sidecar.a2a.rest import rest_error, rest_routes
from anp.sidecar.a2a.rpc import A2aRpc, fault_of, id_of, rpc_error
from jsonic.exact_numbers import write_json
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

# The header that activates extensions, echoed for those that are known (INT-Q6).


HEADERS: Final = ("A2A-Extensions", "X-A2A-Extensions")
"The header in 1.0 and in 0.3."

KNOWN: Final = (INTENT_URI,)
"URIs of the extensions that are honoured; none has to be asked for."


def with_extensions(app: ASGIApp) -> ASGIApp:
    """Return an application that says which of the wanted extensions are on."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await app(scope, receive, send)
        headers = Headers(scope=scope)
        found = {name: _known(headers.getlist(name)) for name in HEADERS}

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, uris in found.items():
                    if uris:
                        answer[name] = ", ".join(uris)
            await send(message)

        return await app(scope, receive, told)

    return wrapped


def _known(values: list[str]) -> list[str]:
    asked = {one.strip() for value in values for one in value.split(",")}
    return [uri for uri in KNOWN if uri in asked]


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
        door: A2aDoor,
        place: Callable[[Request], Awaitable[bool]],
        card: Callable[[A2aCaller | None, str], Awaitable[dict[str, Any] | None]],
        max_body: int,
        keys: dict[str, Any] | None = None,
    ) -> None:
        """Make the face.

        Args:
            place: Told that a request is let in; False if there is no place for it in
                time.
            card: Makes the card that a caller may see, or everybody for None, of the
                daemon or of one agent in it; None when there is no such agent.
            max_body: Largest request, in bytes.
            keys: The JWK set that verifies push notifications; None if there are none.
        """
        self._rpc = rpc
        self._door = door
        self._place = place
        self._card = card
        self._max_body = max_body
        self._keys = keys

    async def keys(self, request: Request) -> Response:
        """Answer with the keys that sign push notifications; everybody may read it."""
        if self._keys is None:
            return _turned_away(NotAdmitted(404, "nothing is signed here", {}))
        age = {"Cache-Control": f"public, max-age={CARD_AGE}"}
        return Response(_bytes(self._keys), 200, age, "application/json")

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
        if not await self._place(request):
            words = "too many requests are being answered; try again later"
            raise NotAdmitted(503, words, {"Retry-After": "5"})
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
        body: Any = None
        try:
            body = await self._json(request)
            version = _version(request)
        except A2aError as exc:
            # A fault of the request itself has its status in HTTP; what JSON-RPC
            # says of a method goes with 200, as its clients expect.
            status = exc.fault.status if exc.fault in _OF_HTTP else 200
            told = rpc_error(id_of(body), exc, _form(request))
            return _json(told, status)
        answer = await self._rpc.answer(caller, body, version=version)
        holds = self._holds(caller)
        if answer.stream is not None:
            return _stream(answer.stream, holds)
        return _json(answer.body) if holds() else _revoked()

    async def rest(
        self, request: Request, method: A2aMethod, given: Mapping[str, Any]
    ) -> Response:
        """Answer a request of the HTTP+JSON binding, which is spoken in 1.0 only."""
        try:
            caller = await self._caller(request)
        except NotAdmitted as exc:
            return _turned_away(exc)
        try:
            if _asked_version(request):
                _check_new(_version(request))
            params: Any = {}
            if request.method == "POST":
                params = await self._json(request, optional=True)
            if not isinstance(params, dict):
                raise A2aError(A2aFault.PARAMS)
            result = await self._rpc.call(
                caller, method, {**params, **given}, A2aVersion.V10
            )
        except ClientDisconnect:
            raise
        except Exception as exc:  # noqa: BLE001  # told to the caller, and logged
            status, told = rest_error(fault_of(exc))
            return _json(told, status)
        holds = self._holds(caller)
        if isinstance(result, AsyncGenerator):
            return _stream(_told(result), holds)
        return _json(result) if holds() else _revoked()

    def _holds(self, caller: A2aCaller) -> Callable[[], bool]:
        """Return the check whether the token of a request still counts."""
        return partial(self._door.holds, caller.id, caller.grant)

    async def file(self, request: Request) -> Response:
        """Answer with a file of a task, of which a part has the URL."""
        try:
            caller = await self._caller(request)
        except NotAdmitted as exc:
            return _turned_away(exc)
        desk, given = self._rpc.desk, request.path_params
        try:
            kept = await desk.file(caller, given["id"], given["file"])
        except Exception as exc:  # noqa: BLE001  # told to the caller, and logged
            status, told = rest_error(fault_of(exc))
            return _json(told, status)
        headers = {
            # No word of the peer that made it is a header, and no browser shows it.
            "Content-Type": "application/octet-stream",
            "Content-Disposition": "attachment",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
            "Content-Length": str(kept.size),
        }
        return StreamingResponse(desk.blocks(kept), headers=headers)

    async def _json(self, request: Request, *, optional: bool = False) -> Any:
        data = await self._body(request)
        if optional and not data:
            return {}
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind and kind != "application/json" and not kind.endswith("+json"):
            raise A2aError(
                A2aFault.CONTENT_TYPE_NOT_SUPPORTED,
                "a request has the content type application/json",
            )
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
                    A2aFault.TOO_LARGE, f"a request has at most {self._max_body} bytes"
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
    keys = Route(prefix + KEYS_PATH, face.keys, methods=["GET"])
    files = Route(f"{prefix}/tasks/{{id}}/files/{{file:path}}", face.file)
    return [*cards, keys, files, *rest_routes(face.rest, prefix)]


def agent_of(request: Request) -> str:
    """Return the attachment whose own address a request has; empty for the daemon's."""
    return str(request.path_params.get(AGENT, ""))


_OF_HTTP: Final = {A2aFault.TOO_LARGE, A2aFault.CONTENT_TYPE_NOT_SUPPORTED}


_VERSIONS: Final = {
    **dict.fromkeys(("", "0.2", "0.3"), A2aVersion.V03),
    **dict.fromkeys(("1", "1.0"), A2aVersion.V10),
}
"The spoken version for one that a caller asks for; who names none has 0.3."


def _asked_version(request: Request) -> str:
    """Return the version that a request names; both places for it are allowed."""
    name = "a2a-version"
    found = request.headers.get(name) or request.query_params.get("A2A-Version", "")
    return found.strip()


def _version(request: Request) -> A2aVersion:
    """Return the version that a request asks for."""
    asked = _asked_version(request)
    # The third number says nothing about what goes over the wire.
    found = _VERSIONS.get(".".join(asked.split(".")[:2]))
    if found is not None:
        return found
    raise A2aError(A2aFault.VERSION_NOT_SUPPORTED)


def _form(request: Request) -> A2aVersion:
    """Return the version in which a refused request is answered."""
    asked = _asked_version(request)
    return A2aVersion.V03 if not asked or asked[0] == "0" else A2aVersion.V10


def _check_new(version: A2aVersion) -> None:
    if version is not A2aVersion.V10:
        raise A2aError(
            A2aFault.VERSION_NOT_SUPPORTED, "HTTP+JSON is spoken in A2A 1.0 alone here"
        )


def _turned_away(exc: NotAdmitted) -> Response:
    told = {"error": exc.text}
    return Response(_bytes(told), exc.status, exc.headers, "application/json")


def _revoked() -> Response:
    words = "the token was revoked while this was done"
    return _turned_away(NotAdmitted(401, words, {"WWW-Authenticate": "Bearer"}))


def _no_agent() -> Response:
    return _turned_away(NotAdmitted(404, "there is no such agent here", {}))


def _tags(header: str) -> set[str]:
    """Return the tags of an `If-None-Match`; a weak one is as good for a GET."""
    return {one.strip().removeprefix("W/") for one in header.split(",")}


def _json(body: Any, status: int = 200) -> Response:
    return Response(_bytes(body), status, media_type="application/json")


def _stream(
    bodies: AsyncGenerator[dict[str, Any], None], holds: Callable[[], bool]
) -> Response:
    return StreamingResponse(
        _frames(bodies, holds),
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
    bodies: AsyncGenerator[dict[str, Any], None], holds: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield server-sent events, and comments while there are none.

    Args:
        holds: Says whether the token still counts; without it the stream ends.
    """
    waiting: asyncio.Future[dict[str, Any]] | None = None
    silent = 0.0
    try:
        while True:
            if waiting is None:
                waiting = asyncio.ensure_future(anext(bodies))
            done, _ = await asyncio.wait({waiting}, timeout=min(LOOK, HEARTBEAT))
            if not holds():
                return
            if not done:
                silent += LOOK
                if silent >= HEARTBEAT:
                    silent = 0.0
                    yield b": still here\n\n"
                continue
            silent = 0.0
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
