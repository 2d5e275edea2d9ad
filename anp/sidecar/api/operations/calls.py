"""Calls and events in the local API (SIDECAR.md, Local API)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from anp.errors import CallError, ErrorKind
from anp.sidecar.api.answers import ref
from anp.sidecar.api.bodies import CallBody, EmptyBody, TaskBody
from anp.sidecar.api.event_stream import event_stream
from anp.sidecar.api.problems import ApiError, problem_of, problem_response
from anp.sidecar.api.table import Answer, Operation, body_of
from anp.sidecar.api.views import call_view
from anp.sidecar.calls.caller import CallRequest, Mode
from anp.sidecar.calls.events import Event
from anp.sidecar.calls.journal import CallState, KeptCall
from anp.sidecar.config.meaning import protocol_of, task_of

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["call_operations"]

EVENTS = Answer(
    text="Server-sent events; the data of each is a JSON object with `number`, "
    "`type`, `at` and `data`.",
    media_type="text/event-stream",
)


def call_operations(daemon: Daemon) -> list[Operation]:
    """Return the operations on calls, and the stream of all events."""
    api = _CallsApi(daemon)
    one = "/v1/calls/{id}"
    call = ref("Call")
    return [
        Operation(
            method="POST",
            path="/v1/calls",
            name="call",
            summary="Call a peer.",
            handler=api.call,
            body=CallBody,
            answers=(
                Answer(text="The result.", schema=ref("CallResult")),
                Answer(
                    text="The call goes on: as asked, or because it waits for an "
                    "approval. It asks again by itself; see `Location`.",
                    schema=call,
                    status=202,
                ),
            ),
            headers={
                "Prefer": "`respond-async` answers at once, with 202.",
            },
            problems=(404, 409, 422, 424, 429),
            tag="calls",
        ),
        Operation(
            method="GET",
            path=one,
            name="getCall",
            summary="Tell how a call is doing, with its result or problem.",
            handler=api.show,
            answers=(Answer(text="The call.", schema=call),),
            tag="calls",
        ),
        Operation(
            method="GET",
            path=f"{one}/events",
            name="watchCall",
            summary="Follow a call from its beginning until it is over.",
            handler=api.watch,
            answers=(EVENTS,),
            tag="calls",
        ),
        Operation(
            method="POST",
            path=f"{one}/cancel",
            name="cancelCall",
            summary="Take a call back; a negotiation that runs for it is ended.",
            handler=api.cancel,
            body=EmptyBody,
            answers=(Answer(text="The call as it is now.", schema=call),),
            tag="calls",
        ),
        Operation(
            method="GET",
            path="/v1/events",
            name="watchEvents",
            summary="Follow what happens in the daemon, from now on.",
            handler=api.events,
            answers=(EVENTS,),
            problems=(429,),
            tag="daemon",
        ),
    ]


class _CallsApi:
    """The handlers, thin: they read the request, ask the desk and show the answer."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._desk = daemon.calls

    async def call(self, request: Request) -> Response:
        body: CallBody = body_of(request, CallBody)
        call = self._desk.start(self._request(body), key=body.idempotency_key)
        if _wants_async(request):
            return _accepted(call)
        ended = asyncio.ensure_future(call.settled.wait())
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait({ended, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            gone.cancel()
        if not call.settled.is_set() and body.idempotency_key is None:
            # Nobody waits for the answer any more, so nothing more is done for it.
            await self._desk.cancel(call)
        return _outcome(call)

    async def show(self, request: Request) -> Response:
        return JSONResponse(call_view(self._find(request)))

    async def watch(self, request: Request) -> Response:
        return event_stream(self._desk.watch(self._find(request)))

    async def cancel(self, request: Request) -> Response:
        call = self._find(request)
        await self._desk.cancel(call)
        return JSONResponse(call_view(call))

    async def events(self, request: Request) -> Response:
        if self._daemon.events.is_full:
            raise ApiError(
                429,
                "too many watch already; close one",
                kind=ErrorKind.POLICY,
                headers={"Retry-After": "10"},
            )
        return event_stream(self._all())

    async def _all(self) -> AsyncIterator[Event]:
        with self._daemon.events.subscribe() as watcher:
            while True:
                event = await watcher.next()
                if event is None:
                    return
                yield event

    def _find(self, request: Request) -> KeptCall:
        return self._desk.find(request.path_params["id"])

    def _request(self, body: CallBody) -> CallRequest:
        task = asdict(body.task) if isinstance(body.task, TaskBody) else body.task
        return CallRequest(
            peer=body.peer,
            task=task_of(self._daemon.config, task),
            arguments=body.input,
            timeout=body.timeout,
            trust_first_use=body.trust_first_use,
            mode=Mode(body.mode),
            protocol=body.protocol or protocol_of(self._daemon.config, task),
        )


def _outcome(call: KeptCall) -> Response:
    if call.result is not None:
        return JSONResponse(asdict(call.result))
    if call.state is CallState.WAITING:
        return _accepted(call)
    if call.error is not None:
        return problem_response(problem_of(call.error))
    raise CallError(ErrorKind.INTERRUPTED, f"the call {call.id} goes on")


def _accepted(call: KeptCall) -> Response:
    return JSONResponse(
        call_view(call),
        status_code=202,
        headers={
            "Location": f"/v1/calls/{call.id}",
            "Preference-Applied": "respond-async",
        },
    )


def _wants_async(request: Request) -> bool:
    preferred = ",".join(request.headers.getlist("prefer"))
    names = (one.partition(";")[0].strip().lower() for one in preferred.split(","))
    return "respond-async" in names


async def _gone(request: Request) -> None:
    """Return when the caller has hung up."""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return
