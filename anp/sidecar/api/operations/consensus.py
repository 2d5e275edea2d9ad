"""Consensus protocols in the local API: known, published, taken back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from anp.sidecar.api.answers import HASH, TEXT, answer_of, ref
from anp.sidecar.api.bodies import PublishBody, UnpublishBody
from anp.sidecar.api.table import Answer, Handler, Operation, body_of

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["consensus_operations"]


def consensus_operations(daemon: Daemon) -> list[Operation]:
    """Return the operations on consensus protocols."""
    api = _ConsensusApi(daemon)

    def of(
        method: Literal["GET", "POST"],
        path: str,
        name: str,
        summary: str,
        handler: Handler,
        answer: dict[str, Any],
        **more: Any,
    ) -> Operation:
        return Operation(
            method=method,
            path=path,
            name=name,
            summary=summary,
            handler=handler,
            answers=(Answer(text="Done.", schema=answer),),
            tag="protocols",
            **more,
        )

    wrong = {"problems": (404, 409, 422, 424)}
    return [
        of(
            "GET",
            "/v1/consensus",
            "listConsensus",
            "List the protocols that are known by a URI, and what peers are shown.",
            api.known,
            ref("Known"),
        ),
        of(
            "POST",
            "/v1/consensus/publish",
            "publishProtocol",
            "Put an agreed protocol under a URI, so that others need not negotiate.",
            api.publish,
            ref("Published"),
            body=PublishBody,
            **wrong,
        ),
        of(
            "POST",
            "/v1/consensus/unpublish",
            "unpublishProtocol",
            "Take a URI back; agreements that came of it stay.",
            api.unpublish,
            answer_of(uri=TEXT, hash=HASH),
            body=UnpublishBody,
            **wrong,
        ),
    ]


class _ConsensusApi:
    """The handlers, thin: they read the request, ask the desk and show the answer."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    async def known(self, request: Request) -> Response:
        return JSONResponse(
            {
                "publishes": self._daemon.config.publishes,
                "protocols": await self._daemon.consensus.shown(),
            }
        )

    async def publish(self, request: Request) -> Response:
        body: PublishBody = body_of(request, PublishBody)
        digest = await asyncio.to_thread(self._daemon.store.find_hash, body.protocol)
        entry = await self._daemon.consensus.publish(
            digest, body.uri, version=body.version, summary=body.summary
        )
        return JSONResponse(
            {
                "uri": entry.uri,
                "hash": entry.hash,
                "version": entry.version,
                # Where any peer may see it; the owner may have said otherwise.
                "listed": self._daemon.config.publishes,
            }
        )

    async def unpublish(self, request: Request) -> Response:
        uri = body_of(request, UnpublishBody).uri
        entry = await self._daemon.consensus.unpublish(uri)
        return JSONResponse({"uri": entry.uri, "hash": entry.hash})
