"""Calls of peers in the local API."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol

from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from anp.errors import CallError, ErrorKind, UnknownError
from anp.sidecar.api.answers import JsonAnswer
from anp.sidecar.api.connections import HangUp
from anp.sidecar.api.event_stream import EVENT_STREAM, event_stream
from anp.sidecar.api.problems import ApiError, Problem, problem_of, problem_response
from anp.sidecar.api.requests import (
    EmptyBody,
    LongText,
    PeerName,
    Uri,
    did_of,
    peer_query,
)
from anp.sidecar.api.table import (
    STRICT,
    LocalScope,
    Query,
    check_scope,
    first_header,
    get,
    integer_of,
    post,
    scope_of,
)
from anp.sidecar.calls.call import CallRequest, CallResult, CallState, KeptCall, Mode
from anp.sidecar.calls.events import Event
from anp.sidecar.calls.journal import CallDesk
from anp.sidecar.config.lookup import need_of, protocol_of
from anp.sidecar.daemon import Daemon
from anp.sidecar.library.state import view_of
from anp.sidecar.tasks.known import Maker, maker_of
from anp.sidecar.telemetry.call_entry import RUNNING, CallEntry, Direction
from negotiation.need import Need


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

    peer: PeerName | None = None
    "Name, DID, URL or `URL#DID`; not needed with `find`."

    need: LongText | NeedBody | None = None
    "The need: a text, the name of a `[[need]]`, or an object; not needed with `find`."

    find: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    """Name of a capability, in place of `peer` and `need`: the call goes to the best of
    the allowed peers that publish it, and to the next one as long as nothing ran."""

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

    waits_for: str
    "The thing that it waits for at the moment, in words; empty once it is over."

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
            waits_for="" if call.is_over else call.waits_for,
            problem=None if call.error is None else problem_of(call.error),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """A page of calls in both directions: those under way, then the latest to end."""

    calls: Sequence[CallEntry]
    next: str | None
    "`after` for the next page, which may be empty; null at the end."


CALLS_PAGE: Final = 100
"Calls of one page when nobody says how many."

LIST_QUERY: Final = (
    Query(
        name="limit",
        text="Most calls of the page, without those under way.",
        schema={
            "type": "integer",
            "minimum": 1,
            "maximum": 1_000,
            "default": CALLS_PAGE,
        },
    ),
    Query(
        name="after",
        text="`next` of the page before.",
        schema={"type": "string", "minLength": 1, "maxLength": 256},
    ),
    Query(
        name="direction",
        text="Only calls that our agent made, or that it served.",
        schema={"type": "string", "enum": ["made", "served"]},
    ),
    peer_query("Only with this peer: a name, DID or `URL#DID`."),
    Query(
        name="capability",
        text="Only of this capability: its full name, or the part after the last dot.",
        schema={"type": "string", "minLength": 1, "maxLength": 256},
    ),
    Query(
        name="protocol",
        text="Only through this protocol: its URI, its hash, or the hash's beginning.",
        schema={"type": "string", "minLength": 1, "maxLength": 2048},
    ),
    Query(
        name="outcome",
        text="Only with this outcome; `failed` is every one that is not good.",
        schema={"type": "string", "minLength": 1, "maxLength": 64},
    ),
    Query(
        name="since",
        text="Only those that ended later; seconds since 1970.",
        schema={"type": "integer", "minimum": 0},
    ),
)


class _Begin(Protocol):
    """Begins a call; see `CallDesk.start` and `CallDesk.open`."""

    async def __call__(
        self, request: CallRequest, *, key: str | None, by_owner: bool
    ) -> KeptCall: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filter:
    """The calls that a request asks for; None asks for all."""

    peer: str | None
    "Its canonical DID."

    named: str | None
    "The same as the request names it."

    capability: str | None
    protocol: str | None
    outcome: str | None
    since: int
    agent_only: bool
    "True to leave out the owner's calls and those of peers."

    def admits(self, one: CallEntry) -> bool:
        """Tell whether a call is asked for."""
        if self.agent_only and (one.by_owner or one.direction == "served"):
            return False
        name, protocol = one.capability or "", self.protocol
        short = name.rpartition(".")[2]
        return (
            one.ended >= self.since
            and (self.peer in {None, one.peer} or self.named == one.asked)
            and self.capability in {None, name, short}
            and (
                protocol is None
                or protocol == one.uri
                or (one.protocol or "").startswith(protocol.lower())
            )
            and self._outcome_fits(one.outcome)
        )

    def _outcome_fits(self, outcome: str) -> bool:
        if self.outcome == "failed":
            return outcome not in {"ok", RUNNING, CallState.WAITING}
        return self.outcome in {None, outcome}


class CallOperations:
    """Operations on calls."""

    tag = "calls"

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._desk = daemon.calls

    @get("/v1/calls", Calls, query=LIST_QUERY, problems=(404,), scope=LocalScope.AGENT)
    async def list_calls(self, request: Request) -> Calls:
        """List calls, made and served, in pages; an agent sees those that agents made.

        Refused calls are among them. Many failed calls of one peer share an entry.
        """
        query = request.query_params
        direction, after = query.get("direction"), query.get("after")
        if direction == "served":
            check_scope(request, LocalScope.OWNER, what="direction=served")
        named = query.get("peer")
        wanted = _Filter(
            peer=None if named is None else await did_of(self._daemon, named),
            named=named,
            capability=query.get("capability"),
            protocol=query.get("protocol"),
            outcome=query.get("outcome"),
            since=integer_of(request, "since", 0),
            agent_only=scope_of(request) is not LocalScope.OWNER,
        )
        try:
            found = await self._daemon.call_log.page(
                wanted.admits,
                direction=None if direction is None else _direction(direction),
                after=after,
                limit=integer_of(request, "limit", CALLS_PAGE),
            )
        except ValueError:
            raise ApiError(400, "after: this is not `next` of a page") from None
        under_way = [] if after is not None else self._under_way()
        first = [
            one
            for one in under_way
            if direction in {None, one.direction} and wanted.admits(one)
        ]
        return Calls(calls=first + found.entries, next=found.next)

    def _under_way(self) -> list[CallEntry]:
        """Return the calls that run or wait, the one that began last first."""
        seen = self._daemon.observer.running
        running = [one.entry(running=True) for one in seen if not one.is_trial]
        known = {one.id for one in running}
        kept = [
            CallEntry(
                id=one.id,
                direction="made",
                at=one.created,
                ms=round((time.time() - one.created) * 1000, 1),
                outcome=one.state.value,
                asked=one.request.peer,
                need=one.request.need.requirement,
                by_owner=one.by_owner,
            )
            for one in self._desk.kept()
            if not one.is_over and one.id not in known
        ]
        both = [one.cleaned() for one in (*running, *kept)]
        return sorted(both, key=lambda one: one.at, reverse=True)

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
        if _wants_async(request):
            return _accepted(await self._begin(self._desk.start, request, body))
        call = await self._begin(self._desk.open, request, body)
        # The input may be long, and the call itself lets go of it at its end.
        del body
        with HangUp(request.scope, partial(self._hung_up, call)):
            await self._desk.settle(call)
        if call.result is not None:
            return call.result
        if call.state is CallState.WAITING:
            return _accepted(call)
        if call.error is not None:
            return problem_response(problem_of(call.error))
        raise CallError(
            ErrorKind.INTERRUPTED, f"the call {call.id} still runs", may_have_run=True
        )

    @post(
        "/v1/calls/follow",
        EVENT_STREAM,
        body=CallBody,
        problems=(409, 429),
        scope=LocalScope.AGENT,
    )
    async def follow_call(self, request: Request, body: CallBody) -> Response:
        """Call a peer and stream the events; closing the connection cancels the call.

        The result is at `/v1/calls/{id}`, with the `call` of the first event.
        """
        call = await self._begin(self._desk.start, request, body)
        return event_stream(self._followed(call))

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

    async def _begin(self, begin: _Begin, request: Request, body: CallBody) -> KeptCall:
        if body.trust_first_use:
            check_scope(request, LocalScope.OWNER, what="trust_first_use")
        return await begin(
            self._request(body),
            key=body.idempotency_key,
            by_owner=scope_of(request) is LocalScope.OWNER,
        )

    def _hung_up(self, call: KeptCall) -> None:
        """Cancel a call whose caller is gone, unless its key lets it ask again."""
        if call.key is None:
            self._desk.take_back(call)

    async def _followed(self, call: KeptCall) -> AsyncGenerator[Event, None]:
        """Give the events of a call, which ends with the one who watches it."""
        try:
            async for event in self._desk.watch(call):
                yield event
        finally:
            if not call.is_over and call.key is None:
                await self._desk.cancel(call)

    def _find(self, request: Request) -> KeptCall:
        call = self._desk.find(request.path_params["id"])
        if not may_see(request, call):
            # The same words as for one that is not there.
            raise UnknownError(f"no call is known as {request.path_params['id'][:64]}")
        return call

    def _request(self, body: CallBody) -> CallRequest:
        if body.find is not None and body.peer is None and body.need is None:
            if body.capability or body.protocol or body.trust_first_use:
                raise ApiError(
                    400, "find stands without capability, protocol, trust_first_use"
                )
            return CallRequest(
                peer="",
                need=Need(body.find),
                arguments=body.input,
                timeout=body.timeout,
                mode=Mode(body.mode),
            )
        if body.find is not None or body.peer is None or body.need is None:
            raise ApiError(400, "give peer and need, or find in place of both")
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


def _direction(text: str) -> Direction:
    return "served" if text == "served" else "made"


def may_see(request: Request, call: KeptCall) -> bool:
    """Tell whether a request may know of a call: an agent does not of the owner's."""
    return scope_of(request) is LocalScope.OWNER or not call.by_owner


def may_see_event(request: Request, desk: CallDesk, event: Event) -> bool:
    """Tell whether a request may know of an event: an agent does of its own work's."""
    if scope_of(request) is LocalScope.OWNER:
        return True
    if "task" in event.data:
        return maker_of(event.data["task"]) is Maker.AGENT
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
    if not first_header(request, b"prefer"):
        return False
    preferred = ",".join(request.headers.getlist("prefer"))
    names = (one.partition(";")[0].strip().lower() for one in preferred.split(","))
    return "respond-async" in names
