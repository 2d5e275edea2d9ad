"""Bundles in the local API (SIDECAR.md, Local API)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from anp.sidecar.api.answers import ref
from anp.sidecar.api.problems import ApiError
from anp.sidecar.api.table import Answer, Operation, Query
from anp.sidecar.bundles.format import MAX_BUNDLE
from anp.sidecar.config.meaning import canonical_peer
from negotiation.need import Role

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["bundle_operations"]

SWITCH = {"type": "string", "enum": ["0", "1"]}
ROLE = Query(
    name="role",
    text="Only this half; both when left out.",
    schema={"type": "string", "enum": [role.value for role in Role]},
)
PEER = Query(
    name="peer",
    text="The peer that is meant: name, DID or `URL#DID`.",
    schema={"type": "string", "minLength": 1, "maxLength": 2048},
)


def bundle_operations(daemon: Daemon) -> list[Operation]:
    """Return the operations on bundles; they stand before those with a hash."""
    api = _BundleApi(daemon)
    return [
        Operation(
            method="POST",
            path="/v1/protocols/import",
            name="importProtocol",
            summary="Try the halves of a bundle, and use them on new channels.",
            handler=api.take_in,
            answers=(Answer(text="What was imported.", schema=ref("Imported")),),
            raw_body=True,
            query=(ROLE, PEER),
            problems=(404, 409, 424),
            tag="protocols",
        ),
        Operation(
            method="GET",
            path="/v1/protocols/{prefix}/export",
            name="exportProtocol",
            summary="Write a protocol and our halves of it into a bundle.",
            handler=api.export,
            answers=(Answer(text="The bundle.", schema={"type": "object"}),),
            query=(
                ROLE,
                PEER,
                Query(name="did", text="1: say who exported it.", schema=SWITCH),
                Query(name="tests", text="0: leave out the tests.", schema=SWITCH),
            ),
            tag="protocols",
        ),
    ]


class _BundleApi:
    """The handlers, thin: they read the request, ask `Bundles` and show the answer."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._bundles = daemon.bundles

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
        return await asyncio.to_thread(
            canonical_peer, self._daemon.config, self._daemon.store, peer
        )


def _role(request: Request) -> Role | None:
    text = request.query_params.get(ROLE.name)
    return None if text is None else Role(text)


async def _bytes(request: Request) -> bytes:
    # As it came: a bundle is refused when a byte of it is off.
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BUNDLE:
            raise ApiError(413, f"a bundle has at most {MAX_BUNDLE} bytes")
    return bytes(data)
