"""The order of a table's files in time: what a plan must keep, and the best way to break a row."""

from dataclasses import replace
from fractions import Fraction

import pytest

from shared.layout.eligibility import Reason
from shared.layout.file_order import EXACT_FILES, GENERATED_UNTIL_TAG, break_row, in_order, time_span_ms, time_tags
from shared.layout.file_selection import GENERATED_TAG
from shared.layout.partition_stats import IDLE_COMPACTED_TAG
from shared.layout.planner import plan, plan_full, plan_idle_compaction
from shared.policy.levels import build_size_levels
from shared.policy.policy import ClusteringOrder, MaxMode, Policy
from shared.policy.row_order import INPUT_ORDER
from shared.table import DataFile, PartitionKey

PARTITION = PartitionKey("{}")
TIMED = Policy(
    target_bytes=100, fan_in=10, min_input_files=2, tolerance=Fraction(0), clustering_order=ClusteringOrder.TIME
)
PACKED = replace(TIMED, clustering_order=ClusteringOrder.NONE)


def row(*sizes: int) -> list[DataFile]:
    """Return files in the order of their times."""
    return [DataFile(f"f{at:02}", size, PARTITION, modified_ms=1_000 * at) for at, size in enumerate(sizes)]


def paths(groups) -> list[list[str]]:
    return [[file.path for file in group.files] for group in groups]


def test_the_rows_of_an_output_are_in_the_order_of_its_files_times_whatever_their_sizes() -> None:
    files = row(60, 5, 40)
    (group,) = plan(PARTITION, files, TIMED).groups
    assert list(group.files) == files
    assert group.order is INPUT_ORDER
    assert plan(PARTITION, files, PACKED).groups[0].order is None


def test_no_file_from_the_middle_is_left_out_of_an_output() -> None:
    # By size all small files are merged, around the full one in the middle; in order, 45 must not meet 46.
    files = row(45, 100, 46, 10)
    assert paths(plan(PARTITION, files, PACKED).groups) == [["f03", "f00", "f02"]]
    made = plan(PARTITION, files, TIMED)
    assert (made.groups, made.evaluation.reason, made.evaluation.needs_rewrite) == ((), Reason.NO_NEIGHBORS, False)


def test_a_merge_below_the_target_takes_neighbors_and_not_the_smallest() -> None:
    policy = replace(TIMED, min_input_files=3)
    files = row(1, 1, 9, 1, 1, 60)
    assert paths(plan(PARTITION, files, policy).groups) == [["f00", "f01", "f02", "f03", "f04"]]


def test_an_output_takes_the_place_of_its_inputs_in_the_row() -> None:
    a, b, c, d = (DataFile(name, 9, PARTITION, modified_ms=at) for name, at in (("a", 5), ("b", 5), ("c", 6), ("d", 7)))
    merged = DataFile("out", 18, PARTITION, modified_ms=99, tags=time_tags([b, c]))
    assert merged.tags == {GENERATED_TAG: "5", GENERATED_UNTIL_TAG: "6"}
    assert [file.path for file in in_order([d, merged, a])] == ["a", "out", "d"]
    earlier = DataFile("0", 9, PARTITION, modified_ms=99, tags={GENERATED_TAG: "4", GENERATED_UNTIL_TAG: "5"})
    assert [file.path for file in in_order([merged, a, earlier])] == ["0", "a", "out"]
    assert time_span_ms(DataFile("e", 1, PARTITION, tags=time_tags([earlier, merged]))) == (4, 6)


@pytest.mark.parametrize("tag", ["", "x", "-3", "²", "1"])
def test_a_tag_that_is_no_later_time_is_ignored(tag: str) -> None:
    file = DataFile("f", 1, PARTITION, modified_ms=7, tags={GENERATED_UNTIL_TAG: tag})
    assert time_span_ms(file) == (7, 7)


def test_neighbors_of_different_windows_are_not_merged() -> None:
    policy = replace(TIMED, time_window_s=2)
    assert paths(plan_full(PARTITION, row(20, 20, 20, 20), policy).groups) == [["f00", "f01"], ["f02", "f03"]]


def test_a_file_that_an_automatic_rewrite_must_not_touch_separates_its_neighbors() -> None:
    minor = replace(TIMED, max_mode=MaxMode.MINOR)
    assert paths(plan(PARTITION, row(1, 1, 1, 50, 1, 1, 1, 1, 1, 1), minor).groups) == []
    assert paths(plan(PARTITION, row(*[1] * 10, 50, *[1] * 10), minor).groups) == [
        [f"f{at:02}" for at in range(10)],
        [f"f{at:02}" for at in range(11, 21)],
    ]


def test_idle_compaction_merges_neighbors_that_were_never_idle_compacted() -> None:
    files = row(3, 4, 5, 6)
    files[2] = replace(files[2], tags={IDLE_COMPACTED_TAG: "1"})
    made = plan_idle_compaction(PARTITION, files, TIMED)
    assert paths(made.groups) == [["f00", "f01"]]
    tags = {GENERATED_TAG: "0", GENERATED_UNTIL_TAG: "1000", IDLE_COMPACTED_TAG: "1"}
    assert dict(made.groups[0].tags) == tags
    files[0] = replace(files[0], tags={IDLE_COMPACTED_TAG: "1"})
    none = plan_idle_compaction(PARTITION, files, TIMED)
    assert (none.groups, none.evaluation.reason) == ((), Reason.NO_NEIGHBORS)


def test_a_file_rewritten_alone_keeps_its_place() -> None:
    deleted = DataFile("f", 100, PARTITION, dv_id="u1", rows=10, deleted_rows=5, modified_ms=4_000)
    (group,) = plan(PARTITION, [deleted], TIMED).groups
    assert (group.order, time_span_ms(replace(deleted, tags=group.tags, modified_ms=9))) == (
        INPUT_ORDER,
        (4_000, 4_000),
    )
    (full,) = plan_full(PARTITION, [deleted], TIMED).groups
    assert full.tags == group.tags


TEN = Policy(target_bytes=100, fan_in=10)
LEVELS = TEN.size_levels


def anything(*_: int) -> bool:
    return True


def test_nothing_to_merge_gives_no_runs() -> None:
    assert break_row([], LEVELS, anything) == []
    assert break_row([10], LEVELS, anything) == []
    assert break_row([10, 10], LEVELS, lambda *_: False) == []


def test_an_output_is_measured_by_the_size_that_its_table_leads_to_expect() -> None:
    halved = build_size_levels(100, 10, TEN.full_file_threshold, TEN.learned.shrink / 2, TEN.learned.full_shrink / 2)
    assert break_row([50] * 4, halved, anything) == [range(4)]
    assert break_row([50] * 4, LEVELS, anything) == [range(2), range(2, 4)]


def test_a_long_row_of_tiny_files_is_broken_into_outputs_of_the_target() -> None:
    levels = build_size_levels(1 << 20, 8, TEN.full_file_threshold)
    found = break_row([1_000] * 10_000, levels, anything)
    assert found[0].start == 0
    assert [run.stop for run in found[:-1]] == [run.start for run in found[1:]]
    sizes = [1_000 * len(run) for run in found]
    assert all(0.94 * (1 << 20) < size < 1.02 * (1 << 20) for size in sizes), sizes
    assert len(found) <= 10_000 / EXACT_FILES
