"""A peer in memory that serves GB/Z 185.6, for tests of the requester's side.

Tasks become capability calls, and their outputs results. The daemon itself serves tasks
from sessions that it stores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from anp.interaction.chunks import split_message
from anp.interaction.conversation import Conversation
from anp.interaction.elements import (
    MessagePurpose,
    Part,
    PartKind,
    Session,
    Task,
    TaskProgress,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import MessageSend
from anp.interaction.states import TaskState
from anp.interaction.step import Step
from anp.protocols.gbz import GbzCode
from anp.protocols.gbz.side import GbzSetting, GbzSide, Talk
from anp.protocols.gbz.writer import GbzTooLarge
from anp.protocols.sides import ServingSide, writable
from jsonic.exact_numbers import write_json
from negotiation.consensus.written import (
    CallCapability,
    Parties,
    Refusal,
    WrittenLimits,
    WrittenProtocol,
)
from negotiation.errors import JsonError
from negotiation.need import Role
from negotiation.strict_json import Json

MAX_SESSIONS: Final = 64
"Sessions that one channel carries."

ROOM_FOR_FIELDS: Final = 8 * 1024
"Bytes of a frame that are left for everything beside a piece of a result."

MAX_NAMED: Final = 1000
"Most characters of names in a refusal."

MAX_REASON: Final = 500


@dataclass(slots=True)
class _Job:
    """A task of the peer that a capability works on."""

    talk: Talk
    task: str
    progress_at: float


class GbzProvider(ServingSide, GbzSide):
    """The provider's side of one channel; see `WrittenProtocol`."""

    def __init__(self, setting: GbzSetting) -> None:
        """See `GbzSide`."""
        super().__init__(setting)
        self._jobs: dict[str, _Job] = {}
        self._count = 0

    @property
    def full(self) -> bool:
        """See `WrittenProtocol`."""
        return len(self._jobs) >= self._limits.max_served

    def end(self) -> None:
        """See `WrittenProtocol`."""
        super().end()
        self._jobs.clear()

    def get_timer(self) -> float | None:
        """See `WrittenProtocol`."""
        due = [one.progress_at for one in self._jobs.values()]
        chunks = super().get_timer()
        return min([*due, *([] if chunks is None else [chunks])], default=None)

    def handle_timer(self, *, now: float, wall_now: datetime) -> None:
        """Tell the peer of what takes long."""
        super().handle_timer(now=now, wall_now=wall_now)
        for one in self._jobs.values():
            if now >= one.progress_at:
                one.progress_at = now + self._limits.progress_after
                told = TaskProgress(task=one.task)
                step = one.talk.conversation.progress(told, wall_now=wall_now)
                self._do(one.talk, step, now)

    def capability_answered(
        self, call_id: str, output: Json, *, now: float, wall_now: datetime
    ) -> None:
        """See `WrittenProtocol`."""
        one = self._jobs.pop(call_id, None)
        if one is None:
            return
        try:
            messages = self._result(one, output)
        except JsonError as exc:
            self._note(f"an output could not be sent: {exc}")
            self._report(
                one,
                TaskState.FAILED,
                wall_now,
                code="processing_failed",
                reason=str(exc),
                may_have_run=True,
            )
            return
        for message in messages:
            step = one.talk.conversation.post(message, wall_now=wall_now)
            self._do(one.talk, step, now)
        self._report(one, TaskState.COMPLETED, wall_now)

    def capability_failed(
        self,
        call_id: str,
        code: str,
        message: str,
        *,
        ran: bool,
        now: float,
        wall_now: datetime,
    ) -> None:
        """See `WrittenProtocol`."""
        one = self._jobs.pop(call_id, None)
        if one is None:
            return
        if not ran and code == "400":
            code = Refusal.INVALID_PAYLOAD
        self._report(
            one,
            TaskState.FAILED,
            wall_now,
            code=writable(code)[:64],
            reason=writable(message)[:MAX_REASON],
            may_have_run=ran,
        )

    def _join(self, session: Session, ref: int, wall_now: datetime) -> None:
        if len(self._talks) >= MAX_SESSIONS:
            raise InteractionError(
                InteractionFault.TOO_MANY, f"a channel has {MAX_SESSIONS} sessions"
            )
        # Nobody speaks in another's name (GBZ-Q18).
        if session.requester.id not in self._parties.peer_names:
            raise InteractionError(
                InteractionFault.NOT_ALLOWED, "sender is not who speaks on this channel"
            )
        own = [
            one.id for one in session.participants if one.id in self._parties.own_names
        ]
        conversation, step = Conversation.join(
            session,
            own=own[0] if own else self._parties.own_id,
            sender=session.requester.id,
            ref=ref,
            wall_now=wall_now,
        )
        talk = Talk(conversation, session.requester.id)
        self._talks[session.id] = talk
        self._do(talk, step, 0.0)

    def _follow(self, talk: Talk, step: Step, now: float, wall_now: datetime) -> None:
        for task in step.offered:
            self._begin(talk, task, now, wall_now)

    def _begin(self, talk: Talk, task: Task, now: float, wall_now: datetime) -> None:
        job = _Job(talk, task.id, now + self._limits.progress_after)
        arguments = _arguments(task)
        if task.capability not in self._offered:
            names = ", ".join(sorted(self._offered))[:MAX_NAMED]
            self._report(
                job,
                TaskState.REJECTED,
                wall_now,
                code=Refusal.UNKNOWN_ACTION,
                reason=f"there is no capability {task.capability[:200]!r}: {names}",
            )
        elif arguments is None:
            self._report(
                job,
                TaskState.REJECTED,
                wall_now,
                code=Refusal.INVALID_PAYLOAD,
                reason="the arguments are a JSON object in a data item",
            )
        else:
            self._count += 1
            call_id = str(self._count)
            self._jobs[call_id] = job
            self._report(job, TaskState.WORKING, wall_now)
            self._events.append(CallCapability(call_id, task.capability, arguments))

    def _report(
        self, one: _Job, state: TaskState, wall_now: datetime, **more: Any
    ) -> None:
        step = one.talk.conversation.report(one.task, state, wall_now=wall_now, **more)
        if not self._ended:
            self._do(one.talk, step, 0.0)

    def _result(self, one: _Job, output: Json) -> list[Any]:
        """Return the messages that carry an output, chunks of a text if it is large.

        Raises:
            JsonError: It cannot be sent.
        """
        more = {"purpose": MessagePurpose.RESULT, "final": True}
        message = self._message(one.talk, one.task, (Part.value(output),), **more)
        try:
            self._probe(MessageSend(message=message))
        except GbzTooLarge:
            text = write_json(output, ensure_ascii=False, separators=(",", ":"))
            part = Part.text(text, media_type="application/json")
            whole = self._message(one.talk, one.task, (part,), **more)
            most = self._limits.max_message - ROOM_FOR_FIELDS
            return list(split_message(whole, max_content=most))
        return [message]


def _arguments(task: Task) -> dict[str, Any] | None:
    """Return the first JSON object of the request, or None if there is none."""
    for message in task.messages:
        for part in message.parts:
            if part.kind is PartKind.JSON and isinstance(part.content, dict):
                return part.content
    return None


class PairCode:
    """Makes either side of a channel; the provider's side is the one of this file."""

    def __call__(
        self,
        role: Role,
        parties: Parties,
        *,
        limits: WrittenLimits,
        random_bytes: Callable[[int], bytes],
    ) -> WrittenProtocol:
        """See `WrittenCode`."""
        if role is Role.REQUESTER:
            return GbzCode()(role, parties, limits=limits, random_bytes=random_bytes)
        return GbzProvider(
            GbzSetting(parties=parties, limits=limits, random_bytes=random_bytes)
        )
