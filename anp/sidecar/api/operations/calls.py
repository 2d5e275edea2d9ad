"""Calls of peers in the local API."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from anp.errors import CallError, ErrorKind, UnknownError
from anp.sidecar.api.answers import JsonAnswer
from anp.sidecar.api.event_stream import EVENT_STREAM, event_stream
from anp.sidecar.api.problems import Problem, problem_of, problem_response
from anp.sidecar.api.requests import EmptyBody, LongText, PeerName, Uri
from anp.sidecar.api.table import STRICT, LocalScope, check_scope, get, post, scope_of
from anp.sidecar.calls.caller import CallRequest, CallResult, Mode
from anp.sidecar.calls.events import Event
from anp.sidecar.calls.journal import CallDesk, CallState, KeptCall
from anp.sidecar.config.lookup import need_of, protocol_of
from anp.sidecar.daemon import Daemon
from anp.sidecar.library.views import view_of

__all__ = ["Call", "CallBody", "CallOperations", "may_see", "may_see_event"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedBody:
    """A need with schemas."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    requirement: LongText
    "The need in words, or a capability's name."

    input_schema: dict[str, Any] | None = None
    "JSON Schema of the input."

    output_schema: dict[str, Any] | None = None
    "JSON Schema of the output."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBody:
    """A call of a peer."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: PeerName
    "Name, DID, URL or `URL#DID`."

    need: LongText | NeedBody
    "The need: a text, the name of a `[[need]]`, or an object."

    capability: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    "Name of the peer's capability that is meant, which stands for the need's words."

    input: dict[str, Any] = field(default_factory=dict)
    "The data."

    mode: Literal["auto", "protocol", "natural-language"] = "auto"
    "Through a protocol or in words."

    timeout: Annotated[float, Field(gt=0, le=86_400)] | None = None
    "Seconds for negotiation and call together."

    idempotency_key: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    "A repeated request with this key gets the first result, for 24 hours."

    trust_first_use: bool = False
    """Accept the key of an unknown peer over an unencrypted connection.

    Needs the scope `owner`.
    """

    protocol: Uri | None = None
    "URI of the published or built-in protocol to use."


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that is under way, waits for an approval, or is over.

    One that waits for an approval asks again by itself.
    """

    id: str
    state: CallState
    peer: str
    need: str
    created: float
    "Seconds since 1970."

    ended: float | None
    "Seconds since 1970."

    next_attempt: float | None
    "Time of the next attempt, in seconds since 1970."

    negotiations: Sequence[str]
    "Ids of its negotiations."

    result: CallResult | None
    problem: Problem | None

    @classmethod
    def of(cls, call: KeptCall) -> Call:
        """Return a call with its state and its result or problem."""
        return view_of(
            cls,
            call,
            peer=call.request.peer,
            need=call.request.need.requirement,
            problem=None if call.error is None else problem_of(call.error),
        )


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls that are kept, the newest first."""

    calls: Sequence[Call]


class CallOperations:
    """Operations on calls."""

    tag = "calls"

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._desk = daemon.calls

    @get("/v1/calls", Calls, scope=LocalScope.AGENT)
    async def list_calls(self, request: Request) -> Calls:
        """List the calls that are kept, the newest first."""
        kept = self._desk.kept()
        return Calls([Call.of(call) for call in kept if may_see(request, call)])

    @post(
        "/v1/calls",
        CallResult,
        others={202: Call},
        body=CallBody,
        headers={"Prefer": "`respond-async` answers at once, with 202."},
        problems=(404, 409, 422, 424, 429),
        scope=LocalScope.AGENT,
    )
    async def call(self, request: Request, body: CallBody) -> CallResult | Response:
        """Call a peer."""
        if body.trust_first_use:
            check_scope(request, LocalScope.OWNER, what="trust_first_use")
        call = await self._desk.start(
            self._request(body),
            key=body.idempotency_key,
            by_owner=scope_of(request) is LocalScope.OWNER,
        )
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
        if call.result is not None:
            return call.result
        if call.state is CallState.WAITING:
            return _accepted(call)
        if call.error is not None:
            return problem_response(problem_of(call.error))
        raise CallError(
            ErrorKind.INTERRUPTED, f"the call {call.id} still runs", may_have_run=True
        )

    @get("/v1/calls/{id}", Call, scope=LocalScope.AGENT)
    async def get_call(self, request: Request) -> Call:
        """Give the state of a call, with its result or problem."""
        return Call.of(self._find(request))

    @get("/v1/calls/{id}/events", EVENT_STREAM, scope=LocalScope.AGENT)
    async def watch_call(self, request: Request) -> Response:
        """Stream the events of a call from its beginning to its end."""
        return event_stream(self._desk.watch(self._find(request)))

    @post("/v1/calls/{id}/cancel", Call, body=EmptyBody, scope=LocalScope.AGENT)
    async def cancel_call(self, request: Request, body: EmptyBody) -> Call:
        """Cancel a call; a negotiation that runs for it is ended."""
        call = self._find(request)
        await self._desk.cancel(call)
        return Call.of(call)

    def _find(self, request: Request) -> KeptCall:
        call = self._desk.find(request.path_params["id"])
        if not may_see(request, call):
            # The same words as for one that is not there.
            raise UnknownError(f"no call is known as {request.path_params['id'][:64]}")
        return call

    def _request(self, body: CallBody) -> CallRequest:
        need = asdict(body.need) if isinstance(body.need, NeedBody) else body.need
        wanted = need_of(self._daemon.config, need)
        if body.capability is not None:
            wanted = replace(wanted, requirement=body.capability)
        return CallRequest(
            peer=body.peer,
            need=wanted,
            arguments=body.input,
            timeout=body.timeout,
            trust_first_use=body.trust_first_use,
            mode=Mode(body.mode),
            protocol=body.protocol or protocol_of(self._daemon.config, need),
        )


def may_see(request: Request, call: KeptCall) -> bool:
    """Tell whether a request may know of a call: an agent does not of the owner's."""
    return scope_of(request) is LocalScope.OWNER or not call.by_owner


def may_see_event(request: Request, desk: CallDesk, event: Event) -> bool:
    """Tell whether a request may know of an event: an agent does of its own calls'."""
    if scope_of(request) is LocalScope.OWNER:
        return True
    try:
        return may_see(request, desk.find(str(event.data.get("call", ""))))
    except UnknownError:
        return False


def _accepted(call: KeptCall) -> Response:
    """Answer that the call goes on, and where its state can be asked for."""
    return JsonAnswer(
        Call.of(call),
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
