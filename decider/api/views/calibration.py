"""Predicted and measured numbers in responses, for a table and for a job."""

from collections.abc import Iterable, Mapping

from decider.api.schemas.calibration import JobCalibration, TableCalibration
from decider.api.views.jobs import job_view
from decider.decide.calibration import Calibration
from shared.queue.model import RunResult
from shared.queue.records import RunRecord


def table_calibration(learned: Calibration, counters: Mapping[str, int]) -> TableCalibration:
    """Show what was learned of a table, with the groups that its counters have counted."""
    return TableCalibration(
        runs=learned.runs,
        predicted_bytes=learned.predicted_bytes,
        measured_bytes=learned.measured_bytes,
        predicted_files_removed=learned.predicted_removed,
        measured_files_removed=learned.measured_removed,
        merged_input_bytes=learned.merged_bytes,
        merged_output_bytes=learned.merged_into_bytes,
        shrink=float(learned.shrink),
        filled_input_bytes=learned.filled_bytes,
        filled_output_bytes=learned.filled_into_bytes,
        full_shrink=float(learned.full_shrink),
        bytes_ratio=round(float(learned.bytes_ratio), 4),
        files_removed_ratio=round(float(learned.removed_ratio), 4),
        groups_promoted=counters.get("groups_promoted", 0),
        groups_not_promoted=counters.get("groups_not_promoted", 0),
    )


def job_calibration(runs: Iterable[RunRecord]) -> JobCalibration:
    """Add up what was predicted and measured over the runs that ended well and rewrote something."""
    shown = [job_view(run) for run in runs if run.run_result == RunResult.DONE]
    whole = [one for one in shown if one.measured.get("files_replaced", 0) > 0]
    return JobCalibration(
        runs=len(whole),
        predicted_bytes=int(sum(one.predicted.get("bytes", 0) for one in whole)),
        measured_bytes=int(sum(one.measured.get("bytes", 0) for one in whole)),
        predicted_files_removed=int(sum(one.predicted.get("files_removed", 0) for one in whole)),
        measured_files_removed=int(sum(one.measured.get("files_removed", 0) for one in whole)),
    )
