"""The owner's queue in the local API (SIDECAR.md, Local API)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from anp.sidecar.agreement.rulings import Decision
from anp.sidecar.api import views
from anp.sidecar.api.answers import FLAG, TEXT, answer_of, ref
from anp.sidecar.api.bodies import CancelBody, DecisionBody, HintBody, NoteBody
from anp.sidecar.api.pages import PAGE_QUERY, page_of
from anp.sidecar.api.table import Answer, Handler, Operation, Query, body_of
from cache.records.records import NegotiationRecord, StandingRecord

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["owner_operations"]

OPEN = Query(
    name="open",
    text="1: only those that wait for the owner.",
    schema={"type": "string", "enum": ["0", "1"]},
)


def owner_operations(daemon: Daemon) -> list[Operation]:
    """Return the operations on negotiations, approvals and what the owner said."""
    api = _OwnerApi(daemon)

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
            tag="negotiations",
            **more,
        )

    one, approval = "/v1/negotiations/{prefix}", "/v1/approvals/{prefix}"
    page, shown, said = ref("Negotiations"), ref("Negotiation"), ref("Said")
    return [
        of(
            "GET",
            "/v1/negotiations",
            "listNegotiations",
            "List negotiations, the running ones first, then the newest.",
            api.negotiations,
            page,
            query=(OPEN, *PAGE_QUERY),
        ),
        of(
            "GET",
            one,
            "getNegotiation",
            "Show one negotiation with its transcript, verdicts and costs.",
            api.negotiation,
            shown,
        ),
        of(
            "POST",
            f"{one}/cancel",
            "cancelNegotiation",
            "End a running negotiation; the peer is told.",
            api.cancel,
            answer_of(id=TEXT, cancelled=FLAG),
            body=CancelBody,
        ),
        of(
            "POST",
            f"{one}/hint",
            "hintNegotiation",
            "Give our mind a hint for its next answer, or the next negotiation.",
            api.hint,
            said,
            body=HintBody,
        ),
        of(
            "POST",
            f"{one}/decision",
            "decideNegotiation",
            "Accept or reject a document, or send an edited one.",
            api.decide,
            said,
            body=DecisionBody,
        ),
        of(
            "GET",
            "/v1/approvals",
            "listApprovals",
            "List what waits for the owner's word.",
            api.approvals,
            page,
            query=PAGE_QUERY,
        ),
        of("GET", approval, "getApproval", "Show one.", api.negotiation, shown),
        of(
            "POST",
            f"{approval}/accept",
            "acceptApproval",
            "Accept the document that waits.",
            api.accept,
            said,
            body=NoteBody,
        ),
        of(
            "POST",
            f"{approval}/reject",
            "rejectApproval",
            "Reject the document that waits.",
            api.reject,
            said,
            body=NoteBody,
        ),
        of(
            "GET",
            "/v1/decisions",
            "listDecisions",
            "List what the owner said that waits for a negotiation, or was used.",
            api.decisions,
            ref("Decisions"),
        ),
    ]


class _OwnerApi:
    """The handlers, thin: they read the request, ask the desk and show the answer."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._desk = daemon.agreer.desk

    async def negotiations(self, request: Request) -> Response:
        return await self._page(request, request.query_params.get(OPEN.name) == "1")

    async def approvals(self, request: Request) -> Response:
        return await self._page(request, open_only=True)

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
        record = await self._desk.cancel(
            request.path_params["prefix"], body_of(request, CancelBody).reason
        )
        return JSONResponse({"id": record.id, "cancelled": True})

    async def hint(self, request: Request) -> Response:
        word = await self._desk.hint(
            request.path_params["prefix"], body_of(request, HintBody).text
        )
        return JSONResponse(_said(word))

    async def decide(self, request: Request) -> Response:
        body: DecisionBody = body_of(request, DecisionBody)
        return await self._decide(
            request, Decision(body.verdict, body.document, body.note)
        )

    async def accept(self, request: Request) -> Response:
        note = body_of(request, NoteBody).note
        return await self._decide(request, Decision("accept", None, note))

    async def reject(self, request: Request) -> Response:
        note = body_of(request, NoteBody).note
        return await self._decide(request, Decision("reject", None, note))

    async def decisions(self, request: Request) -> Response:
        words = await self._desk.words()
        return JSONResponse({"decisions": [views.standing(word) for word in words]})

    async def _decide(self, request: Request, decision: Decision) -> Response:
        word = await self._desk.decide(request.path_params["prefix"], decision)
        return JSONResponse(_said(word))

    async def _page(self, request: Request, open_only: bool) -> Response:
        found = await self._desk.negotiations(open_only=open_only)
        shown = [self._view(record) for record in found]
        return JSONResponse(
            page_of(request, "negotiations", shown, lambda entry: entry["id"])
        )

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
