"""Spans by OpenTelemetry's SDK, sent by OTLP over HTTP; loaded by `services.tracing` if traces are configured."""

import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from shared.tracing import Origin, Span, SpanKind, Value

CLOSE_S = 3.0
"""Seconds in which the last spans are sent when a service stops: supervisors wait about ten."""

_KINDS = {
    SpanKind.INTERNAL: trace.SpanKind.INTERNAL,
    SpanKind.PRODUCER: trace.SpanKind.PRODUCER,
    SpanKind.CONSUMER: trace.SpanKind.CONSUMER,
}

_W3C = TraceContextTextMapPropagator()


class OpenTelemetrySpan:
    """Implements `shared.tracing.Span`."""

    def __init__(self, inner: trace.Span) -> None:
        self.inner = inner
        self.context = _text(inner)

    def set(self, attributes: Mapping[str, Value]) -> None:
        """Add attributes."""
        self.inner.set_attributes({str(name): value for name, value in attributes.items()})

    def fail(self, reason: str) -> None:
        """Note that the step failed."""
        self.inner.set_attribute("error.type", reason)
        self.inner.set_status(trace.StatusCode.ERROR)

    def end(self) -> None:
        """End the step."""
        if self.inner.is_recording():
            self.inner.end()


class OpenTelemetryTracer:
    """Implements `shared.tracing.Tracer`; `provider` is for libraries that record spans themselves."""

    def __init__(self, endpoint: str, *, service: str, release: str) -> None:
        # The variables OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have precedence.
        resource = Resource({"service.version": release}).merge(Resource.create())
        if str(resource.attributes.get("service.name")).startswith("unknown_service"):
            resource = resource.merge(Resource({"service.name": service}))
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        self._tracer = self.provider.get_tracer("lakewright", release)

    def start(
        self, name: str, kind: SpanKind, origin: Origin, attributes: Mapping[str, Value], *, started_ms_ago: int
    ) -> Span:
        """Begin a span, or one that began earlier."""
        links = [trace.Link(found) for context in origin.links if (found := _span_context(context)).is_valid]
        return OpenTelemetrySpan(
            self._tracer.start_span(
                name,
                context=_W3C.extract({"traceparent": origin.parent}),
                kind=_KINDS[kind],
                attributes=dict(attributes),
                links=links,
                start_time=time.time_ns() - started_ms_ago * 1_000_000,
            )
        )

    def activate(self, span: Span) -> AbstractContextManager[object]:
        """Make a span the current one of this thread or task."""
        inner = span.inner if isinstance(span, OpenTelemetrySpan) else trace.INVALID_SPAN
        return trace.use_span(inner, record_exception=False, set_status_on_exception=False)

    def current(self) -> str:
        """Return the context of the current span."""
        return _text(trace.get_current_span())

    def close(self) -> None:
        """Send what was recorded, in a thread that a silent collector does not let the process wait for."""
        closing = threading.Thread(target=self.provider.shutdown, name="traces-close", daemon=True)
        closing.start()
        closing.join(CLOSE_S)


def _span_context(context: str) -> trace.SpanContext:
    return trace.get_current_span(_W3C.extract({"traceparent": context})).get_span_context()


def _text(span: trace.Span) -> str:
    """Return the `traceparent` of a span; empty if it has none."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, trace.set_span_in_context(span))
    return carrier.get("traceparent", "")
