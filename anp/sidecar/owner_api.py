"""The owner's queue in the local API (SIDECAR.md, Local API)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from anp.errors import CallError, ErrorKind
from anp.sidecar import views
from anp.sidecar.owner_words import Decision
from cache.records import NegotiationRecord, StandingRecord

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["owner_routes"]

Handler = Callable[[Request], Awaitable[Response]]
Body = Callable[[Request], Awaitable[dict[str, Any]]]


def owner_routes(
    daemon: Daemon, answering: Callable[[Handler], Handler], body: Body
) -> list[Route]:
    """Return the routes below `/v1/negotiations` and `/v1/decisions`.

    Args:
        answering: Turns the errors of a handler into problem documents.
        body: Reads a JSON object from a request.
    """
    api = _OwnerApi(daemon, body)
    one = "/v1/negotiations/{prefix}"
    return [
        Route("/v1/negotiations", answering(api.negotiations)),
        Route(one, answering(api.negotiation)),
        Route(f"{one}/cancel", answering(api.cancel), methods=["POST"]),
        Route(f"{one}/hint", answering(api.hint), methods=["POST"]),
        Route(f"{one}/decision", answering(api.decide), methods=["POST"]),
        Route("/v1/decisions", answering(api.decisions)),
    ]


class _OwnerApi:
    """The handlers, thin: they read the request, ask the desk and show the answer."""

    def __init__(self, daemon: Daemon, body: Body) -> None:
        self._daemon = daemon
        self._desk = daemon.agreer.desk
        self._body = body

    async def negotiations(self, request: Request) -> Response:
        open_only = request.query_params.get("open", "") not in {"", "0", "false"}
        found = await self._desk.negotiations(open_only=open_only)
        return JSONResponse({"negotiations": [self._view(record) for record in found]})

    async def negotiation(self, request: Request) -> Response:
        record = await self._desk.find(request.path_params["prefix"])
        words = await self._desk.words(record.id)
        view = self._view(record, turns=True)
        view["decisions"] = [views.standing(word) for word in words]
        if record.hash is not None:
            view["agreement"] = await asyncio.to_thread(
                views.agreement_of, self._daemon.store, record
            )
        return JSONResponse(view)

    async def cancel(self, request: Request) -> Response:
        body = _only(await self._body(request), {"reason"})
        record = await self._desk.cancel(
            request.path_params["prefix"], _text(body, "reason", default="")
        )
        return JSONResponse({"id": record.id, "cancelled": True})

    async def hint(self, request: Request) -> Response:
        body = _only(await self._body(request), {"text"})
        word = await self._desk.hint(request.path_params["prefix"], _text(body, "text"))
        return JSONResponse(_said(word))

    async def decide(self, request: Request) -> Response:
        body = _only(await self._body(request), {"verdict", "document", "note"})
        document = _text(body, "document") if "document" in body else None
        decision = Decision("accept", document, _text(body, "note", default=""))
        match body.get("verdict"):
            case "accept" | "reject" | "edit" as said:
                decision = replace(decision, said=said)
            case _:
                raise CallError(
                    ErrorKind.USAGE, "the verdict has to be accept, reject or edit"
                )
        word = await self._desk.decide(request.path_params["prefix"], decision)
        return JSONResponse(_said(word))

    async def decisions(self, request: Request) -> Response:
        words = await self._desk.words()
        return JSONResponse({"decisions": [views.standing(word) for word in words]})

    def _view(
        self, record: NegotiationRecord, *, turns: bool = False
    ) -> dict[str, Any]:
        waits = self._desk.waits(record.id)
        return views.negotiation(record, turns=turns, waiting=waits)


def _said(word: StandingRecord | None) -> dict[str, Any]:
    """Show what became of the owner's word."""
    if word is None:
        return {"applied": "now", "decision": None}
    return {"applied": "next negotiation", "decision": views.standing(word)}


def _only(body: dict[str, Any], known: set[str]) -> dict[str, Any]:
    unknown = sorted(body.keys() - known)
    if unknown:
        raise CallError(ErrorKind.USAGE, f"unknown fields: {unknown}")
    return body


def _text(body: dict[str, Any], name: str, *, default: str | None = None) -> str:
    value = body.get(name, default)
    if not isinstance(value, str):
        raise CallError(ErrorKind.USAGE, f"{name} has to be a text")
    return value
