"""The work on the tasks of peers: a capability is called, and what it says is told."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anp.channel.stranger_work import counted
from anp.interaction.conversation import NOT_CHOSEN, Conversation, start_key
from anp.interaction.elements import (
    LOCAL,
    Message,
    MessagePurpose,
    Part,
    SenderRole,
    Session,
    Task,
)
from anp.interaction.errors import InteractionError
from anp.interaction.states import TaskState, is_started, is_terminal
from anp.interaction.step import Step
from anp.protocols.a2a.words import ONE_TURN
from anp.sidecar.attachments.attachment import ToolError, report_progress
from anp.sidecar.attachments.requester import (
    GivenFile,
    Question,
    Reply,
    current_requester,
    current_threads,
)
from anp.sidecar.files.call_folder import CallFolder, CallFolders
from anp.sidecar.files.transfers import FileFailed
from anp.sidecar.offer.capability_calls import MAX_VALUES, CapabilityCalls
from anp.sidecar.offer.gate import ApprovalPending
from anp.sidecar.offer.task_arguments import (
    UnfitPartsError,
    arguments_of,
    contents_of,
    further_parts,
    part_of,
)
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.tasks.choice import Choice, Chooser, NoSkill, Wanted
from anp.sidecar.tasks.chronicle import Chronicle
from anp.sidecar.tasks.sessions import Sessions
from anp.sidecar.tasks.work.report import Room, WorkReport
from cache.errors import CacheError
from negotiation.errors import CapabilityFailed
from negotiation.need import Capability

logger = logging.getLogger(__name__)

APPROVAL_CHECK = 2.0
"Seconds between two looks for the owner's word about a task that waits for it."

SCHEMA, URL = "schema", "url"
"Entries in the metadata of a question."

MAX_NAMED = 1000
"Most characters of names in a refusal."


@dataclass(frozen=True, slots=True)
class _Ending:
    """The state in which the work is to end, wherever it is."""

    state: TaskState
    code: str = ""
    reason: str = ""


class Worker:
    """One task of a peer, from its offer to its end."""

    def __init__(
        self,
        log: str,
        task: Task,
        *,
        sessions: Sessions,
        capabilities: CapabilityCalls,
        room: Room,
        folders: CallFolders,
        max_wait: float,
        peer: str,
        peer_did: str,
        chooser: Chooser,
    ) -> None:
        """Take a task; `run` does it.

        Args:
            log: Our own id of its session.
            task: As it was created, with its messages.
            room: Waits until the requester has read most of what it was told.
            folders: Makes the folder for the files of its call.
            max_wait: Seconds for which it may wait for the owner's word.
            peer: The requester's DID in its canonical form.
            peer_did: Its DID as it shows itself.
            chooser: Finds the capability of a task that names none.
        """
        self._chooser = chooser
        self._log = log
        self._task = task
        self._said = contents_of(task.messages)
        self._sessions = sessions
        self._capabilities = capabilities
        self._report = WorkReport(log, task, sessions, room)
        self._folders = folders
        self._folder: CallFolder | None = None
        self._max_wait = max_wait
        self.peer = peer
        "The requester's DID in its canonical form."

        self._peer_did = peer_did
        self._way = WayIn.A2A if task.requester.startswith(LOCAL) else WayIn.TASK
        self._asked: asyncio.Future[Message] | None = None
        self._hear: Callable[[Message], object] = lambda _: None
        self._used: set[str] = set()
        "Ids of the messages that named the capability."

        self._further: list[Part] = []
        self._told = False
        self._started = False
        self._ending: _Ending | None = None
        self._is_over = False
        self._is_running = False
        self._key = ""

    # What the attachment sees; see `Requester`.

    @property
    def task(self) -> Task:
        """The task, with its messages."""
        return self._task

    async def hand_back(self, code: str, reason: str) -> None:
        """Reject the task in place of `run`."""
        await self._finish(TaskState.REJECTED, code, reason)

    @property
    def key(self) -> str:
        """See `Requester`."""
        return self._key

    @property
    def was_told(self) -> bool:
        """See `Requester`."""
        return self._told

    @property
    def said(self) -> Sequence[Part]:
        """See `Requester`."""
        return self._said

    async def thread(self, agent: str) -> str:
        """See `Threads`."""
        conversation = await self._sessions.conversation(self._log)
        return conversation.threads.get(agent, "")

    async def keep_thread(self, agent: str, thread: str) -> None:
        """See `Threads`; it is stored with the next event, the task's end at most."""

        def keep(conversation: Conversation) -> Step:
            conversation.threads[agent] = thread
            return Step()

        await self._report.apply(keep)

    async def begin(self) -> bool:
        """See `Requester`."""
        was_started = self._started
        await self._report.change(TaskState.WORKING)
        self._started = True
        return was_started

    async def say(self, parts: Sequence[Part]) -> None:
        """See `Requester`."""
        await self._report.tell_waiting()
        await self._report.room()
        await self._report.post(parts, purpose=MessagePurpose.COMMUNICATION)

    async def update(self, parts: Sequence[Part]) -> None:
        """See `Requester`; who reads slowly holds up the work, and fills no memory."""
        self._told = True
        await self._report.tell_waiting()
        await self._report.room()
        await self._report.post(parts, purpose=MessagePurpose.RESULT, final=False)

    @property
    def folder(self) -> str:
        """See `Requester`."""
        assert self._folder is not None, "there is one while the agent works"
        return str(self._folder.path)

    async def send_file(self, file: GivenFile) -> None:
        """See `Requester`."""
        assert self._folder is not None, "there is one while the agent works"
        await self.update([await self._folder.send(file)])

    async def lay(self, files: Sequence[Part]) -> list[str]:
        """See `Requester`."""
        assert self._folder is not None, "there is one while the agent works"
        try:
            return [await self._folder.lay(one) for one in files]
        except FileFailed as exc:
            raise ToolError(502, f"a file of the answer did not come: {exc}") from exc

    async def ask(self, question: Question) -> Reply:
        """See `Requester`."""
        return Reply.of(await self._ask(question))

    async def _ask(self, question: Question, *, code: str = "") -> Message:
        metadata: dict[str, Any] = {}
        if question.schema is not None:
            metadata[SCHEMA] = dict(question.schema)
        if question.url:
            metadata[URL] = question.url
        await self._report.tell_waiting()
        # What came before is an answer to nothing; the next message is the one.
        asked = self._await_answer()
        auth = question.auth or question.url
        await self._report.change(
            TaskState.AUTH_REQUIRED if auth else TaskState.INPUT_REQUIRED, code=code
        )
        await self._report.post(
            [Part.text(question.text)],
            purpose=MessagePurpose.COMMUNICATION,
            metadata=metadata,
        )
        answer = await asked
        await self._report.change(TaskState.WORKING)
        return answer

    def _await_answer(self) -> asyncio.Future[Message]:
        self._asked = asyncio.get_running_loop().create_future()
        return self._asked

    async def listen(self, hear: Callable[[Message], None]) -> None:
        """See `Requester`."""
        early: list[Message] = []
        self._hear = early.append
        talk = await Chronicle(self._sessions).said(
            self._log, self._task.id, by=SenderRole.REQUESTER
        )
        if self._further:
            hear(replace(self._task.messages[0], parts=tuple(self._further)))
        for message in {one.id: one for one in (*talk, *early)}.values():
            if message.id not in self._used:
                hear(message)
        self._hear = hear

    def answer(self, answer: Message) -> None:
        """Give the agent a message of its requester's; the log has it in any case."""
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(answer)
        else:
            self._hear(answer)

    # Its end from outside.

    def cancel(self, running: asyncio.Task[None]) -> None:
        """End the work, since the requester wants that."""
        self._end(running, _Ending(TaskState.CANCELED))

    def forbid(self, running: asyncio.Task[None], reason: str) -> None:
        """End the work, since the owner does not want it any more."""
        self._end(running, _Ending(TaskState.FAILED, "403", reason))

    def drop(self, running: asyncio.Task[None]) -> None:
        """End the work, since the task has ended by another's word."""
        if not self._is_over:
            self._is_over = True
            running.cancel()

    def _end(self, running: asyncio.Task[None], ending: _Ending) -> None:
        # Only once: what ends is not interrupted while it says so.
        if self._ending is None and not self._is_over:
            self._ending = ending
            if self._is_running:
                running.cancel()

    # The work.

    async def run(self) -> None:
        """Accept or reject the task, do it, and report how it ended."""
        self._is_running = True
        try:
            if self._ending is not None:
                # It was ended before it could begin.
                raise asyncio.CancelledError
            await self._run()
        except asyncio.CancelledError:
            if self._ending is None:
                # The daemon stops, and its next start decides; or it is over already.
                if self._is_over:
                    return
                raise
            await self._finish(
                self._ending.state, self._ending.code, self._ending.reason
            )
        except InteractionError as exc:
            await self._finish(TaskState.FAILED, exc.code, exc.text)
        except Exception:
            logger.exception("task failed session=%s", self._log)
            await self._finish(TaskState.FAILED, "500", "the work failed")
        finally:
            if self._is_over:
                await self._folders.drop_inputs(self._log, self._task)

    async def _finish(self, state: TaskState, code: str, reason: str) -> None:
        try:
            await self._over(
                state, code=code[:64], reason=reason[:500], may_have_run=self._started
            )
        except InteractionError as exc:
            # It has ended by now: the first end counts.
            logger.info("task ended session=%s reason=%s", self._log, exc.text)
        except CacheError as exc:
            logger.warning("end not stored session=%s reason=%s", self._log, exc)

    async def _run(self) -> None:
        conversation = await self._sessions.conversation(self._log)
        task = conversation.task(self._task.id)
        if is_terminal(task.state):
            return None
        was_asked = task.code == NOT_CHOSEN
        self._started = is_started(task.state) and not was_asked
        refused = await self._choose(was_asked=was_asked)
        # To ask the requester, it had to be accepted.
        conversation = await self._sessions.conversation(self._log)
        state = conversation.task(self._task.id).state
        if refused is not None:
            return await self._refuse(state, "unknown_action", refused)
        capability = self._find()
        if capability is None:
            return await self._refuse(
                state, "unknown_action", self._unknown(), later="503"
            )
        try:
            arguments = arguments_of(self._task, capability)
        except UnfitPartsError as exc:
            return await self._refuse(state, "400", str(exc))
        self._further = further_parts(self._task, arguments)
        if state == TaskState.REQUESTED:
            await self._report.change(TaskState.ACCEPTED)
        async with self._folders.of_call(self._log, self._task) as self._folder:
            try:
                arguments = await self._folder.fill(arguments)
            except FileFailed as exc:
                return await self._over(
                    TaskState.FAILED,
                    code="file_failed",
                    reason=str(exc),
                    may_have_run=self._started,
                )
            return await self._work(conversation.session, capability, arguments)

    async def _work(
        self, session: Session, capability: Capability, arguments: dict[str, Any]
    ) -> None:
        # Before a restart.
        was_started = self._started
        self._key = start_key(session, self._task)
        notes = asyncio.create_task(counted(self._report.tell_progress()))
        if not _is_one_turn(self._task):
            current_requester.set(self)
            current_threads.set(self)
        report_progress.set(self._report.note)
        try:
            output = await self._call(capability.name, arguments)
        except CapabilityFailed as exc:
            await self._report.end(notes)
            return await self._over(
                TaskState.REJECTED if exc.handed_back else TaskState.FAILED,
                code=str(exc.code)[:64],
                reason=str(exc.message)[:500],
                may_have_run=exc.ran or was_started,
            )
        finally:
            notes.cancel()
        await self._report.end(notes)
        if self._told:
            return await self._over(TaskState.COMPLETED)
        self._is_over, result = True, MessagePurpose.RESULT
        return await self._report.post([part_of(output)], purpose=result, final=True)

    async def _choose(self, *, was_asked: bool) -> str | None:
        """Find the capability, with the requester's help; return why there is none.

        Args:
            was_asked: It was asked for that help before a restart.
        """
        if self._task.capability:
            return None
        messages = list(self._task.messages)
        if was_asked:
            answer = self._await_answer()
            talk = await Chronicle(self._sessions).said(self._log, self._task.id)
            messages += [one for one in talk if one.role is SenderRole.REQUESTER]
            if talk and talk[-1].role is not SenderRole.REQUESTER:
                messages.append(await answer)
            await self._report.change(TaskState.WORKING)
        while True:
            chosen = await self._chooser.choose(self._task, messages)
            match chosen:
                case NoSkill(text=text):
                    return text
                case Wanted(text=text):
                    told = await self._ask(Question(text=text), code=NOT_CHOSEN)
                    messages.append(told)
                case Choice(capability=name, parts=parts):
                    self._used = {one.id for one in messages}
                    self._said = contents_of(messages)
                    said = replace(messages[0], parts=parts)
                    self._task = replace(self._task, capability=name, messages=(said,))
                    return None

    async def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        clock = asyncio.get_running_loop().time
        ends = clock() + self._max_wait
        while True:
            try:
                return await self._capabilities.run(
                    name,
                    arguments,
                    way=self._way,
                    peer=self.peer,
                    peer_did=self._peer_did,
                    max_payload=MAX_VALUES,
                    # The requester names no time, so the owner's limits hold alone.
                    asked=math.inf,
                    begin=self.begin,
                )
            except ApprovalPending as exc:
                if clock() >= ends:
                    raise CapabilityFailed(
                        "504", "the owner gave no word about it in time", ran=False
                    ) from exc
                # It stays accepted; the owner's word comes into the store.
                await asyncio.sleep(APPROVAL_CHECK)

    def _find(self) -> Capability | None:
        name = self._task.capability
        return self._capabilities.gate.named(self._way, self.peer, name)

    async def _refuse(
        self, state: str, code: str, reason: str, *, later: str = ""
    ) -> None:
        """Hand the task back, or fail it if it was accepted before a restart.

        Args:
            later: The code for one that was accepted; empty for the same.
        """
        if state == TaskState.REQUESTED:
            await self._over(TaskState.REJECTED, code=code, reason=reason)
        else:
            await self._over(
                TaskState.FAILED,
                code=later or code,
                reason=reason,
                may_have_run=self._started,
            )

    def _unknown(self) -> str:
        offered = self._capabilities.gate.offered(self._way, self.peer)
        names = ", ".join(sorted(one.name for one in offered))[:MAX_NAMED]
        return (
            f"there is no capability {self._task.capability[:200]!r}; "
            f"there are: {names or 'none'}"
        )

    async def _over(self, state: TaskState, **more: Any) -> None:
        self._is_over = True
        await self._report.change(state, **more)


def _is_one_turn(task: Task) -> bool:
    """Return whether a task is a call whose agent gives one whole answer."""
    return any(one.metadata.get(ONE_TURN) is True for one in task.messages)
