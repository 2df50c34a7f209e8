"""Figures of a table's commits: appended sizes and the levels fitted to them, their pace, number and bytes."""

from dataclasses import replace
from fractions import Fraction

import pytest

from decider.state.batch_files import RecentFiles
from decider.state.commit_pace import (
    DAY_MS,
    GAPS_NEEDED,
    MAX_PARTITIONS,
    NO_COMMITS,
    UNKNOWN_PACE,
    CommitCounts,
    CommitPace,
    IngestedDays,
    ingested_after,
    ingested_per_day,
)
from decider.state.level_fit import (
    EVERY_MS,
    MIN_COMMITS,
    MIN_SAVING,
    NO_SIZES,
    NOT_FITTED,
    WINDOW_COMMITS,
    AppendedFiles,
    AppendedSizes,
    LevelFit,
    least_rewrites,
    predicted_saving,
    rewriting_over_least,
)
from shared.policy.budgets import AMPLIFICATION_DAYS
from shared.policy.policy import MIB, Policy
from shared.table import Commit, CommitOrigin, DataFile, PartitionKey, TableId
from tests.bench.offline_optimum import equal_files
from tests.support.memory_log import commit as counted_commit

POLICY = Policy(target_bytes=512 * MIB)
NOW_MS = 1_000 * EVERY_MS


def learned(size_bytes: int, files: int = 1) -> LevelFit:
    return LevelFit(sizes=AppendedSizes((AppendedFiles(size_bytes, files),) * 64))


GAINING, NOT_GAINING = 7_000_000, MIB
"""Sizes in bytes that lie badly and exactly between the levels at T / 8^i."""


def test_levels_are_fitted_where_the_prediction_says_that_enough_is_saved() -> None:
    found = learned(GAINING).refitted(POLICY, NOW_MS)
    assert found.typical_file_bytes in (GAINING, GAINING * 9 // 10)
    assert found.checked_ms == NOW_MS
    fitted = POLICY.fitted_to(found.typical_file_bytes)
    assert found.saving == predicted_saving(found.sizes, POLICY, fitted) > MIN_SAVING
    assert found.reason.startswith(f"levels fitted to new files of {found.typical_file_bytes / MIB:.3g} MiB: ")
    kept = learned(NOT_GAINING).refitted(POLICY, NOW_MS)
    assert (kept.typical_file_bytes, kept.checked_ms) == (0, NOW_MS)


@pytest.mark.parametrize("checked_ms", [NOW_MS - EVERY_MS + 1, NOW_MS - EVERY_MS])
def test_a_change_is_considered_once_a_day(checked_ms: int) -> None:
    found = replace(learned(GAINING), checked_ms=checked_ms).refitted(POLICY, NOW_MS)
    assert (found.typical_file_bytes > 0) is (checked_ms == NOW_MS - EVERY_MS)


def test_levels_that_are_fitted_already_stay() -> None:
    fitted = learned(GAINING).refitted(POLICY, NOW_MS)
    policy = POLICY.fitted_to(fitted.typical_file_bytes)
    near = replace(fitted, sizes=learned(fitted.typical_file_bytes * 5 // 4).sizes)
    assert near.refitted(policy, NOW_MS + EVERY_MS) is near
    other = replace(fitted, sizes=learned(fitted.typical_file_bytes * 5).sizes)
    assert other.refitted(policy, NOW_MS + EVERY_MS).checked_ms == NOW_MS + EVERY_MS


@pytest.mark.parametrize("policy", [replace(POLICY, fits_levels=False), replace(POLICY, enabled=False)])
def test_a_fan_in_of_the_owner_and_a_disabled_table_keep_their_levels(policy: Policy) -> None:
    assert learned(GAINING).refitted(policy, NOW_MS) == learned(GAINING)


def test_without_a_typical_small_size_nothing_is_considered() -> None:
    full = learned(POLICY.target_bytes // 8, files=8)
    assert full.refitted(POLICY, NOW_MS) is full
    assert NOT_FITTED.refitted(POLICY, NOW_MS) is NOT_FITTED


def test_a_commit_adds_to_what_is_known_and_a_commit_without_files_does_not() -> None:
    added = Commit(1, 1, "WRITE", (DataFile("f", 5, PartitionKey("{}")),))
    found = NOT_FITTED.after(added, POLICY)
    assert found == LevelFit(sizes=AppendedSizes((AppendedFiles(5, 1),)))
    assert found.after(Commit(2, 2, "WRITE"), POLICY) is found


def test_a_saving_counts_only_where_both_halves_of_the_window_show_it() -> None:
    halves = AppendedSizes((AppendedFiles(GAINING, 1),) * 32 + (AppendedFiles(NOT_GAINING, 1),) * 32)
    fitted = POLICY.fitted_to(GAINING)
    assert predicted_saving(halves, POLICY, fitted) <= 0
    assert predicted_saving(AppendedSizes(halves.commits[:32]), POLICY, fitted) > MIN_SAVING


def test_where_nothing_is_rewritten_nothing_is_saved() -> None:
    one = AppendedSizes((AppendedFiles(400 * MIB, 1),) * 2)
    assert rewriting_over_least(one, POLICY) == 0
    assert predicted_saving(one, POLICY, POLICY.fitted_to(MIB)) == 0


@pytest.mark.parametrize(("files", "slots"), [(1, 5), (5, 5), (69, 17), (500, 20), (10, 3), (6, 1)])
def test_the_least_is_below_the_optimum_and_near_it(files: int, slots: int) -> None:
    least, optimum = least_rewrites(files, slots), Fraction(equal_files(files, slots), files)
    assert least <= max(optimum, 1)
    if slots > 10:
        assert optimum < least * Fraction(104, 100)


LEVELS = Policy(target_bytes=1_000).size_levels


def commit(*sizes: int, partitions: int = 1, is_change: bool = True, origin: CommitOrigin | None = None) -> Commit:
    files = tuple(DataFile(f"f{n}", size, PartitionKey(f"{n % partitions}")) for n, size in enumerate(sizes))
    return Commit(1, 1, "WRITE", files, data_change=is_change, origin=origin)


def window(*sizes: int, files: int = 1) -> AppendedSizes:
    return AppendedSizes(tuple(AppendedFiles(size, files) for size in sizes))


@pytest.mark.parametrize(
    "ignored",
    [commit(), commit(750), commit(10, is_change=False), commit(10, origin=CommitOrigin("j", 1))],
    ids=["no files", "full files", "other rewrites", "own rewrites"],
)
def test_only_small_files_of_writers_count(ignored: Commit) -> None:
    assert NO_SIZES.after(ignored, LEVELS) is NO_SIZES


def test_the_size_of_a_commit_is_that_of_half_of_its_bytes_and_its_files_are_counted_by_partition() -> None:
    found = NO_SIZES.after(commit(1, 1, 1, 90, 100, 749, 750, partitions=3), LEVELS)
    assert found.commits == (AppendedFiles(749, 2),)
    assert NO_SIZES.after(commit(40, 40, 90), LEVELS).commits == (AppendedFiles(90, 3),)
    assert NO_SIZES.after(commit(50, 40, 90), LEVELS).commits == (AppendedFiles(50, 3),)


def test_the_window_forgets_its_oldest_commit() -> None:
    found = NO_SIZES
    for size in range(1, WINDOW_COMMITS + 3):
        found = found.after(commit(size), LEVELS)
    assert [one.size_bytes for one in found.commits] == list(range(3, WINDOW_COMMITS + 3))


def test_no_size_is_typical_before_there_are_commits_enough() -> None:
    assert window(*[10] * (MIN_COMMITS - 1)).typical_bytes(8) == 0
    assert window(*[10] * MIN_COMMITS).typical_bytes(8) == 10


def test_one_odd_load_in_four_changes_nothing_and_a_table_that_changes_has_no_typical_size() -> None:
    assert window(*[10, 10, 10, 700] * 16).typical_bytes(8) == 10
    assert window(*[100] * 32, *[125] * 32).typical_bytes(8) == 125
    assert window(*[100] * 32, *[126] * 32).typical_bytes(8) == 0


def test_files_of_which_a_commit_brings_enough_for_a_merge_climb_from_what_that_makes() -> None:
    assert window(*[10] * 64, files=7).typical_bytes(8) == 10
    assert window(*[10] * 64, files=8).typical_bytes(8) == 80


def paced(*gaps_ms: int, start: CommitPace = UNKNOWN_PACE) -> CommitPace:
    pace, at_ms = start, start.last_ms or 1_000_000
    pace = pace if start.last_ms else pace.after(Commit(0, at_ms, "WRITE"))
    for gap_ms in gaps_ms:
        at_ms += gap_ms
        pace = pace.after(Commit(1, at_ms, "WRITE"))
    return pace


@pytest.mark.parametrize(("commits", "every_ms"), [(GAPS_NEEDED - 1, 0), (GAPS_NEEDED, 60_000), (50, 60_000)])
def test_a_pace_is_known_after_some_gaps(commits: int, every_ms: int) -> None:
    assert paced(*[60_000] * commits).every_ms == every_ms


def test_one_pause_moves_the_mean_little_and_a_new_pace_is_followed() -> None:
    steady = paced(*[60_000] * 10)
    assert 60_000 < paced(3_600_000, start=steady).every_ms < 600_000
    assert paced(*[1_000] * 40, start=steady).every_ms == pytest.approx(1_000, rel=0.4)


def test_rewrites_do_not_count_and_a_clock_that_goes_back_is_no_gap() -> None:
    steady = paced(*[60_000] * 10)
    own = Commit(9, steady.last_ms + 5, "OPTIMIZE", data_change=False, origin=CommitOrigin("j", 1))
    assert steady.after(own) is steady
    back = steady.after(Commit(9, 1, "WRITE"))
    assert (back.last_ms, 0 < back.every_ms < 60_000) == (steady.last_ms, True)


ONE, OTHER = TableId("one"), TableId("other")


def test_the_latest_action_on_a_file_is_remembered_for_its_table() -> None:
    recent = RecentFiles()
    recent.update(ONE, [(("a", None), True), (("b", None), True), (("b", None), False)])
    assert (recent.is_live(ONE, ("a", None)), recent.is_live(ONE, ("b", None))) == (True, False)
    assert recent.is_live(OTHER, ("a", None)) is None
    assert recent.is_live(ONE, ("a", "vector")) is None


def test_the_files_that_were_named_longest_ago_are_forgotten_first() -> None:
    recent = RecentFiles(max_files=2)
    recent.update(ONE, [(("a", None), True), (("b", None), True)])
    recent.update(ONE, [(("a", None), False), (("c", None), True)])
    assert [recent.is_live(ONE, (name, None)) for name in "abc"] == [False, None, True]


A, B = PartitionKey('{"p":"a"}'), PartitionKey('{"p":"b"}')
COUNTING = Policy(compact_every_commits=2)


def test_each_commit_that_changes_data_counts_in_each_partition_that_it_touches() -> None:
    counts = NO_COMMITS.after_commit(counted_commit(), [A, B], COUNTING).after_commit(counted_commit(), [A], COUNTING)
    counts = counts.after_commit(counted_commit(data_change=False), [A, B], COUNTING)
    assert (counts.of(A), counts.of(B), counts.of(PartitionKey("{}"))) == (2, 1, 0)


def test_nothing_is_kept_where_no_property_needs_it() -> None:
    assert CommitCounts({A: 5}).after_commit(counted_commit(), [A], Policy()) is NO_COMMITS
    assert NO_COMMITS.after_commit(counted_commit(), [A], Policy(full_every_commits=9)).of(A) == 1


def test_beyond_the_bound_the_partitions_changed_last_are_kept() -> None:
    counts = CommitCounts({PartitionKey(f"{number}"): 1 for number in range(MAX_PARTITIONS)})
    counts = counts.after_commit(counted_commit(), [PartitionKey("0"), A], COUNTING)
    assert len(counts.counts) == MAX_PARTITIONS
    assert (counts.of(PartitionKey("0")), counts.of(A), counts.of(PartitionKey("1"))) == (2, 1, 0)


TODAY = 20_000
TODAY_MS = TODAY * DAY_MS + 7


def sized_commit(*sizes_bytes: int, at_ms: int = TODAY_MS) -> Commit:
    added = tuple(DataFile(str(size), size, PartitionKey("{}")) for size in sizes_bytes)
    return Commit(1, at_ms, "WRITE", added)


def test_commits_of_a_day_are_added_up() -> None:
    days = ingested_after((), sized_commit(3, 4), TODAY_MS)
    assert ingested_after(days, sized_commit(5), TODAY_MS) == ((TODAY, 12),)
    assert ingested_after(days, sized_commit(5, at_ms=TODAY_MS - DAY_MS), TODAY_MS) == ((TODAY - 1, 5), (TODAY, 7))


@pytest.mark.parametrize(
    "made",
    [
        replace(sized_commit(5), data_change=False),
        replace(sized_commit(5), origin=CommitOrigin("j", 1)),
        sized_commit(),
    ],
    ids=["a rewrite", "rows that we removed", "no file"],
)
def test_only_what_writers_add_counts(made: Commit) -> None:
    assert ingested_after(((TODAY, 1),), made, TODAY_MS) == ((TODAY, 1),)


@pytest.mark.parametrize(
    ("at_ms", "day"),
    [(TODAY_MS - DAY_MS, TODAY - 1), (TODAY_MS + 900 * DAY_MS, TODAY), (0, TODAY)],
    ids=["earlier", "a clock that is ahead", "not known"],
)
def test_a_day_is_the_commits_and_never_later_than_the_deciders(at_ms: int, day: int) -> None:
    assert ingested_after((), sized_commit(5, at_ms=at_ms), TODAY_MS) == ((day, 5),)


def test_days_are_kept_for_as_long_as_they_count() -> None:
    oldest = TODAY - AMPLIFICATION_DAYS + 1
    days: IngestedDays = ((oldest - 1, 1), (oldest, 2))
    assert ingested_after(days, sized_commit(5), TODAY_MS) == ((oldest, 2), (TODAY, 5))
    late = sized_commit(5, at_ms=(oldest - 1) * DAY_MS)
    assert ingested_after((), late, TODAY_MS) == ()


def test_a_clock_that_is_set_back_keeps_the_newest_days() -> None:
    days: IngestedDays = ((TODAY + 1, 1),)
    assert ingested_after(days, sized_commit(5), TODAY_MS) == ((TODAY, 5), (TODAY + 1, 1))


@pytest.mark.parametrize(
    ("days", "mean"),
    [
        ((), 0),
        (((TODAY, 9),), 0),
        (((TODAY - 1, 8), (TODAY, 9)), 8),
        (((TODAY - 4, 6), (TODAY - 1, 2), (TODAY, 9)), 2),
        (((TODAY - AMPLIFICATION_DAYS, 900), (TODAY - 2, 6)), 3),
    ],
)
def test_the_mean_per_day_is_of_whole_days(days: IngestedDays, mean: int) -> None:
    assert ingested_per_day(days, TODAY_MS) == mean
