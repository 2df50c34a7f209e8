"""When full files are sorted again, and which."""

from dataclasses import replace
from fractions import Fraction

import pytest

from shared.errors import InvalidInput
from shared.jobs.payload import SORT
from shared.layout.partition_stats import (
    CUBE_TAG,
    SORT_LEVEL_TAG,
    SORT_LEVELS,
    PartitionStats,
    sort_level,
    stats_of_files,
)
from shared.layout.planner import MAX_SORTED_OUTPUTS, RewriteMode, plan, plan_full, plan_idle_compaction
from shared.layout.sort_planner import SortReason, evaluate_sort, plan_sort
from shared.policy.policy import KIB, ClusteringOrder, Policy
from shared.policy.row_order import INPUT_ORDER
from shared.table import DataFile, PartitionKey

PARTITION = PartitionKey("{}")
SORTED = Policy(target_bytes=100, fan_in=10, min_input_files=2, tolerance=Fraction(0), sort_by="k, n desc", max_depth=2)
UNSORTED = replace(SORTED, sort_by=None)


def full(name: str, low: int, high: int, *, level: int = 0, size: int = 100) -> DataFile:
    tags = {SORT_LEVEL_TAG: str(level)} if level else {}
    return DataFile(name, size, PARTITION, tags=tags, key_range=(low, high))


def small(*sizes: int, **more) -> list[DataFile]:
    return [DataFile(f"s{at}", size, PARTITION, **more) for at, size in enumerate(sizes)]


def test_files_are_sorted_again_where_more_of_one_level_overlap_than_allowed() -> None:
    files = [full("a", 0, 50), full("b", 10, 60), full("c", 40, 90), full("d", 70, 99)]
    made = plan_sort(PARTITION, files, SORTED)
    (group,) = made.groups
    assert {file.path for file in group.files} == {"a", "b", "c"}
    assert (made.action, group.mode, dict(group.tags)) == (SORT, RewriteMode.SORT, {SORT_LEVEL_TAG: "1"})
    assert group.order is not None
    assert (group.order.outputs, [str(column) for column in group.order.columns]) == (3, ["`k` ASC", "`n` DESC"])
    assert (made.evaluation.reason, made.predicted.files, made.files_removed) == (SortReason.TOO_DEEP, 4, 0)
    assert plan_sort(PARTITION, files[1:], SORTED).evaluation.reason is SortReason.WITHIN_DEPTH


def test_files_of_lower_levels_at_the_point_are_sorted_with_those_in_excess_and_higher_ones_are_not() -> None:
    files = [full(f"l1-{at}", 0, 90, level=1) for at in range(3)]
    files += [full("l0", 10, 80), full("l2", 0, 99, level=2), full("away", 95, 99)]
    (group,) = plan_sort(PARTITION, files, SORTED).groups
    assert {file.path for file in group.files} == {"l1-0", "l1-1", "l1-2", "l0"}
    assert group.tags[SORT_LEVEL_TAG] == "2"


def test_the_lowest_level_in_excess_is_sorted_first() -> None:
    files = [full(f"h{at}", 0, 90, level=3, size=80) for at in range(9)] + [full(f"l{at}", 95, 99) for at in range(3)]
    first, second = plan_sort(PARTITION, files, SORTED).groups
    assert [group.tags[SORT_LEVEL_TAG] for group in (first, second)] == ["1", "4"]
    assert [len(group.files) for group in (first, second)] == [3, 9]


def test_files_of_the_last_level_are_never_sorted_again() -> None:
    files = [full(f"f{at}", 0, 9, level=SORT_LEVELS) for at in range(9)]
    assert plan_sort(PARTITION, files, SORTED).evaluation.reason is SortReason.WITHIN_DEPTH
    assert sort_level({SORT_LEVEL_TAG: "99"}) == SORT_LEVELS
    assert [sort_level({SORT_LEVEL_TAG: tag}) for tag in ("", "x", "-1", "²")] == [0] * 4


def test_small_files_and_files_without_a_range_have_no_depth() -> None:
    files = [DataFile(f"n{at}", 100, PARTITION) for at in range(9)]
    files += [full(f"s{at}", 0, 9, size=10) for at in range(9)] + [full(f"p{at}", 5, 5) for at in range(9)]
    assert plan_sort(PARTITION, files, SORTED).groups == ()


def test_a_table_without_an_order_and_files_of_a_curve_of_others_are_left_alone() -> None:
    files = [full(f"f{at}", 0, 9) for at in range(9)]
    state = stats_of_files(files, SORTED.size_levels)
    assert evaluate_sort(state, UNSORTED) is SortReason.NO_SORT_ORDER
    assert evaluate_sort(replace(state, cube_files=1), SORTED) is SortReason.CURVE_OF_OTHERS
    cubes = [replace(file, tags={CUBE_TAG: "z"}) for file in files]
    assert plan_sort(PARTITION, cubes, SORTED).groups == ()
    assert all(reason.message.endswith(".") for reason in SortReason)


def test_one_job_takes_no_more_than_its_bytes_and_yet_as_many_files_as_raise_the_level() -> None:
    files = [full(f"f{at}", 0, 9) for at in range(9)]
    made = plan_sort(PARTITION, files, replace(SORTED, max_bytes_per_job=500))
    assert [len(group.files) for group in made.groups] == [5]
    assert made.is_truncated
    made = plan_sort(PARTITION, files, replace(SORTED, max_bytes_per_job=64 * KIB))
    assert ([len(group.files) for group in made.groups], made.is_truncated) == ([9], False)
    tight = plan_sort(PARTITION, files, replace(SORTED, max_bytes_per_job=1))
    assert [len(group.files) for group in tight.groups] == [3]


def test_a_state_keeps_its_depths_when_it_is_stored() -> None:
    state = stats_of_files([full("a", 0, 50), full("b", 10, 60, level=2)], SORTED.size_levels)
    assert [level for level, _ in state.depths] == [0, 2]
    assert PartitionStats.decode(state.encode()) == state
    windowed = state.in_window(7)
    assert PartitionStats.decode(windowed.encode()) == windowed
    assert windowed.windows[0][1].depths == windowed.total.depths == ()
    assert not (state - stats_of_files([full("c", 0, 99)], SORTED.size_levels)).is_consistent


def test_compaction_sorts_what_becomes_full_and_all_of_one_plan_together() -> None:
    made = plan(PARTITION, small(50, 50, 50, 50), SORTED)
    (group,) = made.groups
    assert group.order is not None
    assert (len(group.files), group.order.outputs, made.predicted.files) == (4, 2, 2)
    assert all(one.order is None for one in plan(PARTITION, small(50, 50, 50, 50), UNSORTED).groups)


def test_compaction_below_the_full_size_keeps_no_order() -> None:
    (group,) = plan(PARTITION, small(5, 5, 5), SORTED).groups
    assert group.order is None
    (idle,) = plan_idle_compaction(PARTITION, small(5, 6), SORTED).groups
    assert idle.order is None


def test_one_sort_by_compaction_has_a_bounded_number_of_outputs() -> None:
    made = plan_full(PARTITION, small(*[50] * 2 * (MAX_SORTED_OUTPUTS + 1)), SORTED)
    outputs = [group.order.outputs for group in made.groups if group.order is not None]
    assert outputs == [MAX_SORTED_OUTPUTS, 1]


def test_a_sorted_file_that_is_rewritten_alone_keeps_its_order_and_its_level() -> None:
    deleted = replace(full("f", 0, 9, level=2), dv_id="u1", rows=10, deleted_rows=5)
    (group,) = plan(PARTITION, [deleted], SORTED).groups
    assert (group.order, dict(group.tags)) == (INPUT_ORDER, {SORT_LEVEL_TAG: "2"})
    merged = plan_full(PARTITION, [*small(50), full("f", 0, 9, level=2, size=60)], SORTED).groups
    assert [dict(group.tags) for group in merged] == [{SORT_LEVEL_TAG: "2"}]


def test_a_table_has_one_order() -> None:
    for more in ({"zorder_by": "a"}, {"clustering_order": ClusteringOrder.TIME}):
        with pytest.raises(InvalidInput):
            replace(SORTED, **more)
    order = replace(UNSORTED, zorder_by="a, b").sort_order
    assert order is not None
    assert order.is_interleaved


def test_a_sort_of_files_above_the_target_makes_no_more_files_than_there_were() -> None:
    files = [full(f"f{at}", 0, 9, size=250) for at in range(3)]
    made = plan_sort(PARTITION, files, SORTED)
    assert [group.order.outputs for group in made.groups if group.order is not None] == [3]
    assert made.files_removed == 0
