"""Spans of an actor: a run, which continues the traces of its job's requests, its rewrites, and their commits."""

import time
from collections.abc import Sequence

from opentelemetry.trace import Span, SpanKind

from actor.ports import RewriteOutcome
from shared import tracing
from shared.queue.model import Claim
from shared.tracing import Attribute, Origin, SpanName, origin_of


def start_run(queue: str, claim: Claim, traces: Sequence[str]) -> Span:
    """Begin the span of a run; the newest request's trace goes on, and the others' are linked."""
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
    first, *others = map(tracing.context_of, runs)
    return tracing.start(SpanName.REWRITE, Origin(first, tuple(others)), {Attribute.GROUPS: groups})


def end_rewrite(span: Span, outcome: RewriteOutcome | None) -> None:
    """End the span of a rewrite, and record its commit, whose duration the engine measured; None: it failed."""
    if outcome is None:
        tracing.fail(span, "rewrite_failed")
    elif outcome.version is None:
        tracing.describe(span, {Attribute.OUTCOME: "nothing_committed"})
    else:
        attributes: tracing.Attributes = {Attribute.VERSION: outcome.version}
        commit = tracing.start(
            SpanName.COMMIT,
            Origin(tracing.context_of(span)),
            attributes,
            started_ns=time.time_ns() - outcome.commit_ms * 1_000_000,
        )
        tracing.end(commit)
        tracing.describe(span, {Attribute.OUTCOME: "committed", **attributes})
    tracing.end(span)


def end_run(span: Span, outcome: str, bytes_replaced: int) -> None:
    """End the span of a run with its result."""
    tracing.describe(span, {Attribute.OUTCOME: outcome, Attribute.BYTES: bytes_replaced})
    tracing.end(span)
