"""The daemon itself in the local API: its identity, health, metrics, costs, pages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from anp.errors import ErrorKind
from anp.sidecar.api.answers import JsonAnswer
from anp.sidecar.api.dashboard import Dashboard
from anp.sidecar.api.event_stream import EVENT_STREAM, event_stream
from anp.sidecar.api.operations.calls import may_see_event
from anp.sidecar.api.problems import ApiError
from anp.sidecar.api.requests import EmptyBody
from anp.sidecar.api.table import (
    LocalScope,
    Media,
    Query,
    get,
    integer_of,
    post,
    scope_of,
)
from anp.sidecar.calls.events import Event
from anp.sidecar.config.offers import extensions
from anp.sidecar.daemon import Daemon
from anp.sidecar.health import Readiness, readiness
from anp.sidecar.library.state import view_of
from anp.sidecar.minds.models import budget_limits
from anp.sidecar.minds.spend import MAX_DAYS, Spend, first_day, spend_of
from anp.sidecar.operation import Reloaded, reload_daemon
from anp.sidecar.telemetry.history import WINDOWS, HistoryView, Window
from anp.sidecar.telemetry.metrics import CONTENT_TYPE, metrics_text
from anp.version import daemon_version
from cache.records.records import Count
from negotiation.llm.asking.budget import utc_day

DAYS = Query(
    name="days",
    text="Number of days up to today.",
    schema={"type": "integer", "minimum": 1, "maximum": MAX_DAYS, "default": 7},
)

WINDOW = Query(
    name="window",
    text="The stretch of time up to now: an hour by minutes, or a day by quarters.",
    schema={"type": "string", "enum": list(WINDOWS), "default": "hour"},
)


@dataclass(frozen=True, slots=True)
class Alive:
    """The daemon's event loop answers."""

    status: str = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedNeed:
    """A `[[need]]` of the configuration."""

    name: str
    requirement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BookEntry:
    """A name in the address book: of the configuration, or added while it ran."""

    name: str
    did: str | None
    url: str | None


@dataclass(frozen=True, slots=True)
class SandboxLayer:
    """One layer of the isolation of generated code."""

    name: str
    active: bool
    reason: str
    "Description, or the reason why it is off."


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLevel:
    """The isolation of generated code."""

    level: str
    "`full`, `full-no-landlock` or `reduced`."

    layers: Sequence[SandboxLayer]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedAgent:
    """An attachment of the local agent."""

    name: str
    kind: str
    healthy: bool
    problem: str | None
    "Reason why it is not healthy, in words."

    skipped: Sequence[str]
    "Tools that cannot be offered, each with the reason."

    capabilities: Count
    expose: Sequence[str]
    "Patterns of the capabilities that peers may use."


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """The identity of the daemon, and its state."""

    version: str
    did: str
    canonical_did: str
    url: str
    "The address to which peers connect."

    address: str
    "The URL and the DID in one, for use by peers."

    home: str
    started: float
    "Seconds since 1970."

    peers_policy: str
    decided_by: str
    "The mind that decides in negotiations: `rules`, `auto` or `llm`."

    extensions: Sequence[str]
    needs: Sequence[NamedNeed]
    address_book: Sequence[BookEntry]
    connections: Count
    "Open connections to peers."

    sandbox: SandboxLevel
    attachments: Sequence[AttachedAgent]


@dataclass(frozen=True, slots=True)
class DashboardLink:
    """A link that signs one browser in, and the seconds for which it can be opened."""

    link: str
    expires_in: float


class DaemonOperations:
    """Operations on the daemon itself."""

    tag = "daemon"

    def __init__(self, daemon: Daemon, dashboard: Dashboard) -> None:
        self._daemon = daemon
        self._dashboard = dashboard

    @get("/livez", Alive, scope=LocalScope.NONE)
    async def is_alive(self, request: Request) -> Alive:
        """Answer while the event loop runs; nothing else is checked."""
        return Alive()

    @get("/readyz", Readiness, others={503: Readiness}, scope=LocalScope.NONE)
    async def is_ready(self, request: Request) -> Response:
        """Give the state of each part, and whether calls can be taken."""
        found = await readiness(self._daemon)
        return JsonAnswer(found, status_code=200 if found.ready else 503)

    @get(
        "/metrics",
        Media(text="The metrics.", media_type=CONTENT_TYPE),
        scope=LocalScope.AGENT,
    )
    async def get_metrics(self, request: Request) -> Response:
        """Show all metrics in the text format of Prometheus."""
        # `anpd_ready` has to say the same as /readyz, also of the store.
        await readiness(self._daemon)
        text = metrics_text(self._daemon.observer.metrics)
        return Response(text, media_type=CONTENT_TYPE)

    @post(
        "/v1/reload", Reloaded, body=EmptyBody, problems=(422,), scope=LocalScope.OWNER
    )
    async def reload(self, request: Request, body: EmptyBody) -> Reloaded:
        """Read the configuration and the attachments again."""
        return await reload_daemon(self._daemon)

    @get("/v1/info", Info, scope=LocalScope.AGENT)
    async def get_info(self, request: Request) -> Info:
        """Give the identity and the state of this daemon."""
        daemon = self._daemon
        isolation = daemon.sandbox.isolation
        book = await asyncio.to_thread(daemon.book.entries)
        return Info(
            version=daemon_version(),
            did=daemon.did,
            canonical_did=daemon.identities.canonical,
            url=daemon.url,
            address=f"{daemon.url}#{daemon.did}",
            home=str(daemon.home.path),
            started=daemon.started,
            peers_policy=daemon.config.peers_policy,
            decided_by=daemon.minds.name,
            extensions=extensions(daemon.config),
            needs=[view_of(NamedNeed, need) for need in daemon.config.need],
            address_book=[view_of(BookEntry, one) for one in book],
            connections=daemon.links.open_links,
            sandbox=SandboxLevel(
                level=isolation.level,
                layers=[SandboxLayer(*layer) for layer in isolation.layers],
            ),
            attachments=[
                AttachedAgent(
                    name=name,
                    kind=attachment.kind,
                    healthy=attachment.healthy,
                    problem=attachment.problem,
                    skipped=attachment.skipped,
                    capabilities=len(attachment.capabilities()),
                    expose=spec.expose,
                )
                for name, (spec, attachment) in daemon.exposure.attachments.items()
            ],
        )

    @get("/v1/spend", Spend, query=(DAYS,), scope=LocalScope.OWNER)
    async def get_spend(self, request: Request) -> Spend:
        """Give the model calls, tokens and costs by day, account, peer and step."""
        today = utc_day(time.time())
        since = first_day(today, integer_of(request, DAYS.name, 7))
        store, llm = self._daemon.store, self._daemon.config.llm
        return spend_of(
            await asyncio.to_thread(store.spends, since=since),
            await asyncio.to_thread(store.model_calls, since=since),
            limits=budget_limits(self._daemon.config.budget),
            today=today,
            since=since,
            model=llm.model,
            priced=llm.price_input is not None or llm.price_output is not None,
        )

    @get("/v1/history", HistoryView, query=(WINDOW,), scope=LocalScope.OWNER)
    async def get_history(self, request: Request) -> HistoryView:
        """Give calls, errors, latencies and model spend over time, and by peer."""
        window: Window = "hour"
        if request.query_params.get(WINDOW.name) == "day":
            window = "day"
        now, llm = time.time(), self._daemon.config.llm
        step, count = WINDOWS[window]
        since = utc_day(now - step * count)
        spent = await asyncio.to_thread(self._daemon.store.model_calls, since=since)
        history = await self._daemon.call_log.history()
        priced = llm.price_input is not None or llm.price_output is not None
        return history.view(window, spent, now=now, priced=priced)

    @get("/v1/events", EVENT_STREAM, problems=(429,), scope=LocalScope.AGENT)
    async def watch_events(self, request: Request) -> Response:
        """Stream the events of the daemon; an agent gets those of its own calls."""
        by_owner = scope_of(request) is LocalScope.OWNER
        if not self._daemon.events.has_room(by_owner=by_owner):
            raise ApiError(
                429,
                "too many clients read events already; close one of them",
                kind=ErrorKind.POLICY,
                headers={"Retry-After": "10"},
            )
        return event_stream(self._events(request))

    @post(
        "/v1/dashboard",
        DashboardLink,
        body=EmptyBody,
        problems=(507,),
        scope=LocalScope.OWNER,
    )
    async def open_dashboard(self, request: Request, body: EmptyBody) -> DashboardLink:
        """Make a link that signs one browser in to the dashboard, once."""
        return DashboardLink(*await self._dashboard.link())

    async def _events(self, request: Request) -> AsyncGenerator[Event, None]:
        with self._daemon.events.subscribe() as watcher:
            while True:
                event = await watcher.next()
                if event is None:
                    return
                if may_see_event(request, self._daemon.calls, event):
                    yield event
