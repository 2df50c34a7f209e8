"""A tracer that keeps its spans in memory: contexts are numbered, so that a test can name parents and links."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import context as contexts
from opentelemetry.trace import (
    NonRecordingSpan,
    NoOpTracer,
    SpanContext,
    SpanKind,
    TraceFlags,
    get_current_span,
)

from shared import tracing
from shared.tracing import Origin, Value


class RecordedSpan(NonRecordingSpan):
    """One span; `ended` counts the calls."""

    def __init__(self, number: int, name: str, kind: SpanKind, origin: Origin, attributes: Mapping[str, Value]) -> None:
        super().__init__(SpanContext(1, number, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)))
        self.name, self.kind, self.origin, self.attributes = name, kind, origin, dict(attributes)
        self.context = tracing.context_of(self)
        self.started_ms_ago = self.ended = 0
        self.failure = ""

    def is_recording(self) -> bool:
        return True

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        self.attributes |= attributes

    def set_attribute(self, key: str, value: Any) -> None:
        self.failure = value if key == "error.type" else self.failure

    def end(self, end_time: int | None = None) -> None:
        self.ended += 1


class RecordingTracer(NoOpTracer):
    """Implements OpenTelemetry's Tracer."""

    def __init__(self) -> None:
        self.spans: list[RecordedSpan] = []

    def start_span(self, name: str, context: contexts.Context | None = None, **given: Any) -> RecordedSpan:  # type: ignore[override]
        links = tuple(tracing.context_of(NonRecordingSpan(link.context)) for link in given["links"])
        origin = Origin(tracing.context_of(get_current_span(context)), links)
        made = RecordedSpan(len(self.spans) + 1, str(name), given["kind"], origin, given["attributes"])
        if given["start_time"] is not None:
            made.started_ms_ago = (time.time_ns() - given["start_time"]) // 1_000_000
        self.spans.append(made)
        return made


@contextmanager
def recorded() -> Iterator[RecordingTracer]:
    """Record the spans of this process in memory."""
    tracer = RecordingTracer()
    tracing.install(tracer)
    yield tracer
    tracing.install(None)
