"""Tasks that last in the local API: started, followed, answered and cancelled."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from anp.errors import BusyError
from anp.interaction.elements import Part
from anp.interaction.plan import is_plan
from anp.sidecar.api.answers import JsonAnswer
from anp.sidecar.api.event_stream import EVENT_STREAM, event_stream
from anp.sidecar.api.operations.files import file_answer
from anp.sidecar.api.operations.task_bodies import (
    DependencyBody,
    MessageBody,
    StartBody,
    WaitBody,
    WaitedTasks,
    parts_of,
    plan_of,
)
from anp.sidecar.api.operations.task_views import (
    NEWEST,
    TaskDetails,
    TaskPage,
    TaskView,
    event_of,
    task_details,
    task_view,
)
from anp.sidecar.api.problems import ApiError
from anp.sidecar.api.requests import EmptyBody, switch
from anp.sidecar.api.table import (
    BYTES_TYPE,
    LocalScope,
    Media,
    Query,
    check_scope,
    get,
    integer_of,
    post,
    scope_of,
)
from anp.sidecar.attachments.requester import ACTION
from anp.sidecar.daemon import Daemon
from anp.sidecar.tasks.chronicle import Chronicle, ContentPlace
from anp.sidecar.tasks.known import KnownTask, Maker, NoTask, maker_of

INLINE: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"Formats that a browser may show; all others are offered to be saved."

MAX_PAGE: Final = 1_000
"Most entries of one page."

MAX_WATCHERS: Final = 128
"Streams of tasks and sessions that are followed at a time."

MORE_FOR_OWNER: Final = 16
"Streams that the owner may follow besides, whatever agents do."

PAGE_OF_IDS: Final = (
    Query(
        name="limit",
        text="Most entries of the page.",
        schema={"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": 100},
    ),
    Query(
        name="after",
        text="`next` of the page before.",
        schema={"type": "string", "minLength": 1, "maxLength": 64},
    ),
)
"The query parameters of a list that is read from the store page by page."

LAST_EVENT_ID: Final = {
    "Last-Event-ID": "Only events with higher numbers, as an `EventSource` sends it."
}


class TaskOperations:
    """Operations on tasks."""

    tag = "tasks"

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._chronicle = Chronicle(daemon.tasks.sessions)

    @get(
        "/v1/tasks",
        TaskPage,
        query=(switch("open", "1: only those that have not ended."), *PAGE_OF_IDS),
        scope=LocalScope.AGENT,
    )
    async def list_tasks(self, request: Request) -> TaskPage:
        """List tasks, the newest first."""
        limit = integer_of(request, "limit", 100)
        before = request.query_params.get("after", "")
        only_open = request.query_params.get("open") == "1"
        found: list[TaskView] = []
        while len(found) < limit:
            page = await self._daemon.tasks.sessions.tasks(
                before=before, limit=limit, only_open=only_open
            )
            for known in page:
                if may_see_own(request, known.id) and len(found) < limit:
                    found.append(task_view(known))
            if len(page) < limit:
                return TaskPage(found, None)
            before = page[-1].id
        return TaskPage(found, found[-1].id)

    @post(
        "/v1/tasks",
        TaskView,
        others={202: TaskView},
        body=StartBody,
        problems=(404, 409, 422, 424, 429),
        scope=LocalScope.AGENT,
    )
    async def start_task(self, request: Request, body: StartBody) -> Response:
        """Start a task; it goes on by itself, and is followed by its id."""
        if body.trust_first_use:
            check_scope(request, LocalScope.OWNER, what="trust_first_use")
        by_owner = scope_of(request) is LocalScope.OWNER
        maker = Maker.OWNER if by_owner else Maker.AGENT
        known = await self._plan(request, body, maker) or await self._single(
            request, body, maker
        )
        return JsonAnswer(
            task_view(known),
            status_code=202,
            headers={"Location": f"/v1/tasks/{known.id}"},
        )

    async def _plan(
        self, request: Request, body: StartBody, maker: Maker
    ) -> KnownTask | None:
        """Begin a task that this daemon gives to peers itself; None for no such one."""
        visited: tuple[str, ...] = ()
        if body.parent is not None:
            if maker_of(body.parent) and not may_see_own(request, body.parent):
                raise NoTask(f"task {body.parent}")
            visited = await self._daemon.plans.visited(body.parent)
        found = plan_of(body, visited=visited, now=time.time())
        if found is None:
            return None
        return await self._daemon.plans.start(*found, maker=maker)

    async def _single(
        self, request: Request, body: StartBody, maker: Maker
    ) -> KnownTask:
        """Start a task at one peer."""
        if sum(one is not None for one in (body.peer, body.session, body.find)) != 1:
            raise ApiError(
                400, "give one of peer, session, find, candidates, group and subtasks"
            )
        needed = [
            one if isinstance(one, DependencyBody) else DependencyBody(task=one)
            for one in body.depends_on
        ]
        for own_id in (*([body.session] if body.session else []), *_ids(needed)):
            if not may_see_own(request, own_id):
                raise NoTask(f"session or task {own_id}")
        parts = parts_of(
            body.parts,
            text=body.text,
            value=body.input,
            upload=self._daemon.tasks.files.spool.upload,
        )
        if body.find is not None:
            if body.capability or needed or body.notify or body.protocol:
                raise ApiError(
                    400,
                    "`find` stands without capability, depends_on, notify and protocol",
                )
            return await self._daemon.dispatcher.start_task(
                body.find, parts=parts, maker=maker
            )
        return await self._daemon.tasks.start_task(
            body.peer or "",
            capability=body.capability,
            parts=parts,
            log=body.session,
            depends_on=_ids(needed),
            needs=[" ".join(one.states) for one in needed],
            needs_any=body.depends_any,
            trust_first_use=body.trust_first_use,
            notify=body.notify,
            protocol=body.protocol,
            maker=maker,
        )

    @post(
        "/v1/tasks/wait",
        WaitedTasks,
        body=WaitBody,
        problems=(404, 429),
        scope=LocalScope.AGENT,
    )
    async def wait_tasks(self, request: Request, body: WaitBody) -> WaitedTasks:
        """Wait until tasks have ended, all or any one, or the time is over."""
        for own_id in body.tasks:
            if not may_see_own(request, own_id):
                raise NoTask(f"task {own_id[:80]}")
        sessions = self._daemon.tasks.sessions
        check_room(request, sessions.watchers)
        sessions.watchers += 1
        try:
            done, tasks = await self._chronicle.wait(
                body.tasks,
                states=body.states,
                any_of=body.mode == "any",
                timeout=body.timeout,
            )
        finally:
            sessions.watchers -= 1
        return WaitedTasks(done=done, tasks=[task_view(one) for one in tasks])

    @get("/v1/tasks/{id}", TaskDetails, problems=(404,), scope=LocalScope.AGENT)
    async def get_task(self, request: Request) -> TaskDetails:
        """Give the state of a task, its newest messages, and what it waits for."""
        return await self._details(await self._find(request))

    @get(
        "/v1/tasks/{id}/events",
        EVENT_STREAM,
        problems=(404, 429),
        headers=LAST_EVENT_ID,
        scope=LocalScope.AGENT,
    )
    async def watch_task(self, request: Request) -> Response:
        """Stream the events of a task to its end; `number` is that of its session."""
        known = await self._find(request)
        check_room(request, self._daemon.tasks.sessions.watchers)
        told = self._chronicle.watch(known.log, known, after=after_of(request))
        return event_stream(event_of(one) async for one in told)

    @post(
        "/v1/tasks/{id}/messages",
        TaskDetails,
        body=MessageBody,
        problems=(404, 409),
        scope=LocalScope.AGENT,
    )
    async def send_message(self, request: Request, body: MessageBody) -> TaskDetails:
        """Send a message about a task of ours, such as an answer to its question."""
        known = await self._find(request)
        if is_plan(known.task):
            raise ApiError(409, "say it to a subtask, which its messages name")
        parts = parts_of(
            body.parts,
            text=body.text,
            value=body.value,
            upload=self._daemon.tasks.files.spool.upload,
        )
        if not parts and body.action == "accept":
            raise ApiError(400, "the message is empty")
        metadata = {} if body.action == "accept" else {ACTION: body.action}
        await self._daemon.tasks.send(
            known.id, parts or [Part.text("")], metadata=metadata
        )
        return await self._details(await self._daemon.tasks.task(known.id))

    @post(
        "/v1/tasks/{id}/cancel",
        TaskDetails,
        body=EmptyBody,
        problems=(404, 409),
        scope=LocalScope.AGENT,
    )
    async def cancel_task(self, request: Request, body: EmptyBody) -> TaskDetails:
        """Ask for the end of a task of ours; how it ends is its executor's report."""
        known = await self._find(request)
        if is_plan(known.task):
            await self._daemon.plans.cancel(known)
        else:
            await self._daemon.tasks.cancel(known.id)
        return await self._details(await self._daemon.tasks.task(known.id))

    @get(
        "/v1/tasks/{id}/artifacts/{n}",
        Media(
            text="The bytes; images as such, all else to be saved.",
            media_type=BYTES_TYPE,
        ),
        problems=(404, 424, 429),
        scope=LocalScope.AGENT,
    )
    async def get_artifact(self, request: Request) -> Response:
        """Give the bytes of a content, by the `artifact` of its part."""
        known = await self._find(request)
        place = ContentPlace.read(request.path_params["n"])
        part = await self._chronicle.content(known, place)
        media_type = part.media_type.partition(";")[0].strip().lower()
        headers = {
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "Cache-Control": "no-store",
        }
        if media_type not in INLINE:
            media_type = BYTES_TYPE
            # The peer's name for it is in the event; none of its words is a header.
            headers["Content-Disposition"] = "attachment"
        if part.is_file:
            files = self._daemon.tasks.files
            kept = files.spool.find(known.log, known.task.id, str(part.content))
            return await file_answer(
                files, kept, headers | {"Content-Type": media_type}
            )
        return Response(part.content, media_type=media_type, headers=headers)

    async def _find(self, request: Request) -> KnownTask:
        own_id = request.path_params["id"]
        if not may_see_own(request, own_id):
            raise NoTask(f"task {own_id[:80]}")
        return await self._daemon.tasks.task(own_id)

    async def _details(self, known: KnownTask) -> TaskDetails:
        newest, last = await self._chronicle.newest(known, most=NEWEST)
        return task_details(known, newest, last)


def may_see_own(request: Request, own_id: str) -> bool:
    """Tell whether a request may know of a task or session: an agent does of its own.

    Args:
        own_id: Our own id of it.
    """
    maker = maker_of(own_id)
    if scope_of(request) is LocalScope.OWNER:
        return maker is not None
    return maker is Maker.AGENT


def check_room(request: Request, watchers: int) -> None:
    """Let another watcher in; BusyError if there are as many as may be.

    Args:
        watchers: Those that are there.
    """
    by_owner = scope_of(request) is LocalScope.OWNER
    most = MAX_WATCHERS + (MORE_FOR_OWNER if by_owner else 0)
    if watchers >= most:
        raise BusyError(
            f"{watchers} streams are followed, at most {most}", retry_after=1
        )


def after_of(request: Request) -> int:
    """Return the number after which a stream begins.

    Raises:
        ApiError: It is no number.
    """
    text = request.headers.get("last-event-id", "").strip()
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ApiError(400, "Last-Event-ID has to be the number of an event")
    return int(text)


def _ids(needed: Sequence[DependencyBody]) -> list[str]:
    return [one.task for one in needed]
