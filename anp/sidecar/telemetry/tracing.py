"""Traces: nothing, or OpenTelemetry when the owner turned it on.

OpenTelemetry is imported only when `otel.enabled` is set. What a local caller says in
`traceparent` becomes the parent of its call's span (W3C Trace Context); nothing of it
goes to a peer, who has no business in our traces.
"""

from __future__ import annotations

import contextlib
import contextvars
import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from anp.errors import ConfigError
from anp.sidecar.config.settings import OtelConfig
from anp.version import daemon_version

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = [
    "CallerTrace",
    "NoTracing",
    "OtelTracing",
    "Span",
    "TraceContext",
    "Tracing",
    "caller_trace",
    "current_ids",
    "make_tracing",
]

Kind = Literal["internal", "client", "server"]
Value = str | int | float | bool

MAX_HEADER = 512
"Longest `tracestate` that is taken, in bytes."

TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
"The only version of the header there is."


class CallerTrace(dict[str, str]):
    """The trace headers of a local caller, `traceparent` and perhaps `tracestate`."""


caller_trace: contextvars.ContextVar[CallerTrace | None] = contextvars.ContextVar(
    "caller_trace", default=None
)
"What the local caller of the request at hand said."


class Span(Protocol):
    """One span, open."""

    def set(self, name: str, value: Value) -> None:
        """Add an attribute."""


class Tracing(Protocol):
    """Makes spans."""

    def span(
        self,
        name: str,
        attributes: Mapping[str, Value],
        *,
        kind: Kind = "internal",
        from_caller: bool = False,
    ) -> contextlib.AbstractContextManager[Span]:
        """Open a span for a block; the one around it is its parent.

        Args:
            from_caller: Its parent is what the local caller said in `traceparent`.
        """
        ...

    def close(self) -> None:
        """Send what waits; may block for a few seconds."""


class _NoSpan:
    def set(self, name: str, value: Value) -> None:
        """Forget the attribute."""


_NO_SPAN = _NoSpan()


class NoTracing:
    """Makes no spans."""

    def span(
        self,
        name: str,
        attributes: Mapping[str, Value],
        *,
        kind: Kind = "internal",
        from_caller: bool = False,
    ) -> contextlib.AbstractContextManager[Span]:
        """See `Tracing`."""
        return contextlib.nullcontext(_NO_SPAN)

    def close(self) -> None:
        """See `Tracing`."""


class OtelTracing:
    """Makes spans of OpenTelemetry's.

    Raises:
        ImportError: The SDK is not installed.
    """

    def __init__(
        self, config: OtelConfig, *, processor: SpanProcessor | None = None
    ) -> None:
        """Begin to trace.

        Args:
            processor: Takes the spans; the OTLP exporter in batches when not given.
        """
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

        if processor is None:
            processor = _exporting(config)
        named = {SERVICE_NAME: config.service_name, SERVICE_VERSION: daemon_version()}
        # A provider of our own: the process-wide one is nobody's here.
        self._provider: TracerProvider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(config.sample)),
            resource=Resource.create(named),
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("anpd", daemon_version())

    @contextlib.contextmanager
    def span(
        self,
        name: str,
        attributes: Mapping[str, Value],
        *,
        kind: Kind = "internal",
        from_caller: bool = False,
    ) -> Iterator[Span]:
        """See `Tracing`."""
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import (
            TraceContextTextMapPropagator,
        )

        said = caller_trace.get() if from_caller else None
        parent = TraceContextTextMapPropagator().extract(said) if said else None
        with self._tracer.start_as_current_span(
            name,
            context=parent,
            kind=SpanKind[kind.upper()],
            attributes=dict(attributes),
            # An exception's words may be a peer's, and its traceback is for the log.
            record_exception=False,
            set_status_on_exception=False,
        ) as open_span:
            try:
                yield _OtelSpan(open_span)
            except BaseException as exc:
                open_span.set_attribute("error.type", type(exc).__name__)
                raise

    def close(self) -> None:
        """See `Tracing`."""
        self._provider.shutdown()


class _OtelSpan:
    def __init__(self, span: Any) -> None:
        self._span = span

    def set(self, name: str, value: Value) -> None:
        self._span.set_attribute(name, value)


def make_tracing(config: OtelConfig) -> Tracing:
    """Return what makes spans, as the owner wants it.

    Raises:
        ConfigError: It is turned on and its packages are missing.
    """
    if not config.enabled:
        return NoTracing()
    try:
        return OtelTracing(config)
    except ImportError as exc:
        raise ConfigError(
            f"otel.enabled is set, but {exc.name or 'opentelemetry'} is not "
            "installed; install anpd[otel], or set otel.enabled = false"
        ) from exc


def current_ids() -> tuple[str, str] | None:
    """Return trace id and span id of the open span, in hex, for log lines; or None."""
    import sys

    # Nobody traces as long as nobody has imported it.
    if "opentelemetry.sdk.trace" not in sys.modules:
        return None
    from opentelemetry.trace import get_current_span

    context = get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


class TraceContext:
    """ASGI middleware: keeps a local caller's trace headers for the call's span."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, with its trace headers at hand."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token = caller_trace.set(_said(scope))
        try:
            await self._app(scope, receive, send)
        finally:
            caller_trace.reset(token)


def _said(scope: MutableMapping[str, Any]) -> CallerTrace | None:
    headers = {
        name: value
        for name, value in scope["headers"]
        if name in {b"traceparent", b"tracestate"}
    }
    parent = headers.get(b"traceparent", b"").decode("latin-1")
    if TRACEPARENT.fullmatch(parent) is None:
        return None
    found = CallerTrace(traceparent=parent)
    state = headers.get(b"tracestate", b"")
    if state and len(state) <= MAX_HEADER and state.isascii():
        found["tracestate"] = state.decode("ascii")
    return found


def _exporting(config: OtelConfig) -> SpanProcessor:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    endpoint = config.endpoint
    # As the variable OTEL_EXPORTER_OTLP_ENDPOINT: the path of traces is added.
    url = None if endpoint is None else f"{endpoint.rstrip('/')}/v1/traces"
    return BatchSpanProcessor(OTLPSpanExporter(endpoint=url, timeout=5))
