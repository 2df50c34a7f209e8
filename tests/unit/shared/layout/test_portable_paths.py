"""What merging can still gain, and which files are rewritten alone."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.state.fold import fold
from shared.layout.eligibility import NO_EXCESS, Excess, Reason, delete_step, evaluate_layout, is_purgeable
from shared.layout.partition_stats import PartitionStats, stats_of_sizes
from shared.layout.planner import RewriteMode, plan, plan_full
from shared.partitions import WHOLE_TABLE
from shared.policy.levels import SizeLevels
from shared.policy.policy import MIB, Policy, PortablePaths
from shared.table import Commit, DataFile, TableMetadata

ALWAYS = Policy(portable_paths=PortablePaths.ALWAYS)
NEVER = Policy(portable_paths=PortablePaths.NEVER)
FULL_SIZE = 128 * MIB
HARMFUL = DataFile("p=a%20b/x.parquet", FULL_SIZE, WHOLE_TABLE, rows=10)
PLAIN = replace(HARMFUL, path="aB/lw-x.parquet")


@pytest.mark.parametrize("policy", [Policy(), NEVER])
def test_files_of_full_size_are_not_rewritten_for_their_path_unless_asked(policy: Policy) -> None:
    assert not is_purgeable(HARMFUL, policy)
    assert not plan(WHOLE_TABLE, [HARMFUL] * 3, policy).groups
    assert not plan_full(WHOLE_TABLE, [HARMFUL], policy).groups


def test_with_always_each_is_rewritten_alone_and_what_follows_is_left_alone() -> None:
    made = plan(WHOLE_TABLE, [HARMFUL, PLAIN], ALWAYS)

    assert [(group.mode, group.files) for group in made.groups] == [(RewriteMode.PURGE, (HARMFUL,))]
    assert made.evaluation.reason is Reason.SINGLE_FILE_REWRITE
    assert not plan(WHOLE_TABLE, [PLAIN, PLAIN], ALWAYS).groups
    assert [group.files for group in plan_full(WHOLE_TABLE, [HARMFUL, PLAIN], ALWAYS).groups] == [(HARMFUL,)]


def test_who_asks_for_it_gets_it_unless_it_is_never_wanted() -> None:
    assert Policy().for_manual_rewrite == ALWAYS
    assert ALWAYS.for_manual_rewrite == ALWAYS
    assert NEVER.for_manual_rewrite == NEVER


def test_a_harmful_file_that_is_merged_is_not_rewritten_alone_besides() -> None:
    small = [replace(HARMFUL, path=f"p=a%20b/{n}", size_bytes=MIB) for n in range(20)]
    files = [file for group in plan(WHOLE_TABLE, small, ALWAYS).groups for file in group.files]
    assert len(files) == len(set(files)) == 20


@pytest.mark.parametrize(("policy", "kept"), [(ALWAYS, [HARMFUL]), (Policy(), [])])
def test_a_fold_keeps_them_where_they_are_decided_from(policy: Policy, kept: list[DataFile]) -> None:
    metadata = TableMetadata("u", (), {})
    folded = fold(Commit(1, 0, "WRITE", added=(HARMFUL, PLAIN)), metadata, policy)
    assert folded.purge_candidates.get(WHOLE_TABLE, []) == kept


def test_the_policy_survives_the_way_to_the_actor() -> None:
    assert Policy.decode(ALWAYS.encode()) == ALWAYS
    assert Policy().version == Policy.decode(Policy().encode()).version != ALWAYS.version


LEVELS: SizeLevels = Policy(target_bytes=1_000_000).size_levels
TARGET = LEVELS.target_bytes


def partition(*sizes: int) -> PartitionStats:
    return stats_of_sizes(LEVELS, sizes)


@given(st.lists(st.integers(750_000, 5_000_000), max_size=5), st.integers(0, 749_999))
def test_full_files_and_one_small_file_are_as_compact_as_they_can_be(full: list[int], small: int) -> None:
    assert Excess.of([partition(*full, small)], TARGET) == Excess.of([partition(*full)], TARGET) == NO_EXCESS


@given(st.lists(st.integers(0, 749_999), min_size=2, max_size=40))
def test_of_two_small_files_one_can_always_be_spared_and_never_all(sizes: list[int]) -> None:
    found = Excess.of([partition(*sizes)], TARGET)
    assert 1 <= found.files < len(sizes)
    assert 0 < found.ratio(len(sizes), TARGET) <= 1


@pytest.mark.parametrize(
    ("sizes", "spare"), [([1] * 60, 59), ([500_000] * 8, 4), ([100_000] * 20 + [1_000_000], 18), ([], 0), ([0, 0], 1)]
)
def test_as_many_files_would_do_as_the_same_bytes_fill(sizes: list[int], spare: int) -> None:
    assert Excess.of([partition(*sizes)], TARGET).files == spare


def test_files_of_two_partitions_are_not_merged() -> None:
    assert Excess.of([partition(10), partition(10)], TARGET) == NO_EXCESS
    assert Excess.of([partition(10, 20), partition(5, 6, 7)], TARGET).files == 3


def test_the_files_of_a_z_cube_are_not_merged() -> None:
    assert Excess.of([replace(partition(10, 10), cube_files=1)], TARGET) == NO_EXCESS


def test_without_files_there_is_nothing_to_gain() -> None:
    assert NO_EXCESS.ratio(0, TARGET) == 0


POLICY = Policy()


def reason(sizes: list[int], policy: Policy = POLICY) -> Reason:
    return evaluate_layout(stats_of_sizes(policy.size_levels, sizes), policy).reason


def test_too_many_small_files_override_the_tolerance_but_not_the_levels() -> None:
    crowded = replace(POLICY, max_small_files=9)
    assert reason([128 * MIB] * 1000 + [MIB] * 10, crowded) is Reason.TOO_MANY_SMALL_FILES
    assert reason([128 * MIB] * 1000 + [MIB] * 10 + [90 * MIB], crowded) is Reason.TOO_MANY_SMALL_FILES
    assert reason([128 * MIB] * 1000 + [17 * MIB, 17 * MIB], replace(POLICY, max_small_files=1)) is Reason.NO_PROMOTION


def test_deleted_rows_reach_four_steps_until_they_have_doubled() -> None:
    steps = [delete_step(rows) for rows in range(1_025)]
    assert steps == sorted(steps)
    assert [rows for rows in range(65, 129) if steps[rows] > steps[rows - 1]] == [80, 96, 112, 128]
    assert all(steps[2 * rows] == steps[rows] + 4 for rows in range(1, 513))
    assert steps[0] < steps[1], "the first deleted row is a step"
