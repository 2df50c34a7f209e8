"""Packing against brute force, and the laws of what is not requested by levels: idle compaction, windows, purges."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.layout.eligibility import Reason, evaluate_layout
from shared.layout.file_selection import cover, window_start_ms
from shared.layout.partition_stats import EMPTY_STATS, IDLE_COMPACTED_TAG, stats_of_file, stats_of_files
from shared.layout.planner import FileGroup, Plan, RewriteMode, plan, plan_full, plan_idle_compaction
from shared.policy.levels import FULL, SMALL_LEVELS, SizeLevels
from shared.policy.policy import KIB, MaxMode, Policy
from shared.policy.traits import LearnedValues
from shared.table import DataFile, PartitionKey
from tests.support.memory_log import count_live_files

PARTITION = PartitionKey("{}")
POLICIES = st.builds(
    Policy,
    target_bytes=st.sampled_from([64 * KIB, 100_003]),
    fan_in=st.integers(2, 10),
    tolerance=st.fractions(0, Fraction(1, 2), max_denominator=20),
    min_input_files=st.integers(2, 10),
    max_mode=st.sampled_from(MaxMode),
)
SIZES = st.one_of(st.integers(1, 150_000), st.integers(1, 300), st.integers(40_000, 80_000))


def files_of(sizes: list[int], **more) -> list[DataFile]:
    return [DataFile(f"f{n}", size, PARTITION, modified_ms=n, **more) for n, size in enumerate(sizes)]


def landed(files: list[DataFile], groups: tuple[FileGroup, ...], names: count, at_ms: int) -> list[DataFile]:
    """Carry groups out; an output carries its group's tags, as the actor writes them."""
    gone = {file.path for group in groups for file in group.files}
    new = [DataFile(f"r{next(names)}", g.bytes, PARTITION, modified_ms=at_ms, tags=g.tags) for g in groups]
    return [file for file in files if file.path not in gone] + new


class Life:
    """A partition under an adversary: who was rewritten how often, and a rolling state that must equal a rebuild."""

    def __init__(self, policy: Policy, seen: Counter[str]) -> None:
        self.policy, self.seen = policy, seen
        self.names = count()
        self.files: list[DataFile] = []
        self.rewrites: dict[str, dict[str, int]] = {}
        self.state = EMPTY_STATS

    def add(self, size: int, at_ms: int) -> None:
        file = DataFile(f"i{next(self.names)}", size, PARTITION, modified_ms=at_ms)
        self.files.append(file)
        self.rewrites[file.path] = {file.path: 0}
        self.state += stats_of_file(file, self.policy.size_levels)

    def remove(self, index: int) -> None:
        file = self.files.pop(index % len(self.files))
        del self.rewrites[file.path]
        self.state -= stats_of_file(file, self.policy.size_levels)
        self.seen["removed"] += 1

    def run(self, make: Callable[..., Plan], at_ms: int) -> None:
        size_levels = self.policy.size_levels
        for group in make(PARTITION, self.files, self.policy, self.state).groups:
            merged = {one: times + 1 for file in group.files for one, times in self.rewrites.pop(file.path).items()}
            self.files = landed(self.files, (group,), self.names, at_ms)
            self.rewrites[self.files[-1].path] = merged
            self.state += stats_of_file(self.files[-1], size_levels)
            for file in group.files:
                self.state -= stats_of_file(file, size_levels)
            settled = 1 if IDLE_COMPACTED_TAG in self.files[-1].tags else 0
            assert max(merged.values()) <= size_levels.level(group.bytes) + settled <= SMALL_LEVELS + 1
            window_s = self.policy.time_window_s
            assert len({window_start_ms(file, window_s) for file in (*group.files, self.files[-1])}) == 1
            self.seen[group.mode] += 1
            self.seen["again"] += max(merged.values()) > 1
        assert self.state == stats_of_files(self.files, size_levels)


def nasty_size(size_levels: SizeLevels, dice: random.Random) -> int:
    """Return a size around the bounds that decide, or a share of one, which several files reach together."""
    bound = size_levels.floors[dice.randint(1, FULL)]
    return max(1, dice.choice([bound - 1, bound, bound // dice.randint(2, 9), dice.randint(1, 2 * bound)]))


def nasty_sizes(size_levels: SizeLevels, seed: int) -> list[int]:
    """Return the sizes of so many files that most plans have several groups."""
    dice = random.Random(seed)
    return [nasty_size(size_levels, dice) for _ in range(dice.randint(0, 60))]


@pytest.mark.parametrize("window_s", [None, 4])
def test_with_settling_and_windows_no_byte_is_rewritten_more_than_once_per_level_and_once_again(
    window_s: int | None,
) -> None:
    """The theorem with idle compaction: a plan after every commit, and idle periods wherever the adversary likes."""
    seen: Counter[str] = Counter()

    @settings(max_examples=100)
    @given(POLICIES, st.integers(0, 2**32))
    def law(policy: Policy, seed: int) -> None:
        dice = random.Random(seed)
        life = Life(replace(policy, time_window_s=window_s), seen)
        for number in range(30):
            for _ in range(dice.randint(0, 6)):
                # Late data belongs to a window before.
                life.add(nasty_size(policy.size_levels, dice), at_ms=1_000 * max(0, number - dice.choice([0, 0, 4])))
            if life.files and dice.random() < 0.3:
                life.remove(dice.randrange(10**6))
            life.run(plan, at_ms=10**9)
            if dice.random() < 0.1:
                life.run(plan_idle_compaction, at_ms=10**9)

    law()
    print(f"groups by mode, and what else was met: {dict(seen)}")
    # A law about rewrites says nothing where there are none.
    assert (
        min(seen[RewriteMode.MINOR], seen[RewriteMode.MAJOR], seen[RewriteMode.IDLE], seen["again"], seen["removed"])
        >= 5
    )


def test_the_bound_with_settling_is_reached() -> None:
    """Six levels and one idle compaction, none of which a byte can be spared if the adversary knows the rule."""
    policy = Policy(
        target_bytes=64 * KIB, fan_in=2, full_file_threshold=Fraction(1), tolerance=Fraction(0), min_input_files=2
    )
    life = Life(policy, Counter())
    life.add(policy.size_levels.floors[1] // 2, 0)
    for level in range(1, FULL + 1):
        life.add(policy.size_levels.required_bytes(level - 1) - life.files[0].size_bytes, 0)
        life.run(plan, 0)
        if level == 3:
            life.add(1, 0)
            life.run(plan_idle_compaction, 0)
    (only,) = life.rewrites.values()
    assert max(only.values()) == SMALL_LEVELS + 1


def test_windows_are_never_mixed_and_the_state_promises_no_more_than_the_plan_holds() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=100)
    @given(POLICIES, st.integers(0, 2**32), st.sampled_from([7, 20, 100]))
    def law(policy: Policy, seed: int, length_s: int) -> None:
        sizes = nasty_sizes(policy.size_levels, seed)
        windowed = replace(policy, time_window_s=length_s)
        files = [DataFile(f"f{n}", size, PARTITION, modified_ms=n * 1_000) for n, size in enumerate(sizes)]
        made = plan(PARTITION, files, windowed)
        starts = [{file.modified_ms // (length_s * 1000) for file in group.files} for group in made.groups]
        assert all(len(start) == 1 for start in starts)
        # The rolling state tells the two newest windows apart: work in these is known, and no other is promised.
        newest = {file.modified_ms // (length_s * 1000) for file in files[::-1]}
        known = set(sorted(newest)[-2:])
        state = count_live_files(files, windowed)[PARTITION] if files else EMPTY_STATS
        assert evaluate_layout(state, windowed).needs_rewrite == any(start <= known for start in starts)
        seen["groups"] += len(starts)
        seen["groups of windows not known"] += sum(not start <= known for start in starts)
        # The outputs still know their window, although they were written now.
        again = landed(files, made.groups, count(), at_ms=10**12)
        assert not plan(PARTITION, again, windowed).groups

    law()
    print(f"groups that were met: {dict(seen)}")
    assert seen["groups"] >= 20
    assert seen["groups of windows not known"] >= 1


SHARES = st.fractions(Fraction(1, 5), 1, max_denominator=9)


@given(POLICIES, st.lists(SIZES, max_size=30), SHARES, SHARES)
def test_the_promotion_rule_holds_for_the_predicted_output(
    policy: Policy, sizes: list[int], shrink: Fraction, full_shrink: Fraction
) -> None:
    learned = replace(policy, learned=LearnedValues(shrink, full_shrink))
    files, size_levels = files_of(sizes), learned.size_levels
    made = plan(PARTITION, files, learned)
    assert bool(made.groups) == evaluate_layout(stats_of_files(files, size_levels), learned).needs_rewrite
    for group in made.groups:
        assert size_levels.level(size_levels.predicted_bytes(group.bytes)) > max(
            size_levels.level(file.size_bytes) for file in group.files
        )


def test_a_cap_at_minor_leaves_the_top_level_alone_and_nothing_else() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=100)
    @given(POLICIES, st.integers(0, 2**32))
    def law(policy: Policy, seed: int) -> None:
        sizes = nasty_sizes(policy.size_levels, seed)
        capped, files, size_levels = replace(policy, max_mode=MaxMode.MINOR), files_of(sizes), policy.size_levels
        made = plan(PARTITION, files, capped)
        assert all(group.mode is RewriteMode.MINOR for group in made.groups)
        assert all(
            size_levels.level(file.size_bytes) < SMALL_LEVELS - 1 for group in made.groups for file in group.files
        )
        free = plan(PARTITION, files, replace(policy, max_mode=MaxMode.MAJOR))
        # What is permitted below the cap is not lost with what lies above it.
        assert made.groups or all(group.mode is RewriteMode.MAJOR for group in free.groups)
        seen["capped"] += len(made.groups)
        seen["above the cap"] += sum(group.mode is RewriteMode.MAJOR for group in free.groups)

    law()
    print(f"groups that were met: {dict(seen)}")
    assert min(seen["capped"], seen["above the cap"]) >= 10


def test_a_job_ends_at_the_group_that_would_exceed_its_bytes() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=100)
    @given(POLICIES, st.integers(0, 2**32), st.integers(64 * KIB, 2_000_000))
    def law(policy: Policy, seed: int, bound: int) -> None:
        sizes = nasty_sizes(policy.size_levels, seed)
        whole = plan(PARTITION, files_of(sizes), policy)
        cut = plan(PARTITION, files_of(sizes), replace(policy, max_bytes_per_job=bound))
        assert cut.groups == whole.groups[: len(cut.groups)]
        assert cut.is_truncated == (len(cut.groups) < len(whole.groups))
        assert bool(cut.groups) == bool(whole.groups)
        assert cut.bytes <= bound or len(cut.groups) == 1
        # The next group would have been too much: a job does not end before it has to.
        assert not cut.is_truncated or sum(group.bytes for group in whole.groups[: len(cut.groups) + 1]) > bound
        seen["cut"] += cut.is_truncated
        seen["of several groups"] += len(cut.groups) > 1

    law()
    print(f"plans that were met: {dict(seen)}")
    assert min(seen["cut"], seen["of several groups"]) >= 5


@given(POLICIES, st.lists(st.tuples(SIZES, st.integers(0, 10)), max_size=20))
def test_a_file_with_many_deleted_rows_is_purged_alone_or_in_a_group_and_others_are_not(
    policy: Policy, sizes: list[tuple[int, int]]
) -> None:
    files = [
        DataFile(f"f{n}", size, PARTITION, "dv" if deleted else None, rows=50, deleted_rows=deleted)
        for n, (size, deleted) in enumerate(sizes)
    ]
    made = plan(PARTITION, files, policy)
    taken = [file for group in made.groups for file in group.files]
    assert len(taken) == len({file.path for file in taken})
    assert {file.path for file in files if file.deleted_rows >= 5} <= {file.path for file in taken}
    for group in made.groups:
        if group.mode is RewriteMode.PURGE:
            assert [file.deleted_rows >= 5 for file in group.files] == [True]
        else:
            assert len(group.files) > 1


@given(POLICIES, st.lists(SIZES, max_size=40))
def test_a_full_rewrite_leaves_only_full_files_and_at_most_one_small_one(policy: Policy, sizes: list[int]) -> None:
    files = files_of(sizes)
    made = plan_full(PARTITION, files, policy)
    after = landed(files, made.groups, count(), 0)
    assert sum(policy.size_levels.level(file.size_bytes) < FULL for file in after) <= 1
    assert all(file.size_bytes < policy.size_levels.full_bytes for group in made.groups for file in group.files)


def test_no_promotion_means_that_no_group_at_all_is_permitted() -> None:
    """Not only no prefix: of all the ways to pick small files, none obeys the promotion rule and is worth a job."""
    seen: Counter[str] = Counter()

    @settings(max_examples=100)
    @given(POLICIES, st.integers(0, 2**32))
    def law(drawn: Policy, seed: int) -> None:
        policy, dice = replace(drawn, max_mode=MaxMode.MAJOR), random.Random(seed)
        size_levels = policy.size_levels
        sizes = [nasty_size(size_levels, dice) for _ in range(dice.randint(3, 9))]
        if evaluate_layout(stats_of_files(files_of(sizes), size_levels), policy).reason is not Reason.NO_PROMOTION:
            return
        small = [size for size in sizes if size_levels.level(size) < FULL]
        for mask in range(1, 1 << len(small)):
            group = [size for index, size in enumerate(small) if mask >> index & 1]
            seen["groups"] += len(group) > 1
            assert len(group) < 2 or not size_levels.permits_rewrite(
                size_levels.level(max(group)), sum(group), len(group), policy.min_input_files
            )

    law()
    print(f"groups that were tried: {seen}")
    assert seen["groups"] >= 10


@dataclass(frozen=True)
class Grouping:
    """What rewriting some files does: how many are replaced, outputs at most and at least, shortfall removed."""

    replaced: int
    most_outputs: int
    fewest_outputs: int
    entropy: int

    @property
    def benefit(self) -> Fraction:
        """Files removed and shortfall removed in units of T^2: what decisions take for the gain of a job."""
        return self.replaced - self.fewest_outputs + Fraction(self.entropy, 100**2)


def _groupings(sizes: list[int]) -> list[Grouping]:
    """Return what every set of files that can be rewritten as a whole would do, for T = 100 and outputs below 175."""
    masks = 1 << len(sizes)
    sums, entropy = [0] * masks, [0] * masks
    most, fewest = [0] + [-1] * (masks - 1), [0] + [masks] * (masks - 1)
    for mask in range(1, masks):
        low = mask & -mask
        size = sizes[low.bit_length() - 1]
        sums[mask], entropy[mask] = sums[mask ^ low] + size, entropy[mask ^ low] + (100 - size) ** 2
        part = mask
        while part:
            if part & low and 100 <= sums[part] < 175 and most[mask ^ part] >= 0:
                most[mask] = max(most[mask], most[mask ^ part] + 1)
                fewest[mask] = min(fewest[mask], fewest[mask ^ part] + 1)
            part = (part - 1) & mask
    return [
        Grouping(mask.bit_count(), most[mask], fewest[mask], entropy[mask]) for mask in range(masks) if most[mask] >= 0
    ]


def test_covering_replaces_at_most_a_twentieth_more_files_than_the_optimum_on_average() -> None:
    """Minimum replacement: the fewest files for at least the same gain, against all permitted groupings.

    The gain is the entropy removed, as published, or the benefit that decisions are made by. Taken by itself, the
    number of outputs wants few large inputs and the number of files removed wants outputs beyond the target: what is
    best for the one is bad for the other: their figures are printed for docs/benchmarks.md. With outputs and entropy
    both requested, ours is optimal.
    """
    dice = random.Random(7)
    replaced = 0
    fewest: Counter[str] = Counter()
    for sample in range(150):
        sizes = sorted(dice.randint(3, 74) for _ in range(dice.randint(4, 12 if sample % 30 == 0 else 9)))
        bins, _ = cover(sizes, 100)
        inputs = [index for taken in bins for index in taken]
        entropy = sum((100 - sizes[index]) ** 2 for index in inputs)
        ours = Grouping(len(inputs), len(bins), len(bins), entropy)
        ways = _groupings(sizes)
        replaced += ours.replaced
        fewest["entropy"] += min(way.replaced for way in ways if way.entropy >= entropy)
        fewest["benefit"] += min(way.replaced for way in ways if way.benefit >= ours.benefit)
        fewest["outputs"] += min(way.replaced for way in ways if way.most_outputs >= len(bins))
        fewest["files removed"] += min(
            way.replaced for way in ways if way.replaced - way.fewest_outputs >= ours.replaced - len(bins)
        )
        fewest["entropy and outputs"] += min(
            way.replaced for way in ways if way.entropy >= entropy and way.most_outputs >= len(bins)
        )
    found = {gain: replaced / best for gain, best in fewest.items()}
    print(f"files replaced as a multiple of the fewest, by gain: {found}")
    assert replaced > 500
    assert found["entropy"] <= 1.05
    assert found["benefit"] <= 1.05
    assert found["entropy and outputs"] == 1
