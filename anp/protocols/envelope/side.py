"""The common part of both sides of a channel that is bound to the envelope."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from anp.protocols.envelope.memory import MessageMemory
from anp.protocols.envelope.messages import (
    AGENT_ONLINE,
    BROADCAST,
    ENVELOPE_VERSION,
    EnvelopeErrorCode,
    EnvelopeMessage,
    ErrorPayload,
    EventPayload,
    MessageType,
    OtherPayload,
    Payload,
    RequestPayload,
    ResponsePayload,
    build_message,
)
from anp.protocols.envelope.reader import MAX_NAME, EnvelopeError, Head, read_message
from anp.protocols.sides import WrittenSide
from negotiation.consensus.written import (
    Broken,
    Deliver,
    Flagged,
    Parties,
    PeerEvent,
    PeerMessage,
    PeerNotice,
    WrittenLimits,
)
from negotiation.errors import JsonError, MisuseError
from negotiation.need import Capability
from negotiation.strict_json import Json

MAX_SHOWN = 200
"Most characters of a peer's text in what we log or answer."

ANSWERABLE = frozenset({MessageType.RESPONSE, MessageType.ERROR, MessageType.EVENT})
"Types whose faults are never answered: that could go on for ever (ENV-Q12)."


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSetting:
    """The surroundings of one side: its channel, its limits, and its options."""

    parties: Parties
    limits: WrittenLimits
    random_bytes: Callable[[int], bytes]

    memory: MessageMemory
    "The messages of this peer that were seen, on any channel."

    announce: bool
    "Send `agent_online` when what we offer changes."

    further_types: frozenset[str]
    "Message types beside those of the seed that are delivered (ENV-4)."

    version: str = ENVELOPE_VERSION
    "The version of the protocol that the channel is bound to."


class Side(WrittenSide):
    """One side of a channel; `Requester` and `Provider` add what only they do.

    See `WrittenProtocol` for what its methods mean.
    """

    def __init__(self, setting: SideSetting) -> None:
        """Begin on a channel that is bound to the envelope."""
        super().__init__(setting.parties, setting.limits, setting.random_bytes)
        if BROADCAST in self._parties.own_names | self._parties.peer_names:
            raise MisuseError("no agent may be named `broadcast` (ENV-Q14)")
        self._senders = self._parties.peer_names
        self._receivers = self._parties.own_names | {BROADCAST}
        self._memory = setting.memory
        self._announce = setting.announce
        self._further_types = setting.further_types
        self._version = setting.version
        self._outgoing: list[bytes] = []
        self._faults = 0
        self._errors = 0
        self._last_id = ""

    def end(self) -> None:
        """See `WrittenProtocol`."""
        super().end()
        self._memory.end(self)

    def offer(
        self, capabilities: Sequence[Capability], *, now: float, wall_now: datetime
    ) -> None:
        """See `WrittenProtocol`."""
        offered = {capability.name: capability for capability in capabilities}
        changed = offered.keys() != self._offered.keys()
        self._offered = offered
        if changed and self._announce and not self._ended:
            data = {"capabilities": sorted(offered)}
            self.tell(AGENT_ONLINE, data, now=now, wall_now=wall_now)

    def tell(
        self,
        name: str,
        data: dict[str, Any],
        *,
        now: float,
        wall_now: datetime,
        to_all: bool = True,
        message_id: str = "",
    ) -> None:
        """See `WrittenProtocol`; an event is usually broadcast (ENV-20)."""
        if not 0 < len(name) <= MAX_NAME:
            raise MisuseError(f"the name of an event has 1 to {MAX_NAME} characters")
        if self._ended:
            return
        receiver = BROADCAST if to_all else self._parties.peer_id
        try:
            self._send(
                EventPayload(name, data),
                wall_now=wall_now,
                receiver_id=receiver,
                message_id=message_id,
            )
        except JsonError as exc:
            raise MisuseError(f"the event {name!r:.80} cannot be sent: {exc}") from None

    def receive_message(self, data: bytes, *, now: float, wall_now: datetime) -> None:
        """See `WrittenProtocol`."""
        # What comes behind a deadline that no timer has reported yet is late as well.
        self.handle_timer(now=now, wall_now=wall_now)
        if self._ended:
            return
        try:
            message = read_message(
                data,
                max_size=self._limits.max_message,
                wall_now=wall_now,
                version=self._version,
            )
            self._check_parties(message)
            for flag in message.flags:
                self._events.append(Flagged(flag, fault=False))
            self._handle(message, now=now, wall_now=wall_now)
        except EnvelopeError as exc:
            self._refuse(exc, wall_now)

    def messages_to_send(self) -> list[bytes]:
        """See `WrittenProtocol`."""
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def get_timer(self) -> float | None:
        """See `WrittenProtocol`."""
        return None

    @abstractmethod
    def handle_timer(self, *, now: float, wall_now: datetime) -> None:
        """See `WrittenProtocol`."""

    # What a role adds.

    @abstractmethod
    def _request(
        self, message: EnvelopeMessage, *, now: float, wall_now: datetime
    ) -> None:
        """Take a request that is not a duplicate."""

    def _repeated(self, message: EnvelopeMessage, *, wall_now: datetime) -> None:
        """Take a request whose id was seen before."""
        self._note("a repeated request was dropped")

    def _response(
        self, message: EnvelopeMessage, payload: ResponsePayload, now: float
    ) -> None:
        """Take an answer."""
        self._note("an answer to nothing was dropped")

    def _error(self, message: EnvelopeMessage, payload: ErrorPayload) -> bool:
        """Take an error that names a request; return whether it is one of ours."""
        return False

    @abstractmethod
    def _broken_answer(self, head: Head, reason: str) -> None:
        """Take an answer that is not valid, though it names what it answers."""

    # Incoming.

    def _check_parties(self, message: EnvelopeMessage) -> None:
        """Let nobody speak in another's name, or to somebody else (ENV-Q13)."""
        if message.sender_id not in self._senders:
            raise EnvelopeError(
                "sender_id is not who speaks on this channel", _head_of(message)
            )
        if message.receiver_id not in self._receivers:
            raise EnvelopeError(
                "receiver_id is nobody on this channel",
                _head_of(message),
                code=EnvelopeErrorCode.AGENT_UNAVAILABLE,
            )

    def _handle(
        self, message: EnvelopeMessage, *, now: float, wall_now: datetime
    ) -> None:
        known = self._memory.find(message.message_id)
        if known is not None:
            if isinstance(message.payload, RequestPayload):
                self._repeated(message, wall_now=wall_now)
            else:
                self._note("a repeated message was dropped")
            return
        match message.payload:
            case RequestPayload():
                self._request(message, now=now, wall_now=wall_now)
                return
            case ResponsePayload() as payload:
                self._response(message, payload, now)
            case EventPayload(name, data):
                to_all = message.receiver_id == BROADCAST
                self._deliver(PeerEvent(name, data, to_all, message.metadata))
            case ErrorPayload() as payload:
                self._take_error(message, payload)
            case OtherPayload(value):
                if message.message_type not in self._further_types:
                    self._unknown_type(message)
                self._deliver(
                    PeerMessage(message.message_type, value, message.metadata)
                )
        self._memory.take(message.message_id)

    def _take_error(self, message: EnvelopeMessage, payload: ErrorPayload) -> None:
        if message.correlation_id is None:
            notice = PeerNotice(payload.code, payload.message, payload.details)
            self._deliver(notice)
        elif not self._error(message, payload):
            shown = repr(f"{payload.code}: {payload.message}"[:MAX_SHOWN])
            self._note(f"an error about nothing that waits was dropped: {shown}")

    def _unknown_type(self, message: EnvelopeMessage) -> None:
        raise EnvelopeError(
            f"messages of the type {message.message_type!r} are not known here",
            Head(
                message_id=message.message_id,
                message_type=message.message_type,
                receiver_id=message.receiver_id,
            ),
            code=EnvelopeErrorCode.UNKNOWN_MESSAGE_TYPE,
            details={"known": [*MessageType, *sorted(self._further_types)]},
            fault=False,
        )

    def _refuse(self, problem: EnvelopeError, wall_now: datetime) -> None:
        """Note a message that was not processed, and say so where that is safe."""
        head = problem.head
        self._events.append(Flagged(problem.reason[:MAX_SHOWN], fault=problem.fault))
        if problem.fault:
            self._count_fault()
        if (
            head.message_type in (MessageType.RESPONSE, MessageType.ERROR)
            and head.correlation_id is not None
        ):
            self._broken_answer(head, problem.reason)
        if (
            self._ended
            or head.message_id is None
            or head.message_type is None
            or head.message_type in ANSWERABLE
            or head.receiver_id in (None, BROADCAST)
        ):
            return
        self._errors += 1
        if self._errors > self._limits.max_errors:
            self._break("too many messages of the peer could not be processed")
            return
        self._send_error(
            problem.code,
            problem.reason,
            details=problem.details,
            correlation_id=head.message_id,
            wall_now=wall_now,
        )

    def _count_fault(self) -> None:
        self._faults += 1
        if self._faults > self._limits.max_faults:
            self._break(f"{self._faults} messages of the peer broke the protocol")

    def _break(self, reason: str) -> None:
        if not self._ended:
            self.end()
            self._events.append(Broken(reason))

    def _deliver(self, said: PeerEvent | PeerNotice | PeerMessage) -> None:
        self._events.append(Deliver(said))

    # Outgoing.

    def _send_error(
        self,
        code: str,
        message: str,
        *,
        correlation_id: str | None,
        wall_now: datetime,
        details: dict[str, Any] | None = None,
    ) -> bytes:
        return self._send(
            ErrorPayload(code, message[:500], details or {}),
            correlation_id=correlation_id,
            wall_now=wall_now,
        )

    def _send(
        self,
        payload: Payload,
        *,
        wall_now: datetime,
        receiver_id: str | None = None,
        correlation_id: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        message_id: str = "",
    ) -> bytes:
        """Build a message and put it among those to send.

        Raises:
            JsonError: It cannot be sent.
        """
        message = EnvelopeMessage(
            message_id=message_id or self._new_id(),
            sender_id=self._parties.own_id,
            receiver_id=receiver_id or self._parties.peer_id,
            message_type=_TYPES[type(payload)],
            payload=payload,
            sent_at=wall_now,
            metadata=metadata or {},
            correlation_id=correlation_id,
            version=self._version,
        )
        data = build_message(message, max_size=self._limits.max_message)
        self._outgoing.append(data)
        self._last_id = message.message_id
        return data


def _head_of(message: EnvelopeMessage) -> Head:
    return Head(
        message_id=message.message_id,
        message_type=message.message_type,
        receiver_id=message.receiver_id,
        correlation_id=message.correlation_id,
    )


_TYPES: dict[type[Payload], MessageType] = {
    RequestPayload: MessageType.REQUEST,
    ResponsePayload: MessageType.RESPONSE,
    EventPayload: MessageType.EVENT,
    ErrorPayload: MessageType.ERROR,
}
