"""Bundles in the local API (SIDECAR.md, Local API)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from anp.errors import CallError, ErrorKind
from anp.sidecar.bundle_format import MAX_BUNDLE
from anp.sidecar.bundles import Bundles
from negotiation.task import Role

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["bundle_routes", "bundles_of"]

Handler = Callable[[Request], Awaitable[Response]]


def bundles_of(daemon: Daemon) -> Bundles:
    """Return what exports and imports for `daemon`."""
    return Bundles(
        store=daemon.store,
        sandbox=daemon.sandbox,
        validator=daemon.validator,
        exposure=daemon.exposure,
        own_did=daemon.identities.canonical,
        half_deadline=daemon.config.sandbox.call_timeout,
        in_use=daemon.use_imported,
    )


def bundle_routes(
    daemon: Daemon, answering: Callable[[Handler], Handler]
) -> list[Route]:
    """Return the routes of bundles; they stand before those with a hash in their path.

    Args:
        answering: Turns the errors of a handler into problem documents.
    """
    api = _BundleApi(daemon)
    return [
        Route("/v1/protocols/import", answering(api.take_in), methods=["POST"]),
        Route("/v1/protocols/{prefix}/export", answering(api.export)),
    ]


class _BundleApi:
    """The handlers, thin: they read the request, ask `Bundles` and show the answer."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._bundles = bundles_of(daemon)

    async def export(self, request: Request) -> Response:
        query = request.query_params
        data = await self._bundles.export(
            request.path_params["prefix"],
            role=_role(request),
            peer_did=await self._peer(request),
            with_did=query.get("did") == "1",
            with_tests=query.get("tests") != "0",
        )
        return Response(data, media_type="application/json")

    async def take_in(self, request: Request) -> Response:
        role, peer_did = _role(request), await self._peer(request)
        imported = await self._bundles.take_in(
            await _bytes(request), role=role, peer_did=peer_did
        )
        return JSONResponse(
            {
                "hash": imported[0].half.hash,
                "halves": [
                    {
                        "role": one.half.role.value,
                        "revision": one.half.revision,
                        "origin": one.half.origin,
                        "capabilities": sorted(one.half.capabilities),
                        "peers": sorted({made.peer_did for made in one.agreements}),
                        "replaced": list(one.replaced),
                    }
                    for one in imported
                ],
            }
        )

    async def _peer(self, request: Request) -> str | None:
        peer = request.query_params.get("peer")
        if not peer:
            return None
        return await asyncio.to_thread(self._daemon.canonical_peer, peer)


def _role(request: Request) -> Role | None:
    text = request.query_params.get("role")
    if not text:
        return None
    if text not in list(Role):
        raise CallError(ErrorKind.USAGE, "role: requester or provider")
    return Role(text)


async def _bytes(request: Request) -> bytes:
    # As it came: a bundle is refused when a byte of it is off.
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BUNDLE:
            raise CallError(ErrorKind.USAGE, f"a bundle has at most {MAX_BUNDLE} bytes")
    return bytes(data)
