"""The local API on a Unix socket of the owner's (SIDECAR.md, Local API)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from anp.errors import AnpError, CallError, ConfigError, ErrorKind
from anp.sidecar import views
from anp.sidecar.bundle_api import bundle_routes
from anp.sidecar.outbound import CallRequest, Mode
from anp.sidecar.owner_api import owner_routes
from anp.sidecar.spend_api import spend_routes
from cache.errors import CacheError, HashPrefixError
from cache.records import PeerState
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["HTTP_STATUS", "make_app", "serve_api"]

logger = logging.getLogger(__name__)

MAX_BODY = 2 * 1024 * 1024
"Largest body of a request, in bytes."

HTTP_STATUS: dict[ErrorKind, int] = {
    ErrorKind.UNEXPECTED: 500,
    ErrorKind.USAGE: 400,
    ErrorKind.CONFIGURATION: 422,
    ErrorKind.DAEMON_UNREACHABLE: 503,
    ErrorKind.IDENTITY_REFUSED: 403,
    ErrorKind.NEGOTIATION_REJECTED: 409,
    ErrorKind.APPROVAL_PENDING: 409,
    ErrorKind.POLICY: 403,
    ErrorKind.TIMEOUT: 504,
    ErrorKind.APPLICATION_ERROR: 502,
    ErrorKind.GENERATED_CODE: 502,
    ErrorKind.PEER_UNREACHABLE: 502,
    ErrorKind.LOCAL_RESOURCE: 507,
    ErrorKind.INTERRUPTED: 499,
}
"HTTP status of each kind of error."

Handler = Callable[[Request], Awaitable[Response]]


def make_app(daemon: Daemon) -> Starlette:
    """Return the API of `daemon` as an ASGI application."""
    api = _Api(daemon)
    routes = [
        Route("/livez", _answering(api.live)),
        Route("/readyz", _answering(api.ready)),
        Route("/v1/info", _answering(api.info)),
        Route("/v1/calls", _answering(api.call), methods=["POST"]),
        Route("/v1/reload", _answering(api.reload), methods=["POST"]),
        Route("/v1/capabilities", _answering(api.capabilities)),
        Route("/v1/protocols", _answering(api.protocols)),
        *bundle_routes(daemon, _answering),
        Route("/v1/protocols/{prefix}", _answering(api.protocol)),
        Route("/v1/protocols/{prefix}/document", _answering(api.document)),
        Route(
            "/v1/protocols/{prefix}/release",
            _answering(api.release),
            methods=["POST"],
        ),
        *owner_routes(daemon, _answering, _body),
        *spend_routes(daemon, _answering),
        Route("/v1/peers", _answering(api.peers)),
        Route("/v1/peers/show", _answering(api.peer)),
        Route("/v1/peers/allow", _answering(api.allow), methods=["POST"]),
        Route("/v1/peers/block", _answering(api.block), methods=["POST"]),
        Route("/v1/peers/forget", _answering(api.forget), methods=["POST"]),
        Route("/v1/peers/ask", _answering(api.ask), methods=["POST"]),
    ]
    return Starlette(routes=routes)


@contextlib.asynccontextmanager
async def serve_api(daemon: Daemon) -> AsyncIterator[Path]:
    """Serve the API of `daemon` on its socket, and give the socket's path."""
    path = daemon.home.socket_path()
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # uvicorn's own `uds=` would leave the socket open to everybody (0666).
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError as exc:
        raise CallError(
            ErrorKind.LOCAL_RESOURCE, f"cannot listen on {path}: {exc.strerror}"
        ) from exc
    finally:
        os.umask(before)
    server = _Server(
        uvicorn.Config(
            make_app(daemon),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=5,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await server.is_up.wait()
        yield path
    finally:
        server.should_exit = True
        await serving
        listener.close()
        path.unlink(missing_ok=True)


class _Server(uvicorn.Server):
    """Says when it is up, and leaves signals to the daemon's own handler."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets=sockets)
        finally:
            self.is_up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def problem(
    kind: ErrorKind,
    detail: str,
    *,
    may_have_run: bool = False,
    retry_after: float | None = None,
) -> Response:
    """Return an RFC 9457 problem document."""
    status = HTTP_STATUS[kind]
    body: dict[str, Any] = {
        "type": f"urn:anpd:error:{kind.value}",
        "title": kind.value.replace("_", " "),
        "status": status,
        "detail": detail,
        "kind": kind.value,
    }
    if may_have_run:
        body["may_have_run"] = True
    headers = {}
    if retry_after is not None:
        body["retry_after"] = retry_after
        headers["Retry-After"] = str(int(retry_after))
    return JSONResponse(
        body,
        status_code=status,
        headers=headers,
        media_type="application/problem+json",
    )


def _answering(handler: Handler) -> Handler:
    """Turn the errors of a handler into problem documents."""

    async def answering(request: Request) -> Response:
        try:
            return await handler(request)
        except CallError as exc:
            return problem(
                exc.kind,
                exc.detail,
                may_have_run=exc.may_have_run,
                retry_after=exc.retry_after,
            )
        except ConfigError as exc:
            return problem(ErrorKind.CONFIGURATION, str(exc))
        except HashPrefixError as exc:
            return problem(ErrorKind.USAGE, str(exc))
        except CacheError as exc:
            return problem(ErrorKind.LOCAL_RESOURCE, str(exc))
        except (AnpError, JsonError) as exc:
            return problem(ErrorKind.USAGE, str(exc))
        except Exception:
            logger.exception("request failed path=%s", request.url.path)
            return problem(ErrorKind.UNEXPECTED, "unexpected error; see the log")

    return answering


class _Api:
    """The handlers, thin: they read the request, ask the daemon and show the answer."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    async def live(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        sick = {
            name: attachment.problem
            for name, (_, attachment) in self._daemon.exposure.attachments.items()
            if not attachment.healthy
        }
        status = "not ready" if sick else "ok"
        return JSONResponse(
            {"status": status, "attachments": sick}, status_code=503 if sick else 200
        )

    async def info(self, request: Request) -> Response:
        return JSONResponse(views.info(self._daemon))

    async def call(self, request: Request) -> Response:
        body = await _body(request)
        unknown = (
            body.keys()
            - {"peer", "task", "input", "timeout", "mode"}
            - {"trust_first_use"}
        )
        timeout = body.get("timeout")
        if unknown:
            raise CallError(ErrorKind.USAGE, f"unknown fields: {sorted(unknown)}")
        if not isinstance(body.get("peer"), str):
            raise CallError(ErrorKind.USAGE, "peer is missing")
        if body.get("mode", "auto") not in list(Mode):
            raise CallError(ErrorKind.USAGE, f"mode: use one of {', '.join(Mode)}")
        if timeout is not None and (
            isinstance(timeout, bool)
            or not isinstance(timeout, int | float)
            or not 0 < timeout <= 86_400
        ):
            raise CallError(ErrorKind.USAGE, "timeout has to be seconds above 0")
        result = await self._daemon.caller.call(
            CallRequest(
                peer=body["peer"],
                task=self._daemon.task(body.get("task")),
                arguments=body.get("input", {}),
                timeout=timeout,
                trust_first_use=body.get("trust_first_use") is True,
                mode=Mode(body.get("mode", "auto")),
            )
        )
        return JSONResponse(asdict(result))

    async def reload(self, request: Request) -> Response:
        return JSONResponse({"attachments": await self._daemon.reload()})

    async def capabilities(self, request: Request) -> Response:
        return JSONResponse({"capabilities": views.capabilities(self._daemon)})

    async def protocols(self, request: Request) -> Response:
        found = await asyncio.to_thread(
            views.protocols, self._daemon.store, self._daemon.sandbox
        )
        return JSONResponse({"protocols": found})

    async def protocol(self, request: Request) -> Response:
        prefix = request.path_params["prefix"]
        return JSONResponse(
            await asyncio.to_thread(
                views.protocol, self._daemon.store, self._daemon.sandbox, prefix
            )
        )

    async def release(self, request: Request) -> Response:
        prefix = request.path_params["prefix"]
        digest = await asyncio.to_thread(self._daemon.store.find_hash, prefix)
        failed = await asyncio.to_thread(self._daemon.store.release_failed, digest)
        released = self._daemon.sandbox.release(digest) or failed > 0
        return JSONResponse({"hash": digest, "released": released})

    async def document(self, request: Request) -> Response:
        prefix = request.path_params["prefix"]
        record = await asyncio.to_thread(self._daemon.store.document, prefix)
        if record is None:
            raise CallError(ErrorKind.USAGE, f"no protocol begins with {prefix}")
        return Response(record.text.encode("utf-8"), media_type="text/markdown")

    async def ask(self, request: Request) -> Response:
        body = await _body(request)
        peer, question = body.get("peer"), body.get("question")
        if not isinstance(peer, str) or not isinstance(question, str):
            raise CallError(ErrorKind.USAGE, "peer and question have to be texts")
        answer = await self._daemon.caller.ask(peer, question)
        return JSONResponse({"peer": peer, "question": question, "answer": answer})

    async def peers(self, request: Request) -> Response:
        found = await asyncio.to_thread(self._daemon.store.peers)
        return JSONResponse({"peers": [asdict(peer) for peer in found]})

    async def peer(self, request: Request) -> Response:
        did = await self._peer(request.query_params.get("peer"))
        found = await asyncio.to_thread(self._daemon.store.peer, did)
        if found is None:
            raise CallError(ErrorKind.USAGE, f"nothing is known of {did}")
        return JSONResponse(asdict(found))

    async def allow(self, request: Request) -> Response:
        return await self._set_state(request, PeerState.ALLOWED)

    async def block(self, request: Request) -> Response:
        return await self._set_state(request, PeerState.BLOCKED)

    async def forget(self, request: Request) -> Response:
        did = await self._peer((await _body(request)).get("peer"))
        dropped = await asyncio.to_thread(self._daemon.store.forget_peer, did)
        return JSONResponse({"did": did, "dropped": dropped})

    async def _set_state(self, request: Request, state: PeerState) -> Response:
        did = await self._peer((await _body(request)).get("peer"))
        await self._daemon.policy.remember(did, shown_did=did, state=state)
        return JSONResponse({"did": did, "state": state.value})

    async def _peer(self, text: object) -> str:
        if not isinstance(text, str) or not text:
            raise CallError(ErrorKind.USAGE, "peer is missing")
        return await asyncio.to_thread(self._daemon.canonical_peer, text)


async def _body(request: Request) -> dict[str, Any]:
    """Read a JSON object from the body.

    Raises:
        CallError: `usage`, it is too large, no JSON or no object.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0]
    if content_type.strip().lower() != "application/json":
        raise CallError(ErrorKind.USAGE, "the content type has to be application/json")
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY:
            raise CallError(ErrorKind.USAGE, f"the body is over {MAX_BODY} bytes")
    try:
        value = parse_json(data, max_size=MAX_BODY)
    except JsonError as exc:
        raise CallError(ErrorKind.USAGE, f"the body is no JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise CallError(ErrorKind.USAGE, "the body has to be a JSON object")
    return value
