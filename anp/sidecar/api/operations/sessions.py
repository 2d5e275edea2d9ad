"""Sessions in the local API: the conversations that tasks belong to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from anp.errors import ConflictError
from anp.interaction.conversation import Conversation
from anp.sidecar.api.event_stream import EVENT_STREAM, event_stream
from anp.sidecar.api.operations.task_views import (
    TaskView,
    event_of,
    made_by,
    seconds,
    task_view,
)
from anp.sidecar.api.operations.tasks import (
    LAST_EVENT_ID,
    PAGE_OF_IDS,
    after_of,
    check_room,
    may_see_own,
)
from anp.sidecar.api.requests import EmptyBody
from anp.sidecar.api.table import LocalScope, Media, get, integer_of, post
from anp.sidecar.daemon import Daemon
from anp.sidecar.tasks.chronicle import Chronicle
from anp.sidecar.tasks.delivery.attempts import Letter
from anp.sidecar.tasks.known import KnownTask, NoTask, utc_now
from cache.parts.logs import Log


@dataclass(frozen=True, slots=True)
class DeletedSession:
    """A session was deleted here, with everything in it; its peers keep theirs."""

    id: str


@dataclass(frozen=True, slots=True)
class Undelivered:
    """News of sessions that wait for requesters who registered an address."""

    letters: Sequence[Letter]
    "The oldest first; those that are `dead` are dialled no more."


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyView:
    """One agent in a session."""

    id: str
    "Its DID."

    mode: Literal["p2p", "group"]
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A session, as a list shows it."""

    id: str
    "Our own id."

    made_by: Literal["agent", "owner", "peer"]
    open: bool
    "True when it takes new tasks and messages."

    busy: bool
    "True when a task of it is under way, or a peer has to be told of something."

    created: float
    changed: float
    events: int
    "Number of its newest event."

    size: int
    "Bytes of its events."


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDetails(SessionView):
    """A session with its parties and tasks."""

    wire_id: str
    "Its id on the wire."

    own: str
    "Our DID in it."

    requester: PartyView
    participants: Sequence[PartyView]
    expires: float | None
    tasks: Sequence[TaskView]


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A page of sessions, the newest first."""

    sessions: Sequence[SessionView]
    next: str | None
    "For `after` of the next page; null on the last one."


class SessionOperations:
    """Operations on sessions."""

    tag = "tasks"

    def __init__(self, daemon: Daemon) -> None:
        self._sessions = daemon.tasks.sessions
        self._tasks = daemon.tasks
        self._chronicle = Chronicle(daemon.tasks.sessions)

    @get("/v1/sessions", SessionPage, query=PAGE_OF_IDS, scope=LocalScope.AGENT)
    async def list_sessions(self, request: Request) -> SessionPage:
        """List sessions, the newest first."""
        limit = integer_of(request, "limit", 100)
        before = request.query_params.get("after", "")
        found: list[SessionView] = []
        while len(found) < limit:
            page = await self._sessions.logs(before=before, limit=limit)
            for log in page:
                if may_see_own(request, log.id) and len(found) < limit:
                    found.append(_session_view(log))
            if len(page) < limit:
                return SessionPage(found, None)
            before = page[-1].id
        return SessionPage(found, found[-1].id)

    @get("/v1/outbox", Undelivered, scope=LocalScope.OWNER)
    async def list_outbox(self, request: Request) -> Undelivered:
        """List the news that wait for peers who want them brought to an address."""
        return Undelivered(await self._tasks.outbox.letters())

    @post("/v1/outbox/retry", Undelivered, body=EmptyBody, scope=LocalScope.OWNER)
    async def retry_outbox(self, request: Request, body: EmptyBody) -> Undelivered:
        """Bring all news again, dead letters too, for another day."""
        self._tasks.outbox.retry()
        return Undelivered(await self._tasks.outbox.letters())

    @get("/v1/sessions/{id}", SessionDetails, problems=(404,), scope=LocalScope.AGENT)
    async def get_session(self, request: Request) -> SessionDetails:
        """Give a session with its parties and tasks."""
        return await self._details(_own_id(request))

    @get(
        "/v1/sessions/{id}/events",
        EVENT_STREAM,
        problems=(404, 429),
        headers=LAST_EVENT_ID,
        scope=LocalScope.AGENT,
    )
    async def watch_session(self, request: Request) -> Response:
        """Stream the events of a session, those of before first."""
        log = _own_id(request)
        await self._details(log)
        check_room(request, self._sessions.watchers)
        told = self._chronicle.watch(log, after=after_of(request))
        return event_stream(event_of(one) async for one in told)

    @get(
        "/v1/sessions/{id}/export",
        Media(text="One event on each line, as stored.", media_type="text/plain"),
        problems=(404,),
        scope=LocalScope.OWNER,
    )
    async def export_session(self, request: Request) -> Response:
        """Give everything that is kept of a session, one JSON object a line."""
        log = _own_id(request)
        details = await self._details(log)
        return StreamingResponse(
            self._lines(log, details.events), media_type="text/plain; charset=utf-8"
        )

    @post(
        "/v1/sessions/{id}/close",
        SessionDetails,
        body=EmptyBody,
        problems=(404, 409),
        scope=LocalScope.AGENT,
    )
    async def close_session(self, request: Request, body: EmptyBody) -> SessionDetails:
        """End a session of ours; its open tasks are asked to end."""
        log = _own_id(request)
        await self._details(log)
        await self._tasks.close_session(log)
        return await self._details(log)

    @post(
        "/v1/sessions/{id}/delete",
        DeletedSession,
        body=EmptyBody,
        problems=(404, 409),
        scope=LocalScope.OWNER,
    )
    async def delete_session(self, request: Request, body: EmptyBody) -> DeletedSession:
        """Delete what is kept here of a session that has no open tasks."""
        log = _own_id(request)
        details = await self._details(log)
        if any(not task.ended for task in details.tasks):
            raise ConflictError("a task of the session is open; cancel it first")
        if not await self._tasks.delete(log):
            raise NoTask(f"session {log}")
        return DeletedSession(log)

    async def _details(self, log: str) -> SessionDetails:
        head, tasks = await self._sessions.overview(log)
        return _session_details(head, await self._sessions.conversation(log), tasks)

    async def _lines(self, log: str, last: int) -> AsyncIterator[bytes]:
        after = 0
        while after < last:
            rows = await self._sessions.stored(log, after=after)
            if not rows:
                return
            for row in rows:
                lost = f'{{"number":{row.number},"damaged":true}}'.encode()
                yield (lost if row.damaged else row.content) + b"\n"
            after = rows[-1].number


def _own_id(request: Request) -> str:
    own_id = str(request.path_params["id"])
    if not may_see_own(request, own_id):
        raise NoTask(f"session {own_id[:80]}")
    return own_id


def _session_view(log: Log) -> SessionView:
    """Return a session as a list shows it."""
    return SessionView(**_session_fields(log))


def _session_details(
    log: Log, conversation: Conversation, tasks: Sequence[KnownTask]
) -> SessionDetails:
    """Return a session with its parties and tasks."""
    session = conversation.session
    fields = _session_fields(log) | {
        "wire_id": session.id,
        "open": conversation.is_open(utc_now()),
    }
    return SessionDetails(
        **fields,
        own=conversation.own,
        requester=_party(session.requester),
        participants=[_party(one) for one in session.participants],
        expires=seconds(session.expires),
        tasks=[task_view(one) for one in tasks],
    )


def _session_fields(log: Log) -> dict[str, Any]:
    return {
        "id": log.id,
        "made_by": made_by(log.id),
        "open": log.open,
        "busy": log.busy,
        "created": log.created,
        "changed": log.updated,
        "events": log.last,
        "size": log.size,
    }


def _party(party: Any) -> PartyView:
    return PartyView(id=party.id, mode=party.mode.value, address=party.address)
