"""The laws of levels and planning, on streams and policies that hypothesis makes as nasty as it can."""

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import count, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from decider.state.commit_pace import DAY_MS
from decider.state.target_fit import GREATEST_TARGET, LEAST_TARGET, NO_TARGET, WEEK_MS, TargetBasis
from decider.whatif.simulator import replay_lakewright
from decider.whatif.trace import CommitTrace
from shared.layout.eligibility import evaluate_layout
from shared.layout.file_selection import cover
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats, file_stats, stats_of_files
from shared.layout.planner import Plan, plan
from shared.policy.levels import FULL, SMALL_LEVELS
from shared.policy.policy import GIB, KIB, MIB, MaxMode, Policy
from shared.table import Commit, DataFile, PartitionKey
from tests.support.examples import examples
from tests.support.policies import policies

PARTITION = PartitionKey("{}")


POLICIES = policies(max_small_files=st.integers(2, 40), max_mode=st.sampled_from(MaxMode))
sizes = st.one_of(st.integers(1, 2_000_000), st.integers(1, 300), st.integers(49_000, 66_000))


def files_of(sizes_bytes: list[int]) -> list[DataFile]:
    return [DataFile(f"f{n}", size, PARTITION) for n, size in enumerate(sizes_bytes)]


def rewritten(files: list[DataFile], made: Plan, names: count) -> list[DataFile]:
    gone = {file.path for group in made.groups for file in group.files}
    new = [DataFile(f"r{next(names)}", group.bytes, PARTITION) for group in made.groups]
    return [file for file in files if file.path not in gone] + new


@given(POLICIES, st.lists(sizes, max_size=60))
def test_verdict_from_state_alone_equals_the_plan(policy: Policy, sizes_bytes: list[int]) -> None:
    files = files_of(sizes_bytes)
    verdict = evaluate_layout(stats_of_files(files, policy.size_levels), policy)
    assert verdict.needs_rewrite == bool(plan(PARTITION, files, policy).groups)


@given(POLICIES, st.lists(sizes, max_size=60))
def test_every_group_obeys_the_promotion_rule_and_holds_small_files_once(
    policy: Policy, sizes_bytes: list[int]
) -> None:
    files, size_levels = files_of(sizes_bytes), policy.size_levels
    made = plan(PARTITION, files, policy)
    inputs = [file.path for group in made.groups for file in group.files]
    assert len(inputs) == len(set(inputs))
    for group in made.groups:
        largest = max(file.size_bytes for file in group.files)
        assert size_levels.level(largest) < FULL
        assert size_levels.permits_rewrite(
            size_levels.level(largest), group.bytes, len(group.files), policy.min_input_files
        )
        assert size_levels.level(group.bytes) > size_levels.level(largest)
        assert group.bytes < 2 * policy.target_bytes


def test_files_left_beside_full_outputs_fit_into_none_of_them() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=100)
    @given(POLICIES, st.lists(sizes, min_size=20, max_size=60))
    def law(policy: Policy, sizes_bytes: list[int]) -> None:
        # Three of the added files are nearly a target.
        files = files_of([*sizes_bytes, *[policy.target_bytes // 3] * 10])
        size_levels, groups = policy.size_levels, plan(PARTITION, files, policy).groups
        most = size_levels.cover_bytes * 5 // 4
        taken = {file for group in groups for file in group.files}
        left = [
            one.size_bytes for one in set(files) - taken if size_levels.level(one.size_bytes) < policy.automatic_levels
        ]
        full = [group.bytes for group in groups if group.bytes >= size_levels.cover_bytes]
        assert all(size + output > most for size in left for output in full)
        seen["beside"] += bool(left and full)

    law()
    assert seen["beside"] >= 3, "a law about what is left says nothing where nothing is"


@given(POLICIES, st.lists(sizes, max_size=60))
def test_planning_is_a_fixed_point(policy: Policy, sizes_bytes: list[int]) -> None:
    files = files_of(sizes_bytes)
    made = plan(PARTITION, files, policy)
    assert not plan(PARTITION, rewritten(files, made, count()), policy).groups


def test_no_byte_is_rewritten_more_than_once_per_level() -> None:
    """The theorem: follow the number of rewrites of every ingested file through any stream of commits."""
    seen: Counter[int] = Counter()

    @settings(max_examples=100)
    @given(POLICIES, st.lists(st.lists(sizes, min_size=1, max_size=5), max_size=30), st.randoms(use_true_random=False))
    def law(policy: Policy, commits: list[list[int]], dice: random.Random) -> None:
        size_levels, names = policy.size_levels, count()
        files: list[DataFile] = []
        rewrites: dict[str, dict[str, int]] = {}
        # After what hypothesis thought of, a steady stream of files around one bound, which carries through the levels.
        bound = dice.choice(size_levels.floors[1:])
        commits = commits + [[max(1, bound // dice.randint(1, 9)) for _ in range(4)] for _ in range(20)]
        for added in commits:
            for size in added:
                name = f"i{next(names)}"
                files.append(DataFile(name, size, PARTITION))
                rewrites[name] = {name: 0}
            made = plan(PARTITION, files, policy)
            for group in made.groups:
                merged = {one: times + 1 for file in group.files for one, times in rewrites.pop(file.path).items()}
                name = f"r{next(names)}"
                rewrites[name] = merged
                files = [file for file in files if file not in group.files] + [DataFile(name, group.bytes, PARTITION)]
                assert max(merged.values()) <= size_levels.level(group.bytes) <= SMALL_LEVELS
                seen.update(merged.values())

    law()
    print(f"files rewritten by number of times: {dict(sorted(seen.items()))}")
    # A law about rewrites says nothing where there are none: files were rewritten, and again.
    assert min(seen[1], seen[2]) >= 100
    assert seen[3] >= 1


def test_the_bound_is_reached_by_whoever_adds_just_enough_for_the_next_level() -> None:
    policy = Policy(
        target_bytes=64 * KIB, fan_in=2, full_file_threshold=Fraction(1), tolerance=Fraction(0), min_input_files=2
    )
    files, names = [DataFile("first", policy.size_levels.floors[1] // 2, PARTITION)], count()
    for level in range(1, FULL + 1):
        missing = policy.size_levels.required_bytes(level - 1) - files[0].size_bytes
        files.append(DataFile(f"i{level}", missing, PARTITION))
        files = rewritten(files, plan(PARTITION, files, policy), names)
        assert [policy.size_levels.level(file.size_bytes) for file in files] == [level]
    assert next(names) == SMALL_LEVELS


@given(POLICIES, st.lists(sizes, min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_state_is_a_count_of_all_files_in_any_order_of_adds_and_removes(
    policy: Policy, sizes_bytes: list[int], rng
) -> None:
    size_levels = policy.size_levels
    kept = [size for size in sizes_bytes if rng.random() < 0.5]
    gone = list(sizes_bytes)
    for size in kept:
        gone.remove(size)
    changes = [file_stats(size_levels, size) for size in sizes_bytes] + [
        EMPTY_STATS - file_stats(size_levels, s) for s in gone
    ]
    rng.shuffle(changes)
    state = EMPTY_STATS
    for change in changes:
        state += change
    assert state == stats_of_files(files_of(kept), size_levels)
    assert PartitionStats.decode(state.encode()) == state


@given(st.integers(10, 5_000), st.data())
def test_covering_uses_each_file_once_and_leaves_less_than_a_target(target: int, data: st.DataObject) -> None:
    ascending = sorted(data.draw(st.lists(st.integers(1, target - 1), max_size=60)))
    bins, left = cover(ascending, target)
    assert sorted([index for taken in bins for index in taken] + left) == list(range(len(ascending)))
    assert sum(ascending[index] for index in left) < target
    for taken in bins:
        total = sum(ascending[index] for index in taken)
        assert target <= total
        # Without the file that closed it the output would have stayed below the target.
        assert total - ascending[taken[-1]] < target


def test_no_byte_is_rewritten_more_than_once_per_level_of_each_set_of_levels_that_it_lived_under() -> None:
    seen: Counter[int] = Counter()

    @settings(max_examples=50)
    @given(policies(), st.lists(sizes, min_size=2, max_size=5), st.randoms(use_true_random=False))
    def law(policy: Policy, typical_sizes: list[int], dice: random.Random) -> None:
        names = count()
        files: list[DataFile] = []
        rewrites: dict[str, Counter[tuple[str, int]]] = {}  # of each byte that a file holds, by epoch
        for epoch, typical in enumerate(typical_sizes):
            fitted = policy.fitted_to(typical)
            levels = fitted.size_levels
            for _ in range(20):
                size = max(1, dice.choice(levels.floors[1:]) // dice.randint(1, 9))
                for _ in range(4):
                    name = f"i{next(names)}"
                    files.append(DataFile(name, size, PARTITION))
                    rewrites[name] = Counter({(name, epoch): 0})
                for group in plan(PARTITION, files, fitted).groups:
                    merged: Counter[tuple[str, int]] = Counter()
                    for file in group.files:
                        times = rewrites.pop(file.path)
                        merged.update(times)
                        merged.update({(byte, epoch): 1 for byte in {byte for byte, _ in times}})
                    name = f"r{next(names)}"
                    rewrites[name] = merged
                    files = [file for file in files if file not in group.files]
                    files.append(DataFile(name, group.bytes, PARTITION))
                    under_this = max(times for (_, one), times in merged.items() if one == epoch)
                    assert under_this <= levels.level(group.bytes) <= SMALL_LEVELS
                    assert max(merged.values()) <= SMALL_LEVELS
                    seen[len({one for _, one in merged if merged[_, one]})] += 1

    law()
    print(f"rewrites of files whose bytes were rewritten under so many typical_sizes: {dict(sorted(seen.items()))}")
    assert min(seen[1], seen[2]) >= 50


@settings(max_examples=examples(0.04))
@given(st.integers(300_000, 3_000_000), st.floats(0, 0.2), st.integers(0, 1_000))
def test_a_table_whose_commits_change_size_tenfold_changes_its_levels_once_for_that(
    size_bytes: int, spread: float, seed: int
) -> None:
    dice = random.Random(seed)
    policy = Policy(target_bytes=256 * MIB)

    def commits(first: int, number: int, size_bytes: int) -> tuple[Commit, ...]:
        return tuple(
            Commit(n, 1 + n * 7_200_000, "WRITE", (DataFile(f"f{n}", _drawn(dice, size_bytes, spread), PARTITION),))
            for n in range(first, first + number)
        )

    before = CommitTrace((), commits(0, 120, size_bytes))
    after = CommitTrace((), (*before.commits, *commits(120, 240, 10 * size_bytes)))
    fits = replay_lakewright(before, policy).level_fits
    done = replay_lakewright(after, policy)
    assert done.level_fits <= fits + 1
    assert done.wa <= SMALL_LEVELS * (done.level_fits + 1)


def _drawn(dice: random.Random, size_bytes: int, spread: float) -> int:
    return max(1, int(size_bytes * dice.uniform(1 - spread, 1 + spread)))


HOUR_MS = 3_600_000
counts = st.integers(0, 2**60) | st.integers(0, 2**42)
bases = st.builds(TargetBasis, counts, counts, st.integers(1, 2**30))
AUTO = Policy(fits_target=True)


@given(
    st.lists(st.tuples(st.integers(-30 * DAY_MS, 30 * DAY_MS) | st.just(DAY_MS), bases), max_size=60),
    st.integers(2, 64),
)
def test_two_changes_are_never_closer_than_a_week_and_targets_stay_within_bounds(
    told: list[tuple[int, TargetBasis]], fan_in: int
) -> None:
    found, now_ms, changes = NO_TARGET, 1_000 * WEEK_MS, list[int]()
    for passed_ms, basis in told:
        now_ms += passed_ms
        before = found.target_bytes or AUTO.target_bytes
        found = found.refitted(replace(AUTO, fan_in=fan_in, target_bytes=before), basis, now_ms)
        after = found.target_bytes or before
        if after != before:
            changes.append(now_ms)
            assert max(before, after) >= 2 * min(before, after)
        assert LEAST_TARGET <= after <= GREATEST_TARGET
    assert all(later - earlier >= WEEK_MS for earlier, later in pairwise(changes))


@given(
    st.integers(GIB // 8, 2**44),
    st.integers(GIB // 1024, 2**42),
    st.integers(1_000, 1_000_000),
    st.lists(st.tuples(*[st.integers(91, 110)] * 3), min_size=1, max_size=20),
)
def test_small_fluctuations_change_nothing(
    size: int, added: int, reads: int, wobbles: list[tuple[int, int, int]]
) -> None:
    """Each of the three moves by a tenth: together by less than the square root of two, and never twice as far."""
    policy, now_ms = AUTO, 1_000 * WEEK_MS
    found = NO_TARGET
    for _ in range(6):
        found = found.refitted(policy, TargetBasis(size, added, reads), now_ms)
        policy = replace(policy, target_bytes=found.target_bytes or policy.target_bytes)
        now_ms += WEEK_MS
    settled = TargetBasis(size, added, reads).wanted_bytes(8)
    if not policy.target_bytes**2 <= 2 * settled**2 <= 4 * policy.target_bytes**2:
        return  # It has not settled: a larger target does not pay.
    for by_size, by_added, by_reads in wobbles:
        basis = TargetBasis(size * by_size // 100, added * by_added // 100, reads * by_reads // 100)
        again = found.refitted(policy, basis, now_ms)
        assert again.target_bytes == found.target_bytes
        found, now_ms = again, now_ms + WEEK_MS
