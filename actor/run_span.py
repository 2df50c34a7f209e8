"""Spans of an actor: a run, which continues the traces of its job's requests, its rewrites, and their commits."""

from collections.abc import Sequence

from actor.ports import RewriteOutcome
from shared import tracing
from shared.queue.model import Claim
from shared.tracing import Attribute, Origin, Span, SpanKind, SpanName, origin_of


def start_run(queue: str, claim: Claim, traces: Sequence[str]) -> Span:
    """Begin the span of a run; the newest request's trace goes on, and those of the others are linked."""
    attributes = {
        **tracing.messaging(SpanName.RUN, queue, job=claim.id),
        Attribute.TABLE_ID: claim.key.table,
        Attribute.TENANT: claim.tenant,
        Attribute.PARTITION: claim.key.partition,
        Attribute.ACTION: claim.key.kind,
        Attribute.JOB: claim.id,
    }
    return tracing.start(f"{SpanName.RUN} {queue}", origin_of(traces), attributes, kind=SpanKind.CONSUMER)


def start_rewrite(runs: Sequence[Span], groups: int) -> Span:
    """Begin the span of a rewrite; one that several runs share belongs to the first, and is linked to the others."""
    first, *others = (run.context for run in runs)
    return tracing.start(SpanName.REWRITE, Origin(first, tuple(others)), {Attribute.GROUPS: groups})


def end_rewrite(span: Span, outcome: RewriteOutcome | None) -> None:
    """End the span of a rewrite, and record its commit, whose duration the engine measured; None: it failed."""
    if outcome is None:
        span.fail("rewrite_failed")
    elif outcome.version is None:
        span.set({Attribute.OUTCOME: "nothing_committed"})
    else:
        attributes: tracing.Attributes = {Attribute.VERSION: outcome.version}
        commit = tracing.start(SpanName.COMMIT, Origin(span.context), attributes, started_ms_ago=outcome.commit_ms)
        commit.end()
        span.set({Attribute.OUTCOME: "committed", **attributes})
    span.end()


def end_run(span: Span, outcome: str, bytes_replaced: int) -> None:
    """End the span of a run with its result."""
    span.set({Attribute.OUTCOME: outcome, Attribute.BYTES: bytes_replaced})
    span.end()
