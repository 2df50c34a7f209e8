"""Order of the files of a partition in time, where the table keeps it: only true neighbors are merged, and in order.

All files of the partition stand in one row, full ones included; what may be merged are runs of neighbors in it, and no
file from between is left out. The output takes the place of its inputs, because its tags name the first and the last of
their times, and its rows are the first input's, then the next one's.

Which files are neighbors is not in the rolling state, so a decision overestimates: a job may find that nothing can be
merged. It never underestimates, as a run that may be merged is part of what the levels alone permit.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from shared.layout.file_selection import GENERATED_TAG, generated_ms, window_start_ms
from shared.layout.line_breaking import Permits, break_row
from shared.policy.levels import SizeLevels
from shared.policy.policy import Policy
from shared.table import DataFile
from shared.whole_numbers import whole_number

GENERATED_UNTIL_TAG = "lakewright.generated-until-ms"
"""AddFile tag of a file that was merged in order: the last time of its inputs, as `GENERATED_TAG` names the first."""


def time_span_ms(file: DataFile) -> tuple[int, int]:
    """Return the first and the last event time in ms of a file's rows."""
    first_ms, last_ms = generated_ms(file), whole_number(file.tags.get(GENERATED_UNTIL_TAG, ""))
    return first_ms, first_ms if last_ms is None else max(first_ms, last_ms)


def in_order(files: Sequence[DataFile]) -> list[DataFile]:
    """Return the files as a row.

    Spans of rows that were merged in order touch at most in their ends, so comparing first ends first keeps a file
    between the two outputs that its time separates.
    """
    return sorted(files, key=lambda file: (*time_span_ms(file), file.path))


def time_tags(inputs: Sequence[DataFile]) -> dict[str, str]:
    """Return the tags that give an output the place of its inputs."""
    spans = [time_span_ms(file) for file in inputs]
    first_ms, last_ms = min(first for first, _ in spans), max(last for _, last in spans)
    return {GENERATED_TAG: str(first_ms), GENERATED_UNTIL_TAG: str(last_ms)}


def promoted_runs(files: Sequence[DataFile], policy: Policy) -> list[list[DataFile]]:
    """Return the runs of neighbors to merge, each promoted; `files` are all of the partition."""
    levels, min_inputs = policy.size_levels, policy.min_input_files

    def permits(level: int, total_bytes: int, inputs: int) -> bool:
        return levels.permits_rewrite(level, total_bytes, inputs, min_inputs)

    top = policy.automatic_levels
    runs = _neighbors(in_order(files), policy.time_window_s, lambda file: levels.level(file.size_bytes) < top)
    return _runs_to_merge(runs, levels, permits)


def runs_to_pack(
    files: Sequence[DataFile], levels: SizeLevels, window_s: int | None, may_merge: Callable[[DataFile], bool]
) -> list[list[DataFile]]:
    """Return the runs of neighbors to merge, promoted or not, of the files that may be merged."""
    runs = _neighbors(in_order(files), window_s, may_merge)
    return _runs_to_merge(runs, levels, lambda _level, _bytes, _inputs: True)


def _runs_to_merge(runs: Iterable[list[DataFile]], levels: SizeLevels, permits: Permits) -> list[list[DataFile]]:
    return [
        run[found.start : found.stop]
        for run in runs
        for found in break_row([file.size_bytes for file in run], levels, permits)
    ]


def _neighbors(
    row: Sequence[DataFile], window_s: int | None, may_merge: Callable[[DataFile], bool]
) -> Iterator[list[DataFile]]:
    """Yield the longest runs without a file that must not be merged, each inside one time window."""
    run: list[DataFile] = []
    for file in row:
        is_input = may_merge(file)
        if run and not (is_input and window_start_ms(file, window_s) == window_start_ms(run[0], window_s)):
            yield run
            run = []
        if is_input:
            run.append(file)
    if run:
        yield run
