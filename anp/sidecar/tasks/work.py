"""The work on the tasks of peers: a capability is called, and what it says is told."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from anp.interaction.chunks import split_message
from anp.interaction.conversation import Conversation, start_key
from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Part,
    PartKind,
    SenderRole,
    Task,
    TaskProgress,
)
from anp.interaction.errors import InteractionError
from anp.interaction.record import Step
from anp.interaction.states import TaskState
from anp.sidecar.attachments.attachment import Progress, report_progress
from anp.sidecar.attachments.requester import (
    Question,
    Reply,
    ReplyAction,
    current_requester,
)
from anp.sidecar.offer.capability_calls import MAX_VALUES, CapabilityCalls
from anp.sidecar.offer.gate import ApprovalPending
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.tasks.sessions import Sessions, utc_now
from negotiation.errors import CapabilityFailed
from negotiation.need import Capability

__all__ = ["ACTION", "SCHEMA", "URL", "TaskAnswer", "Worker"]

logger = logging.getLogger(__name__)

MAX_CONTENT = 512 * 1024
"Bytes of content in one frame; larger texts and bytes go in chunks."

MAX_TASK_TIME = 24 * 3600.0
"Seconds that a task may be at work, where no other limit ends it earlier."

APPROVAL_CHECK = 2.0
"Seconds between two looks for the owner's word about a task that waits for it."

SCHEMA, URL, ACTION = "schema", "url", "action"
"Entries in the metadata of a question, and of its answer."

MAX_NAMED = 1000
"Most characters of names in a refusal."


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """A message of the requester for a task that waits for it."""

    message: Message

    @property
    def reply(self) -> Reply:
        """The message as an answer to a question."""
        action = self.message.metadata.get(ACTION, ReplyAction.ACCEPT)
        value = next(
            (p.content for p in self.message.parts if p.kind is PartKind.JSON), None
        )
        known = action if action in set(ReplyAction) else ReplyAction.ACCEPT
        return Reply(
            action=ReplyAction(known), value=value, parts=tuple(self.message.parts)
        )


class Worker:
    """One task of a peer, from its offer to its end."""

    def __init__(
        self,
        log: str,
        task: Task,
        *,
        sessions: Sessions,
        capabilities: CapabilityCalls,
        peer: str,
        peer_did: str,
    ) -> None:
        """Take a task; `run` does it.

        Args:
            log: Our own id of its session.
            task: As it was created, with its messages.
            peer: The requester's DID in its canonical form.
            peer_did: Its DID as it shows itself.
        """
        self._log = log
        self._task = task
        self._sessions = sessions
        self._capabilities = capabilities
        self._peer = peer
        self._peer_did = peer_did
        self._answers: asyncio.Queue[TaskAnswer] = asyncio.Queue()
        self._notes: asyncio.Queue[Progress | None] = asyncio.Queue()
        self._told = False
        self._cancelled = False
        self._key = ""

    # What the attachment sees; see `Requester`.

    @property
    def key(self) -> str:
        """See `Requester`."""
        return self._key

    @property
    def was_told(self) -> bool:
        """See `Requester`."""
        return self._told

    async def update(self, parts: Sequence[Part]) -> None:
        """See `Requester`."""
        self._told = True
        await self._tell_waiting()
        await self._post(parts, purpose=MessagePurpose.RESULT, final=False)

    async def ask(self, question: Question) -> Reply:
        """See `Requester`."""
        metadata: dict[str, Any] = {}
        if question.schema is not None:
            metadata[SCHEMA] = dict(question.schema)
        if question.url:
            metadata[URL] = question.url
        while not self._answers.empty():
            # An answer to nothing.
            self._answers.get_nowait()
        await self._tell_waiting()
        state = TaskState.AUTH_REQUIRED if question.url else TaskState.INPUT_REQUIRED
        await self._report(state)
        await self._post(
            [Part.text(question.text)],
            purpose=MessagePurpose.COMMUNICATION,
            metadata=metadata,
        )
        answer = await self._answers.get()
        await self._report(TaskState.WORKING)
        return answer.reply

    def answer(self, answer: TaskAnswer) -> None:
        """Give the agent a message of its requester's."""
        self._answers.put_nowait(answer)

    def cancel(self, running: asyncio.Task[None]) -> None:
        """End the work, since the requester wants that."""
        self._cancelled = True
        running.cancel()

    # The work.

    async def run(self) -> None:
        """Accept or reject the task, do it, and report how it ended."""
        try:
            await self._run()
        except asyncio.CancelledError:
            if not self._cancelled:
                # The daemon stops; the next start decides about the task.
                raise
            await self._report(TaskState.CANCELED, may_have_run=True)
        except InteractionError as exc:
            logger.info("task ended session=%s reason=%s", self._log, exc.text)
        except Exception:
            logger.exception("task failed session=%s", self._log)
            await self._report(
                TaskState.FAILED,
                code="500",
                reason="the work failed",
                may_have_run=True,
            )

    async def _run(self) -> None:
        capability = self._find()
        if capability is None:
            return await self._reject()
        arguments = arguments_of(self._task, capability)
        if arguments is None:
            return await self._report(
                TaskState.REJECTED,
                code="400",
                reason="the arguments are a JSON object in a data item",
            )
        await self._report(TaskState.ACCEPTED)
        conversation = await self._sessions.conversation(self._log)
        self._key = start_key(conversation.session, self._task)
        notes = asyncio.create_task(self._tell_progress())
        current_requester.set(self)
        report_progress.set(self._notes.put_nowait)
        try:
            output = await self._call(capability.name, arguments)
        except CapabilityFailed as exc:
            await self._end_notes(notes)
            await self._report(
                TaskState.FAILED,
                code=str(exc.code)[:64],
                reason=str(exc.message)[:500],
                may_have_run=exc.ran,
            )
            return None
        finally:
            notes.cancel()
        await self._end_notes(notes)
        if not self._told:
            await self._post(
                [_part_of(output)], purpose=MessagePurpose.RESULT, final=True
            )
        return await self._report(TaskState.COMPLETED)

    async def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        while True:
            try:
                return await self._capabilities.run(
                    name,
                    arguments,
                    way=WayIn.TASK,
                    peer=self._peer,
                    peer_did=self._peer_did,
                    max_payload=MAX_VALUES,
                    asked=MAX_TASK_TIME,
                    begin=lambda: self._report(TaskState.WORKING),
                )
            except ApprovalPending:
                # It stays accepted; the owner's word comes into the store.
                await asyncio.sleep(APPROVAL_CHECK)

    def _find(self) -> Capability | None:
        return self._capabilities.gate.find(
            WayIn.TASK, self._peer, self._task.capability
        )

    async def _reject(self) -> None:
        offered = self._capabilities.gate.offered(WayIn.TASK, self._peer)
        names = ", ".join(sorted(one.name for one in offered))[:MAX_NAMED]
        await self._report(
            TaskState.REJECTED,
            code="unknown_action",
            reason=f"there is no capability {self._task.capability[:200]!r}; "
            f"there are: {names or 'none'}",
        )

    # What is told.

    async def _tell_progress(self) -> None:
        while (note := await self._notes.get()) is not None:
            await self._tell_note(note)

    async def _tell_waiting(self) -> None:
        """Tell the progress that was reported before what is told next."""
        while not self._notes.empty():
            note = self._notes.get_nowait()
            if note is not None:
                await self._tell_note(note)

    async def _tell_note(self, note: Progress) -> None:
        told = TaskProgress(
            task=self._task.id,
            progress=note.progress,
            total=note.total,
            text=note.message,
        )
        try:
            await self._tell(told)
        except InteractionError as exc:
            logger.debug("progress not told session=%s: %s", self._log, exc.text)

    async def _end_notes(self, notes: asyncio.Task[None]) -> None:
        self._notes.put_nowait(None)
        await asyncio.wait({notes})

    async def _report(self, state: TaskState, **more: Any) -> None:
        await self._apply(
            lambda c: c.report(self._task.id, state, wall_now=utc_now(), **more)
        )

    async def _post(self, parts: Sequence[Part], **more: Any) -> None:
        message = Message(
            id=str(uuid.uuid4()),
            session=self._task.session,
            task=self._task.id,
            sender="",
            role=SenderRole.SERVICE,
            parts=tuple(parts),
            **more,
        )
        for chunk in split_message(message, max_content=MAX_CONTENT):
            await self._send(chunk)

    async def _tell(self, told: TaskProgress) -> None:
        await self._apply(lambda c: c.progress(told, wall_now=utc_now()))

    async def _send(self, message: Message) -> None:
        await self._apply(lambda c: c.post(message, wall_now=utc_now()))

    def _apply(self, act: Callable[[Conversation], Step]) -> Awaitable[Step]:
        return self._sessions.apply(self._log, act)


def arguments_of(task: Task, capability: Capability) -> dict[str, Any] | None:
    """Return the arguments in a task's messages, or None if there are none.

    They are the first JSON object. A text will do for a capability that needs nothing
    but one text.
    """
    parts = [part for message in task.messages for part in message.parts]
    for part in parts:
        if part.kind is PartKind.JSON and isinstance(part.content, dict):
            return part.content
    texts = [part.content for part in parts if isinstance(part.content, str)]
    name = _only_text(capability)
    if not texts:
        return {} if not parts else None
    return None if name is None else {name: "\n".join(texts)}


def _only_text(capability: Capability) -> str | None:
    schema = capability.input_schema
    if not isinstance(schema, dict):
        return None
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return None
    required = schema.get("required", [])
    if len(required) != 1:
        return None
    kind = properties.get(required[0])
    is_text = isinstance(kind, dict) and kind.get("type") == "string"
    return str(required[0]) if is_text else None


def _part_of(output: Any) -> Part:
    return Part.value(output)
