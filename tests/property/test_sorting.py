"""Sorting again: a state that is exact whatever the order of commits, a bounded depth, a bounded number of rewrites."""

import random
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from shared.layout.key_depth import NO_DEPTH, KeyRange, covers, depth_of
from shared.layout.partition_stats import SORT_LEVELS, PartitionStats, sort_level, stats_of_files
from shared.layout.planner import FileGroup
from shared.layout.sort_planner import SortReason, evaluate_sort, find_overlap, plan_sort
from shared.policy.policy import Policy
from shared.table import DataFile, PartitionKey
from tests.support.examples import examples
from tests.support.long_suites import beyond

PARTITION = PartitionKey("{}")
TARGET = 100
SORTED = Policy(target_bytes=TARGET, tolerance=Fraction(0), sort_by="k")
RANGES = st.tuples(st.integers(-(2**70), 2**70), st.integers(0, 2**70)).map(lambda drawn: (drawn[0], sum(drawn)))
NEAR = st.tuples(st.integers(0, 300), st.integers(0, 40)).map(lambda drawn: (drawn[0], sum(drawn)))


@given(ranges=st.lists(st.one_of(RANGES, NEAR), max_size=120))
def test_the_depth_that_is_known_is_the_true_one_at_its_point(ranges: list[KeyRange]) -> None:
    depth, point = depth_of(ranges).deepest
    assert depth == (sum(covers(one, point) for one in ranges) if depth else 0)


@given(ranges=st.lists(NEAR, max_size=12))
def test_in_few_buckets_no_point_is_deeper_than_the_one_found(ranges: list[KeyRange]) -> None:
    depth, _ = depth_of(ranges).deepest
    assert depth == max(sum(covers(one, point) for one in ranges) for point in range(-1, 400))


@given(ranges=st.lists(st.one_of(RANGES, NEAR), max_size=150), data=st.data())
def test_the_state_is_that_of_the_ranges_left_whatever_came_and_went(ranges: list[KeyRange], data) -> None:
    state, live = NO_DEPTH, []
    for one in ranges:
        state, live = state + depth_of([one]), [*live, one]
        if data.draw(st.booleans()):
            gone = live.pop(data.draw(st.integers(0, len(live) - 1)))
            state -= depth_of([gone])
        assert state.is_consistent
    shift = max(state.shift, depth_of(live).shift)
    assert state.at_shift(shift) == depth_of(live).at_shift(shift)


LEVELS = st.sampled_from([0, 0, 0, 1, 1, SORT_LEVELS - 1, SORT_LEVELS])
WIDE = st.tuples(st.integers(0, 60), st.integers(60, 300))
FILES = st.lists(st.tuples(st.one_of(NEAR, WIDE), LEVELS, st.sampled_from([30, 80, 120])), max_size=40)


def files_of(drawn: list[tuple[KeyRange, int, int]]) -> list[DataFile]:
    return [
        DataFile(f"f{at}", size, PARTITION, tags={"lakewright.sort-level": str(level)}, key_range=span)
        for at, (span, level, size) in enumerate(drawn)
    ]


@given(drawn=FILES, max_depth=st.integers(2, 5), limit=st.sampled_from([100, 1_000, 10_000]))
def test_a_sort_has_work_exactly_where_the_state_says_so_and_raises_the_level_of_every_byte(
    drawn: list[tuple[KeyRange, int, int]], max_depth: int, limit: int
) -> None:
    policy = replace(SORTED, max_depth=max_depth, max_bytes_per_job=limit)
    files = files_of(drawn)
    made = plan_sort(PARTITION, files, policy)
    state = PartitionStats.decode(stats_of_files(files, policy.size_levels).encode())
    event(f"groups: {min(3, len(made.groups))}")
    assert bool(made.groups) == (evaluate_sort(state, policy) is SortReason.TOO_DEEP)
    taken = [file for group in made.groups for file in group.files]
    assert len({file.path for file in taken}) == len(taken)
    for group in made.groups:
        level = sort_level(group.tags)
        assert all(sort_level(file.tags) < level <= SORT_LEVELS for file in group.files)
        assert sum(sort_level(file.tags) == level - 1 for file in group.files) > max_depth


@dataclass
class World:
    """Full files of sorted keys, each with how often it was rewritten; rewrites are carried out as Spark does."""

    policy: Policy
    keys: dict[str, list[tuple[int, int]]]
    files: list[DataFile]
    rewrites: Counter[int]
    rewritten_files: int = 0
    names: int = 0

    def add(self, keys: list[tuple[int, int]], tags: dict[str, str]) -> None:
        self.names += 1
        name = f"f{self.names}"
        self.keys[name] = sorted(keys)
        span = (self.keys[name][0][0], self.keys[name][-1][0])
        self.files.append(DataFile(name, TARGET, PARTITION, tags=tags, key_range=span))

    def carry_out(self, group: FileGroup) -> None:
        assert group.order is not None
        rows = sorted(key for file in group.files for key in self.keys.pop(file.path))
        gone = {file.path for file in group.files}
        self.files = [file for file in self.files if file.path not in gone]
        self.rewrites.update(row for _, row in rows)
        self.rewritten_files += len(gone)
        size = -(-len(rows) // group.order.outputs)
        for start in range(0, len(rows), size):
            self.add(rows[start : start + size], dict(group.tags))

    def settle(self) -> None:
        while groups := plan_sort(PARTITION, self.files, self.policy).groups:
            for group in groups:
                self.carry_out(group)


def run(policy: Policy, files: int, draw, rows: int = 20) -> World:
    world = World(policy, {}, [], Counter())
    for at in range(files):
        world.add([(draw(at), at * rows + row) for row in range(rows)], {})
        world.settle()
        assert find_overlap(stats_of_files(world.files, policy.size_levels), policy) is None
    return world


def true_depth(files: list[DataFile]) -> int:
    points = [file.key_range[0] + 1 for file in files if file.key_range is not None]
    return max(sum(covers(file.key_range, point) for file in files if file.key_range) for point in points)


SHAPES = {
    "random": lambda dice: lambda _: dice.randrange(1_000_000),
    "ascending": lambda dice: lambda at: at * 1_000 + dice.randrange(3_000),
    "skewed": lambda dice: lambda _: int(10 ** (6 * dice.random() ** 3)),
    "halves": lambda dice: lambda at: (at % 2) * 500_000 + dice.randrange(500_000),
}


@settings(max_examples=examples(0.12))
@given(seed=st.integers(0, 10**6), shape=st.sampled_from(sorted(SHAPES)), max_depth=st.integers(2, 5))
def test_no_row_is_sorted_again_more_often_than_there_are_levels_and_the_depth_keeps_its_bound(
    seed: int, shape: str, max_depth: int
) -> None:
    policy = replace(SORTED, max_depth=max_depth)
    world = run(policy, 60, SHAPES[shape](random.Random(seed)))
    levels = {sort_level(file.tags) for file in world.files}
    most = max(world.rewrites.values(), default=0)
    event(f"{shape}, max-depth {max_depth}: levels {max(levels)}, most rewrites {most}")
    assert most <= max(levels) <= SORT_LEVELS
    assert sorted(row for rows in world.keys.values() for _, row in rows) == list(range(60 * 20))
    by_level = [depth.deepest[0] for _, depth in stats_of_files(world.files, policy.size_levels).depths]
    assert all(depth <= max_depth for depth in by_level)


@pytest.mark.parametrize(("shape", "depth", "amplification"), beyond(0, [("ascending", 8, 1.0), ("random", 20, 4.5)]))
def test_five_hundred_full_files_settle_within_the_stated_bounds(
    shape: str, depth: int, amplification: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """At most `max-depth` of each level in use overlap at a known point, and a byte is rewritten once per level.

    `depth` and `amplification` are measured: a change that makes them worse has to be noticed.
    """
    world = run(SORTED, 500, SHAPES[shape](random.Random(11)), rows=10)
    found, spent = true_depth(world.files), world.rewritten_files / 500
    with capsys.disabled():
        print(f"\n{shape}: depth {found} of 500 files, {spent:.2f} rewrites of a byte")
    levels = {sort_level(file.tags) for file in world.files}
    known = stats_of_files(world.files, SORTED.size_levels).depths
    assert sum(one.deepest[0] for _, one in known) <= SORTED.max_depth * len(levels)
    assert spent <= max(levels) <= SORT_LEVELS
    assert found <= depth
    assert spent <= amplification
