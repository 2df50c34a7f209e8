"""What pages show equals what the states say, and a row that cannot be read hides no other."""

from datetime import UTC, datetime

import pytest

from decider.api.policy_in_force import policy_view
from decider.api.routes.history import MAX_POINTS, backlog_progress, thinned
from decider.api.routes.jobs import job_view, timeline
from decider.api.routes.partitions import partition_view
from decider.api.routes.status import amplification, savings
from decider.decide.actions import ACTIONS
from decider.decide.context import DecisionContext
from decider.state.effective_policy import resolve_unregistered
from decider.store.fleet_history import FleetSample
from shared.layout.partition_stats import stats_of_sizes
from shared.policy.policy import MIB, Policy
from shared.policy.property_table import PROPERTIES
from shared.queue.model import Band, JobId, JobKey, JobState, StopReason, Token
from shared.queue.records import JobView, RunRecord
from shared.table import PartitionColumn, PartitionKey

NOW_MS = 1_774_963_815_000
"""2026-03-31 13:30:15 UTC."""

SMALL = Policy(target_bytes=MIB)


def test_every_policy_field_is_shown_with_unit_and_origin() -> None:
    shown = policy_view(
        resolve_unregistered(Policy(), {"lakewright.tolerance": "0.2", "lakewright.idle-compaction-after": "off"}, {}),
        NOW_MS,
    )
    values = {one.property: one for one in shown.values}
    assert len(values) == len(PROPERTIES)
    assert (values["lakewright.tolerance"].value, values["lakewright.tolerance"].set_by) == (
        0.2,
        "lakewright.tolerance",
    )
    assert values["lakewright.idle-compaction-after"].value is None
    assert values["lakewright.fan-in"].set_by == "default"


def test_a_partition_is_labelled_by_the_names_that_users_know() -> None:
    columns = (PartitionColumn("day", "col-7f3", "date"),)
    partition = partition_view(
        DecisionContext.of_policy(SMALL, columns),
        PartitionKey('{"col-7f3":"2026-01-01"}'),
        stats_of_sizes(SMALL.size_levels, [1000] * 3),
        ACTIONS,
    )
    assert (partition.partition_label, partition.partition) == ("day=2026-01-01", {"day": "2026-01-01"})
    assert [(one.action, one.decision, one.reason) for one in partition.decisions] == [
        ("compact", "skip", "no_promotion")
    ]


def live(**changes: object) -> JobView:
    values: dict[str, object] = {
        "id": JobId("t.1.compact"),
        "key": JobKey("t", "{}", "compact"),
        "tenant": "default",
        "state": JobState.QUEUED,
        "band": Band.NORMAL,
        "priority": 4,
        "cost_bytes": 1,
        "version": 3,
        "payload": "{}",
        "enqueued_at_ms": 1_000,
        "attempts": 0,
        "revision": 1,
    }
    return JobView(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("payload", ["", "{", "[]", "null", '{"predicted": 7}', '{"predicted": {"bytes": "many"}}'])
def test_a_job_with_foreign_payload_is_shown_nevertheless(payload: str) -> None:
    job = job_view(live(payload=payload, progress=payload))
    assert (job.table_name, job.predicted, job.state) == ("t", {}, "queued")
    assert job_view(live(key=JobKey("t", "any text", "compact"))).partition_label == "any text"


def test_a_timeline_is_in_order_and_says_what_comes_next() -> None:
    run = RunRecord(
        entry_id="1-1",
        id=JobId("t.1.compact"),
        key=JobKey("t", "{}", "compact"),
        tenant="default",
        band=Band.NORMAL,
        token=Token(1),
        run_result="fail",
        outcome="delayed",
        worker="w",
        attempts=1,
        version=3,
        cost_bytes=0,
        enqueued_at_ms=1_000,
        started_ms=2_000,
        finished_ms=3_000,
        result="",
        error="Spark said no",
    )
    delayed = live(state=JobState.DELAYED, ready_at_ms=9_000, attempts=1)
    story = timeline(delayed, [run])
    assert [one.event for one in story] == ["enqueued", "started", "fail", "retry_due"]
    assert [one.at for one in story] == sorted(one.at for one in story)
    assert story[2].detail == "Spark said no"
    leased = live(state=JobState.LEASED, lease_until_ms=9_000, started_ms=8_000, worker="w", stop=StopReason.CANCEL)
    assert [one.event for one in timeline(leased, [])] == ["enqueued", "started", "lease_expires"]
    assert job_view(leased).stop_reason == "cancel"


def test_savings_are_null_before_anything_was_counted() -> None:
    nothing = savings({})
    steady = nothing.amplification.steady_write_amplification
    assert (nothing.files_removed, steady, nothing.partitions_pruned_ratio) == (0, None, None)
    some = savings({"bytes_replaced": 6, "partitions_touched": 10, "enqueued": 1, "files_replaced": 9})
    assert (some.bytes_rewritten, some.partitions_pruned_ratio, some.files_removed) == (6, 0.9, 9)


def test_what_lay_there_is_not_divided_by_what_came_since() -> None:
    found = amplification(
        {"backlog_bytes_found": 900, "backlog_bytes_done": 600, "steady_bytes_added": 4, "steady_bytes_rewritten": 6}
    )
    assert (found.backlog_bytes_left, found.steady_write_amplification) == (300, 1.5)
    assert amplification({"backlog_bytes_done": 5}).backlog_bytes_left == 0


def sample(minute: int, done: int = 0) -> FleetSample:
    return FleetSample(60_000 * minute, backlog_bytes_done=done)


def test_the_pace_of_the_backlog_is_that_of_the_second_half_of_its_work() -> None:
    today = [sample(0), sample(1), sample(2, 10), sample(3, 20), sample(4, 50)]
    found = backlog_progress(today, left=60, done=80, now_ms=60_000 * 5)
    assert (found.left_bytes, found.done_bytes, found.bytes_per_h) == (60, 80, 60 * 30)
    assert found.ends_at == datetime.fromtimestamp(60 * (5 + 2), UTC)
    assert backlog_progress(today, left=60, done=50, now_ms=60_000 * 9).ends_at is None, "its work has stopped"
    for nothing in ([], [sample(0)], [sample(0, 40), sample(1, 40)]):
        found = backlog_progress(nothing, left=60, done=40, now_ms=60_000)
        assert (found.bytes_per_h, found.ends_at) == (None, None)
    assert backlog_progress(today, left=0, done=40, now_ms=60_000 * 5).ends_at is None


@pytest.mark.parametrize("count", [0, 1, MAX_POINTS, MAX_POINTS + 1, 5 * MAX_POINTS])
def test_a_history_has_so_many_points_and_its_newest(count: int) -> None:
    shown = thinned([sample(minute) for minute in range(count)])
    assert len(shown) <= MAX_POINTS
    assert [one.at_ms for one in shown[-1:]] == [60_000 * (count - 1)][: min(1, count)]
