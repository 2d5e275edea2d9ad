"""The interface of protocols that are written by hand: trusted code, many messages.

A negotiated document describes one request and one answer. A written protocol is a pure
object, one for each channel and role. Its inputs are the calls of its own agent, the
peer's messages, the outcomes of capability calls and the time; its outputs are
messages, capability calls, events and answers (DESIGN.md, The module contract). It uses
no socket, clock or random source of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from negotiation.errors import MisuseError
from negotiation.exchange.limits import check_limits
from negotiation.need import Capability, Role
from negotiation.strict_json import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """The two sides of a channel, as proved in the handshake."""

    own_id: str
    "Our DID on this channel."

    peer_id: str
    "The peer's verified DID in the form that it uses."

    own_aliases: frozenset[str] = frozenset()
    "Other names under which the peer may address us."

    peer_aliases: frozenset[str] = frozenset()
    "Other proved names of the peer, such as its `did:key`."

    @property
    def own_names(self) -> frozenset[str]:
        """All names that mean us."""
        return self.own_aliases | {self.own_id}

    @property
    def peer_names(self) -> frozenset[str]:
        """All names that the peer may give as its own."""
        return self.peer_aliases | {self.peer_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLimits:
    """Limits of one written protocol on one channel."""

    answer_timeout: float = 60.0
    "Seconds to wait for an answer, from the request or from the last progress message."

    total_timeout: float = 600.0
    "Seconds after which a call ends, even if the peer still reports progress."

    progress_after: float = 15.0
    "Seconds that a capability of ours may take before we report progress."

    max_message: int = 768 * 1024
    "Largest message in bytes, in both directions; it must fit into a frame."

    max_asked: int = 256
    "Largest number of our agent's calls that wait for answers."

    max_served: int = 16
    "Largest number of the peer's calls in progress; with that many, `full` is true."

    max_faults: int = 32
    "Messages of the peer that break the protocol before the channel is closed."

    max_errors: int = 256
    "Largest number of messages in which we only report faults in the peer's messages."

    def __post_init__(self) -> None:
        counts = {"max_asked", "max_served", "max_faults", "max_errors"}
        check_limits(self, "", at_least_one=counts)
        if self.max_message < 16 * 1024:
            raise MisuseError("max_message must be >= 16384 bytes")


# Inputs, besides bytes and time.


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A call by our own agent."""

    call_id: str
    "Our id, new on this channel; every event about the call has it."

    action: str
    "The wanted capability of the peer, or an action that the protocol reserves."

    arguments: dict[str, Any]

    timeout: float | None = None
    "Seconds in which the peer has to answer, in place of `WrittenLimits`."

    reference: str | None = None
    """The value of `reference` for it on an earlier channel, whose link was lost:
    nothing is sent, and its answer is waited for."""

    to_all: bool = False
    "True when every member of the group is asked; the answers are then collected."

    metadata: Mapping[str, Json] = field(default_factory=dict)
    "Additional context; the protocol's own entries take precedence."


# Outputs, besides messages.


@dataclass(frozen=True, slots=True)
class CallCapability:
    """A call by the peer; answer with `capability_answered` or `capability_failed`."""

    call_id: str

    name: str
    "Full name of a capability that was offered when the message came."

    arguments: dict[str, Any]
    "The call's data, not yet validated against the capability's schema."


@dataclass(frozen=True, slots=True)
class Declined:
    """A call by the peer that named no capability which is offered to it."""

    name: str
    "The name that the peer gave."

    reason: str
    "Reason in our own words."


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """A call of our agent was answered, with a result or an error."""

    call_id: str

    result: Json
    "The result, not yet validated against a schema; None with an error."

    error: tuple[str, str] | None = None
    "Code and message when the peer's capability ran and failed."

    details: Json = None


class Refusal(StrEnum):
    """Codes of `CallRefused` that we handle; the peer may use others too."""

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
"Codes from a peer: the same call may succeed through another protocol."

NOTHING_SENT = frozenset({Refusal.TOO_LARGE, Refusal.TOO_MANY, Refusal.NOT_JSON})
"Codes from our side: the call was refused before anything was sent."


@dataclass(frozen=True, slots=True)
class CallRefused:
    """A call of our agent was not processed, or its outcome is unknown."""

    call_id: str

    code: str
    "One of `Refusal`, or a code of the peer's own."

    message: str
    "Reason in words; may quote the peer."

    details: Json = None

    may_have_run: bool = False
    "True when the peer may have carried out the call nevertheless."

    by_peer: bool = True
    "True when the peer refused; false when our side did."


@dataclass(frozen=True, slots=True)
class Progress:
    """The peer is working on a call of ours."""

    call_id: str

    status: str
    "The peer's own word for the state of its work."

    result: Json
    "The result so far, an object."


@dataclass(frozen=True, slots=True)
class PeerEvent:
    """The peer reports that something happened."""

    name: str
    data: dict[str, Any]

    to_all: bool
    "True when it was sent to everybody."

    metadata: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class PeerNotice:
    """The peer reports an error that belongs to no call."""

    code: str
    "The peer's code, or our equivalent."

    message: str
    details: Json


@dataclass(frozen=True, slots=True)
class PeerMessage:
    """A message of an additional type that our side accepts."""

    message_type: str
    payload: dict[str, Any]
    metadata: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class PeerAnnouncement:
    """The peer lists its capabilities; our owner decides about their use."""

    capabilities: tuple[Mapping[str, Json], ...]
    "Objects with at least `name`; hostile like all data from a peer."


@dataclass(frozen=True, slots=True)
class PeerWithdrawal:
    """The peer withdraws the capabilities that it announced."""


PeerSaid = PeerEvent | PeerNotice | PeerMessage | PeerAnnouncement | PeerWithdrawal
"Information for the owner's side, which nobody waits for."


@dataclass(frozen=True, slots=True)
class Deliver:
    """Passes information to the owner's side."""

    said: PeerSaid


@dataclass(frozen=True, slots=True)
class Flagged:
    """An observation about the peer's messages for the log."""

    reason: str
    "Description in our words; parts quoted from the peer are shortened and escaped."

    fault: bool
    "True when the peer broke the protocol; only these count towards `Broken`."


@dataclass(frozen=True, slots=True)
class Broken:
    """The peer broke the protocol too often; the channel must be closed."""

    reason: str


WrittenEvent = (
    CallCapability
    | Declined
    | CallAnswered
    | CallRefused
    | Progress
    | Deliver
    | Flagged
    | Broken
)


class WrittenProtocol(Protocol):
    """A written protocol on one channel, in one role.

    After each call send what `messages_to_send` returns, act on every `next_event`, and
    re-arm `get_timer`. `now` is seconds on one monotonic clock, `wall_now` is UTC. No
    message of a peer makes a method raise; misuse by our own code raises `MisuseError`.
    """

    @property
    def full(self) -> bool:
        """True while nothing more should be read from the peer."""
        ...

    @property
    def waiting(self) -> int:
        """Number of calls of our agent that have not ended."""
        ...

    def start(self, *, now: float, wall_now: datetime) -> None:
        """Begin; called once, before all other methods."""
        ...

    def end(self) -> None:
        """Note that the channel has ended; later calls have no effect."""
        ...

    def offer(
        self, capabilities: Sequence[Capability], *, now: float, wall_now: datetime
    ) -> None:
        """Set the capabilities that this peer may use; before the first call none."""
        ...

    def ask(self, call: Ask, *, now: float, wall_now: datetime) -> None:
        """Begin a call; it ends with exactly one `CallAnswered` or `CallRefused`.

        Messages to send afterwards, if any, are the request of this call.
        """
        ...

    def reference(self, call_id: str) -> str | None:
        """Return what tells the answer to a call apart from others, if it waits."""
        ...

    def abandon(self, call_id: str) -> None:
        """Forget a call that nobody waits for; no event about it follows."""
        ...

    def tell(
        self,
        name: str,
        data: dict[str, Any],
        *,
        now: float,
        wall_now: datetime,
        message_id: str = "",
    ) -> None:
        """Tell the peer that something happened.

        Args:
            message_id: Id of a message that goes to several peers, where the protocol
                has one; empty for a new one.

        Raises:
            MisuseError: The data cannot be written as a message; nothing was sent.
        """
        ...

    def receive_message(self, data: bytes, *, now: float, wall_now: datetime) -> None:
        """Handle one message of the peer."""
        ...

    def capability_answered(
        self, call_id: str, output: Json, *, now: float, wall_now: datetime
    ) -> None:
        """Pass in the output of a capability."""
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
        """Pass in a capability's failure; `ran` is False when it was not called."""
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
        """Do everything that is due by now."""
        ...


class WrittenCode(Protocol):
    """Makes the objects for one version of a consensus protocol (ANP-91)."""

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
