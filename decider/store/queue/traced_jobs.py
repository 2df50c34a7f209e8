"""Queuing jobs with the trace that led to them, so that the actor's spans continue it.

A job of a timer or of the sweep begins a trace of its own; without a tracer nothing is added.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from opentelemetry.trace import SpanKind

from decider.store.redis.queue_executor import AsyncQueueExecutor
from shared import tracing
from shared.queue import commands
from shared.queue.model import EnqueueOutcome, JobRequest
from shared.tracing import Attribute, Origin, SpanName


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
        yield tuple(replace(job, trace=tracing.context_of(span)) for job in jobs)


async def enqueue(queue: AsyncQueueExecutor, job: JobRequest, record: str, *, ledger_kept: int) -> EnqueueOutcome:
    """Queue the job of a request with the record of its decision; once, even if the answer of Redis is lost."""
    with enqueuing(queue.name, (job,)) as (traced,):
        done = await queue.run(
            commands.decide(
                queue.name,
                nonce=secrets.token_hex(16),
                table=job.key.table,
                job=traced,
                record=record,
                ledger_kept=ledger_kept,
            )
        )
    return EnqueueOutcome(done.value)
