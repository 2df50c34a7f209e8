"""Spans of an actor: a run with its rewrite and its commit, and how each of them ends."""

import pytest

from actor.ports import RewriteOutcome
from actor.queue_executor import SyncQueueExecutor, connect
from actor.run_span import end_rewrite
from shared import tracing
from shared.queue.model import JobId
from shared.tracing import Origin, SpanName
from tests.support.recording_tracer import RecordedSpan, RecordingTracer
from tests.support.worker_world import World

TRACE = f"00-{7:032x}-{7:016x}-01"


def run_in(world: World, *traces: str) -> None:
    world.queue.traces = lambda _job: traces  # type: ignore[attr-defined]
    world.run()


def names(tracer: RecordingTracer) -> list[str]:
    return [span.name for span in tracer.spans]


def test_a_run_continues_its_jobs_trace_with_its_rewrite_and_commit(tracer: RecordingTracer) -> None:
    world = World()
    run_in(world, TRACE)
    run, rewrite, commit = tracer.spans
    assert names(tracer) == ["run default", "rewrite", "commit"]
    assert [span.origin.parent for span in tracer.spans] == [TRACE, run.context, rewrite.context]
    assert {span.ended for span in tracer.spans} == {1}
    assert (run.attributes["lakewright.outcome"], run.attributes["lakewright.bytes"]) == ("done", 800_000)
    assert (run.attributes["lakewright.table"], rewrite.attributes["lakewright.outcome"]) == ("t", "committed")
    assert commit.started_ms_ago >= 1
    assert [mark.traceparent for mark in world.engine.marks.values()] == [rewrite.context]


def test_a_run_that_fails_ends_its_spans_as_failed(tracer: RecordingTracer) -> None:
    world = World()
    world.engine.unreadable = {"f0"}
    run_in(world)
    run, rewrite = tracer.spans
    assert (run.failure, rewrite.failure) == ("RetryableError", "rewrite_failed")
    assert run.origin == Origin()
    assert min(run.ended, rewrite.ended) >= 1


def test_a_rewrite_that_committed_nothing_has_no_commit(tracer: RecordingTracer) -> None:
    span = tracing.start(SpanName.REWRITE, Origin(), {})
    end_rewrite(span, RewriteOutcome(None, (), 1, 1))
    (only,) = tracer.spans
    assert isinstance(only, RecordedSpan)
    assert (only.attributes["lakewright.outcome"], only.ended) == ("nothing_committed", 1)


def test_traces_that_cannot_be_read_stop_no_run() -> None:
    queue = SyncQueueExecutor(connect("redis://127.0.0.1:1", timeout_s=0.2), "default")
    assert queue.traces(JobId("j-1")) == ()


def test_a_job_without_traces_begins_one_and_several_are_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = SyncQueueExecutor(connect("redis://127.0.0.1:1"), "default")
    answers = iter([None, b"a b"])
    monkeypatch.setattr(queue.redis, "hget", lambda *_: next(answers))
    assert [queue.traces(JobId("j-1")), queue.traces(JobId("j-1"))] == [(), ("a", "b")]
