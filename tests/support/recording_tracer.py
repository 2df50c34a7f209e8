"""A tracer that keeps its spans in memory: contexts are numbered, so that a test can name parents and links."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from shared.tracing import Origin, Span, SpanKind, Value


@dataclass(slots=True)
class RecordedSpan:
    """One span; `ended` counts the calls."""

    name: str
    kind: SpanKind
    origin: Origin
    attributes: dict[str, Value]
    started_ms_ago: int
    context: str
    failure: str = ""
    ended: int = 0

    def set(self, attributes: Mapping[str, Value]) -> None:
        self.attributes |= {str(name): value for name, value in attributes.items()}

    def fail(self, reason: str) -> None:
        self.failure = reason

    def end(self) -> None:
        self.ended += 1


@dataclass(slots=True)
class RecordingTracer:
    """Implements `shared.tracing.Tracer`."""

    spans: list[RecordedSpan] = field(default_factory=list)
    active: list[str] = field(default_factory=list)

    def start(
        self, name: str, kind: SpanKind, origin: Origin, attributes: Mapping[str, Value], *, started_ms_ago: int
    ) -> Span:
        context = f"00-{1:032x}-{len(self.spans) + 1:016x}-01"
        self.spans.append(RecordedSpan(str(name), kind, origin, dict(attributes), started_ms_ago, context))
        return self.spans[-1]

    @contextmanager
    def activate(self, span: Span) -> Iterator[None]:
        self.active.append(span.context)
        yield
        self.active.pop()

    def current(self) -> str:
        return self.active[-1] if self.active else ""
