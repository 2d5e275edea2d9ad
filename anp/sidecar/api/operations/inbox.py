"""The inbox in the local API: an agent reads its tasks there, and answers them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from anp.sidecar.api.event_stream import EVENT_STREAM, event_stream
from anp.sidecar.api.operations.task_bodies import ContentBody, contents_of
from anp.sidecar.api.operations.tasks import LAST_EVENT_ID, after_of, check_room
from anp.sidecar.api.problems import ApiError
from anp.sidecar.api.requests import EmptyBody, LongText
from anp.sidecar.api.table import STRICT, LocalScope, Query, get, integer_of, post
from anp.sidecar.attachments.attachment import Progress, ToolError
from anp.sidecar.attachments.inbox.desk import LEASE, InboxEvent, InboxItem, fenced
from anp.sidecar.attachments.requester import Question
from anp.sidecar.calls.events import Event
from anp.sidecar.daemon import Daemon

MAX_WAIT: Final = 300
"Most seconds for which one request waits."

ATTACHMENT: Final = Query(
    name="attachment",
    text="Only tasks for this attachment; without it those for all of kind `inbox`.",
    schema={"type": "string", "minLength": 1, "maxLength": 64},
)

Wait = Annotated[float, Field(ge=0, le=MAX_WAIT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxAnswer:
    """The requester's answer to a question."""

    action: Literal["accept", "decline", "cancel"]
    text: str
    "Its words."

    value: Any
    "Its JSON value; null for an answer in words."

    parts: Sequence[Mapping[str, Any]]
    "All of it, as in `InboxMessage`."

    fenced: str
    "The answer as a model should read it."


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxMessage:
    """Something that the requester said besides the arguments and the answers."""

    number: int
    "1 for the first of a task, the rest of its request if there is any."

    parts: Sequence[Mapping[str, Any]]
    """Each with `mediaType` and `text`, `value` or `uri`; a file with its `name`, and
    when it is there its `path` in the folder of the task, or the `problem` with it."""

    fenced: str
    "The parts as a model should read them."


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxTask:
    """A task, or a call of one turn, for an agent that reads the inbox."""

    id: str
    "Its id in the inbox."

    state: Literal[
        "waiting",
        "leased",
        "acknowledged",
        "completed",
        "failed",
        "rejected",
        "canceled",
        "expired",
    ]
    """`leased` has to be acknowledged within 60 s, or another reader gets it;
    `canceled` and `expired`: nobody waits for it any more."""

    attachment: str
    capability: str
    "Full name."

    caller: str
    "DID of the requester, as the connection proved it."

    lasts: bool
    "True for a task, which streams and asks; false for a call of one turn."

    key: str
    "The same whenever this task is begun again; empty for a call."

    deadline: float | None
    "Seconds since 1970 after which nobody waits; null before the time begins."

    redelivered: bool
    "True when it was given out before, so that its work may have been begun."

    deliveries: int
    input: Mapping[str, Any]
    "The arguments, which fit the capability's schema; words of the requester."

    fenced: str
    "The arguments as a model should read them: fenced, and named as the peer's."

    asked: str | None
    "The question that waits for the requester's answer."

    answer: InboxAnswer | None
    "The answer to the last question."

    messages: Sequence[InboxMessage]
    "The newest of them, up to 32 and 256 KiB, the oldest first."


@dataclass(frozen=True, slots=True)
class InboxPage:
    """The tasks in the inbox that have not ended, the oldest first."""

    tasks: Sequence[InboxTask]


@dataclass(frozen=True, slots=True)
class NextTask:
    """The task that was taken."""

    task: InboxTask | None
    "Null when none came in time."


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBody:
    """The wish for the next task."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    attachment: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    "Only for this attachment."

    wait: Wait = 0
    "Seconds to wait for one."

    lease: Annotated[float, Field(ge=1, le=3600)] = LEASE
    "Seconds within which it has to be acknowledged."


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressBody:
    """The progress of the work."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    progress: float | None = None
    "Work that is done, in a unit of the agent's."

    total: float | None = None
    "All the work in that unit."

    text: Annotated[str, Field(max_length=4096)] = ""
    "Words."


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionBody:
    """A question for the requester."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    text: LongText
    "In words."

    schema: dict[str, Any] | None = None
    "JSON Schema of the wanted value; without it the answer is in words."

    url: Annotated[str, Field(max_length=2048)] = ""
    "Page on which the requester has to do something; nobody opens it by itself."

    wait: Wait = 0
    "Seconds to wait for the answer; it can be read later as well."


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultBody:
    """The result of the work; without anything the parts before are the result."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    output: dict[str, Any] | None = None
    "The output, as the capability's schema wants it."

    text: LongText | None = None
    'A result in words, the same as the output `{"result": …}`.'


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureBody:
    """The reason why there is no result."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    message: Annotated[str, Field(min_length=1, max_length=500)]
    "In words, which the requester reads."

    code: Annotated[int, Field(ge=400, le=599)] = 500
    "As of HTTP."


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionBody:
    """The reason why a task is handed back."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    reason: Annotated[str, Field(min_length=1, max_length=500)]
    "In words, which the requester reads."


_post_on_task = functools.partial(
    post, answer=InboxTask, problems=(404, 409), scope=LocalScope.AGENT
)
"Declares an operation with which an agent goes on with one of its tasks."


class InboxOperations:
    """Operations of an agent on the tasks for it."""

    tag = "inbox"

    def __init__(self, daemon: Daemon) -> None:
        self._inbox = daemon.attaching.inbox
        self._validator = daemon.validator
        self._exposure = daemon.exposure

    @get(
        "/v1/inbox",
        EVENT_STREAM,
        query=(ATTACHMENT,),
        problems=(429,),
        headers=LAST_EVENT_ID,
        scope=LocalScope.AGENT,
    )
    async def watch_inbox(self, request: Request) -> Response:
        """Stream tasks as they come, each leased to this reader, and their changes."""
        check_room(request, self._inbox.watchers)
        after = after_of(request) if "last-event-id" in request.headers else None
        name = request.query_params.get("attachment")
        return event_stream(self._events(name, after))

    @post("/v1/inbox/next", NextTask, body=NextBody, scope=LocalScope.AGENT)
    async def take_next(self, request: Request, body: NextBody) -> NextTask:
        """Take the oldest task that nobody has; wait for one if there is none."""
        found = await self._inbox.take(
            body.attachment, wait=body.wait, lease=body.lease
        )
        return NextTask(None if found is None else _view(found))

    @get("/v1/inbox/tasks", InboxPage, query=(ATTACHMENT,), scope=LocalScope.AGENT)
    async def list_inbox(self, request: Request) -> InboxPage:
        """List the tasks in the inbox, the oldest first."""
        name = request.query_params.get("attachment")
        return InboxPage(
            [
                _view(one)
                for one in self._inbox.items()
                if name in (None, one.attachment)
            ]
        )

    @get(
        "/v1/inbox/{id}",
        InboxTask,
        query=(
            Query(
                name="wait",
                text="Seconds to wait until its requester does something.",
                schema={
                    "type": "integer",
                    "minimum": 0,
                    "maximum": MAX_WAIT,
                    "default": 0,
                },
            ),
        ),
        problems=(404,),
        scope=LocalScope.AGENT,
    )
    async def get_inbox_task(self, request: Request) -> InboxTask:
        """Give a task of the inbox, with the answer to its question."""
        item = self._find(request)
        await _changed(item, integer_of(request, "wait", 0))
        return _view(item)

    @_post_on_task("/v1/inbox/{id}/ack", body=EmptyBody)
    async def acknowledge_task(self, request: Request, body: EmptyBody) -> InboxTask:
        """Keep a task that was taken; no other reader gets it any more."""
        return _view(self._inbox.acknowledge(request.path_params["id"]))

    @_post_on_task("/v1/inbox/{id}/release", body=EmptyBody)
    async def release_task(self, request: Request, body: EmptyBody) -> InboxTask:
        """Give a task back; the next reader gets it, marked as a redelivery."""
        return _view(self._inbox.release(request.path_params["id"]))

    @_post_on_task("/v1/inbox/{id}/progress", body=ProgressBody)
    async def tell_progress(self, request: Request, body: ProgressBody) -> InboxTask:
        """Tell the requester how far the work is."""
        item = self._at_work(request)
        item.assignment.progress(Progress(body.progress, body.total, body.text))
        return _view(item)

    @_post_on_task("/v1/inbox/{id}/messages", body=ContentBody)
    async def tell_message(self, request: Request, body: ContentBody) -> InboxTask:
        """Send the requester a message that is no part of the result."""
        item = self._at_work(request)
        await item.assignment.say(contents_of(body))
        return _view(item)

    @_post_on_task("/v1/inbox/{id}/parts", body=ContentBody)
    async def add_parts(self, request: Request, body: ContentBody) -> InboxTask:
        """Send parts of the result, such as a file, before the work has ended."""
        item = self._at_work(request)
        try:
            await item.assignment.add(contents_of(body))
        except ToolError as exc:
            raise ApiError(413, exc.message) from exc
        return _view(item)

    @_post_on_task("/v1/inbox/{id}/ask", body=QuestionBody)
    async def ask_requester(self, request: Request, body: QuestionBody) -> InboxTask:
        """Ask the requester; `answer` has what it says, now or later."""
        item = self._at_work(request)
        item.assignment.ask(Question(text=body.text, schema=body.schema, url=body.url))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(body.wait):
                while item.assignment.question is not None:
                    await item.assignment.changed.wait()
        return _view(item)

    @_post_on_task("/v1/inbox/{id}/result", body=ResultBody)
    async def give_result(self, request: Request, body: ResultBody) -> InboxTask:
        """Give the result, and end the task."""
        if body.output is not None and body.text is not None:
            raise ApiError(400, "give either output or text")
        item = self._at_work(request)
        output = body.output if body.text is None else {"result": body.text}
        await self._check(item, output)
        await item.assignment.complete(output)
        return _view(item)

    @_post_on_task("/v1/inbox/{id}/failure", body=FailureBody)
    async def give_failure(self, request: Request, body: FailureBody) -> InboxTask:
        """End a task without a result, with a reason for its requester."""
        item = self._at_work(request)
        item.assignment.fail(body.code, body.message)
        return _view(item)

    @_post_on_task("/v1/inbox/{id}/reject", body=RejectionBody)
    async def reject_task(self, request: Request, body: RejectionBody) -> InboxTask:
        """Hand a task back undone: its requester may ask another agent.

        That is for a task of which no part of a result was given; `release` leaves it
        in the inbox for the next reader.
        """
        item = self._at_work(request)
        item.assignment.hand_back(body.reason)
        return _view(item)

    async def _events(
        self, attachment: str | None, after: int | None
    ) -> AsyncGenerator[Event, None]:
        self._inbox.watchers += 1
        try:
            async for event in self._inbox.watch(attachment, after=after):
                yield _event(event)
        finally:
            self._inbox.watchers -= 1

    async def _check(self, item: InboxItem, output: Any) -> None:
        """Refuse an output that does not fit, so that the agent can mend it.

        Raises:
            ApiError: 400 with what is wrong.
        """
        name = item.assignment.capability
        _, attachment = self._exposure.attachments.get(item.attachment, (None, None))
        if output is None or attachment is None:
            return
        for one in attachment.capabilities():
            if one.name == name:
                findings = await self._validator.validate(one.output_schema, output)
                if findings:
                    raise ApiError(400, f"output: {'; '.join(findings)}"[:500])

    def _find(self, request: Request) -> InboxItem:
        return self._inbox.find(request.path_params["id"])

    def _at_work(self, request: Request) -> InboxItem:
        """Return a task that its agent works on, which acknowledges it."""
        return self._inbox.acknowledge(request.path_params["id"])


async def _changed(item: InboxItem, seconds: float) -> None:
    """Wait until a task's requester did something, or until the time is over."""
    if seconds and not item.assignment.ending:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await item.assignment.changed.wait()


def _event(event: InboxEvent) -> Event:
    return Event(
        number=event.number,
        type=event.type,
        at=time.time(),
        data={"task": _view(event.item)},
    )


def _view(item: InboxItem) -> InboxTask:
    work = item.assignment
    reply, peer = work.reply, work.caller
    answer = None
    if reply is not None:
        said: Any = reply.text if reply.value is None else reply.value
        if reply.files:
            said = work.answered
        answer = InboxAnswer(
            action=reply.action.value,
            text=reply.text,
            value=reply.value,
            parts=work.answered,
            fenced=fenced(said, peer=peer, mark=item.mark),
        )
    state: Any = work.ending or item.state
    return InboxTask(
        id=item.id,
        state=state,
        attachment=item.attachment,
        capability=work.capability,
        caller=peer,
        lasts=work.is_task,
        key=work.key,
        deadline=None if math.isinf(work.deadline) else work.deadline,
        redelivered=item.redelivered,
        deliveries=item.deliveries,
        input=work.arguments,
        fenced=fenced(work.arguments, peer=peer, mark=item.mark),
        asked=None if work.question is None else work.question.text,
        answer=answer,
        messages=[
            InboxMessage(
                number=one.number,
                parts=one.parts,
                fenced=fenced(one.parts, peer=peer, mark=item.mark),
            )
            for one in work.heard
        ],
    )
