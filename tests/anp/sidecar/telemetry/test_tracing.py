"""Spans: off by default, with the local caller's trace, and without anybody's words."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import Receive, Scope, Send

from anp.cli.logs import JsonFormatter
from anp.errors import CallError, ConfigError, ErrorKind
from anp.sidecar.config.otel import OtelConfig
from anp.sidecar.telemetry.observer import Observer
from anp.sidecar.telemetry.tracing import (
    TraceContext,
    caller_trace,
    tracer_provider,
)

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
SECRET = "the peer's own words"


class Traced:
    """An observer whose spans are kept."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        processor = SimpleSpanProcessor(self.exporter)
        traces = tracer_provider(OtelConfig(enabled=True), processor=processor)
        self.observer = Observer(traces=traces)

    def spans(self) -> dict[str, ReadableSpan]:
        """Return the finished spans by name."""
        return {span.name: span for span in self.exporter.get_finished_spans()}


def said(headers: dict[str, str]) -> Context:
    """Return the span that a caller's headers name."""
    return TraceContextTextMapPropagator().extract(headers, Context())


def logged() -> dict[str, Any]:
    """Return a log line as a program reads it."""
    record = logging.LogRecord("anp", logging.INFO, "", 0, "said", (), None)
    line: dict[str, Any] = json.loads(JsonFormatter().format(record))
    return line


def test_tracing_is_off_by_default() -> None:
    assert tracer_provider(OtelConfig()) is None


def test_the_command_line_does_not_wait_for_the_import_of_telemetry() -> None:
    said = subprocess.run(
        [sys.executable, "-c", "import anp.cli.app, sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    roots = {name.partition(".")[0] for name in said.stdout.split()}
    assert "click" in roots
    assert roots.isdisjoint({"opentelemetry"})


def test_a_missing_package_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with pytest.raises(
        ConfigError, match=r"otel.enabled: .* pip install .*\[otel\]"
    ) as caught:
        tracer_provider(OtelConfig(enabled=True))
    assert "\n" not in str(caught.value)


def test_a_call_has_its_negotiation_and_the_model_below_it() -> None:
    traced = Traced()
    observer = traced.observer
    with (
        observer.call_out("shop", mode="auto"),
        observer.negotiation("did:key:z1", role="requester") as seen,
    ):
        with observer.chat("made-up", purpose="propose") as span:
            observer.model_asked(span, purpose="propose", outcome="ok", input_tokens=5)
        seen.outcome = "agreed"
    spans = traced.spans()
    assert set(spans) == {"anp.call", "anp.negotiate", "chat made-up"}
    call, negotiation = spans["anp.call"], spans["anp.negotiate"]
    assert call.parent is None
    assert negotiation.parent is not None
    assert negotiation.parent.span_id == call.context.span_id
    chat = spans["chat made-up"].attributes or {}
    assert chat["gen_ai.operation.name"] == "chat"
    assert chat["gen_ai.request.model"] == "made-up"
    assert chat["gen_ai.usage.input_tokens"] == 5


def test_a_tool_has_the_names_of_the_genai_conventions() -> None:
    traced = Traced()
    with traced.observer.tool("time.now"):
        pass
    (span,) = traced.spans().values()
    assert span.name == "execute_tool time.now"
    assert (span.attributes or {})["gen_ai.tool.name"] == "time.now"


def test_the_callers_trace_goes_on_in_the_calls_span() -> None:
    traced = Traced()
    token = caller_trace.set(said({"traceparent": PARENT}))
    try:
        with traced.observer.call_out("shop", mode="auto"):
            assert logged()["trace_id"] == TRACE
    finally:
        caller_trace.reset(token)
    span = traced.spans()["anp.call"]
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"


def test_what_a_peer_does_never_goes_on_in_a_callers_trace() -> None:
    traced = Traced()
    token = caller_trace.set(said({"traceparent": PARENT}))
    try:
        with traced.observer.call_in("did:key:z1", source="agreement"):
            pass
    finally:
        caller_trace.reset(token)
    assert traced.spans()["anp.serve"].parent is None


def test_an_error_is_named_by_its_kind_alone() -> None:
    traced = Traced()
    with pytest.raises(CallError), traced.observer.call_out("shop", mode="auto"):
        raise CallError(ErrorKind.APPLICATION_ERROR, SECRET)
    span = traced.spans()["anp.call"]
    assert (span.attributes or {})["anp.outcome"] == "application_error"
    assert SECRET not in span.to_json()


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ([(b"traceparent", PARENT.encode())], {"traceparent": PARENT}),
        (
            [(b"traceparent", PARENT.encode()), (b"tracestate", b"a=1")],
            {"traceparent": PARENT, "tracestate": "a=1"},
        ),
        ([(b"traceparent", PARENT.encode()), (b"tracestate", b"a" * 513)], 1),
        ([(b"traceparent", b"00-" + b"0" * 32 + b"-" + b"1" * 16 + b"-01")], None),
        ([(b"traceparent", PARENT.encode() + b"\xff")], None),
        ([(b"tracestate", b"a=1")], None),
        ([], None),
    ],
)
def test_only_a_sound_header_is_taken(
    headers: list[tuple[bytes, bytes]], wanted: dict[str, str] | int | None
) -> None:
    seen: list[dict[str, str] | None] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        context = caller_trace.get()
        headers: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(headers, context or Context())
        seen.append(headers if context is not None else None)

    async def nothing(*_: Any) -> Any:
        raise AssertionError("nobody reads or sends")

    scope = {"type": "http", "headers": headers}
    asyncio.run(TraceContext(app)(scope, nothing, nothing))
    assert len(seen) == 1
    if isinstance(wanted, int):
        assert seen[0] is not None
        assert set(seen[0]) == {"traceparent"}
    else:
        assert seen[0] == wanted
