"""Turns each event of the daemon into metrics, spans, entries of the access log, and
work that a stop waits for.

The parts of the daemon report to one `Observer` and do not know whether anybody counts,
traces or writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, TracerProvider

from anp.errors import CallError, ErrorKind
from anp.sidecar.telemetry.call_entry import RUNNING, CallEntry, Direction
from anp.sidecar.telemetry.metrics import Metrics
from anp.sidecar.telemetry.tracing import caller_trace
from anp.version import daemon_version

_SILENT = frozenset({"no_answer", "silent", "broken", "timeout", "unreachable"})
"Outcomes of a model that is away."

_REPLIES = frozenset({"http_4", "http_5"})
"Statuses that are counted together."

_QUOTING = frozenset(
    {ErrorKind.APPLICATION_ERROR, ErrorKind.USAGE, ErrorKind.GENERATED_CODE}
)
"Errors whose words, after the first colon, may quote data of the call."

NO_SPAN: Final[AbstractContextManager[Span]] = contextlib.nullcontext(INVALID_SPAN)
"For blocks while traces are off."


@dataclass(frozen=True, slots=True)
class CallOrigin:
    """The local request that a call of our agent is made for."""

    id: str
    "Id of the call at the local API."

    by_owner: bool
    "True if the owner asked for it, False if an agent did."


call_origin: contextvars.ContextVar[CallOrigin | None] = contextvars.ContextVar(
    "call_origin", default=None
)
"The request that this asyncio task works for; None for a call without one."


class Flights:
    """Counts the work that a graceful stop waits for: each block below it.

    Begun work always goes on.
    """

    def __init__(self) -> None:
        self._count = 0
        self._landed = asyncio.Event()
        self.closed = False
        "True once the daemon stops: nothing new is begun."

    @property
    def count(self) -> int:
        """Number of pieces of work that run now."""
        return self._count

    def __enter__(self) -> None:
        self._count += 1

    def __exit__(self, *_: object) -> None:
        self._count -= 1
        self._landed.set()

    async def landed(self) -> None:
        """Wait until another piece of work has ended."""
        self._landed.clear()
        await self._landed.wait()


@dataclass(slots=True, eq=False)
class CallSeen:
    """A call under way, filled in by who carries it; see `CallEntry` for its fields."""

    direction: Direction

    source: str = "none"
    "The way it took; see the labels of `anpd_calls_total`."

    outcome: str = "ok"

    reason: str = ""
    peer: str | None = None
    asked: str = ""
    need: str = ""
    capability: str | None = None
    protocol: str | None = None
    uri: str | None = None
    negotiation_id: str | None = None

    llm_calls: int = 0
    cost: float = 0.0
    peer_llm_calls: int | None = None
    peer_cost: float | None = None

    is_trial: bool = False
    "True for a test request (PT=11), which is no call and gets no entry."

    origin: CallOrigin | None = None
    id: str = field(default_factory=lambda: os.urandom(8).hex())
    at: float = field(default_factory=time.time)
    began: float = field(default_factory=time.monotonic)

    def refused(self, outcome: str, reason: str) -> None:
        """Note that it did not go well; the reason quotes nothing that it carried."""
        self.outcome, self.reason = outcome, reason

    def failed(self, exc: BaseException) -> None:
        """Note the error that ended it."""
        self.outcome = _outcome_of(exc)
        if isinstance(exc, CallError):
            detail = exc.detail
            quoting = exc.kind in _QUOTING
            self.reason = detail.partition(": ")[0] if quoting else detail

    def entry(self, *, running: bool = False) -> CallEntry:
        """Return its entry as of now."""
        origin = self.origin or CallOrigin(self.id, False)
        return CallEntry(
            id=origin.id,
            direction=self.direction,
            at=round(self.at, 3),
            ms=round((time.monotonic() - self.began) * 1000, 1),
            outcome=RUNNING if running else self.outcome,
            reason=self.reason,
            peer=self.peer,
            asked=self.asked,
            need=self.need,
            capability=self.capability,
            protocol=self.protocol,
            uri=self.uri,
            source=self.source,
            negotiation_id=self.negotiation_id,
            llm_calls=self.llm_calls,
            cost=self.cost,
            peer_llm_calls=self.peer_llm_calls,
            peer_cost=self.peer_cost,
            by_owner=origin.by_owner,
        )


_current: contextvars.ContextVar[CallSeen | None] = contextvars.ContextVar(
    "current_call_seen", default=None
)
"The call that this asyncio task carries."


@dataclass(slots=True)
class NegotiationSeen:
    """A negotiation under way, filled in by who leads it."""

    span: Span

    outcome: str = "unexpected"

    rounds: int = 0
    "Candidates that were on the table."


class Observer:
    """Counts and traces; one for each daemon."""

    def __init__(
        self, metrics: Metrics | None = None, traces: TracerProvider | None = None
    ) -> None:
        self.metrics = metrics or Metrics()
        # None while traces are off: a span that nobody sees has its price, too.
        self._tracer = (
            None if traces is None else traces.get_tracer("anpd", daemon_version())
        )
        self.flights = Flights()
        self.on_call: Callable[[CallEntry], None] = lambda entry: None
        "Told of each call that has ended, made or served."
        self.running: set[CallSeen] = set()
        "The calls under way, in both directions."
        self.model_answers = True
        "False if the last request to the model got no answer; True before the first."

    def call_out(self, peer: str, *, mode: str) -> _Watch:
        """Watch a call of ours, from the request to the result.

        Raises:
            CallError: `daemon_unreachable`, the daemon stops.
        """
        if self.flights.closed:
            raise CallError(
                ErrorKind.DAEMON_UNREACHABLE,
                "the daemon stops and takes no new calls; call again when it is back",
                retry_after=5.0,
            )
        attributes = {"anp.peer": peer, "anp.mode": mode}
        span = self._span("anp.call", attributes, context=caller_trace.get())
        seen = CallSeen("made", asked=peer, origin=call_origin.get())
        return _Watch(self, "out", span, seen)

    def call_in(self, peer_did: str, *, source: str) -> _Watch:
        """Watch a request of a peer's, from its arrival to our answer."""
        attributes = {"anp.peer": peer_did}
        span = self._span("anp.serve", attributes, kind=SpanKind.SERVER)
        return _Watch(self, "in", span, CallSeen("served", source, peer=peer_did))

    def call_refused(
        self,
        peer_did: str,
        *,
        outcome: str,
        reason: str,
        source: str = "none",
        capability: str | None = None,
        protocol: str | None = None,
        uri: str | None = None,
    ) -> None:
        """Note a call of a peer's that came to no capability; no metric counts it."""
        seen = CallSeen("served", source, outcome, reason, peer=peer_did)
        seen.capability, seen.protocol, seen.uri = capability, protocol, uri
        self.on_call(seen.entry())

    def current(self) -> CallSeen:
        """Return the call that this task carries, or one that nobody looks at."""
        return _current.get() or CallSeen("made")

    @contextlib.contextmanager
    def negotiation(self, peer_did: str, *, role: str) -> Iterator[NegotiationSeen]:
        """Watch a negotiation."""
        if role == "requester":
            self.looked_up("miss")
        attributes = {"anp.peer": peer_did, "anp.role": role}
        with self.flights, self._span("anp.negotiate", attributes) as span:
            seen = NegotiationSeen(span)
            try:
                yield seen
            finally:
                self.metrics.count(
                    "anpd_negotiations_total", role=role, outcome=seen.outcome
                )
                self.metrics.observe("anpd_negotiation_proposals", seen.rounds)
                span.set_attribute("anp.outcome", seen.outcome)
                span.set_attribute("anp.proposals", seen.rounds)

    def tool(self, capability: str) -> AbstractContextManager[None]:
        """Watch one call of a capability of our agent's."""
        return self.flights if self._tracer is None else self._traced_tool(capability)

    @contextlib.contextmanager
    def _traced_tool(self, capability: str) -> Iterator[None]:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": capability,
        }
        with self.flights, self._span(f"execute_tool {capability}", attributes):
            yield

    @contextlib.contextmanager
    def chat(self, model: str, *, purpose: str) -> Iterator[Span]:
        """Watch one request to the model; prompts and answers are never in it."""
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "anp.purpose": purpose,
        }
        name = f"chat {model}"
        with self._span(name, attributes, kind=SpanKind.CLIENT) as span:
            yield span

    def model_asked(
        self,
        span: Span,
        *,
        purpose: str,
        outcome: str,
        input_tokens: int = 0,
        output_tokens: int = 0,
    ) -> None:
        """Count one request to the model."""
        metrics = self.metrics
        self.model_answers = outcome not in _SILENT and not outcome.startswith("http")
        if outcome[:6] in _REPLIES and outcome != "http_429":
            outcome = f"{outcome[:6]}xx"
        metrics.count("anpd_llm_requests_total", purpose=purpose, outcome=outcome)
        for kind, tokens in (("input", input_tokens), ("output", output_tokens)):
            metrics.count("anpd_llm_tokens_total", tokens, purpose=purpose, type=kind)
            span.set_attribute(f"gen_ai.usage.{kind}_tokens", tokens)

    def looked_up(self, result: str) -> None:
        """Count a search for a protocol for a call of ours, by its result."""
        self.metrics.count("anpd_protocol_lookups_total", result=result)

    def handshake(self, role: str, outcome: str) -> None:
        """Count a handshake that ended."""
        self.metrics.count("anpd_handshakes_total", role=role, outcome=outcome)

    def sandbox_run(self, outcome: str, seconds: float) -> None:
        """Count a run of generated code."""
        self.metrics.count("anpd_sandbox_runs_total", outcome=outcome)
        self.metrics.observe("anpd_sandbox_duration_seconds", seconds)

    def _span(
        self,
        name: str,
        attributes: Mapping[str, str],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        context: Context | None = None,
    ) -> AbstractContextManager[Span]:
        """Open a span for a block, below `context` or else the open span."""
        if self._tracer is None:
            return NO_SPAN
        return _traced(
            self._tracer.start_as_current_span(
                name,
                context=context,
                kind=kind,
                attributes=attributes,
                # An exception's words may be a peer's; its traceback is for the log.
                record_exception=False,
                set_status_on_exception=False,
            )
        )


@contextlib.contextmanager
def _traced(opened: AbstractContextManager[Span]) -> Iterator[Span]:
    """Note in a span the type of the error that ended it."""
    with opened as span:
        try:
            yield span
        except BaseException as exc:
            span.set_attribute("error.type", type(exc).__name__)
            raise


class _Watch:
    """Watches one call for a block.

    A class of its own, since generators in one another take longer than what they do.
    """

    def __init__(
        self,
        observer: Observer,
        direction: str,
        span: AbstractContextManager[Span],
        seen: CallSeen,
    ) -> None:
        self._observer = observer
        self._direction = direction
        self._span = span
        self._seen = seen

    def __enter__(self) -> CallSeen:
        self._opened = self._span.__enter__()
        self._observer.flights.__enter__()
        self._observer.running.add(self._seen)
        self._token = _current.set(self._seen)
        return self._seen

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        observer, seen = self._observer, self._seen
        if exc is not None:
            seen.failed(exc)
        _current.reset(self._token)
        observer.running.discard(seen)
        metrics = observer.metrics
        metrics.count(
            "anpd_calls_total",
            direction=self._direction,
            source=seen.source,
            outcome=seen.outcome,
        )
        metrics.observe(
            "anpd_call_duration_seconds",
            time.monotonic() - seen.began,
            direction=self._direction,
        )
        if self._opened is not INVALID_SPAN:
            self._opened.set_attribute("anp.source", seen.source)
            self._opened.set_attribute("anp.outcome", seen.outcome)
        if not seen.is_trial:
            observer.on_call(seen.entry())
        self._span.__exit__(kind, exc, trace)
        observer.flights.__exit__()


def _outcome_of(exc: BaseException) -> str:
    if isinstance(exc, CallError):
        return exc.kind.value
    if isinstance(exc, Exception):
        return ErrorKind.UNEXPECTED.value
    return ErrorKind.INTERRUPTED.value
