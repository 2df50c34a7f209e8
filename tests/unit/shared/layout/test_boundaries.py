"""Where a rule says "from", "below" or "at most", the case of equality has a test: one unit to each side of it."""

from dataclasses import replace
from fractions import Fraction

import pytest

from shared.jobs.payload import JobPayload, PredictedCost, RewriteKind
from shared.layout.eligibility import (
    Evaluation,
    Reason,
    evaluate_full,
    evaluate_idle,
    evaluate_layout,
    is_purgeable,
    is_tolerable,
)
from shared.layout.file_selection import (
    GENERATED_TAG,
    cover,
    generated_ms,
    has_window_ended,
    tagged_window_start_ms,
    window_start_ms,
)
from shared.layout.partition_stats import IDLE_COMPACTED_TAG, file_stats, stats_of_sizes
from shared.layout.planner import RewriteMode, plan, plan_full, plan_idle_compaction
from shared.policy.levels import FULL, build_size_levels
from shared.policy.policy import GIB, MIB, MaxMode, Policy
from shared.policy.traits import LearnedValues
from shared.table import DataFile, PartitionKey

PARTITION = PartitionKey("{}")
TEN = Policy(target_bytes=100, tolerance=Fraction(1, 2), fan_in=10, min_input_files=3)
"""Levels begin at 0, 1, 1, 1, 1, 10, 75: small numbers, so that equality can be hit."""


def files_of(*sizes: int, **more: object) -> list[DataFile]:
    return [DataFile(f"f{number}", size, PARTITION, **more) for number, size in enumerate(sizes)]  # type: ignore[arg-type]


# Tolerance: (T/2)^2 = 2,500 per file.


@pytest.mark.parametrize(("sizes", "is_tolerated"), [([50, 50], False), ([50, 51], True), ([49, 51], False)])
def test_a_shortfall_equal_to_the_tolerance_is_not_tolerated_any_more(sizes: list[int], is_tolerated: bool) -> None:
    state = stats_of_sizes(TEN.size_levels, sizes)
    assert is_tolerable(state, TEN.target_bytes, TEN.tolerance) is is_tolerated
    assert (evaluate_layout(state, TEN).reason is Reason.WITHIN_TOLERANCE) is is_tolerated


def test_small_files_that_are_tolerated_are_in_no_plan_although_a_merge_would_promote_them() -> None:
    files = files_of(*[10] * 10, *[100] * 10_000)
    strict = replace(TEN, tolerance=Fraction(0))
    assert [len(group.files) for group in plan(PARTITION, files, strict).groups] == [10]
    assert not plan(PARTITION, files, TEN).groups


def test_without_a_tolerance_nothing_that_can_be_removed_is_tolerated() -> None:
    strict = replace(TEN, tolerance=Fraction(0))
    for sizes in ([1, 1], [100, 100]):
        state = stats_of_sizes(strict.size_levels, sizes)
        assert not is_tolerable(state, strict.target_bytes, strict.tolerance), "nothing is below nothing"


@pytest.mark.parametrize(("small", "reason"), [(10, Reason.WITHIN_TOLERANCE), (11, Reason.TOO_MANY_SMALL_FILES)])
def test_as_many_small_files_as_the_maximum_are_not_too_many(small: int, reason: Reason) -> None:
    policy = replace(TEN, max_small_files=10)
    state = stats_of_sizes(policy.size_levels, [100] * 10_000 + [10] * small)
    assert evaluate_layout(state, policy).reason is reason


@pytest.mark.parametrize(("sizes", "reason"), [([50], Reason.NO_SMALL_FILES), ([50, 50], Reason.ELIGIBLE)])
def test_a_merge_takes_two_files(sizes: list[int], reason: Reason) -> None:
    assert evaluate_layout(stats_of_sizes(TEN.size_levels, sizes), TEN).reason is reason


def test_a_file_of_the_full_size_is_no_small_file() -> None:
    assert stats_of_sizes(TEN.size_levels, [74, 75]).small_files == 1
    assert TEN.size_levels.level(75) == FULL
    assert TEN.size_levels.level(74) == FULL - 1


# Promotion.


@pytest.mark.parametrize(("total", "is_permitted"), [(9, False), (10, True)])
def test_a_group_that_just_reaches_the_next_level_is_promoted(total: int, is_permitted: bool) -> None:
    size_levels = build_size_levels(100, 10, Fraction(3, 4))
    assert size_levels.permits_rewrite(size_levels.level(9), total, 3, 3) is is_permitted
    counts, sizes = [0, 0, 0, 0, 3, 0], [0, 0, 0, 0, total, 0]
    assert (size_levels.highest_promotable(counts, sizes, 3) == 4) is is_permitted


@pytest.mark.parametrize(("inputs", "is_permitted"), [(2, False), (3, True)])
def test_as_many_inputs_as_the_minimum_are_enough(inputs: int, is_permitted: bool) -> None:
    size_levels = build_size_levels(100, 10, Fraction(3, 4))
    assert size_levels.permits_rewrite(size_levels.level(9), 20, inputs, 3) is is_permitted
    assert (size_levels.highest_promotable([0, 0, 0, 0, inputs, 0], [0, 0, 0, 0, 20, 0], 3) == 4) is is_permitted


@pytest.mark.parametrize(("total", "is_permitted"), [(99, False), (100, True)])
def test_a_whole_target_needs_no_minimum_of_inputs(total: int, is_permitted: bool) -> None:
    size_levels = build_size_levels(100, 10, Fraction(3, 4))
    assert size_levels.permits_rewrite(size_levels.level(50), total, 2, 3) is is_permitted
    assert (size_levels.highest_promotable([0] * 5 + [2], [0] * 5 + [total], 3) == 5) is is_permitted


def test_a_level_without_files_is_not_the_one_that_is_merged() -> None:
    size_levels = build_size_levels(100, 10, Fraction(3, 4))
    assert size_levels.highest_promotable([0, 0, 0, 0, 5, 0], [0, 0, 0, 0, 200, 0], 3) == 4


def test_only_the_first_levels_are_merged_where_the_policy_caps_them() -> None:
    size_levels = build_size_levels(100, 10, Fraction(3, 4))
    assert size_levels.highest_promotable([0] * 5 + [4], [0] * 5 + [120], 3, levels=6) == 5
    assert size_levels.highest_promotable([0] * 5 + [4], [0] * 5 + [120], 3, levels=5) is None
    assert (TEN.automatic_levels, replace(TEN, max_mode=MaxMode.MINOR).automatic_levels) == (6, 5)


def test_outputs_that_shrink_need_more_inputs_rounded_up() -> None:
    size_levels = build_size_levels(100, 10, Fraction(3, 4), Fraction(1, 2), Fraction(2, 3))
    assert size_levels.cover_bytes == 150
    assert size_levels.required_bytes(4) == 20
    assert [size_levels.predicted_bytes(total) for total in (74, 75, 150, 151)] == [37, 50, 100, 101]
    assert build_size_levels(100, 10, Fraction(3, 4), full_shrink=Fraction(3, 7)).cover_bytes == 234  # 233.3


@pytest.mark.parametrize(
    ("shrink", "full_shrink", "required"),
    [
        (Fraction(1), Fraction(1), [4, 7, 13, 25, 50, 100]),
        (Fraction(1, 2), Fraction(1), [8, 14, 26, 50, 75, 100]),
        # From 75 on, a total of 50 would come out as 25 at most.
        (Fraction(1), Fraction(1, 4), [4, 7, 13, 100, 200, 400]),
    ],
)
def test_from_the_required_total_on_every_output_is_predicted_to_be_promoted(
    shrink: Fraction, full_shrink: Fraction, required: list[int]
) -> None:
    levels = build_size_levels(100, 2, Fraction(3, 4), shrink, full_shrink)
    assert [levels.required_bytes(level) for level in range(6)] == required
    for level, total in enumerate(required):
        assert all(levels.predicted_bytes(more) >= levels.floors[level + 1] for more in range(total, 500))


@pytest.mark.parametrize(("output", "short"), [(9, 1), (10, 0), (75, 0)])
def test_an_output_on_the_next_level_misses_none(output: int, short: int) -> None:
    assert build_size_levels(100, 10, Fraction(3, 4)).levels_below_target(largest_bytes=9, output_bytes=output) == short


def test_an_output_may_miss_several_levels() -> None:
    size_levels = Policy().size_levels
    assert size_levels.levels_below_target(largest_bytes=20 * MIB, output_bytes=20 * MIB) == 1
    assert size_levels.levels_below_target(largest_bytes=20 * MIB, output_bytes=MIB) == 3


# Deleted rows.


@pytest.mark.parametrize(
    ("rows", "deleted", "is_heavy"), [(100, 9, False), (100, 10, True), (3, 1, True), (11, 1, False)]
)
def test_a_file_is_purged_from_the_ratio_on(rows: int, deleted: int, is_heavy: bool) -> None:
    file = DataFile("f", 50, PARTITION, dv_id="v", rows=rows, deleted_rows=deleted)
    assert is_purgeable(file, TEN) is is_heavy


@pytest.mark.parametrize(
    ("file", "policy"),
    [
        (DataFile("f", 50, PARTITION, rows=None, deleted_rows=5), TEN),
        (DataFile("f", 50, PARTITION, rows=0, deleted_rows=0), TEN),
        (DataFile("f", 50, PARTITION, rows=100, deleted_rows=0), replace(TEN, delete_ratio_threshold=Fraction(0))),
        (DataFile("f", 50, PARTITION, rows=100, deleted_rows=100), replace(TEN, delete_ratio_threshold=None)),
    ],
)
def test_a_file_whose_share_is_not_known_or_nothing_is_not_purged(file: DataFile, policy: Policy) -> None:
    assert not is_purgeable(file, policy)


def test_a_single_deleted_row_is_enough_where_the_ratio_is_nothing() -> None:
    file = DataFile("f", 50, PARTITION, rows=100, deleted_rows=1)
    assert is_purgeable(file, replace(TEN, delete_ratio_threshold=Fraction(0)))


def test_work_is_a_merge_or_a_purge() -> None:
    assert not Evaluation(Reason.NO_PROMOTION, None).needs_rewrite
    assert Evaluation(Reason.ELIGIBLE, 0).needs_rewrite, "the lowest level is a level"
    assert Evaluation(Reason.SINGLE_FILE_REWRITE, None, 1).needs_rewrite
    assert evaluate_layout(stats_of_sizes(TEN.size_levels, [50]), TEN, 1) == Evaluation(
        Reason.SINGLE_FILE_REWRITE, None, 1
    )
    assert evaluate_layout(stats_of_sizes(TEN.size_levels, [50, 50]), TEN, 1) == Evaluation(Reason.ELIGIBLE, 5, 1)
    assert evaluate_layout(stats_of_sizes(TEN.size_levels, [50, 50]), TEN) == Evaluation(Reason.ELIGIBLE, 5, 0)


# Idle compaction and full rewrites.


@pytest.mark.parametrize(("settled", "reason"), [(1, Reason.IDLE), (2, Reason.ALREADY_COMPACTED)])
def test_two_files_that_were_never_settled_are_settled(settled: int, reason: Reason) -> None:
    size_levels = TEN.size_levels
    state = stats_of_sizes(size_levels, [20])
    for number in range(2):
        state += file_stats(size_levels, 20, is_idle_compacted=number < settled)
    assert evaluate_idle(state, TEN) == Evaluation(reason, 5 if reason is Reason.IDLE else None)


def test_files_above_the_cap_are_not_left_to_settle() -> None:
    minor = replace(TEN, max_mode=MaxMode.MINOR, tolerance=Fraction(0))
    assert evaluate_idle(stats_of_sizes(minor.size_levels, [10, 10, 9]), minor).reason is Reason.ALREADY_COMPACTED
    assert evaluate_idle(stats_of_sizes(minor.size_levels, [10, 9, 9]), minor) == Evaluation(Reason.IDLE, 4)
    made = plan_idle_compaction(PARTITION, files_of(10, 9, 9), minor)
    assert [[file.size_bytes for file in group.files] for group in made.groups] == [[9, 9]]


def test_settled_files_stay_out_of_a_merge_of_the_others() -> None:
    settled = DataFile("settled", 20, PARTITION, tags={IDLE_COMPACTED_TAG: "1"})
    (group,) = plan_idle_compaction(PARTITION, [settled, *files_of(9, 9)], replace(TEN, tolerance=Fraction(0))).groups
    assert [file.path for file in group.files] == ["f0", "f1"]
    assert dict(group.tags) == {IDLE_COMPACTED_TAG: "1"}


def test_a_single_file_that_is_left_is_not_rewritten_into_itself() -> None:
    for made in (
        plan_full(PARTITION, files_of(50, 50, 20), TEN),
        plan_idle_compaction(PARTITION, files_of(50, 50, 20), TEN),
    ):
        assert [[file.size_bytes for file in group.files] for group in made.groups] == [[50, 50]]


def test_one_small_file_is_not_settled() -> None:
    assert evaluate_idle(stats_of_sizes(TEN.size_levels, [20]), TEN).reason is Reason.NO_SMALL_FILES


@pytest.mark.parametrize(
    ("sizes", "vectors", "expected"),
    [
        ([50], 0, Evaluation(Reason.NO_SMALL_FILES, None)),
        ([50, 50], 0, Evaluation(Reason.FULL_REWRITE_DUE, 5, 0)),
        ([100], 1, Evaluation(Reason.FULL_REWRITE_DUE, None, 1)),
    ],
)
def test_a_full_rewrite_is_due_for_two_small_files_or_one_with_deleted_rows(
    sizes: list[int], vectors: int, expected: Evaluation
) -> None:
    state = stats_of_sizes(TEN.size_levels, sizes)
    state = replace(state, dv_files=vectors)
    assert evaluate_full(state) == expected


def test_a_full_rewrite_takes_each_file_once_and_every_file_with_deleted_rows() -> None:
    heavy = DataFile("heavy", 100, PARTITION, dv_id="v", rows=100, deleted_rows=1)
    small_heavy = DataFile("small", 20, PARTITION, dv_id="v", rows=100, deleted_rows=1)
    made = plan_full(PARTITION, [heavy, small_heavy, *files_of(20, 100)], TEN)
    assert sorted(sorted(file.path for file in group.files) for group in made.groups) == [["f0", "small"], ["heavy"]]


# Bytes of one job.


@pytest.mark.parametrize(("room", "groups", "is_cut"), [(99, 1, True), (199, 1, True), (200, 2, False)])
def test_groups_that_just_fill_a_job_are_all_in_it(room: int, groups: int, is_cut: bool) -> None:
    policy = replace(TEN, max_bytes_per_job=room, tolerance=Fraction(0))
    made = plan(PARTITION, files_of(50, 50, 50, 50), policy)
    assert (len(made.groups), made.is_truncated) == (groups, is_cut)


def test_what_is_made_of_settled_bytes_says_so() -> None:
    policy = replace(TEN, tolerance=Fraction(0))
    mixed = [*files_of(9, 9), DataFile("s", 9, PARTITION, tags={IDLE_COMPACTED_TAG: "1"})]
    assert [dict(group.tags) for group in plan(PARTITION, mixed, policy).groups] == [{IDLE_COMPACTED_TAG: "1"}]
    assert [dict(group.tags) for group in plan(PARTITION, files_of(9, 9, 9), policy).groups] == [{}]


def test_one_file_of_the_top_level_makes_a_group_major() -> None:
    (group,) = plan(PARTITION, files_of(9, 9, 9, 74), replace(TEN, tolerance=Fraction(0))).groups
    assert (group.mode, sorted(file.size_bytes for file in group.files)) == (RewriteMode.MAJOR, [9, 9, 9, 74])


def test_a_plan_says_what_it_removes_and_predicts_outputs_as_small_as_they_come_out() -> None:
    policy = replace(TEN, tolerance=Fraction(0), learned=LearnedValues(Fraction(9, 10), Fraction(9, 10)))
    made = plan(PARTITION, [*files_of(40, 40, 40), DataFile("full", 100, PARTITION)], policy)
    assert (made.files_replaced, made.files_removed, made.bytes) == (3, 2, 120)
    assert made.predicted == stats_of_sizes(policy.size_levels, [108, 100])
    assert made.entropy_removed == 3 * 60**2
    merged = plan(
        PARTITION,
        [*files_of(9, 9), DataFile("s", 9, PARTITION, tags={IDLE_COMPACTED_TAG: "1"})],
        replace(policy, fan_in=9),
    )
    assert merged.predicted == file_stats(policy.size_levels, 25, is_idle_compacted=True), "24.3 rounded up"


def test_a_file_to_purge_is_in_one_group_only() -> None:
    policy = replace(TEN, tolerance=Fraction(0))
    heavy = {"dv_id": "v", "rows": 100, "deleted_rows": 50}
    files = [*files_of(40, 40), DataFile("small", 40, PARTITION, **heavy), DataFile("full", 100, PARTITION, **heavy)]
    groups = plan(PARTITION, files, policy).groups
    assert [(group.mode, sorted(file.path for file in group.files)) for group in groups] == [
        (RewriteMode.MAJOR, ["f0", "f1", "small"]),
        (RewriteMode.PURGE, ["full"]),
    ]


# Windows of time: an hour.

HOURLY = replace(TEN, time_window_s=3600, tolerance=Fraction(0))
HOUR_MS = 3_600_000


@pytest.mark.parametrize(("modified", "start"), [(HOUR_MS - 1, 0), (HOUR_MS, HOUR_MS), (2 * HOUR_MS - 1, HOUR_MS)])
def test_a_window_begins_at_its_first_millisecond(modified: int, start: int) -> None:
    file = DataFile("f", 1, PARTITION, modified_ms=modified)
    assert window_start_ms(file, HOURLY.time_window_s) == start
    assert window_start_ms(file, TEN.time_window_s) is None


@pytest.mark.parametrize(("by", "is_over"), [(2 * HOUR_MS - 1, False), (2 * HOUR_MS, True)])
def test_a_window_is_over_at_its_end(by: int, is_over: bool) -> None:
    file = DataFile("f", 1, PARTITION, modified_ms=HOUR_MS)
    assert has_window_ended(file, HOURLY.time_window_s, by) is is_over
    assert has_window_ended(file, TEN.time_window_s, 0), "without windows there is nothing to wait for"
    made = plan_idle_compaction(PARTITION, files_of(9, 9, modified_ms=HOUR_MS), HOURLY, ended_by_ms=by)
    assert bool(made.groups) is is_over


def test_files_of_two_windows_are_never_merged() -> None:
    early, late = (
        files_of(9, 9, 9, modified_ms=0),
        [replace(f, path=f"l{f.path}", modified_ms=HOUR_MS) for f in files_of(9)],
    )
    made = plan(PARTITION, [*early, *late], HOURLY)
    assert [[file.path for file in group.files] for group in made.groups] == [["f0", "f1", "f2"]]
    assert dict(made.groups[0].tags) == {GENERATED_TAG: "0"}


@pytest.mark.parametrize("tag", ["", "x", "-1", "1.5", "\u0661"])
def test_a_tag_that_is_no_number_of_milliseconds_is_no_tag(tag: str) -> None:
    file = DataFile("f", 1, PARTITION, modified_ms=7, tags={GENERATED_TAG: tag})
    assert generated_ms(file) == 7
    assert tagged_window_start_ms(file.tags, HOURLY.time_window_s) is None


def test_a_tag_wins_over_the_time_of_writing() -> None:
    file = DataFile("f", 1, PARTITION, modified_ms=2 * HOUR_MS, tags={GENERATED_TAG: "0"})
    assert generated_ms(file) == 0
    assert tagged_window_start_ms({GENERATED_TAG: str(HOUR_MS + 1)}, HOURLY.time_window_s) == HOUR_MS
    assert tagged_window_start_ms(file.tags, TEN.time_window_s) is None


# Covering.


@pytest.mark.parametrize(
    ("sizes", "bins", "left"),
    [
        ([50, 50], [[50, 50]], []),  # Just the target.
        ([49, 50], [], [49, 50]),
        ([10, 40, 60, 90], [[90, 10], [60, 40]], []),  # Closed by what fits exactly, not by what overshoots.
        ([30, 40, 60, 80], [[80, 30], [60, 40]], []),  # What keeps the bin below the target first, then the smallest.
        ([1, 2, 99], [[99, 1]], [2]),
    ],
)
def test_a_bin_is_closed_by_the_file_that_overshoots_least(
    sizes: list[int], bins: list[list[int]], left: list[int]
) -> None:
    found, rest = cover(sizes, 100)
    assert [[sizes[index] for index in one] for one in found] == bins
    assert [sizes[index] for index in rest] == left


# What a job requests.


@pytest.mark.parametrize(("left", "group"), [(25, [25, 30, 70]), (26, [30, 70])])
def test_a_leftover_goes_along_up_to_a_quarter_above_the_target(left: int, group: list[int]) -> None:
    made = plan(PARTITION, files_of(70, 30, left), replace(TEN, tolerance=Fraction(0)))
    assert [sorted(file.size_bytes for file in one.files) for one in made.groups] == [group]


def test_a_leftover_above_the_cap_stays() -> None:
    capped = replace(TEN, tolerance=Fraction(0), max_mode=MaxMode.MINOR)
    assert [group.bytes for group in plan(PARTITION, files_of(*[5] * 20, 15), capped).groups] == [100]


@pytest.mark.parametrize(("extent", "ask"), [(0, RewriteKind.IDLE), (1, RewriteKind.FULL), (2, RewriteKind.FULL)])
def test_a_job_that_was_once_asked_for_a_full_rewrite_does_one(extent: int, ask: RewriteKind) -> None:
    payload = JobPayload("l", "n", Policy(), "r", PredictedCost(1, 1, 1), rewrite_kind=RewriteKind.IDLE)
    assert payload.with_extent(extent).rewrite_kind is ask
    assert [one.extent for one in (RewriteKind.LEVELS, RewriteKind.IDLE, RewriteKind.FULL)] == [0, 0, 1]


def test_the_default_policy_bounds_a_job_at_16_gib() -> None:
    assert Policy().max_bytes_per_job == 16 * GIB
