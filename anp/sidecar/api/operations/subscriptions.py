"""Subscriptions in the local API, and the events that the local agent tells."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from anp.errors import CallError, ErrorKind
from anp.interaction.errors import InteractionError
from anp.sidecar.api.answers import JsonAnswer
from anp.sidecar.api.operations.tasks import PAGE_OF_IDS, may_see_own
from anp.sidecar.api.problems import ApiError
from anp.sidecar.api.requests import EmptyBody, LongText, PeerName
from anp.sidecar.api.table import (
    STRICT,
    LocalScope,
    Query,
    get,
    integer_of,
    post,
    scope_of,
)
from anp.sidecar.daemon import Daemon
from anp.sidecar.subscriptions.kept import Kept, KeptRun, Order
from anp.sidecar.tasks.known import Maker, NoTask, maker_of

MAKERS = {Maker.AGENT: "agent", Maker.OWNER: "owner", Maker.PEER: "peer"}

PAGE_OF_RUNS = (
    PAGE_OF_IDS[0],
    Query(
        name="after",
        text="`next` of the page before.",
        schema={"type": "integer", "minimum": 1, "maximum": 9_999_999_999},
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionBody:
    """A task for a peer, and what starts it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: PeerName
    "Name, DID, URL or `URL#DID` of the peer that does the task."

    capability: Annotated[str, Field(max_length=300)] = ""
    "Name of the peer's capability; empty when the words say what to do."

    input: dict[str, Any] | None = None
    "The arguments."

    text: LongText | None = None
    "Plain words."

    give: Annotated[str, Field(max_length=200)] = ""
    """Name of the argument that gets the occasion: an object with `at`, and with
    `event` or, with `match` `all`, `events` by the number of their trigger."""

    watcher: Literal["here", "peer"] = "here"
    "`peer`: the peer watches the triggers, does the task, and sends the results."

    triggers: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=16)]
    "Objects with `type` `time`, `event` or `place`."

    match: Literal["any", "all"] = "any"
    "`all`: every trigger has to have been there."

    window: Annotated[float, Field(gt=0)] | None = None
    "Seconds in which `all` have to have been there."

    condition: dict[str, Any] | None = None
    "JSON Schema of the occasions that count; see `give`."

    missed: Literal["skip", "once", "all"] = "skip"
    "Due times that pass while the daemon is away: none, one for all, or each."

    max_runs: Annotated[int, Field(ge=1)] | None = None
    "Runs after which it ends."

    expires: Annotated[str, Field(max_length=64)] | None = None
    "Date and time of its end, in ISO 8601."

    debounce: Annotated[float, Field(ge=0)] = 0.0
    "Seconds after a run in which nothing else starts it."

    def given(self) -> dict[str, Any]:
        """Return the object with the triggers, as the wire has it."""
        found: dict[str, Any] = {
            "triggers": self.triggers,
            "match": self.match,
            "window": self.window,
            "condition": self.condition,
            "missed": self.missed,
            "maxRuns": self.max_runs,
            "expires": self.expires,
            "debounce": self.debounce or None,
        }
        return {name: one for name, one in found.items() if one is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldEvent:
    """Something that happened, as the local agent or its owner tells it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    type: Annotated[str, Field(min_length=1, max_length=200)]
    "Its name, such as `build.failed`; `position` with `lat` and `lon` is a place."

    data: dict[str, Any] = field(default_factory=dict)
    "Facts about it, as a JSON object."

    id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    "Its id, if it may be told twice; the second time starts nothing."


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTaken:
    """An event was taken, and what it started is stored."""

    id: str
    started: Sequence[str]
    "Ids of the subscriptions of which it started a run."


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionView:
    """A subscription, as a list shows it."""

    id: str
    watcher: Literal["here", "peer", "for_peer"]
    """`here`: this daemon watches and sends the task to the peer; `peer`: the peer
    watches; `for_peer`: this daemon watches for the peer and does its task."""

    made_by: Literal["agent", "owner", "peer"]
    peer: str
    "The peer that does the task, or whose task it is, as its maker wrote it."

    capability: str
    created: float
    "Seconds since 1970."

    ended: str
    "Empty while it is open; else `expired`, `max_runs`, `done`, `canceled`, `refused`."

    reason: str
    "The reason of its end, in words."

    runs: int
    "Runs so far."

    next: float | None
    "When it is due next, in seconds since 1970; null if no time is."

    subscription: Mapping[str, Any]
    "The object with its triggers and limits, as it goes over the wire."


@dataclass(frozen=True, slots=True)
class SubscriptionPage:
    """A page of subscriptions."""

    subscriptions: Sequence[SubscriptionView]
    next: str | None
    "`after` of the next page; null on the last one."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One start of a subscription's task."""

    number: int
    "Counted from 1."

    at: float
    "When it was due, or the event happened, in seconds since 1970."

    key: str
    "The due time or the event."

    occasion: Mapping[str, Any]
    "Facts that the triggers brought; see `give`."

    task: str | None
    "Our own id of the task; null before it is made, and if none could be."

    session: str | None
    "Our own id of the task's session; null without a task."

    state: str
    "State of the task; empty without one, and when it is not kept any more."

    problem: str
    "The reason for which no task could be made."


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of runs."""

    runs: Sequence[RunView]
    "The newest first."

    next: int | None
    "`after` of the next page; null on the last one."


class SubscriptionOperations:
    """Operations on subscriptions."""

    tag = "subscriptions"

    def __init__(self, daemon: Daemon) -> None:
        self._service = daemon.subscriptions
        self._tasks = daemon.tasks

    @get(
        "/v1/subscriptions", SubscriptionPage, query=PAGE_OF_IDS, scope=LocalScope.AGENT
    )
    async def list_subscriptions(self, request: Request) -> SubscriptionPage:
        """List subscriptions, the newest first."""
        limit = integer_of(request, "limit", 100)
        before = request.query_params.get("after", "")
        found: list[SubscriptionView] = []
        while len(found) < limit:
            page = await self._service.book.page(before=before, limit=limit)
            for kept in page:
                if may_see_own(request, kept.id) and len(found) < limit:
                    found.append(_view(kept))
            if len(page) < limit:
                return SubscriptionPage(found, None)
            before = page[-1].id
        return SubscriptionPage(found, found[-1].id)

    @post(
        "/v1/subscriptions",
        SubscriptionView,
        others={201: SubscriptionView},
        body=SubscriptionBody,
        problems=(404, 409, 422, 424, 429),
        scope=LocalScope.AGENT,
    )
    async def create_subscription(
        self, request: Request, body: SubscriptionBody
    ) -> Response:
        """Have times, events or places start a task; it goes on by itself.

        One that a peer is to watch waits up to 5 s for the peer's word: what the peer
        refuses is an error with its reason.
        """
        by_owner = scope_of(request) is LocalScope.OWNER
        order = Order(
            peer=body.peer,
            capability=body.capability,
            text=body.text,
            input=body.input,
            give=body.give,
        )
        try:
            kept = await self._service.create(
                order,
                body.given(),
                maker=Maker.OWNER if by_owner else Maker.AGENT,
                by_peer=body.watcher == "peer",
            )
        except InteractionError as exc:
            raise CallError(ErrorKind.USAGE, exc.text) from exc
        if body.watcher == "peer":
            await self._service.given.answered(kept)
        return JsonAnswer(
            _view(kept),
            status_code=201,
            headers={"Location": f"/v1/subscriptions/{kept.id}"},
        )

    @get(
        "/v1/subscriptions/{id}",
        SubscriptionView,
        problems=(404,),
        scope=LocalScope.AGENT,
    )
    async def get_subscription(self, request: Request) -> SubscriptionView:
        """Give a subscription with its state."""
        return _view(await self._find(request))

    @post(
        "/v1/subscriptions/{id}/cancel",
        SubscriptionView,
        body=EmptyBody,
        problems=(404,),
        scope=LocalScope.AGENT,
    )
    async def cancel_subscription(
        self, request: Request, body: EmptyBody
    ) -> SubscriptionView:
        """End a subscription; the tasks that it started go on."""
        found = await self._find(request)
        return _view(await self._service.cancel(found.id))

    @get(
        "/v1/subscriptions/{id}/runs",
        RunPage,
        query=PAGE_OF_RUNS,
        problems=(404,),
        scope=LocalScope.AGENT,
    )
    async def list_runs(self, request: Request) -> RunPage:
        """List the runs of a subscription, the newest first."""
        found = await self._find(request)
        limit = integer_of(request, "limit", 100)
        runs = await self._service.book.runs(
            found.id, before=integer_of(request, "after", 0), limit=limit
        )
        more = len(runs) == limit and runs[-1].number > 1
        return RunPage(
            [await self._run(one) for one in runs], runs[-1].number if more else None
        )

    @post("/v1/events", EventTaken, body=ToldEvent, scope=LocalScope.AGENT)
    async def tell_event(self, request: Request, body: ToldEvent) -> EventTaken:
        """Tell the daemon what happened; subscriptions to it start their tasks."""
        name = body.id or str(uuid.uuid4())
        started = await self._service.tell(body.type, body.data, name=name)
        return EventTaken(
            id=name, started=[one for one in started if may_see_own(request, one)]
        )

    async def _find(self, request: Request) -> Kept:
        own_id = request.path_params["id"]
        if not may_see_own(request, own_id):
            raise NoTask(f"subscription {own_id[:80]}")
        return await self._service.find(own_id)

    async def _run(self, run: KeptRun) -> RunView:
        known = await self._tasks.sessions.task(run.task) if run.task else None
        return RunView(
            number=run.number,
            at=run.at,
            key=run.key,
            occasion=run.occasion,
            task=run.task or None,
            session=None if known is None else known.log,
            state="" if known is None else known.task.state,
            problem=run.problem,
        )


def _view(kept: Kept) -> SubscriptionView:
    maker = maker_of(kept.id)
    if maker is None:
        raise ApiError(404, "there is no such subscription")
    return SubscriptionView(
        id=kept.id,
        watcher=kept.watcher.value,
        made_by=MAKERS[maker],  # type: ignore[arg-type]  # one of the three words
        peer=kept.order.peer,
        capability=kept.order.capability,
        created=kept.created,
        ended=kept.ended,
        reason=kept.reason,
        runs=kept.runs,
        next=kept.watch().get_timer(),
        subscription=kept.given,
    )
