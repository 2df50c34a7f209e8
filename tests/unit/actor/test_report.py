"""What the report of a run teaches the decider."""

from actor.ports import GroupOutcome, GroupStatus, RewriteOutcome
from actor.report import RunReport
from shared.jobs.payload import COMPACT, JobPayload, PredictedCost, RunMeasure
from shared.layout.planner import FileGroup, RewriteMode
from shared.policy.policy import Policy
from shared.table import DataFile, PartitionKey

PAYLOAD = JobPayload("memory://t", "t", Policy(), "eligible", PredictedCost(2, 1, 200, 1, 200))
PARTITION = PartitionKey("{}")


def report_of(kind: str) -> RunReport:
    """A run that merged two files into one."""
    inputs = tuple(DataFile(f"{number}.parquet", 100, PARTITION) for number in range(2))
    group = FileGroup(PARTITION, inputs, RewriteMode.MINOR)
    ended = GroupOutcome(group, GroupStatus.COMMITTED, (DataFile("new.parquet", 150, PARTITION),), 2)
    report = RunReport(PAYLOAD, kind=kind)
    report.record_rewrite(RewriteOutcome(2, (ended,), 1, 1))
    return report


def test_only_runs_of_compaction_are_measured_for_its_calibration() -> None:
    assert report_of(COMPACT).measures()[RunMeasure.MEASURED_BYTES] == 200
    assert report_of("another").measures() == {}
    assert report_of("another").counters()["rewrites"] == 1


def test_groups_with_deleted_rows_teach_nothing_about_how_much_outputs_shrink() -> None:
    inputs = (DataFile("0.parquet", 100, PARTITION, dv_id="u1", deleted_rows=5), DataFile("1.parquet", 100, PARTITION))
    ended = GroupOutcome(
        FileGroup(PARTITION, inputs, RewriteMode.MINOR),
        GroupStatus.COMMITTED,
        (DataFile("new.parquet", 150, PARTITION),),
        2,
    )
    report = RunReport(PAYLOAD)
    report.record_rewrite(RewriteOutcome(2, (ended,), 1, 1))
    assert not report.shrinking
    assert (report.counters()["bytes_replaced"], report.counters()["bytes_written"]) == (200, 150)


def test_rows_that_were_hidden_when_files_were_read_are_not_late() -> None:
    inputs = (DataFile("0.parquet", 100, PARTITION, dv_id="u1", deleted_rows=5),)
    output = DataFile("new.parquet", 100, PARTITION, dv_id="u2", deleted_rows=9)
    ended = GroupOutcome(
        FileGroup(PARTITION, inputs, RewriteMode.MINOR), GroupStatus.COMMITTED, (output,), 2, late_rows=2
    )
    report = RunReport(PAYLOAD)
    report.record_rewrite(RewriteOutcome(2, (ended,), 1, 1))
    assert report.counters()["late_rows_hidden"] == 2


def test_a_rewrite_that_committed_nothing_has_no_version() -> None:
    report, group = RunReport(PAYLOAD), FileGroup(PARTITION, (), RewriteMode.MINOR)
    taken = GroupOutcome(group, GroupStatus.CONFLICTED, conflicted_because="no_row_map")
    skipped = GroupOutcome(group, GroupStatus.SKIPPED)
    report.record_rewrite(RewriteOutcome(None, (skipped, taken), 1, 1, conflicts=2))
    assert (report.versions, report.counters()["conflicts"]) == ([], 2)
    assert report.counters()["conflicted_no_row_map"] == 1
