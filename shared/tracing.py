"""Traces from an event to the commit that follows from it: names, attributes, and the port to what records them.

Nothing is recorded unless a service installs a tracer when it starts. A trace's context is text, a W3C `traceparent`,
so that Redis and a commit's metadata can carry it; an empty one means that there is none.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

MAX_TEXT = 256
"""Characters of an attribute; partitions and names of tables may be longer, and collectors reject large spans."""

MAX_CONTEXTS = 8
"""Contexts that one step is linked to; of more events, the newest. As MAX_TRACES in lua/include/trace.lua."""

Value = str | int | bool
"""Value of an attribute."""

Attributes = dict[str, Value]
"""Attributes of a span, by name."""


class SpanName(StrEnum):
    """Names of spans. Those of `enqueue` and `run` are followed by the queue's, as messaging systems name them."""

    REFRESH = "refresh table"
    DECIDE = "decide"
    ENQUEUE = "enqueue"
    RUN = "run"
    REWRITE = "rewrite"
    COMMIT = "commit"


class SpanKind(StrEnum):
    """Role of a span: a step inside a process, or the two ends of a queue."""

    INTERNAL = "internal"
    PRODUCER = "producer"
    CONSUMER = "consumer"


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


class Span(Protocol):
    """A step that is being recorded."""

    @property
    def context(self) -> str:
        """The `traceparent` of its children; empty if it is not recorded."""

    def set(self, attributes: Mapping[str, Value]) -> None:
        """Add attributes."""

    def fail(self, reason: str) -> None:
        """Note that the step failed; `reason` is a class of errors, not a message, which could hold data."""

    def end(self) -> None:
        """End the step; a second call changes nothing."""


class Tracer(Protocol):
    """Records spans."""

    def start(
        self, name: str, kind: SpanKind, origin: Origin, attributes: Mapping[str, Value], *, started_ms_ago: int
    ) -> Span:
        """Begin a span, or one that began earlier."""

    def activate(self, span: Span) -> AbstractContextManager[object]:
        """Make a span the current one of this thread or task."""

    def current(self) -> str:
        """Return the context of the current span."""


class _NoSpan:
    context = ""

    def set(self, attributes: Mapping[str, Value]) -> None:
        """Record nothing."""

    def fail(self, reason: str) -> None:
        """Record nothing."""

    def end(self) -> None:
        """Record nothing."""


NO_SPAN: Span = _NoSpan()


@dataclass(slots=True)
class _Process:
    """The tracer of this process; None: traces are off."""

    tracer: Tracer | None = field(default=None)


_process = _Process()


def install(tracer: Tracer | None) -> None:
    """Record the spans of this process from now on; None: none any more."""
    _process.tracer = tracer


def is_on() -> bool:
    """Return whether spans are recorded."""
    return _process.tracer is not None


def current() -> str:
    """Return the context of the current span; empty if there is none."""
    return _process.tracer.current() if _process.tracer is not None else ""


def start(
    name: str,
    origin: Origin,
    attributes: Mapping[str, Value],
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    started_ms_ago: int = 0,
) -> Span:
    """Begin a span that its caller ends; without a parent it begins a trace."""
    if _process.tracer is None:
        return NO_SPAN
    return _process.tracer.start(name, kind, origin, bounded(attributes), started_ms_ago=started_ms_ago)


@contextmanager
def span(
    name: str, origin: Origin, attributes: Mapping[str, Value], *, kind: SpanKind = SpanKind.INTERNAL
) -> Iterator[Span]:
    """Record a step and make it the current one; an exception ends it as failed."""
    tracer = _process.tracer
    if tracer is None:
        yield NO_SPAN
        return
    made = start(name, origin, attributes, kind=kind)
    try:
        with tracer.activate(made):
            yield made
    except BaseException as problem:
        made.fail(type(problem).__name__)
        raise
    finally:
        made.end()


def step(name: str, attributes: Mapping[str, Value]) -> AbstractContextManager[Span]:
    """Record a step of the current trace; nothing outside of a trace."""
    parent = current()
    return span(name, Origin(parent), attributes) if parent else nullcontext(NO_SPAN)


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
