"""A call of our agent: its request, its state, and its result with its steps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from anp.sidecar.bound.signs import CallSign
from anp.sidecar.bound.updates import UpdateSink
from anp.sidecar.calls.events import Event, EventWatcher
from cache.records.records import Count, Hash
from negotiation.need import Need

SOURCES = ("agreement", "published", "consensus", "negotiated", "natural_language")
"The ways by which a call can come to its protocol."


class Mode(StrEnum):
    """The way a call is carried: through a protocol, or in words."""

    AUTO = "auto"
    "Through a protocol; never in words without being asked to."

    PROTOCOL = "protocol"
    "Through a protocol."

    NATURAL_LANGUAGE = "natural-language"
    "In words, without a protocol (ANP-72)."


class CallRequest(NamedTuple):
    """A call as the local agent asks for it."""

    peer: str
    """Name, DID, URL or `URL#DID`; empty for the best of the allowed peers that publish
    the capability that the need names."""

    need: Need

    arguments: Any
    "The data, a JSON object."

    timeout: float | None = None
    """Seconds for everything together, at most `call.max_timeout`; None for the
    configured limits, of which `call.timeout` holds for the call itself."""

    lasts: bool = False
    "It carries a task, and without `timeout` it has the time of one."

    trust_first_use: bool = False
    "The owner allows a first use over an unencrypted connection."

    mode: Mode = Mode.AUTO
    "Through a protocol or in words."

    protocol: str | None = None
    "URI of a consensus protocol that is wanted, or None for whatever serves."

    on_progress: Callable[[str, float], None] | None = None
    "Called after each step, with the step and the milliseconds until then."

    on_sign: Callable[[CallSign], None] | None = None
    "Called for each sign of the peer's that the call is worked on."

    updates: UpdateSink | None = None
    "Takes each value that comes before the answer; None wants the answer alone."

    on_send: Callable[[bool], Awaitable[None]] | None = None
    """Awaited before the first byte of a request to the peer leaves; what it raises
    keeps the request here. It is told if the request may be repeated without harm."""


@dataclass(frozen=True, slots=True)
class CallStep:
    """One step of a call."""

    what: str
    "The step, in words."

    ms: float
    "Milliseconds since the call began."


# Not frozen: that would take four times as long to make, and each call makes one.
@dataclass(slots=True, kw_only=True)
class CallResult:
    """The result of a call, with the way it took and its price."""

    output: Any
    "The result."

    protocol: Hash | None
    "Hash of the document it went through; None when it went in words."

    source: Annotated[str, Field(pattern=f"^({'|'.join(SOURCES)})$")]
    "`agreement`, `published`, `consensus`, `negotiated` or `natural_language`."

    peer_did: str
    "DID the peer proved."

    negotiation_id: str | None
    "The negotiation the protocol came from."

    uri: str | None = None
    "The consensus protocol it went through, if it was one."

    capability: str | None = None
    "Full name of the peer's capability that ran; null where the peer did not say it."

    notes: Sequence[str] = ()
    """Doubts about the result, one sentence each, such as a place that stays empty or a
    unit that only one side states."""

    negotiation_messages: Count = 0
    "Meta messages of this call, both directions."

    proposals: Count = 0
    "Candidates that were on the table."

    llm_calls: Count = 0
    "Model calls of this call, on our side."

    cost: float = 0.0
    "Cost of those model calls at the owner's prices; 0 where none are set."

    peer_llm_calls: Count | None = None
    "Model calls of this call on the peer's side; null unless the peer told it."

    peer_cost: float | None = None
    "Cost of those as the peer told it; null unless it did."

    ms: float = 0.0
    "Milliseconds for everything."

    timeline: Sequence[CallStep] = ()
    "The steps of the call, in order."


class CallState(StrEnum):
    """The state of a call."""

    RUNNING = "running"
    "It is under way."

    WAITING = "waiting"
    "An owner has to approve first; it asks again by itself."

    DONE = "done"
    "There is a result."

    FAILED = "failed"
    "There is a problem."

    CANCELLED = "cancelled"
    "Its caller took it back."


class KeptCall:
    """One call: its state, its events, and its result or error."""

    def __init__(
        self, call_id: str, request: CallRequest, *, now: float, key: str | None = None
    ) -> None:
        self.id = call_id
        self.request = request
        self.key = key
        self.by_owner = False
        "True if the owner began it, so that no agent sees it or takes it back."
        self.created = now
        self.ended: float | None = None
        self.size = 0
        self.state = CallState.RUNNING
        self.result: CallResult | None = None
        self.error: Exception | None = None
        self.next_attempt: float | None = None
        self.waits_for = ""
        "The thing that it waits for at the moment, in words."
        self.negotiations: list[str] = []
        self.events: list[Event] = []
        self.watchers: set[EventWatcher] = set()
        self.settled = asyncio.Event()
        self.decided = asyncio.Event()
        self.sent = False
        "True once bytes of a request may have left for the peer."
        self.task: asyncio.Task[Any] | None = None
        "The task that carries it; None before one does."

    @property
    def is_over(self) -> bool:
        """True once the call has ended, so that its state stays as it is."""
        return self.ended is not None
