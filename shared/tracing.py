"""Traces from an event to the commit that follows from it: names, attributes, and where each span begins.

Spans are OpenTelemetry's, whose API records nothing unless a service installs a tracer when it starts. A
trace's context is text, a W3C `traceparent`, so that Redis and a commit's metadata can carry it; an empty one means
that there is none.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum

from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    NoOpTracer,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
    use_span,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

MAX_TEXT = 256
"""Characters of an attribute; partitions and names of tables may be longer, and collectors reject large spans."""

MAX_CONTEXTS = 8
"""Contexts that one step is linked to; of more events, the newest. As MAX_TRACES in lua/include/trace.lua."""

Value = str | int | bool
"""Value of an attribute."""

Attributes = dict[str, Value]
"""Attributes of a span, by name."""

_W3C = TraceContextTextMapPropagator()
_OFF = NoOpTracer()


class SpanName(StrEnum):
    """Names of spans. Those of `enqueue` and `run` are followed by the queue's, as messaging systems name them."""

    REFRESH = "refresh table"
    DECIDE = "decide"
    ENQUEUE = "enqueue"
    RUN = "run"
    REWRITE = "rewrite"
    COMMIT = "commit"


class Attribute(StrEnum):
    """Our attributes; OpenTelemetry's semantic conventions have none for these."""

    TABLE = "lakewright.table"
    TABLE_ID = "lakewright.table.id"
    TENANT = "lakewright.tenant"
    PARTITION = "lakewright.partition"
    ACTION = "lakewright.action"
    JOB = "lakewright.job.id"
    JOBS = "lakewright.jobs"
    COMMITS = "lakewright.commits"
    VERSION = "lakewright.version"
    OUTCOME = "lakewright.outcome"
    BYTES = "lakewright.bytes"
    GROUPS = "lakewright.groups"
    REBUILD = "lakewright.rebuild.reason"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a span begins: the context that it continues, and others that led to it, too."""

    parent: str = ""
    links: tuple[str, ...] = ()


@dataclass(slots=True)
class _Process:
    """The tracer of this process."""

    tracer: Tracer = field(default=_OFF)


_process = _Process()


def install(tracer: Tracer | None) -> None:
    """Record the spans of this process from now on; None: none any more."""
    _process.tracer = tracer or _OFF


def is_on() -> bool:
    """Return whether spans are recorded."""
    return _process.tracer is not _OFF


def context_of(span: Span) -> str:
    """Return the `traceparent` of a span's children; empty if it is not recorded."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, set_span_in_context(span))
    return carrier.get("traceparent", "")


def current() -> str:
    """Return the context of the current span; empty if there is none."""
    return context_of(get_current_span()) if is_on() else ""


def start(
    name: str,
    origin: Origin,
    attributes: Mapping[str, Value],
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    started_ns: int | None = None,
) -> Span:
    """Begin a span that its caller ends; without a parent it begins a trace. `started_ns`: since 1970; None: now."""
    if not is_on():
        return INVALID_SPAN
    return _process.tracer.start_span(
        name,
        context=_W3C.extract({"traceparent": origin.parent}),
        kind=kind,
        attributes=bounded(attributes),
        links=[Link(found) for context in origin.links if (found := _span_context(context)).is_valid],
        start_time=started_ns,
    )


def describe(span: Span, attributes: Mapping[str, Value]) -> None:
    """Add attributes to a span."""
    span.set_attributes({str(name): value for name, value in attributes.items()})


def fail(span: Span, reason: str) -> None:
    """Note that a step failed; `reason` is a class of errors, not a message, which could hold data."""
    span.set_attribute("error.type", reason)
    span.set_status(StatusCode.ERROR)


@contextmanager
def span(
    name: str, origin: Origin, attributes: Mapping[str, Value], *, kind: SpanKind = SpanKind.INTERNAL
) -> Iterator[Span]:
    """Record a step and make it the current one; an exception ends it as failed."""
    made = start(name, origin, attributes, kind=kind)
    try:
        with use_span(made, record_exception=False, set_status_on_exception=False):
            yield made
    except BaseException as problem:
        fail(made, type(problem).__name__)
        raise
    finally:
        end(made)


def end(span: Span) -> None:
    """End a step; a second call changes nothing."""
    if span.is_recording():
        span.end()


def step(name: str, attributes: Mapping[str, Value]) -> AbstractContextManager[Span]:
    """Record a step of the current trace; nothing outside of a trace."""
    parent = current()
    return span(name, Origin(parent), attributes) if parent else nullcontext(INVALID_SPAN)


def _span_context(context: str) -> SpanContext:
    return get_current_span(_W3C.extract({"traceparent": context})).get_span_context()


def origin_of(contexts: Sequence[str]) -> Origin:
    """Return where a step begins that these contexts led to, oldest first: it continues the newest sampled one."""
    if not contexts:
        return Origin()
    parent = next((context for context in reversed(contexts) if is_sampled(context)), contexts[-1])
    return Origin(parent, tuple(context for context in contexts if context != parent))


def joined(older: Sequence[str], newer: Sequence[str]) -> tuple[str, ...]:
    """Return the contexts of both without repetition, oldest first; of many, the newest."""
    return tuple(dict.fromkeys((*older, *newer)))[-MAX_CONTEXTS:]


def current_contexts() -> tuple[str, ...]:
    """Return the context of the current span as a list of one; empty if there is none."""
    return tuple(filter(None, (current(),)))


def is_sampled(context: str) -> bool:
    """Return whether the spans of a context are recorded."""
    # The last of two hex digits holds the flag.
    return context[-1:] in set("13579bdf")


def bounded(attributes: Mapping[str, Value]) -> Attributes:
    """Cut long texts, and leave out empty ones."""
    cut = {name: value[:MAX_TEXT] if isinstance(value, str) else value for name, value in attributes.items()}
    return {str(name): value for name, value in cut.items() if value != ""}


def messaging(operation: SpanName, queue: str, *, job: str = "", jobs: int = 0) -> Attributes:
    """Return the attributes by which OpenTelemetry's conventions describe the ends of a queue."""
    return {
        "messaging.system": "redis",
        "messaging.destination.name": queue,
        "messaging.operation.name": operation.value,
        "messaging.operation.type": "send" if operation is SpanName.ENQUEUE else "process",
        "messaging.message.id": job,
        **({"messaging.batch.message_count": jobs} if jobs else {}),
    }
