"""One job's run, on partitions or a whole table, and the spans that it leaves."""

import json
from dataclasses import replace
from typing import Any

import pytest

from actor.engines import EngineSet
from actor.job_run import JobRun
from actor.queue_executor import SyncQueueExecutor, connect
from actor.slot_queue import HeldJob
from actor.table_job_run import TableJobReport
from shared.errors import Difference, LeaseLost, RefusedFiles, RetryableError
from shared.formats.registry import support_of
from shared.partition_refusals import FIRST_HOLD, NOTHING, PartitionRefusals
from shared.queue import decode
from shared.queue.model import JobId, StopReason
from shared.refusals import RefusalReason
from shared.table import ExaminedTable
from shared.tracing import Origin
from tests.support.memory_engine import MemoryEngine
from tests.support.recording_tracer import RecordingTracer
from tests.support.worker_world import PAYLOAD, World


def test_a_run_that_was_not_opened_names_its_job_instead_of_planning_nothing() -> None:
    world = World()
    (claim,) = decode.claims(world.claimed())
    run = JobRun(
        HeldJob(claim, world.heart.track(claim, sent_at_s=0.0)),
        EngineSet([MemoryEngine()]),
        max_rounds=1,
        max_conflicts=1,
    )
    with pytest.raises(RuntimeError, match="job j-1 was not opened"):
        run.plan(lambda: False)


KIND = "census"


def world_of(steps: int = 2, **changes: Any) -> World:
    world = World(payload=replace(PAYLOAD, options={"steps": steps}, **changes))
    world.kind, world.engine.table_kinds = KIND, (KIND,)
    return world


def test_a_table_job_runs_once_with_its_options_and_reports_its_figures() -> None:
    world = world_of(steps=3, even_if_disabled=True)
    assert world.run()
    (job,) = world.engine.table_jobs
    assert (job.kind, job.origin.job, job.origin.token, job.even_if_disabled) == (KIND, "j-1", 7, True)
    end = world.end()
    assert (end["verdict"], end["seen"]) == ("done", 1)
    result = json.loads(end["result"])
    assert (result["measured"], result["is_complete"]) == ({"steps": 3}, True)
    assert world.engine.origins == {}


def test_a_table_job_renews_its_lease_before_every_change_and_shows_its_progress() -> None:
    world = world_of(steps=3)
    seen: list[str] = []
    world.engine.before_commit = lambda: seen.append(world.lease.progress)
    assert world.run()
    assert len(world.heart.asked) == 3
    assert [json.loads(one)["done"] for one in seen] == [0, 1, 2]
    assert json.loads(seen[-1])["share"] == pytest.approx(0.667)


def test_a_table_job_that_is_stopped_comes_back_and_one_that_is_cancelled_does_not() -> None:
    for reason, verdict in ((StopReason.PREEMPT, "yield"), (StopReason.CANCEL, "cancelled")):
        world = world_of()
        world.engine.before_commit = lambda world=world, reason=reason: world.lease.request_stop(reason)
        assert world.run()
        end = world.end()
        assert (end["verdict"], end["seen"], json.loads(end["result"])["measured"]) == (verdict, -1, {"steps": 0})


def test_a_table_job_without_its_lease_changes_nothing_and_reports_nothing() -> None:
    world = world_of()

    def refuse() -> None:
        raise LeaseLost("another actor has it")

    world.heart.may = refuse
    assert world.run()
    assert world.ends() == []


def test_a_table_job_for_another_table_at_its_place_is_cancelled() -> None:
    world = world_of(table_uuid="another")
    assert world.run()
    end = world.end()
    assert (end["verdict"], json.loads(end["result"])["versions"]) == ("cancelled", [])


def run_after(
    refusals: PartitionRefusals, failure: Exception | None = None, left: RefusedFiles | None = None
) -> PartitionRefusals | None:
    """Run a job at version 1 whose table has these refusals; returns what is remembered from then on, if it changed."""
    world = world_of()
    world.refusals, world.engine.left = refusals.encode(), left

    def end() -> None:
        if failure is not None:
            raise failure

    world.engine.before_commit = end
    assert world.run()
    text = world.end()["refusals"]
    return None if text == "-" else PartitionRefusals.decode(text)


def test_a_refused_table_job_is_remembered_by_its_kind_each_time_for_longer_until_one_commits() -> None:
    known = NOTHING
    for held in (FIRST_HOLD, 2 * FIRST_HOLD, 4 * FIRST_HOLD):
        found = run_after(known, Difference("column v differs"))
        assert found is not None
        (one,) = found.jobs
        assert (one.kind, one.reason, one.message) == (KIND, "difference", "column v differs")
        assert found.holds_job(KIND, held)
        assert not found.holds_job(KIND, held + 1)
        assert not found.holds_job("cluster", held)
        known = found
    assert run_after(known, RetryableError("the store does not answer")) is None
    assert run_after(NOTHING) is None
    found = run_after(known)
    assert found is not None
    assert found.jobs == ()


def test_what_a_table_job_left_beside_what_it_did_is_remembered_without_a_hold() -> None:
    left = RefusedFiles("keys of a type", reason=RefusalReason.TYPES)
    left.examined = ExaminedTable("u.7", waits_for_data=False)
    for before in (NOTHING, run_after(NOTHING, Difference("column v differs"))):
        assert before is not None
        found = run_after(before, left=left)
        assert found is not None
        (one,) = found.jobs
        assert (one.message, found.examined, one.runs) == ("keys of a type", {KIND: left.examined}, 0)
        assert not found.holds_job(KIND, 1)


def test_where_a_table_job_found_nothing_but_what_it_refuses_is_remembered_with_its_hold() -> None:
    refused = RefusedFiles("keys of a type", reason=RefusalReason.TYPES)
    refused.examined = ExaminedTable("u.7")
    found = run_after(NOTHING, refused)
    assert found is not None
    assert (found.examined, found.holds_job(KIND, FIRST_HOLD)) == ({KIND: refused.examined}, True)
    assert (run_after(NOTHING, Difference("column v differs")) or NOTHING).examined == {}


def test_a_refused_table_job_is_held_in_the_steps_of_its_format() -> None:
    world = world_of(format="iceberg")
    world.engine.format = "iceberg"

    def refuse() -> None:
        raise Difference("column v differs")

    world.engine.before_commit = refuse
    assert world.run()
    (one,) = PartitionRefusals.decode(str(world.end()["refusals"])).jobs
    assert one.held_until == 1 + FIRST_HOLD * support_of("iceberg").commit_step


def test_an_engine_that_does_not_run_a_kind_never_gets_it() -> None:
    world = World()
    world.kind = KIND
    assert world.run()
    assert world.engine.table_jobs == []
    assert "this release runs only 'compact/sort'" in world.end()["error"]


def test_a_report_of_a_job_that_did_not_begin_says_so() -> None:
    report = TableJobReport(KIND, PAYLOAD)
    assert (report.satisfied_version, report.measures()) == (-1, {})
    assert report.counters() == {"jobs_run": 1, "census_runs": 1}
    assert json.loads(report.encode(report.usage))["seen_version"] == -1


def test_a_run_is_charged_with_what_it_replaced_and_a_dry_run_counts_nothing() -> None:
    figures = {"rows_removed": 3, "bytes_replaced": 700}
    report = TableJobReport(KIND, PAYLOAD, so_far=figures)
    assert (report.cost_bytes, report.counters()["census_rows_removed"]) == (700, 3)
    dry = TableJobReport(KIND, replace(PAYLOAD, options={"dry_run": 1}), so_far=figures)
    assert (dry.cost_bytes, dry.counters()) == (0, {"jobs_run": 1, "census_runs": 1})
    assert json.loads(dry.encode(dry.usage))["measured"] == figures


def test_what_a_vacuum_deleted_before_it_failed_is_reported() -> None:
    """Thousands of files may be gone when a batch fails."""
    world = world_of(steps=3)
    changes = iter(range(3))

    def fail_in_the_third() -> None:
        if next(changes) == 2:
            raise RuntimeError("the store does not answer")

    world.engine.before_commit = fail_in_the_third
    world.run()
    end = world.end()
    assert end["verdict"] == "fail"
    assert json.loads(end["result"])["measured"] == {"steps": 2}


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


def test_traces_that_cannot_be_read_stop_no_run() -> None:
    queue = SyncQueueExecutor(connect("redis://127.0.0.1:1", timeout_s=0.2), "default")
    assert queue.traces(JobId("j-1")) == ()


def test_a_job_without_traces_begins_one_and_several_are_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = SyncQueueExecutor(connect("redis://127.0.0.1:1"), "default")
    answers = iter([None, b"a b"])
    monkeypatch.setattr(queue.redis, "hget", lambda *_: next(answers))
    assert [queue.traces(JobId("j-1")), queue.traces(JobId("j-1"))] == [(), ("a", "b")]
