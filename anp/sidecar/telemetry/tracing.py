"""Traces by OpenTelemetry, when the owner turned them on.

The SDK is imported only when `otel.enabled` is set; without it the API's own tracer
makes no spans. A local caller's `traceparent` becomes the parent of its call's span
(W3C Trace Context); nothing of it goes to a peer, who has no business in our traces.
"""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING

from opentelemetry.context import Context
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from anp.errors import ConfigError
from anp.extras import missing
from anp.sidecar.config.otel import OtelConfig
from anp.version import daemon_version

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from starlette.types import ASGIApp, Receive, Scope, Send

MAX_STATE = 512
"Longest `tracestate` that is taken, in bytes."

caller_trace: contextvars.ContextVar[Context | None] = contextvars.ContextVar(
    "caller_trace", default=None
)
"The local caller's span, as its request's headers say; None without them."


def tracer_provider(
    config: OtelConfig, *, processor: SpanProcessor | None = None
) -> TracerProvider | None:
    """Return the maker of tracers that the owner wants; None while traces are off.

    Args:
        processor: Takes the spans; the OTLP exporter in batches when not given.

    Raises:
        ConfigError: Traces are turned on and their packages are missing.
    """
    if not config.enabled:
        return None
    if reason := missing("otel"):
        raise ConfigError(f"otel.enabled: {reason}")
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    processor = processor or _exporting(config)
    named = {SERVICE_NAME: config.service_name, SERVICE_VERSION: daemon_version()}
    # Not the process-wide provider, which would also trace the libraries we use.
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(config.sample)),
        resource=Resource.create(named),
    )
    provider.add_span_processor(processor)
    return provider


class TraceContext:
    """ASGI middleware: keeps a local caller's trace headers for the call's span."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, with the caller's span at hand."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token = caller_trace.set(_caller_trace(scope))
        try:
            await self._app(scope, receive, send)
        finally:
            caller_trace.reset(token)


def _caller_trace(scope: Scope) -> Context | None:
    if b"traceparent" not in dict(scope["headers"]):
        return None
    headers = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in scope["headers"]
        if name == b"traceparent" or (name == b"tracestate" and len(value) <= MAX_STATE)
    }
    if not headers:
        return None
    found = TraceContextTextMapPropagator().extract(headers, Context())
    return found if get_current_span(found).get_span_context().is_valid else None


def _exporting(config: OtelConfig) -> SpanProcessor:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    endpoint = config.endpoint
    # As the variable OTEL_EXPORTER_OTLP_ENDPOINT: the path of traces is added.
    url = None if endpoint is None else f"{endpoint.rstrip('/')}/v1/traces"
    return BatchSpanProcessor(OTLPSpanExporter(endpoint=url, timeout=5))
