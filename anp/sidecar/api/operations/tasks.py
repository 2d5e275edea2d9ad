"""Tasks that last in the local API: started, followed, answered and cancelled."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from anp.errors import BusyError, CallError, ErrorKind
from anp.interaction.elements import Part
from anp.sidecar.api.answers import JsonAnswer
from anp.sidecar.api.event_stream import EVENT_STREAM, event_stream
from anp.sidecar.api.operations.files import file_answer
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
from anp.sidecar.api.requests import EmptyBody, LongText, PeerName, switch
from anp.sidecar.api.table import (
    BYTES_TYPE,
    STRICT,
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
from anp.sidecar.files.spool import KeptFile
from anp.sidecar.tasks.chronicle import Chronicle, ContentPlace
from anp.sidecar.tasks.known import KnownTask, Maker, NoTask, maker_of

__all__ = [
    "LAST_EVENT_ID",
    "PAGE_OF_IDS",
    "PartBody",
    "StartBody",
    "TaskOperations",
    "after_of",
    "check_room",
    "may_see_own",
    "parts_of",
]

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

OwnId = Annotated[str, Field(min_length=1, max_length=64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartBody:
    """One content: exactly one of `text`, `value`, `bytes`, `file` and `uri`."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    text: str | None = None
    value: Any = None
    "A JSON value other than null."

    bytes: str | None = None
    "Bytes in base64."

    file: Annotated[str, Field(max_length=200)] | None = None
    "Id of a file that `POST /v1/files` took."

    uri: Annotated[str, Field(max_length=2048)] | None = None
    "Address of content elsewhere; the peer decides if it fetches it."

    media_type: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    "Its format; without it the usual one."

    name: Annotated[str, Field(max_length=255)] = ""
    "Name for people, such as a file's."


@dataclass(frozen=True, slots=True, kw_only=True)
class StartBody:
    """A task for a peer."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: PeerName | None = None
    "Name, DID, URL or `URL#DID`; not needed with `session`."

    session: OwnId | None = None
    "Our own id of a session that the task belongs to; without it a new one is made."

    capability: Annotated[str, Field(max_length=300)] = ""
    "Name of the peer's capability; empty when the words say what to do."

    text: LongText | None = None
    "Plain words."

    input: dict[str, Any] | None = None
    "The arguments."

    parts: Annotated[list[PartBody], Field(max_length=64)] = field(default_factory=list)
    "Further contents."

    depends_on: Annotated[list[OwnId], Field(max_length=64)] = field(
        default_factory=list
    )
    "Our own ids of tasks of that session that have to be completed first."

    notify: bool = False
    """Need no connection meanwhile: the peer, which has to have us on its list, dials
    our address when it has news."""

    protocol: Annotated[str, Field(max_length=200)] = ""
    """URI of the protocol that has to carry it, one of `interaction.order`; empty for
    the first that the peer knows too. A session keeps the one that it began with."""

    trust_first_use: bool = False
    """Accept the key of an unknown peer over an unencrypted connection.

    Needs the scope `owner`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBody:
    """A message about a task, such as the answer to its question."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    text: LongText | None = None
    "Plain words."

    value: Any = None
    "A JSON value other than null, such as one of the question's schema."

    parts: Annotated[list[PartBody], Field(max_length=64)] = field(default_factory=list)
    "Further contents."

    action: Literal["accept", "decline", "cancel"] = "accept"
    "`decline`: no answer is given; `cancel`: nor is one wanted to be asked for."


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
        if (body.peer is None) == (body.session is None):
            raise ApiError(400, "give either a peer or a session")
        for own_id in (*([body.session] if body.session else []), *body.depends_on):
            if not may_see_own(request, own_id):
                raise NoTask(f"session or task {own_id}")
        by_owner = scope_of(request) is LocalScope.OWNER
        known = await self._daemon.tasks.start_task(
            body.peer or "",
            capability=body.capability,
            parts=parts_of(
                body.parts,
                text=body.text,
                value=body.input,
                upload=self._daemon.tasks.files.spool.upload,
            ),
            log=body.session,
            depends_on=body.depends_on,
            trust_first_use=body.trust_first_use,
            notify=body.notify,
            protocol=body.protocol,
            maker=Maker.OWNER if by_owner else Maker.AGENT,
        )
        return JsonAnswer(
            task_view(known),
            status_code=202,
            headers={"Location": f"/v1/tasks/{known.id}"},
        )

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


def parts_of(
    parts: Sequence[PartBody],
    *,
    text: str | None,
    value: Any,
    upload: Callable[[str], KeptFile | None] | None = None,
) -> list[Part]:
    """Return the contents of a body.

    Args:
        upload: Finds the file that a part names; None where parts name none.
    """
    found = [] if value is None else [Part.value(value)]
    found += [] if text is None else [Part.text(text)]
    return found + [_part(one, upload) for one in parts]


def _given(body: PartBody) -> int:
    contents = (body.text, body.value, body.bytes, body.file, body.uri)
    return sum(one is not None for one in contents)


def _part(body: PartBody, upload: Callable[[str], KeptFile | None] | None) -> Part:
    if _given(body) != 1:
        raise ApiError(400, "a part has one of text, value, bytes, file and uri")
    if body.file is not None:
        kept = None if upload is None else upload(body.file)
        if kept is None:
            raise ApiError(404, "there is no such upload, or not any more")
        return kept.part
    more: dict[str, Any] = {"name": body.name}
    if body.media_type is not None:
        more["media_type"] = body.media_type
    if body.text is not None:
        return Part.text(body.text, **more)
    if body.uri is not None:
        return Part.link(body.uri, **more)
    if body.bytes is None:
        return Part.value(body.value, **more)
    try:
        return Part.data(base64.b64decode(body.bytes, validate=True), **more)
    except (binascii.Error, ValueError):
        raise CallError(ErrorKind.USAGE, "bytes are not base64") from None
