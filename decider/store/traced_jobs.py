"""Queued jobs carry the trace that led to them, so that the actor's spans continue it.

A job of a timer or of the sweep begins a trace of its own; without a tracer nothing is added.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from shared import tracing
from shared.queue.model import JobRequest
from shared.tracing import Attribute, Origin, SpanKind, SpanName


@contextmanager
def enqueuing(queue: str, jobs: Sequence[JobRequest]) -> Iterator[tuple[JobRequest, ...]]:
    """Record that jobs are queued, in one span for all; yields them with its context."""
    if not jobs or not tracing.is_on():
        yield tuple(jobs)
        return
    first = jobs[0]
    attributes = {
        **tracing.messaging(SpanName.ENQUEUE, queue, job=first.id if len(jobs) == 1 else "", jobs=len(jobs)),
        Attribute.TABLE_ID: first.key.table,
        Attribute.TENANT: first.tenant,
        Attribute.ACTION: first.key.kind,
    }
    name, origin = f"{SpanName.ENQUEUE} {queue}", Origin(tracing.current())
    with tracing.span(name, origin, attributes, kind=SpanKind.PRODUCER) as span:
        yield tuple(replace(job, trace=span.context) for job in jobs)
