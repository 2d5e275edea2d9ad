"""The interface of protocols that we write by hand: trusted code, many messages.

A negotiated document describes one request and one answer. A written protocol is a pure
object, one for each channel and role, that takes what its own agent wants, what the
peer sent, what came of capability calls and the time, and gives messages, capability
calls, events and answers (DESIGN.md, The module contract). It knows no socket, no clock
and no source of chance; all are given in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from negotiation.errors import MisuseError
from negotiation.need import Capability, Role
from negotiation.strict_json import Json

__all__ = [
    "NOTHING_SENT",
    "NOT_SERVED",
    "Answered",
    "Ask",
    "Broken",
    "CallCapability",
    "CallRefused",
    "Deliver",
    "Flagged",
    "Parties",
    "PeerAnnouncement",
    "PeerEvent",
    "PeerMessage",
    "PeerNotice",
    "PeerSaid",
    "PeerWithdrawal",
    "Progress",
    "Refusal",
    "WrittenCode",
    "WrittenEvent",
    "WrittenLimits",
    "WrittenProtocol",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """Who speaks on a channel; both sides proved it in the handshake."""

    own_id: str
    "What we call ourselves: our DID on this channel."

    peer_id: str
    "The peer's verified DID, as it shows itself."

    own_aliases: frozenset[str] = frozenset()
    "Other names under which the peer may address us."

    peer_aliases: frozenset[str] = frozenset()
    "Other names that are the peer's as surely as its DID, such as its `did:key`."

    @property
    def own_names(self) -> frozenset[str]:
        """Every name that means us."""
        return self.own_aliases | {self.own_id}

    @property
    def peer_names(self) -> frozenset[str]:
        """Every name the peer may give as its own."""
        return self.peer_aliases | {self.peer_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLimits:
    """Limits of one written protocol on one channel."""

    answer_timeout: float = 60.0
    "Seconds to wait for an answer, from the request or from the last sign of work."

    total_timeout: float = 600.0
    "Seconds after which a call ends, whatever signs of work the peer still sends."

    progress_after: float = 15.0
    "Seconds that one of our capabilities may take before we say that it is at work."

    max_message: int = 768 * 1024
    "Largest message in bytes, in both directions; a frame carries no more."

    max_asked: int = 256
    "Most calls of our agent that wait for answers."

    max_served: int = 16
    "Most calls of the peer that are worked on; then `full` is true."

    max_faults: int = 32
    "Messages of the peer that break the protocol before the channel is closed."

    max_errors: int = 256
    "Most messages of our own that only say what is wrong with one of the peer's."

    def __post_init__(self) -> None:
        for name in ("answer_timeout", "total_timeout", "progress_after"):
            if not getattr(self, name) > 0:
                raise MisuseError(f"{name} must be > 0 s")
        for name in ("max_asked", "max_served", "max_faults", "max_errors"):
            if getattr(self, name) < 1:
                raise MisuseError(f"{name} must be >= 1")
        if self.max_message < 16 * 1024:
            raise MisuseError("max_message must be >= 16384 bytes")


# What goes in, beside bytes and time.


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A call of our own agent."""

    call_id: str
    "Ours, not used before on this channel; every event about the call names it."

    action: str
    "What is wanted: a capability of the peer, or an action the protocol reserves."

    arguments: dict[str, Any]
    "The data."

    to_all: bool = False
    "Whether every member of the group is asked; answers are then collected."

    metadata: Mapping[str, Json] = field(default_factory=dict)
    "What goes along for context; the protocol's own entries win."


# What comes out, beside messages.


@dataclass(frozen=True, slots=True)
class CallCapability:
    """A call of the peer; answer with `capability_answered` or `capability_failed`."""

    call_id: str
    "Ours."

    name: str
    "Full name of a capability that was offered when the message came."

    arguments: dict[str, Any]
    "The data; not judged by the capability's schema yet."


@dataclass(frozen=True, slots=True)
class Answered:
    """A call of our agent was answered, well or not."""

    call_id: str
    "Which call."

    result: Json
    "The result, not judged by any schema yet; None with an error."

    error: tuple[str, str] | None = None
    "Code and message when the peer's capability ran and failed."

    details: Json = None
    "What else the peer said about the failure."


class Refusal(StrEnum):
    """Codes of `CallRefused` that we act on; a peer's own words may stand there too."""

    UNKNOWN_ACTION = "unknown_action"
    UNSUPPORTED_VERSION = "unsupported_version"
    UNKNOWN_MESSAGE_TYPE = "unknown_message_type"
    INVALID_PAYLOAD = "invalid_payload"

    TIMEOUT = "timeout"
    BROKEN_ANSWER = "broken_answer"

    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    NOT_JSON = "not_json"


NOT_SERVED = frozenset(
    {Refusal.UNKNOWN_ACTION, Refusal.UNSUPPORTED_VERSION, Refusal.UNKNOWN_MESSAGE_TYPE}
)
"Said by a peer: the same call may go well through another protocol."

NOTHING_SENT = frozenset({Refusal.TOO_LARGE, Refusal.TOO_MANY, Refusal.NOT_JSON})
"Said by us: the call was refused before anything was sent."


@dataclass(frozen=True, slots=True)
class CallRefused:
    """A call of our agent was not processed, or nobody knows what came of it."""

    call_id: str
    "Which call."

    code: str
    "One of `Refusal`, or the peer's own word."

    message: str
    "In words; may quote the peer."

    details: Json = None
    "What else the peer said."

    may_have_run: bool = False
    "Whether the peer may have acted on it all the same."

    by_peer: bool = True
    "Whether the peer said so; otherwise we found it."


@dataclass(frozen=True, slots=True)
class Progress:
    """The peer works on a call of ours."""

    call_id: str
    "Which call."

    status: str
    "The peer's word for how far it is."

    result: Json
    "What there is so far; an object."


@dataclass(frozen=True, slots=True)
class PeerEvent:
    """The peer tells of something that happened."""

    name: str
    "What."

    data: dict[str, Any]
    "About it."

    to_all: bool
    "Whether it was said to everybody."

    metadata: Mapping[str, Json]
    "What came along."


@dataclass(frozen=True, slots=True)
class PeerNotice:
    """The peer tells of an error that belongs to no call."""

    code: str
    "The peer's word, or ours for an equal one."

    message: str
    "In words."

    details: Json
    "What else it said."


@dataclass(frozen=True, slots=True)
class PeerMessage:
    """A message of a further type that our side declared to take."""

    message_type: str
    "Which type."

    payload: dict[str, Any]
    "Its content."

    metadata: Mapping[str, Json]
    "What came along."


@dataclass(frozen=True, slots=True)
class PeerAnnouncement:
    """The peer says what it can do; whether that is used is our owner's matter."""

    capabilities: tuple[Mapping[str, Json], ...]
    "Objects with at least `name`; hostile like all that a peer sends."


@dataclass(frozen=True, slots=True)
class PeerWithdrawal:
    """The peer takes back what it announced."""


PeerSaid = PeerEvent | PeerNotice | PeerMessage | PeerAnnouncement | PeerWithdrawal
"What is delivered to the owner's side; nobody waits for it."


@dataclass(frozen=True, slots=True)
class Deliver:
    """Something for the owner's side."""

    said: PeerSaid
    "What."


@dataclass(frozen=True, slots=True)
class Flagged:
    """Something about the peer's messages that is worth a line in the log."""

    reason: str
    "In our words; quotes the peer only cut and through `repr`."

    fault: bool
    "Whether it broke the protocol; only such ones count towards `Broken`."


@dataclass(frozen=True, slots=True)
class Broken:
    """The peer broke the protocol too often; the channel has to be closed."""

    reason: str
    "In words."


WrittenEvent = (
    CallCapability | Answered | CallRefused | Progress | Deliver | Flagged | Broken
)


class WrittenProtocol(Protocol):
    """One channel and role of a protocol that we wrote.

    After each call send what `messages_to_send` returns, act on every `next_event`, and
    re-arm `get_timer`. `now` is seconds on one monotonic clock, `wall_now` UTC. Nothing
    a peer sends makes a method raise; misuse by our own code raises `MisuseError`.
    """

    @property
    def full(self) -> bool:
        """True while nothing more should be read from the peer."""
        ...

    @property
    def waiting(self) -> int:
        """Calls of our agent that have not ended."""
        ...

    def start(self, *, now: float, wall_now: datetime) -> None:
        """Begin; called once, before everything else."""
        ...

    def end(self) -> None:
        """Take note that the channel has ended; afterwards nothing has an effect."""
        ...

    def offer(
        self, capabilities: Sequence[Capability], *, now: float, wall_now: datetime
    ) -> None:
        """Say what this peer may use from now on; nothing before the first time."""
        ...

    def ask(self, call: Ask, *, now: float, wall_now: datetime) -> None:
        """Begin a call; it ends with exactly one `Answered` or `CallRefused`.

        Messages that are to be sent afterwards, if any, are this call's request.
        """
        ...

    def abandon(self, call_id: str) -> None:
        """Forget a call that nobody waits for; no event about it will come."""
        ...

    def tell(
        self, name: str, data: dict[str, Any], *, now: float, wall_now: datetime
    ) -> None:
        """Tell the peer of something that happened.

        Raises:
            MisuseError: It cannot be written as a message; nothing was sent.
        """
        ...

    def receive_message(self, data: bytes, *, now: float, wall_now: datetime) -> None:
        """Handle one message of the peer."""
        ...

    def capability_answered(
        self, call_id: str, output: Json, *, now: float, wall_now: datetime
    ) -> None:
        """Hand in what a capability gave."""
        ...

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
        """Hand in that a capability failed, or was never called (`ran` is False)."""
        ...

    def messages_to_send(self) -> list[bytes]:
        """Return the messages to send now, in order, and forget them."""
        ...

    def next_event(self) -> WrittenEvent | None:
        """Return the oldest event not yet returned, or None."""
        ...

    def get_timer(self) -> float | None:
        """Return when `handle_timer` is due, or None."""
        ...

    def handle_timer(self, *, now: float, wall_now: datetime) -> None:
        """Do what time has made due."""
        ...


class WrittenCode(Protocol):
    """Code for one version of a consensus protocol (ANP-91): makes its objects."""

    def __call__(
        self,
        role: Role,
        parties: Parties,
        *,
        limits: WrittenLimits,
        random_bytes: Callable[[int], bytes],
    ) -> WrittenProtocol:
        """Return the object for one channel."""
        ...
