"""The side that calls: calls become tasks, and their results answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from anp.interaction.conversation import Conversation
from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Part,
    PartKind,
    Party,
    Session,
    Task,
    TaskChange,
    TaskProgress,
)
from anp.interaction.operations import TaskCreate
from anp.interaction.states import TaskState, is_terminal
from anp.interaction.step import Step
from anp.protocols.gbz.reader import is_json
from anp.protocols.gbz.side import GbzSetting, GbzSide, Talk
from anp.protocols.gbz.writer import GbzTooLarge, write_data
from anp.protocols.sides import CallingSide
from negotiation.consensus.written import (
    Ask,
    CallAnswered,
    CallRefused,
    Progress,
    Refusal,
)
from negotiation.errors import JsonError, MisuseError
from negotiation.strict_json import Json, parse_json

MAX_TASKS: Final = 1000
"Calls in one session; the next one opens another session."

MAX_RESULT: Final = 64 * 1024 * 1024
"Most bytes of a result that came as a text."


@dataclass(slots=True)
class _Call:
    """A call of ours that has no final answer yet."""

    call_id: str
    talk: Talk
    task: str
    silent_until: float
    ends_at: float
    results: list[Message] = field(default_factory=list)

    @property
    def due(self) -> float:
        return min(self.silent_until, self.ends_at)


class GbzRequester(CallingSide, GbzSide):
    """The requester's side of one channel; see `WrittenProtocol`."""

    def __init__(self, setting: GbzSetting) -> None:
        """See `GbzSide`."""
        super().__init__(setting)
        self._calls: dict[str, _Call] = {}
        "Calls by the id of their task."

        self._talk: Talk | None = None

    @property
    def waiting(self) -> int:
        """See `WrittenProtocol`."""
        return len(self._calls)

    def ask(self, call: Ask, *, now: float, wall_now: datetime) -> None:
        """See `WrittenProtocol`.

        Raises:
            MisuseError: The channel has ended, or the call's id is in use.
        """
        if self._ended:
            raise MisuseError("the channel has ended")
        if any(one.call_id == call.call_id for one in self._calls.values()):
            raise MisuseError(f"the call id {call.call_id} is in use")
        if len(self._calls) >= self._limits.max_asked:
            self._refused(
                call.call_id, Refusal.TOO_MANY, f"{len(self._calls)} calls already wait"
            )
            return
        talk = self._open_talk(wall_now, now)
        task = self._task(talk, call)
        try:
            self._probe(TaskCreate(task=task))
        except GbzTooLarge as exc:
            self._refused(call.call_id, Refusal.TOO_LARGE, str(exc))
            return
        except JsonError as exc:
            self._refused(call.call_id, Refusal.NOT_JSON, str(exc))
            return
        self._calls[task.id] = _Call(
            call.call_id,
            talk,
            task.id,
            silent_until=now + self._limits.answer_timeout,
            ends_at=now + self._limits.total_timeout,
        )
        self._do(talk, talk.conversation.create(task, wall_now=wall_now), now)

    def reference(self, call_id: str) -> str | None:
        """See `WrittenProtocol`; nobody keeps an answer of several frames."""
        return None

    def abandon(self, call_id: str) -> None:
        """See `WrittenProtocol`; the peer is told by the next command for the task."""
        for name, one in self._calls.items():
            if one.call_id == call_id:
                del self._calls[name]
                return

    def get_timer(self) -> float | None:
        """See `WrittenProtocol`."""
        due = [one.due for one in self._calls.values()]
        chunks = super().get_timer()
        return min([*due, *([] if chunks is None else [chunks])], default=None)

    def handle_timer(self, *, now: float, wall_now: datetime) -> None:
        """See `WrittenProtocol`; what takes too long is asked to end."""
        super().handle_timer(now=now, wall_now=wall_now)
        for one in [one for one in self._calls.values() if now >= one.due]:
            del self._calls[one.task]
            conversation = one.talk.conversation
            step = conversation.give_up(one.task, reason="timeout", wall_now=wall_now)
            if not self._ended:
                self._do(one.talk, step, now)
            self._refused(
                one.call_id, Refusal.TIMEOUT, "no answer in time", may_have_run=True
            )

    def _open_talk(self, wall_now: datetime, now: float) -> Talk:
        """Return the session for the next call, a new one if needed."""
        talk = self._talk
        if talk is not None and len(talk.conversation.tasks) < MAX_TASKS:
            return talk
        session = Session(
            id=self._new_id(),
            requester=Party(id=self._parties.own_id),
            participants=(Party(id=self._parties.peer_id),),
        )
        conversation, step = Conversation.begin(session, wall_now=wall_now)
        self._talk = talk = Talk(conversation, self._parties.peer_id)
        # Ended sessions stay only as long as a call of theirs is open.
        used = {id(one.talk) for one in self._calls.values()}
        self._talks = {
            name: one for name, one in self._talks.items() if id(one) in used
        }
        self._talks[session.id] = talk
        self._do(talk, step, now)
        return talk

    def _task(self, talk: Talk, call: Ask) -> Task:
        name = self._new_id()
        request = self._message(
            talk, name, (Part.value(call.arguments),), metadata=call.metadata
        )
        return Task(
            id=name,
            session=talk.conversation.session.id,
            requester=talk.conversation.own,
            executor=talk.peer,
            capability=call.action,
            messages=(request,),
        )

    def _follow(self, talk: Talk, step: Step, now: float, wall_now: datetime) -> None:
        for message in step.whole:
            one = self._calls.get(message.task)
            if one is not None and message.purpose is not MessagePurpose.COMMUNICATION:
                one.results.append(message)
        for event in step.events:
            match event.content:
                case TaskChange(task=name, state=state) if is_terminal(state):
                    one = self._calls.pop(name, None)
                    if one is not None:
                        self._ended_with(one, event.content)
                case TaskChange(task=name, state=state) if name in self._calls:
                    self._at_work(self._calls[name], state, {}, now)
                case TaskProgress(task=name) as told if name in self._calls:
                    said = {"progress": told.progress, "total": told.total}
                    self._at_work(
                        self._calls[name], "progress", {**said, "text": told.text}, now
                    )

    def _at_work(
        self, one: _Call, status: str, result: dict[str, Json], now: float
    ) -> None:
        one.silent_until = now + self._limits.answer_timeout
        self._events.append(Progress(one.call_id, status, result))

    def _ended_with(self, one: _Call, change: TaskChange) -> None:
        code = change.code or str(change.state)
        if change.state == TaskState.COMPLETED:
            try:
                result = _result(one.results)
            except JsonError as exc:
                self._refused(
                    one.call_id,
                    Refusal.BROKEN_ANSWER,
                    f"the result breaks the protocol: {exc}",
                    may_have_run=True,
                )
                return
            self._events.append(CallAnswered(one.call_id, result))
        elif change.state == TaskState.FAILED and change.may_have_run:
            told = (code, change.reason)
            details = {"code": code, "message": change.reason}
            self._events.append(CallAnswered(one.call_id, None, told, details))
        else:
            self._events.append(
                CallRefused(one.call_id, code, change.reason, {"reason": code})
            )

    def _refused(
        self, call_id: str, code: Refusal, message: str, *, may_have_run: bool = False
    ) -> None:
        self._events.append(
            CallRefused(
                call_id, code, message, may_have_run=may_have_run, by_peer=False
            )
        )


def _result(messages: list[Message]) -> Json:
    """Return the result of a task: a value, a text, or a list of data items.

    Raises:
        JsonError: A text of a JSON type is no JSON.
    """
    parts = [part for message in messages for part in message.parts]
    if not parts:
        return None
    if len(parts) > 1:
        return [write_data(part) for part in parts]
    (part,) = parts
    if part.kind is PartKind.JSON and not isinstance(part.content, bytes):
        return part.content
    if part.kind is PartKind.TEXT and isinstance(part.content, str):
        if is_json(part.media_type):
            return parse_json(part.content, max_size=MAX_RESULT)
        return part.content
    return write_data(part)
