"""The common part of both sides of a channel that carries calls over GB/Z 185.6.

A call of one turn is a task in a session of the channel. The conversations are kept in
memory and end with the channel; whoever lets tasks outlive it uses `GbzLine` with
conversations that are stored.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from anp.interaction.conversation import Conversation
from anp.interaction.elements import (
    Message,
    MessagePurpose,
    Part,
    PartyMode,
    SenderRole,
    Session,
)
from anp.interaction.errors import InteractionError, InteractionFault
from anp.interaction.operations import (
    Acknowledgement,
    MessageSend,
    NotifyRegister,
    NotifyUnregister,
    Operation,
    RefusedOperation,
    SessionOpen,
    SessionUpdate,
    TaskCreate,
)
from anp.interaction.step import Step
from anp.protocols.fields import MAX_REF
from anp.protocols.gbz.line import GbzLine
from anp.protocols.gbz.writer import write_data, write_frame
from anp.protocols.line import OperationFrame
from anp.protocols.sides import WrittenSide
from negotiation.consensus.written import (
    Broken,
    Deliver,
    Parties,
    PeerEvent,
    PeerMessage,
    WrittenLimits,
)
from negotiation.errors import JsonError, MisuseError
from negotiation.need import Capability

EVENT: Final = "event"
"Entry of a data item's `metadata` that names an event; for messages without a task."

MAX_NAME: Final = 256
"Longest name of an event, in characters."


@dataclass(frozen=True, slots=True, kw_only=True)
class GbzSetting:
    """The surroundings of one side: its channel and its limits."""

    parties: Parties
    limits: WrittenLimits
    random_bytes: Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Talk:
    """A session of this channel."""

    conversation: Conversation

    peer: str
    "The id that the peer has in it."


class GbzSide(WrittenSide):
    """One side of a channel; see `WrittenProtocol` for what its methods mean."""

    def __init__(self, setting: GbzSetting) -> None:
        super().__init__(setting.parties, setting.limits, setting.random_bytes)
        self._line = GbzLine(setting.limits)
        self._talks: dict[str, Talk] = {}

    def offer(
        self, capabilities: Sequence[Capability], *, now: float, wall_now: datetime
    ) -> None:
        """See `WrittenProtocol`."""
        self._offered = {capability.name: capability for capability in capabilities}

    def tell(
        self,
        name: str,
        data: dict[str, Any],
        *,
        now: float,
        wall_now: datetime,
        message_id: str = "",
    ) -> None:
        """See `WrittenProtocol`; in a message of each open session, without a task."""
        if not 0 < len(name) <= MAX_NAME:
            raise MisuseError(f"the name of an event has 1 to {MAX_NAME} characters")
        if self._ended:
            return
        part = Part.value(data, metadata={EVENT: name})
        for talk in self._talks.values():
            said = self._message(
                talk, "", (part,), purpose=MessagePurpose.COMMUNICATION
            )
            self._check_fits(MessageSend(message=said), f"the event {name!r:.80}")
            if talk.conversation.is_open(wall_now):
                self._do(talk, talk.conversation.post(said, wall_now=wall_now), now)

    def receive_message(self, data: bytes, *, now: float, wall_now: datetime) -> None:
        """See `WrittenProtocol`."""
        # What comes behind a deadline that no timer has reported yet is late as well.
        self.handle_timer(now=now, wall_now=wall_now)
        if self._ended:
            return
        frame = self._line.read(data)
        if frame is not None:
            self._take(frame, now=now, wall_now=wall_now)
        self._events += self._line.notes
        self._line.notes.clear()
        if self._line.broken and not self._ended:
            self.end()
            self._events.append(Broken(self._line.broken))

    def messages_to_send(self) -> list[bytes]:
        """See `WrittenProtocol`."""
        outgoing, self._line.outgoing = self._line.outgoing, []
        return outgoing

    def get_timer(self) -> float | None:
        """See `WrittenProtocol`."""
        due = (talk.conversation.get_timer() for talk in self._talks.values())
        return min((one for one in due if one is not None), default=None)

    def handle_timer(self, *, now: float, wall_now: datetime) -> None:
        """See `WrittenProtocol`."""
        for talk in self._talks.values():
            for name in talk.conversation.handle_timer(now=now):
                self._note(f"chunks of the message {name[:80]!r} did not come")

    @abstractmethod
    def _follow(self, talk: Talk, step: Step, now: float, wall_now: datetime) -> None:
        """Do what a step of the peer's asks of this role."""

    # Incoming.

    def _take(self, frame: OperationFrame, *, now: float, wall_now: datetime) -> None:
        operation, ref = frame.operation, frame.ref
        session = session_of(operation)
        talk = self._talks.get(session)
        try:
            if isinstance(operation, SessionOpen | SessionUpdate):
                _check_modes(operation.session)
            if talk is None and isinstance(operation, SessionOpen):
                self._join(operation.session, ref, wall_now)
                return
            if isinstance(operation, NotifyRegister | NotifyUnregister):
                raise InteractionError(
                    InteractionFault.NOT_ALLOWED, "this agent keeps no registrations"
                )
            if talk is None:
                if isinstance(operation, Acknowledgement | RefusedOperation):
                    return
                raise InteractionError(
                    InteractionFault.UNKNOWN_SESSION, "no such session on this channel"
                )
            step = talk.conversation.receive(
                operation, sender=talk.peer, ref=ref, now=now, wall_now=wall_now
            )
        except InteractionError as exc:
            self._line.refuse(exc, ref=ref, session=session)
            return
        self._do(talk, step, now)
        self._hear(step)
        self._follow(talk, step, now, wall_now)

    def _join(self, session: Session, ref: int, wall_now: datetime) -> None:
        """Take a session that the peer opens, where this side works for its peer.

        Raises:
            InteractionError: It does not, and a task that it took would never end. By
                this code the peer opens its session on another channel.
        """
        raise InteractionError(
            InteractionFault.UNKNOWN_SESSION, "this channel has calls of one turn alone"
        )

    def _hear(self, step: Step) -> None:
        """Pass on what the peer says without any task."""
        for message in step.whole:
            if message.task:
                continue
            first = message.parts[0]
            name = first.metadata.get(EVENT)
            if isinstance(name, str) and isinstance(first.content, dict):
                said: PeerEvent | PeerMessage = PeerEvent(
                    name[:MAX_NAME], first.content, False, message.metadata
                )
            else:
                items = [write_data(part) for part in message.parts]
                said = PeerMessage("message", {"dataItems": items}, message.metadata)
            self._events.append(Deliver(said))

    # Outgoing.

    def _do(self, talk: Talk, step: Step, now: float) -> None:
        """Send what a step says; it was looked at before that it can be sent."""
        for send in step.sends:
            if send.to == talk.peer:
                self._line.write(send)

    def _check_fits(self, operation: Operation, what: str) -> None:
        """Raise MisuseError if an operation cannot be sent."""
        try:
            self._probe(operation)
        except JsonError as exc:
            raise MisuseError(f"{what} cannot be sent: {exc}") from None

    def _probe(self, operation: Operation) -> None:
        """Raise JsonError if an operation cannot be sent."""
        # With the longest number, so that it fits with any.
        write_frame(operation, MAX_REF, max_size=self._limits.max_message)

    def _message(
        self, talk: Talk, task: str, parts: tuple[Part, ...], **more: Any
    ) -> Message:
        """Return a message of ours with a new id."""
        conversation = talk.conversation
        is_requester = conversation.is_requester
        return Message(
            id=self._new_id(),
            session=conversation.session.id,
            task=task,
            sender=conversation.own,
            role=SenderRole.REQUESTER if is_requester else SenderRole.SERVICE,
            parts=parts,
            **more,
        )


def session_of(operation: Operation) -> str:
    """Return the id of the session that an operation is about."""
    match operation:
        case SessionOpen(session=session) | SessionUpdate(session=session):
            return session.id
        case TaskCreate(task=task):
            return task.session
        case MessageSend(message=message):
            return message.session
        case _:
            return operation.session


def _check_modes(session: Session) -> None:
    if any(one.mode is PartyMode.GROUP for one in session.participants):
        raise InteractionError(
            InteractionFault.NOT_ALLOWED, "groups are not in this version"
        )
