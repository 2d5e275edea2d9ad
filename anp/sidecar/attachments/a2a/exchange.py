"""One call of an A2A agent: its messages, and the agent's answers, to the end.

With a requester each part is passed on as it comes, and the agent's questions are
asked; the answer goes as the next message of the same task. A call of one turn gets
everything joined, and ends with an error when the agent asks back.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from anp.interaction.elements import Part, PartKind
from anp.interaction.errors import InteractionError
from anp.protocols.a2a.intents import INTENTS, SkillSchemas, intent_of
from anp.protocols.a2a.words import INTENT_URI
from anp.sidecar.attachments.a2a.parts import a2a_part, file_part
from anp.sidecar.attachments.a2a.tasks import News, TaskRecord, failure_of, is_over
from anp.sidecar.attachments.attachment import AttachmentError, Progress, ToolError
from anp.sidecar.attachments.http.endpoint import CallContext, deadline_text
from anp.sidecar.attachments.requester import (
    Reply,
    ReplyAction,
    Requester,
    current_threads,
    joins_updates,
)
from anp.sidecar.attachments.tool_errors import error_in
from jsonic.exact_numbers import write_json

# `a2a` takes half a second to import, so it is imported where a card is read.
if TYPE_CHECKING:
    from a2a.client import Client
    from a2a.types.a2a_pb2 import SendMessageRequest, StreamResponse

logger = logging.getLogger(__name__)

FIRST_POLL = 0.1
"Seconds until a task is asked for the first time; doubles each time."

LAST_POLL = 5.0
"Longest time between two questions, in seconds."

OLD_STATES: Final = 6
"Looks at a task, after an answer, in which its state may still be the question."

MAX_WORDS: Final = 2000
"Most characters of the agent's words that go as progress at a time."

CANCEL_TIMEOUT = 2.0
"Seconds to tell the agent that nobody waits for a task any more."

NO_ANSWER: Final = {
    ReplyAction.DECLINE: "The question is not answered.",
    ReplyAction.CANCEL: "The question is refused; please do not ask again.",
}
"The words for the agent where the requester has none; A2A has no sign for them."


class TaskTalk:
    """One call of a skill; see `run`."""

    def __init__(
        self,
        client: Client,
        skill: str,
        context: CallContext,
        *,
        agent: str,
        most: int,
        requester: Requester | None,
        report: Callable[[Progress], None] | None,
        intents: SkillSchemas,
    ) -> None:
        """Take a call.

        Args:
            skill: Its id on the card.
            agent: Name of the attachment.
            most: Most bytes of the result, or of one event where a requester takes it.
            requester: Takes parts and answers questions; None for a call of one turn.
            report: Takes the agent's words about its work.
            intents: The agent's card, for intents.
        """
        self._intents = intents
        self._client = client
        self._skill = skill
        self._agent = agent
        self._threads = current_threads.get()
        self._thread = ""
        self._context = context
        self._requester = requester
        self._report = report
        self._record = TaskRecord(
            max_size=most, keeps=requester is None or joins_updates.get()
        )

    async def run(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Send the arguments and return the output when the task has ended.

        Raises:
            ToolError: The agent failed, or its answer is none.
            AttachmentError: The agent cannot be reached.
        """
        record = self._record
        if self._threads is not None:
            self._thread = await self._threads.thread(self._agent)
        try:
            await self._follow(self._first(arguments))
            while self._requester and (question := record.question):
                reply = await self._requester.ask(question)
                record.go_on()
                await self._follow(self._message(_reply_parts(reply), reply.action))
        except (asyncio.CancelledError, ToolError, AttachmentError):
            if not is_over(record.state):
                await self._cancel()
            raise
        error = failure_of(record)
        if error is not None:
            # Nobody will ever answer what it asks for.
            if not is_over(record.state):
                await self._cancel()
            raise error
        return record.output()

    async def _follow(self, request: SendMessageRequest) -> None:
        """Send a message, and follow the task until it ends or waits."""
        from a2a.types.a2a_pb2 import GetTaskRequest

        record = self._record
        try:
            async with aclosing(self._client.send_message(request)) as events:  # type: ignore[type-var]  # it is a generator, typed as an iterator
                while (event := await self._next(events)) is not None:
                    await self._tell(record.add(event))
                    if record.settled:
                        break
            wait, looks = FIRST_POLL, 0
            while not record.settled:
                if not record.task_id:
                    raise ToolError(502, "the agent answered nothing")
                await asyncio.sleep(wait)
                wait, looks = min(wait * 2, LAST_POLL), looks + 1
                if looks == OLD_STATES:
                    record.doubt()
                found = await self._client.get_task(GetTaskRequest(id=record.task_id))
                await self._tell(record.replace(found))
        except (ToolError, AttachmentError):
            raise
        except Exception as exc:
            # The library lets everything through that a wrong answer sets off.
            raise _translated(exc, started=bool(record.task_id)) from exc

    async def _next(self, events: AsyncIterator[StreamResponse]) -> Any:
        """Return the next event, or None after the last.

        Whoever is cancelled before the agent named its task waits for the name a
        little, since the agent is at work and cannot be told without.
        """
        if self._record.task_id:
            return await anext(events, None)
        coming = asyncio.ensure_future(_first(events))
        try:
            return await asyncio.shield(coming)
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(CANCEL_TIMEOUT):
                    if (event := await coming) is not None:
                        self._record.add(event)
            raise
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    async def _tell(self, news: News) -> None:
        found = self._record.context_id
        if found and found != self._thread and self._threads is not None:
            # Later tasks of the session go on there (A2A-12).
            self._thread = found
            await self._threads.keep_thread(self._agent, found)
        if news.words and self._report is not None:
            self._report(Progress(message=news.words[:MAX_WORDS]))
        if self._requester is not None:
            try:
                if news.said:
                    await self._requester.say(news.said)
                if news.parts:
                    await self._requester.update(news.parts)
            except InteractionError as exc:
                words = f"an update cannot be passed on: {exc.text}"
                raise ToolError(502, words) from exc

    async def _cancel(self) -> None:
        """Tell the agent, if it can be told in a moment, that nobody waits."""
        from a2a.types.a2a_pb2 import CancelTaskRequest

        if not self._record.task_id:
            return
        try:
            async with asyncio.timeout(CANCEL_TIMEOUT):
                await self._client.cancel_task(
                    CancelTaskRequest(id=self._record.task_id)
                )
        except Exception:
            # It may have ended by itself, or cannot cancel; nothing hangs on it.
            logger.debug("task not cancelled skill=%s", self._skill, exc_info=True)

    def _first(self, arguments: dict[str, Any]) -> SendMessageRequest:
        if self._skill not in self._intents.schemas:
            said = () if self._requester is None else self._requester.said
            parts = _as_said(said, arguments) or _parts_of(arguments)
            # Which skill is meant can be said, and nothing about its arguments.
            is_declared = self._intents.is_declared
            intents = [intent_of(self._skill, {})] if is_declared else []
            return self._message(parts, intents=intents)
        intent = intent_of(self._skill, arguments)
        text = f"{self._skill} {write_json(arguments, ensure_ascii=False)}"
        words = [{"text": text, "mediaType": "text/plain"}]
        return self._message(words, intents=[intent])

    def _message(
        self,
        parts: list[dict[str, Any]],
        action: ReplyAction = ReplyAction.ACCEPT,
        *,
        intents: Sequence[dict[str, Any]] = (),
    ) -> SendMessageRequest:
        from a2a.types.a2a_pb2 import SendMessageRequest
        from google.protobuf.json_format import ParseDict, ParseError

        record = self._record
        metadata: dict[str, Any] = {
            "anpd/skill": self._skill,
            "anpd/caller": self._context.caller,
            "anpd/deadline": deadline_text(self._context.deadline),
        }
        if self._requester is not None:
            metadata["anpd/key"] = self._requester.key
        if action is not ReplyAction.ACCEPT:
            metadata["anpd/action"] = str(action)
        is_first = not record.task_id
        message: dict[str, Any] = {
            "messageId": self._context.call_id if is_first else uuid.uuid4().hex,
            "role": "ROLE_USER",
            "parts": parts,
            "metadata": metadata,
        }
        if intents:
            metadata[INTENTS] = list(intents)
            message["extensions"] = [INTENT_URI]
        if is_first and self._thread:
            message["contextId"] = self._thread
        elif not is_first:
            message |= {"taskId": record.task_id, "contextId": record.context_id}
        request = SendMessageRequest()
        try:
            ParseDict({"message": message}, request)
        except (ParseError, ValueError, RecursionError):
            text = "the input cannot be sent over A2A"
            raise ToolError(400, text, may_have_run=not is_first) from None
        return request


async def _first(events: AsyncIterator[StreamResponse]) -> StreamResponse | None:
    return await anext(events, None)


def _parts_of(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    text = arguments.get("text", "")
    if "data" in arguments:
        parts.append({"data": arguments["data"], "mediaType": "application/json"})
    parts += [file_part(file) for file in arguments.get("files", [])]
    if text or not parts:
        # The schema wants a text, which a message of data alone does not have.
        parts.insert(0, {"text": text, "mediaType": "text/plain"})
    return parts


def _as_said(
    said: Sequence[Part], arguments: dict[str, Any]
) -> list[dict[str, Any]] | None:
    """Return the arguments in the order in which the requester said their contents.

    None is returned if the arguments are not just what was said.
    """
    texts = [str(one.content) for one in said if one.kind is PartKind.TEXT]
    values = [one.content for one in said if one.kind is PartKind.JSON]
    files = [file_part(file) for file in arguments.get("files", [])]
    given = [arguments["data"]] if "data" in arguments else []
    is_same = "\n".join(texts) == arguments.get("text", "") and values == given
    if not texts or not is_same or len(texts) + len(values) + len(files) != len(said):
        return None
    contents = (
        files.pop(0) if one.kind in (PartKind.BYTES, PartKind.URI) else a2a_part(one)
        for one in said
    )
    return [*contents]


def _reply_parts(reply: Reply) -> list[dict[str, Any]]:
    words = NO_ANSWER.get(reply.action, "")
    return [a2a_part(part) for part in reply.parts or [Part.text(words)]]


def _translated(exc: Exception, *, started: bool) -> Exception:
    """Return what an exception of the library means for the call."""
    from a2a.client import A2AClientError
    from a2a.utils.errors import A2A_ERROR_MAPPING, A2AError

    cause = exc.__cause__
    text = (str(exc).partition("\n")[0] or type(exc).__name__)[:300]
    if isinstance(exc, A2AClientError):
        import httpx2

        from anp.sidecar.attachments.http.endpoint import NOT_SENT, TooLargeError

        if isinstance(cause, TooLargeError):
            return ToolError(502, str(cause))
        if isinstance(cause, NOT_SENT):
            return AttachmentError(
                f"cannot connect to the agent: {cause}", may_have_run=started
            )
        if isinstance(cause, httpx2.HTTPStatusError):
            status = cause.response.status_code
            if status in {401, 407}:
                return ToolError(502, "the agent did not accept the owner's secrets")
            code = status if 400 <= status <= 599 else 502
            return ToolError(code, f"the agent answered {status}")
        if isinstance(cause, json.JSONDecodeError) or cause is None:
            words = f"the agent's answer is no A2A: {text}"
            return ToolError(502, words, private=True)
        return AttachmentError(f"the agent broke off: {text}", may_have_run=True)
    if isinstance(exc, A2AError):
        told = error_in(exc.data)
        if told is not None:
            return ToolError(told[0] or 500, told[1] or text)
        known = A2A_ERROR_MAPPING.get(type(exc))
        return ToolError(known.http_code if known else 500, text, private=True)
    return ToolError(502, f"the agent's answer is no A2A: {text}", private=True)
