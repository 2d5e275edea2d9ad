"""Calls of one turn over A2A between daemons: one message, and the task it becomes.

Tasks that last go over the same frames, but another part of the daemon carries them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from anp.interaction.elements import Part, PartKind
from anp.interaction.states import TaskState
from anp.protocols.a2a.objects import A2aMessage, A2aTask
from anp.protocols.a2a.reader import A2aFields
from anp.protocols.a2a.results import read_result
from anp.protocols.a2a.words import (
    ONE_TURN,
    A2aError,
    A2aFault,
    A2aMethod,
    A2aVersion,
    method_name,
)
from anp.protocols.a2a.writer import write_message
from anp.protocols.sides import CallingSide, WrittenSide
from jsonic.exact_numbers import write_json
from negotiation.consensus.written import (
    Ask,
    CallAnswered,
    CallRefused,
    Flagged,
    Parties,
    Refusal,
    WrittenLimits,
    WrittenProtocol,
)
from negotiation.errors import JsonError, MisuseError
from negotiation.need import Capability, Role
from negotiation.strict_json import parse_json

SKILL: Final = "skill"
ARGUMENTS: Final = "arguments"


def skill_part(capability: str, arguments: Any) -> Part:
    """Return the part that names a skill of the peer and its arguments."""
    return Part.value({SKILL: capability, ARGUMENTS: arguments})


def request_frame(number: int, method: str, params: dict[str, Any]) -> bytes:
    """Return the bytes of a request."""
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return write_json(
        request, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode()


class A2aCode:
    """Makes the calling side of a version; the tasks of peers are served otherwise."""

    def __init__(self, version: A2aVersion) -> None:
        self._version = version

    def __call__(
        self,
        role: Role,
        parties: Parties,
        *,
        limits: WrittenLimits,
        random_bytes: Callable[[int], bytes],
    ) -> WrittenProtocol:
        """See `WrittenCode`."""
        if role is not Role.REQUESTER:
            raise MisuseError("channels of peers that speak A2A carry tasks")
        return A2aRequester(self._version, parties, limits, random_bytes)


@dataclass(slots=True)
class _Call:
    call_id: str
    until: float


class A2aRequester(CallingSide, WrittenSide):
    """Calls become messages that name a skill, and the results of tasks answers."""

    def __init__(
        self,
        version: A2aVersion,
        parties: Parties,
        limits: WrittenLimits,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        super().__init__(parties, limits, random_bytes)
        self._version = version
        self._calls: dict[int, _Call] = {}
        self._number = 0
        self._outgoing: list[bytes] = []

    @property
    def waiting(self) -> int:
        """See `WrittenProtocol`."""
        return len(self._calls)

    def offer(
        self, capabilities: Sequence[Capability], *, now: float, wall_now: datetime
    ) -> None:
        """See `WrittenProtocol`; nothing of ours is called here."""

    def ask(self, call: Ask, *, now: float, wall_now: datetime) -> None:
        """See `WrittenProtocol`."""
        message = A2aMessage(
            id=self._random_bytes(16).hex(),
            parts=(skill_part(call.action, call.arguments),),
            metadata={ONE_TURN: True},
        )
        self._number += 1
        name = method_name(self._version, A2aMethod.SEND)
        params = {"message": write_message(message, self._version)}
        try:
            data = request_frame(self._number, name, params)
        except (JsonError, ValueError) as exc:
            self._refuse(call.call_id, Refusal.NOT_JSON, str(exc), by_peer=False)
            return
        if len(data) > self._limits.max_message:
            words = f"over {self._limits.max_message} bytes"
            self._refuse(call.call_id, Refusal.TOO_LARGE, words, by_peer=False)
            return
        patience = call.timeout or self._limits.total_timeout
        self._calls[self._number] = _Call(call.call_id, now + patience)
        self._outgoing.append(data)

    def reference(self, call_id: str) -> str | None:
        """See `WrittenProtocol`; an answer does not come on another channel."""
        return None

    def abandon(self, call_id: str) -> None:
        """See `WrittenProtocol`."""
        for number, call in list(self._calls.items()):
            if call.call_id == call_id:
                del self._calls[number]

    def tell(
        self,
        name: str,
        data: dict[str, Any],
        *,
        now: float,
        wall_now: datetime,
        message_id: str = "",
    ) -> None:
        """See `WrittenProtocol`; A2A has no message for it."""
        raise MisuseError("A2A has no events without a task")

    def receive_message(self, data: bytes, *, now: float, wall_now: datetime) -> None:
        """See `WrittenProtocol`."""
        try:
            answer = parse_json(data, max_size=self._limits.max_message)
        except JsonError as exc:
            self._events.append(Flagged(f"no JSON: {exc}"[:200], fault=True))
            return
        number = answer.get("id") if isinstance(answer, dict) else None
        call = self._calls.pop(number, None) if isinstance(number, int) else None
        if call is None:
            self._events.append(Flagged("an answer to nothing", fault=False))
            return
        assert isinstance(answer, dict)
        try:
            self._answered(call.call_id, answer)
        except A2aError as exc:
            self._refuse(
                call.call_id, Refusal.BROKEN_ANSWER, exc.text, may_have_run=True
            )

    def _answered(self, call_id: str, answer: dict[str, Any]) -> None:
        if "error" in answer:
            told = A2aFields(answer["error"], "error")
            number = str(told.raw("code"))[:20]
            self._refuse(
                call_id,
                number,
                told.text("message", most=10_000)[:500],
                may_have_run=number == str(A2aFault.RESULT_TOO_LARGE.code),
            )
            return
        task = read_result(answer.get("result"), self._version)
        if not isinstance(task, A2aTask):
            parts = task.parts if isinstance(task, A2aMessage) else ()
            self._events.append(CallAnswered(call_id, _output(parts)))
            return
        said = _output(task.message.parts) if task.message is not None else ""
        words = said if isinstance(said, str) else ""
        if task.state == TaskState.COMPLETED:
            parts = tuple(part for one in task.artifacts for part in one.parts)
            if not parts and task.message is not None:
                # Some agents give their result as their last words.
                parts = task.message.parts
            self._events.append(CallAnswered(call_id, _output(parts)))
        elif task.state in {TaskState.FAILED, TaskState.CANCELED}:
            code = task.message.metadata.get("code") if task.message else None
            shown = code if isinstance(code, str) else str(task.state)
            failure = shown[:64], words[:500]
            self._events.append(CallAnswered(call_id, None, failure))
        else:
            reason = words[:500] or f"the task is {task.state}"
            self._refuse(call_id, Refusal.UNKNOWN_ACTION, reason)

    def _refuse(self, call_id: str, code: str, message: str, **more: bool) -> None:
        self._events.append(CallRefused(call_id, code, message, **more))

    def messages_to_send(self) -> list[bytes]:
        """See `WrittenProtocol`."""
        found, self._outgoing = self._outgoing, []
        return found

    def get_timer(self) -> float | None:
        """See `WrittenProtocol`."""
        return min((call.until for call in self._calls.values()), default=None)

    def handle_timer(self, *, now: float, wall_now: datetime) -> None:
        """See `WrittenProtocol`."""
        for number, call in list(self._calls.items()):
            if now >= call.until:
                del self._calls[number]
                self._refuse(
                    call.call_id,
                    Refusal.TIMEOUT,
                    "no answer in time",
                    may_have_run=True,
                    by_peer=False,
                )


def _output(parts: Sequence[Part]) -> Any:
    """Return the output that parts are: a JSON value, or a text."""
    for part in parts:
        if part.kind is PartKind.JSON:
            return part.content
    return "".join(str(p.content) for p in parts if p.kind is PartKind.TEXT)
